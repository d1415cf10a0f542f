"""Clock offsets against the truth, and the window with the motion that it follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sensor_rig.drawing import svg
from sensor_rig.drawing.plots import nice_ticks, tick_label
from sensor_rig.page import parts
from sensor_rig.page.history import Occurrence, OffsetPoint, WindowPoint
from sensor_rig.page.parts import (
    ARRIVAL,
    BOLD,
    BUNDLE,
    CAPTURE,
    INK,
    SOFT,
    STAMP,
    TO_THE_LEFT,
    TimeAxis,
)

LEFT = 46
HEAD = 38
LEAST_SPAN_MS = 4.0
"""What a plot shows at least, ms: less would make noise look like a fault."""
SURE_MS = 5.0
"""Estimates less certain than this do not set the scale."""


def offsets(
    lines: Mapping[str, Sequence[OffsetPoint]],
    reference: str,
    now_s: float,
    span_s: float,
    events: Sequence[Occurrence] = (),
) -> str:
    """Draw, for each clock, the estimate with its two-sigma band, and the truth; ms."""
    axis = TimeAxis(LEFT, now_s, span_s)
    room = min(max(250.0 / max(len(lines), 1), 46.0), 110.0)
    drawn = [
        svg.text(2, 14, f'Clock offsets relative to {reference}', BOLD),
        svg.text(axis.right, 14, f'last {span_s:.0f} s', TO_THE_LEFT + SOFT),
        parts.legend([('estimate, band 2 sigma', STAMP), ('truth', BUNDLE)], 2, 31),
    ]
    for index, (name, line) in enumerate(lines.items()):
        top = HEAD + (room + 24) * index
        drawn.append(_plot(name, line, axis, (top + 18, top + 18 + room), events))
    return parts.document(HEAD + (room + 24) * len(lines) + 2, drawn, 'offsets')


def _plot(
    name: str,
    line: Sequence[OffsetPoint],
    axis: TimeAxis,
    rows: tuple[float, float],
    events: Sequence[Occurrence],
) -> str:
    top, bottom = rows
    low, high = limits(line)
    shown = [point for point in line if axis.shows(point.time_s)]

    def y(ms: float) -> float:
        return bottom - (min(max(ms, low), high) - low) / (high - low) * (bottom - top)

    xs = [axis.x(point.time_s) for point in shown]
    band = [
        f'{x:.1f},{y(p.offset_ms + 2 * p.sigma_ms):.1f}' for x, p in zip(xs, shown, strict=True)
    ]
    band += [
        f'{x:.1f},{y(p.offset_ms - 2 * p.sigma_ms):.1f}'
        for x, p in zip(reversed(xs), reversed(shown), strict=True)
    ]
    last = line[-1]
    return ''.join(
        [
            svg.text(2, top - 6, parts.shortened(name), BOLD),
            svg.text(
                axis.right,
                top - 6,
                f'{last.offset_ms:+.1f} ms, off by {abs(last.offset_ms - last.true_ms):.1f} ms',
                TO_THE_LEFT,
            ),
            _frame(axis, top, bottom, [(y(tick), label) for tick, label in _ticks(low, high)]),
            f'<polygon points="{" ".join(band)}" fill="{STAMP}" fill-opacity="0.22"/>',
            parts.line(((x, y(p.true_ms)) for x, p in zip(xs, shown, strict=True)), BUNDLE, 2.0),
            parts.line(((x, y(p.offset_ms)) for x, p in zip(xs, shown, strict=True)), STAMP),
            parts.event_marks(events, axis, top, bottom, name),
        ]
    )


def limits(line: Sequence[OffsetPoint]) -> tuple[float, float]:
    """Return the lowest and highest value to show, ms: the truth, sure estimates, their band."""
    sure = [p for p in line if p.sigma_ms < SURE_MS] or list(line)[-1:]
    values = [p.true_ms for p in line] + [p.offset_ms for p in sure]
    values += [
        p.offset_ms + side * 2 * min(p.sigma_ms, SURE_MS)
        for p in sure[-len(sure) // 2 :]
        for side in (-1, 1)
    ]
    low, high = min(values), max(values)
    margin = max(0.12 * (high - low), (LEAST_SPAN_MS - (high - low)) / 2)
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[tuple[float, str]]:
    ticks = nice_ticks(low, high, wanted=3)
    return [(tick, tick_label(tick, ticks)) for tick in ticks]


def _frame(axis: TimeAxis, top: float, bottom: float, ticks: Sequence[tuple[float, str]]) -> str:
    """Return the ground of a plot, with (y, label) at the left."""
    lines = ''.join(
        f'<line x1="{LEFT}" x2="{axis.right}" y1="{y:.1f}" y2="{y:.1f}" '
        f'stroke="{INK}" stroke-opacity="0.12"/>'
        + svg.text(LEFT - 4, y + 4, label, TO_THE_LEFT + SOFT)
        for y, label in ticks
    )
    return (
        f'<rect x="{LEFT}" y="{top:.1f}" width="{axis.right - LEFT:.1f}" '
        f'height="{bottom - top:.1f}" fill="{INK}" fill-opacity="0.03"/>{lines}'
    )


def window(
    points: Sequence[WindowPoint],
    now_s: float,
    span_s: float,
    max_ms: float,
    events: Sequence[Occurrence] = (),
) -> str:
    """Draw the window's half-width in ms and the motion intensity that it follows."""
    axis, top, bottom = TimeAxis(LEFT, now_s, span_s), 40.0, 96.0
    last = points[-1]

    def at(point: WindowPoint, share: float) -> tuple[float, float]:
        return axis.x(point.time_s), bottom - (bottom - top) * min(share, 1.0)

    return parts.document(
        104,
        [
            svg.text(2, 14, 'Window that members must lie in', BOLD),
            svg.text(axis.right, 14, f'{last.window_ms:.0f} ms', TO_THE_LEFT),
            parts.legend([('half-width, ms', CAPTURE), ('motion, 0 to 1', ARRIVAL)], 2, 31),
            _frame(axis, top, bottom, [(top, f'{max_ms:g}'), (bottom, '0')]),
            parts.event_marks(events, axis, top, bottom, False),
            parts.line((at(p, p.intensity) for p in points if axis.shows(p.time_s)), ARRIVAL, 1.2),
            parts.line(
                (at(p, p.window_ms / max_ms) for p in points if axis.shows(p.time_s)), CAPTURE, 1.8
            ),
        ],
        'window',
    )
