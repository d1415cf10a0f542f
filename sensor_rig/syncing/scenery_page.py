"""The sections of a report that show where the robot drove and what its camera saw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from rig_common.jsonable import JsonObject
from sensor_rig.drawing import html_page as page
from sensor_rig.drawing.plots import LEFT, RIGHT, Plot, legend

TRUTH = '/truth/odom'
WIDTH, HEIGHTS = 860.0, (200.0, 460.0)
FURNITURE_PX = 60.0
"""What axes and labels take of a plot's height."""

Rows = Sequence[Sequence[float]]


def scenery_sections(run: JsonObject) -> list[str]:
    """Return the sections; none of a report that is older than these."""
    seen = run.get('scenery') or {}
    return [*_paths(seen.get('paths') or {}), *_pictures(seen)]


def _paths(paths: Mapping[str, Rows]) -> list[str]:
    if not paths:
        return []
    true = paths.get(TRUTH)
    drawn = {topic: laid(rows, true or rows) for topic, rows in paths.items()}
    points = [point for path in drawn.values() for point in path]
    plot = _map(points)
    measured = [topic for topic in drawn if topic != TRUTH]
    for index, topic in enumerate(measured):
        plot.line([x for x, _ in drawn[topic]], [y for _, y in drawn[topic]], index)
    if true:
        plot.polyline(drawn[TRUTH], 'truth')
    words = (
        'Seen from above. Dashed: the true path; measured ones are turned and moved so that '
        'they fit it best, as a whole.'
        if (true)
        else 'Seen from above, each path in its own frame.'
    )
    return [
        page.section(
            'Trajectory',
            page.text(words),
            legend(measured) if measured else '',
            page.figure(plot.svg('paths seen from above')),
        )
    ]


def laid(rows: Rows, onto: Rows) -> list[tuple[float, float]]:
    """Return a path [(x, y)] m, turned and moved so that it lies on the path `onto`.

    Rows are (time s, x m, y m, yaw rad). Yaws are not compared: a sensor may be mounted turned.
    Times of another clock are taken to begin when those of `onto` do.
    """
    path, true = np.array(rows, float), np.array(onto, float)
    times = path[:, 0]
    if times[-1] < true[0, 0] or times[0] > true[-1, 0]:
        times = times - times[0] + true[0, 0]
    inside = (times >= true[0, 0]) & (times <= true[-1, 0])
    where = np.stack([np.interp(times, true[:, 0], true[:, axis]) for axis in (1, 2)], axis=1)
    mine = path[:, 1:3]
    if not inside.any():
        inside[0] = True
    centre, target = mine[inside].mean(axis=0), where[inside].mean(axis=0)
    a, b = mine[inside] - centre, where[inside] - target
    turn = math.atan2(float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()), float((a * b).sum()))
    cos, sin = math.cos(turn), math.sin(turn)
    moved = (mine - centre) @ np.array([[cos, sin], [-sin, cos]]) + target
    return [(float(x), float(y)) for x, y in moved]


def _map(points: Sequence[tuple[float, float]]) -> Plot:
    """Return a plot in which a metre is as long in x as in y."""
    lows, highs = (
        [pick(point[axis] for point in points) for axis in (0, 1)] for pick in (min, max)
    )
    x_span, y_span = (max(high - low, 0.5) * 1.1 for low, high in zip(lows, highs, strict=True))
    inner = WIDTH - LEFT - RIGHT
    height = min(max(inner * y_span / x_span + FURNITURE_PX, HEIGHTS[0]), HEIGHTS[1])
    x_span = max(x_span, y_span * inner / (height - FURNITURE_PX))
    y_span = x_span * (height - FURNITURE_PX) / inner
    x, y = ((low + high) / 2 for low, high in zip(lows, highs, strict=True))
    return Plot(
        (x - x_span / 2, x + x_span / 2),
        (y - y_span / 2, y + y_span / 2),
        xlabel='x (m)',
        ylabel='y (m)',
        width=WIDTH,
        height=height,
    )


def _pictures(seen: JsonObject) -> list[str]:
    pictures = seen.get('pictures') or ()
    if not pictures:
        return []
    images = ''.join(
        f'<img alt="a picture of the camera" src="data:image/jpeg;base64,{each}">'
        for each in pictures
    )
    return [
        page.section(
            'What the camera saw',
            page.text(f'{seen["camera"]}, spread over the run.'),
            f'<div class="pictures">{images}</div>',
        )
    ]
