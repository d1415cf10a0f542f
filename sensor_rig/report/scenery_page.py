"""The sections of a report that show where the robot drove and what its camera saw."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rig_common.jsonable import JsonObject
from sensor_rig.report import page
from sensor_rig.report.svg import LEFT, RIGHT, Plot, legend

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
    drawn = {topic: laid(rows, true[0] if true else rows[0]) for topic, rows in paths.items()}
    points = [point for path in drawn.values() for point in path]
    plot = _map(points)
    measured = [topic for topic in drawn if topic != TRUTH]
    for index, topic in enumerate(measured):
        plot.line([x for x, _ in drawn[topic]], [y for _, y in drawn[topic]], index)
    if true:
        plot.polyline(drawn[TRUTH], 'truth')
    words = (
        'Seen from above. Dashed: the true path; measured ones are laid onto its start.'
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


def laid(rows: Rows, onto: Sequence[float]) -> list[tuple[float, float]]:
    """Return a path [(x, y)] m, turned and moved so that its first pose lies on `onto`.

    Rows and `onto` are (time s, x m, y m, yaw rad).
    """
    _, x0, y0, yaw0 = rows[0]
    turn = onto[3] - yaw0
    cos, sin = math.cos(turn), math.sin(turn)
    return [
        (onto[1] + cos * (x - x0) - sin * (y - y0), onto[2] + sin * (x - x0) + cos * (y - y0))
        for _, x, y, _ in rows
    ]


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
