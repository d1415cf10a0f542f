"""What the page's drawings share: size, colours, a time axis, marks of events.

Colours are chosen to be told apart by colour-blind eyes and on light and
dark ground alike; a drawing is as wide as the page lets it be, and is readable at `WIDTH` px.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sensor_rig.drawing import svg
from sensor_rig.page.history import Occurrence

WIDTH = 400
RIGHT = 8
LETTER = 7.1
"""Width of a letter, px, on average and in bold."""
CAPTURE, STAMP, ARRIVAL, BUNDLE = '#2f80ed', '#e8890c', '#8a8f98', '#1a9c5b'
FAULT = '#d1495b'
INK = 'currentColor'
BOLD, SOFT, TO_THE_LEFT = ' font-weight="600"', ' opacity="0.7"', ' text-anchor="end"'
LONGEST_LABEL = 26
"""Letters of an event's name."""
WIDEST_LABEL = 146.0
"""Of a sensor's name, px."""


@dataclass(frozen=True)
class TimeAxis:
    """Where a moment lies: from `left` to the right edge are the last `span_s`."""

    left: float
    now_s: float
    span_s: float
    right: float = WIDTH - RIGHT
    """Where the present is, px."""

    def x(self, time_s: float) -> float:
        """Return the place of a moment, px; it may lie outside."""
        share = (time_s - self.now_s + self.span_s) / self.span_s
        return self.left + share * (self.right - self.left)

    def shows(self, time_s: float) -> bool:
        """Whether a moment is within the axis."""
        return self.now_s - self.span_s <= time_s <= self.now_s


def document(height: float, parts: Iterable[str], name: str, width: float = WIDTH) -> str:
    """Return an SVG of full width; `name` is its class and what a screen reader says."""
    style = (
        f' class="rig-{name.replace(" ", "-")}" width="100%" xmlns="http://www.w3.org/2000/svg" '
        f'style="display: block; font: 12px system-ui, sans-serif; fill: {INK}"'
    )
    return svg.document(width, round(height), parts, name, style)


def legend(entries: Sequence[tuple[str, str]], x: float, y: float) -> str:
    """Return squares with (name, colour), from `x` on."""
    pieces = []
    for name, colour in entries:
        pieces.append(
            f'<rect x="{x:.0f}" y="{y - 9:.0f}" width="10" height="10" rx="2" '
            f'fill="{colour}"/>' + svg.text(x + 14, y, name)
        )
        x += 26 + 6.6 * len(name)
    return ''.join(pieces)


def line(points: Iterable[tuple[float, float]], colour: str, width: float = 1.6) -> str:
    """Return a line through points in px."""
    return svg.polyline(points, f' stroke="{colour}" stroke-width="{width}"')


def event_marks(
    events: Iterable[Occurrence],
    axis: TimeAxis,
    top: float,
    bottom: float,
    names: bool | str = True,
) -> str:
    """Return a vertical mark for every event that the axis shows, pale while it lasts.

    `names`: written beside the marks for all, for none, or for the events of one sensor.
    """
    pieces = []
    shown = [
        event
        for event in events
        if axis.shows(event.time_s)
        or (event.end_s is not None and event.time_s < axis.now_s < event.end_s + axis.span_s)
    ]
    for row, event in enumerate(shown):
        x = max(axis.x(event.time_s), axis.left)
        if event.end_s is not None:
            end = min(axis.x(event.end_s), axis.right)
            pieces.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="{max(end - x, 0.0):.1f}" '
                f'height="{bottom - top:.1f}" fill="{FAULT}" fill-opacity="0.10"/>'
            )
        if axis.shows(event.time_s):
            pieces.append(
                f'<path class="rig-event" d="M{x:.1f} {top:.1f}V{bottom:.1f}" '
                f'stroke="{FAULT}" stroke-width="1.5" stroke-dasharray="3 2"/>'
            )
        if names is True or (names and names == event.sensor):
            label = event.label if names is True else event.name
            pieces.append(_event_name(label, x, top + 11 + 13 * (row % 3), axis))
    return ''.join(pieces)


def _event_name(label: str, x: float, y: float, axis: TimeAxis) -> str:
    short = label if len(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + '…'
    style = f'{BOLD} fill="{FAULT}"'
    if x + 4 + LETTER * len(short) > axis.right:
        name = svg.text(x - 4, y, short, style + TO_THE_LEFT)
    else:
        name = svg.text(x + 4, y, short, style)
    # Readable over lines: a rim in the colour of the page.
    return (
        '<g style="paint-order: stroke; stroke: var(--mantine-color-body, #fff); '
        f'stroke-width: 3px">{name}</g>'
    )


def label_width(names: Iterable[str]) -> float:
    """Return how much room names in bold need, px; a long one is cut by `shortened`."""
    return min(8 + LETTER * max(map(len, names), default=0), WIDEST_LABEL)


def shortened(name: str) -> str:
    """Return a name that fits into `label_width`."""
    most = int((WIDEST_LABEL - 8) / LETTER)
    return name if len(name) <= most else name[: most - 1] + '…'
