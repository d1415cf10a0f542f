"""The timeline: a lane per sensor with when each sample was taken, stamped and there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig_common.times import NS_PER_S
from sensor_rig.drawing import svg
from sensor_rig.page import parts
from sensor_rig.page.history import History, Mark
from sensor_rig.page.parts import (
    ARRIVAL,
    BOLD,
    BUNDLE,
    CAPTURE,
    INK,
    SOFT,
    STAMP,
    TimeAxis,
)

HEAD = 24
LEGEND_LEFT = 128.0
"""Where the legend begins at most, px: it is as wide as what is left of the drawing."""
MANY = 60
"""Marks in a lane above which single samples are not connected any more."""
CELL = 2
"""Width of a mark, px: where there are more marks than cells, a lane is drawn as bars."""
LANES_HEIGHT, LANE_HEIGHTS = 220.0, (32.0, 60.0)
"""All lanes together, and the least and most for one of them, px."""


def timeline(history: History) -> str:
    """Draw the last seconds; a green line joins the members of a bundle."""
    names = list(history.marks)
    lane = min(max(LANES_HEIGHT / max(len(names), 1), LANE_HEIGHTS[0]), LANE_HEIGHTS[1])
    axis = TimeAxis(parts.label_width(names), history.now_s, history.span_ns / NS_PER_S)
    tops = {name: HEAD + lane * index for index, name in enumerate(names)}
    height = HEAD + lane * len(names) + 18
    drawn = [
        _seconds(axis, height),
        parts.legend(
            [('taken', CAPTURE), ('stamped', STAMP), ('arrived', ARRIVAL), ('bundle', BUNDLE)],
            min(axis.left, LEGEND_LEFT),
            14,
        ),
    ]
    drawn += [_lane(history, name, axis, top, lane) for name, top in tops.items()]
    for captures in history.bundle_captures():
        if min(captures.values()) >= history.now_ns - history.span_ns:
            drawn.append(
                parts.line(
                    [
                        (axis.x(captures[name] / NS_PER_S), tops[name] + lane / 5)
                        for name in names
                        if name in captures
                    ],
                    BUNDLE,
                    1.4,
                )
            )
    drawn.append(parts.event_marks(history.events(), axis, HEAD - 4, height - 18))
    return parts.document(height, drawn, 'timeline')


def _lane(history: History, name: str, axis: TimeAxis, top: float, lane: float) -> str:
    marks = [
        mark for mark in history.marks[name] if mark.capture_ns > history.now_ns - history.span_ns
    ]
    rows = [top + lane * share for share in (0.20, 0.46, 0.72)]
    bottom = top + lane - 3
    line = (
        f'<line x1="{axis.left:.1f}" x2="{axis.right}" y1="{bottom}" y2="{bottom}" '
        f'stroke="{INK}" stroke-opacity="0.12"/>'
    )
    label = svg.text(2, rows[1] + 4, parts.shortened(name), BOLD)
    links = '' if len(marks) > MANY else ''.join(_link(mark, rows, axis) for mark in marks)
    return (
        line
        + label
        + links
        + ''.join(
            _ticks([mark[index] for mark in marks], axis, row, lane / 12, colour)
            for index, (row, colour) in enumerate(
                zip(rows, (CAPTURE, STAMP, ARRIVAL), strict=True)
            )
        )
    )


def _link(mark: Mark, rows: Sequence[float], axis: TimeAxis) -> str:
    points = ((axis.x(time_ns / NS_PER_S), row) for time_ns, row in zip(mark, rows, strict=True))
    return svg.polyline(points, f' stroke="{INK}" stroke-opacity="0.22" stroke-width="1"')


def _ticks(times_ns: Sequence[int], axis: TimeAxis, y: float, half: float, colour: str) -> str:
    if len(times_ns) * CELL > axis.right - axis.left:
        return _bars(times_ns, axis, y, 2 * half, colour)
    path = ''.join(
        f'M{x:.1f} {y - half:.1f}v{2 * half:.1f}'
        for x in (axis.x(time_ns / NS_PER_S) for time_ns in times_ns)
        if axis.left - 2 <= x <= parts.WIDTH
    )
    return f'<path d="{path}" stroke="{colour}" stroke-width="{CELL}" fill="none"/>'


def _bars(times_ns: Sequence[int], axis: TimeAxis, y: float, width: float, colour: str) -> str:
    """Draw runs of marks that touch as one bar each; what is lost leaves a gap."""
    shares = (np.asarray(times_ns) / NS_PER_S - axis.now_s + axis.span_s) / axis.span_s
    x = axis.left + shares * (axis.right - axis.left)
    cells = np.unique((x[(x >= axis.left - 2) & (x <= parts.WIDTH)] // CELL).astype(int))
    if not len(cells):
        return ''
    breaks = np.flatnonzero(np.diff(cells) > 1)
    runs = zip(cells[np.append(0, breaks + 1)], cells[np.append(breaks, -1)], strict=True)
    path = ''.join(f'M{CELL * first} {y:.1f}H{CELL * (last + 1)}' for first, last in runs)
    return f'<path d="{path}" stroke="{colour}" stroke-width="{width:.1f}" fill="none"/>'


def _seconds(axis: TimeAxis, height: float) -> str:
    """Draw the grid and its times, every half second."""
    pieces = []
    first = -(-(axis.now_s - axis.span_s) // 0.5) * 0.5
    for time_s in np.arange(first, axis.now_s + 1e-9, 0.5):
        x = axis.x(float(time_s))
        anchor = 'middle' if x < parts.WIDTH - 20 else 'end'
        pieces.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{HEAD - 4}" y2="{height - 16}" '
            f'stroke="{INK}" stroke-opacity="0.12"/>'
            + svg.text(
                x, height - 3, f'{round(time_s, 1) + 0.0:.1f} s', f' text-anchor="{anchor}"{SOFT}'
            )
        )
    return ''.join(pieces)
