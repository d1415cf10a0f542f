"""Joints and contacts of an arm, a hand or a legged robot: what was measured, and the truth."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from sensor_rig.drawing import svg
from sensor_rig.drawing.plots import nice_ticks
from sensor_rig.page import parts
from sensor_rig.page.history import Occurrence
from sensor_rig.page.parts import (
    BOLD,
    BUNDLE,
    CAPTURE,
    INK,
    SOFT,
    TO_THE_LEFT,
    TimeAxis,
)

SPAN_S = 5.0
SPACING_S = 0.04
"""Time between two points of a trace; a contact that opens or closes is never left out."""
CELL_HEIGHT = 46.0
LANE_HEIGHT = 34.0
LEAST_REACH = 0.02
"""What a joint's plot shows at least, rad or m."""
LEAST_FORCE_N = 5.0

Points = deque[tuple[float, float]]
"""(time s, value), earliest first."""


@dataclass
class Trace:
    """One quantity over the last seconds."""

    measured: Points = field(default_factory=deque)
    """At arrival."""
    true: Points = field(default_factory=deque)
    """At capture."""

    def add(self, line: str, time_s: float, value: float, *, switches: bool = False) -> None:
        """Note a value of `measured` or `true`; `switches` keeps every change."""
        points: Points = getattr(self, line)
        if points and time_s < points[-1][0]:
            points.clear()  # the world was reset
        changed = switches and points and points[-1][1] != value
        if points and time_s - points[-1][0] < SPACING_S and not changed:
            return
        points.append((time_s, value))
        while points[0][0] < time_s - 2 * SPAN_S:
            points.popleft()


@dataclass
class Body:
    """The traces of a robot, by joint and by contact sensor; empty ones have not been heard."""

    joints: dict[str, Trace] = field(default_factory=dict)
    """rad or m."""
    contacts: dict[str, Trace] = field(default_factory=dict)
    """N; a switch measures 0 or 1."""
    switches: frozenset[str] = frozenset()
    """Contact sensors that are only open or closed."""


def joints(traces: Mapping[str, Trace], now_s: float) -> str:
    """Draw a small plot for every joint, two in a row."""
    drawn = [
        svg.text(2, 14, 'Joints', BOLD),
        parts.legend([('measured', CAPTURE), ('truth', BUNDLE)], 62, 14),
        svg.text(parts.WIDTH - parts.RIGHT, 14, f'last {SPAN_S:.0f} s', TO_THE_LEFT + SOFT),
    ]
    width = (parts.WIDTH - parts.RIGHT - 8) / 2
    for index, (name, trace) in enumerate(traces.items()):
        left = 2 + (index % 2) * (width + 8)
        drawn.append(_joint(name, trace, now_s, (left, width), 22 + CELL_HEIGHT * (index // 2)))
    rows = -(-len(traces) // 2)
    return parts.document(24 + CELL_HEIGHT * rows, drawn, 'joints')


def _joint(name: str, trace: Trace, now_s: float, place: tuple[float, float], top: float) -> str:
    left, width = place
    high, low = top + 16, top + CELL_HEIGHT - 4
    values = [value for line in (trace.measured, trace.true) for _, value in line]
    if not values:
        return svg.text(left, top + 12, parts.shortened(name), SOFT)
    middle = (max(values) + min(values)) / 2
    reach = max((max(values) - min(values)) / 2, LEAST_REACH) * 1.1

    def at(time_s: float, value: float) -> tuple[float, float]:
        return (
            left + width * (1.0 - (now_s - time_s) / SPAN_S),
            (high + low) / 2 - (value - middle) / reach * (low - high) / 2,
        )

    lines = [
        parts.line((at(*point) for point in line if now_s - point[0] <= SPAN_S), colour, thick)
        for line, colour, thick in ((trace.true, BUNDLE, 3.0), (trace.measured, CAPTURE, 1.4))
        if line
    ]
    last = trace.measured[-1][1] if trace.measured else math.nan
    return (
        f'<rect x="{left:.1f}" y="{high:.1f}" width="{width:.1f}" height="{low - high:.1f}" '
        f'fill="{INK}" fill-opacity="0.03"/>'
        + svg.text(left, top + 12, parts.shortened(name))
        + svg.text(left + width, top + 12, f'{last:+.3f}', TO_THE_LEFT + SOFT)
        + ''.join(lines)
    )


def contacts(body: Body, now_s: float, events: Iterable[Occurrence] = ()) -> str:
    """Draw a lane for every contact sensor: closed or open, or how hard it is pressed."""
    names = list(body.contacts)
    axis = TimeAxis(parts.label_width(names), now_s, SPAN_S)
    height = 24 + LANE_HEIGHT * len(names)
    drawn = [
        svg.text(2, 14, 'Contacts', BOLD),
        parts.legend([('measured', CAPTURE), ('true force', BUNDLE)], 72, 14),
        svg.text(axis.right, 14, f'last {SPAN_S:.0f} s', TO_THE_LEFT + SOFT),
    ]
    for index, name in enumerate(names):
        drawn.append(_contact(name, body, axis, 24 + LANE_HEIGHT * index))
    drawn.append(parts.event_marks(events, axis, 20, height))
    return parts.document(height + 2, drawn, 'contacts')


def _contact(name: str, body: Body, axis: TimeAxis, top: float) -> str:
    trace, low, high = body.contacts[name], top + LANE_HEIGHT - 5, top + 3
    measured, true = (
        [p for p in line if axis.shows(p[0])] for line in (trace.measured, trace.true)
    )
    is_switch = name in body.switches
    forces = [value for _, value in (true if is_switch else [*true, *measured])]
    full = nice_ticks(0.0, 10 * max([*forces, LEAST_FORCE_N]), 10)[1]  # the next round number

    def at(time_s: float, value: float) -> tuple[float, float]:
        return axis.x(time_s), low - (low - high) * min(value / full, 1.0)

    drawn = [
        svg.text(2, (low + high) / 2 + 4, parts.shortened(name), BOLD),
        f'<line x1="{axis.left:.1f}" x2="{axis.right}" y1="{low}" y2="{low}" '
        f'stroke="{INK}" stroke-opacity="0.25"/>',
    ]
    if is_switch:
        drawn.append(_closed(measured, axis, high, low))
    drawn.append(parts.line((at(*point) for point in true), BUNDLE, 1.4 if is_switch else 3.0))
    if not is_switch:
        drawn.append(parts.line((at(*point) for point in measured), CAPTURE, 1.4))
    drawn.append(svg.text(axis.right, high + 8, f'{full:g} N', TO_THE_LEFT + SOFT))
    return ''.join(drawn)


def _closed(measured: list[tuple[float, float]], axis: TimeAxis, high: float, low: float) -> str:
    """Return a block for every stretch in which a switch is closed."""
    pieces = []
    for (time_s, value), (end_s, _) in pairwise([*measured, (axis.now_s, 0.0)]):
        if value:
            x = axis.x(time_s)
            pieces.append(f'M{x:.1f} {low:.1f}V{high:.1f}H{axis.x(end_s) + 0.3:.1f}V{low:.1f}Z')
    return f'<path d="{"".join(pieces)}" fill="{CAPTURE}" fill-opacity="0.45"/>'
