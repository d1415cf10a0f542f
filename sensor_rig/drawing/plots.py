"""Small plots as SVG text: sharp at every size, and coloured by the page's own light or dark.

Colours are CSS classes (`c0` ... `c7`, `axis`, `grid`, `text`), so one file serves both themes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from sensor_rig.drawing import svg

NUM_COLOURS = 8
LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 10.0, 38.0
LETTER = 6.6
"""Width of a letter at the plots' font size (px)."""


def colour(index: int) -> str:
    """Return the CSS class of the `index`-th series."""
    return f'c{index % NUM_COLOURS}'


def nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers (1, 2, 5 times a power of ten) within [low, high]."""
    span = high - low
    if not span > 0.0 or not math.isfinite(span):
        return [low]
    raw = span / max(wanted, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def tick_label(value: float, ticks: Sequence[float]) -> str:
    """Return `value` with as many digits as the ticks' spacing needs."""
    step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else abs(value) or 1.0
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f'{value:.{digits}f}' if digits < 7 else f'{value:.2g}'


class Plot:
    """One pair of axes; shapes are added in data units and come out in the order of adding."""

    def __init__(
        self,
        xlim: tuple[float, float],
        ylim: tuple[float, float],
        *,
        xlabel: str = '',
        ylabel: str = '',
        width: float = 860.0,
        height: float = 240.0,
        left: float = LEFT,
    ) -> None:
        self.xlim, self.ylim = _widened(xlim), _widened(ylim)
        self.width, self.height, self.left = width, height, left
        self._labels = (xlabel, ylabel)
        self._shapes: list[str] = []
        self.yticks: list[tuple[float, str]] | None = None
        """Own labels on the y axis, instead of numbers."""

    def x(self, value: float) -> float:
        """Return the pixel of a data value."""
        low, high = self.xlim
        return self.left + (value - low) / (high - low) * (self.width - self.left - RIGHT)

    def y(self, value: float) -> float:
        """Return the pixel of a data value."""
        low, high = self.ylim
        return self.height - BOTTOM - (value - low) / (high - low) * (self.height - BOTTOM - TOP)

    def line(
        self, xs: Sequence[float], ys: Sequence[float], series: int = 0, title: str = ''
    ) -> None:
        """Add a line; it breaks where a value is not finite."""
        pieces: list[str] = []
        pen = 'M'
        for x, y in zip(xs, ys, strict=True):
            if not (math.isfinite(x) and math.isfinite(y)):
                pen = 'M'
                continue
            pieces.append(f'{pen}{self.x(x):.1f} {self._clip(y):.1f}')
            pen = 'L'
        self._add(f'<path class="line {colour(series)}" d="{"".join(pieces)}"', title)

    def band(
        self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], series: int = 0
    ) -> None:
        """Add a shaded band between two lines."""
        upper = [f'{self.x(x):.1f} {self._clip(y):.1f}' for x, y in zip(xs, high, strict=True)]
        lower = [f'{self.x(x):.1f} {self._clip(y):.1f}' for x, y in zip(xs, low, strict=True)]
        if upper:
            points = 'L'.join([*upper, *reversed(lower)])
            self._add(f'<path class="band {colour(series)}" d="M{points}Z"')

    def bar(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        series: int = 0,
        title: str = '',
        opacity: float = 1.0,
    ) -> None:
        """Add a filled rectangle."""
        left, right = self.x(x[0]), self.x(x[1])
        bottom, top = self._clip(y[0]), self._clip(y[1])
        shade = f' fill-opacity="{opacity:.2f}"' if opacity < 1.0 else ''
        self._add(
            f'<rect class="fill {colour(series)}" x="{left:.1f}" y="{top:.1f}" '
            f'width="{max(right - left, 0.5):.1f}" height="{max(bottom - top, 0.0):.1f}"'
            f'{shade}',
            title,
        )

    def ticks_at(self, xs: Iterable[float], y: float, half_height: float, series: int = 0) -> None:
        """Add short vertical strokes around `y`, one per moment of `xs`."""
        top, bottom = self.y(y + half_height), self.y(y - half_height)
        path = ''.join(
            f'M{self.x(x):.1f} {top:.1f}V{bottom:.1f}'
            for x in xs
            if self.xlim[0] <= x <= self.xlim[1]
        )
        if path:
            self._add(f'<path class="line {colour(series)}" d="{path}"')

    def dots(
        self, xs: Sequence[float], ys: Sequence[float], series: int = 0, radius: float = 1.6
    ) -> None:
        """Add points."""
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(x) and math.isfinite(y):
                self._add(
                    f'<circle class="fill {colour(series)}" cx="{self.x(x):.1f}" '
                    f'cy="{self._clip(y):.1f}" r="{radius}"'
                )

    def polyline(self, points: Sequence[tuple[float, float]], css: str = 'link') -> None:
        """Add a thin line through data points, styled by a class of its own."""
        path = 'L'.join(f'{self.x(x):.1f} {self._clip(y):.1f}' for x, y in points)
        self._add(f'<path class="{css}" d="M{path}"')

    def svg(self, title: str) -> str:
        """Return the plot; `title` is what a screen reader says."""
        return svg.document(self.width, self.height, [*self._axes(), *self._shapes], title)

    def _clip(self, y: float) -> float:
        return self.y(min(max(y, self.ylim[0]), self.ylim[1]))

    def _add(self, shape: str, title: str = '') -> None:
        end = f'><title>{escape(title)}</title></{shape[1:].split()[0]}>' if title else '/>'
        self._shapes.append(shape + end)

    def _axes(self) -> Iterable[str]:
        x0, x1, y0, y1 = self.left, self.width - RIGHT, self.height - BOTTOM, TOP
        xticks = nice_ticks(*self.xlim, wanted=8)
        for tick in xticks:
            at = self.x(tick)
            yield f'<path class="grid" d="M{at:.1f} {y0}V{y1}"/>'
            yield label(at, y0 + 14, tick_label(tick, xticks), 'middle')
        numbers = nice_ticks(*self.ylim, wanted=4)
        labelled = (
            self.yticks
            if self.yticks is not None
            else [(tick, tick_label(tick, numbers)) for tick in numbers]
        )
        for value, name in labelled:
            at = self.y(value)
            if self.yticks is None:
                yield f'<path class="grid" d="M{x0} {at:.1f}H{x1}"/>'
            yield label(x0 - 6, at + 4, name, 'end')
        yield f'<path class="axis" d="M{x0} {y1}V{y0}H{x1}"/>'
        xlabel, ylabel = self._labels
        yield label((x0 + x1) / 2, self.height - 6, xlabel, 'middle')
        turned = f' transform="translate(13 {(y0 + y1) / 2:.0f}) rotate(-90)"'
        yield label(0.0, 0.0, ylabel, 'middle', turned)


def label(x: float, y: float, words: str, anchor: str, more: str = '') -> str:
    """Return text in the colour of axes."""
    return svg.text(x, y, words, f' class="text" text-anchor="{anchor}"{more}')


def lanes(names: Sequence[str], xlim: tuple[float, float], xlabel: str = 'time (s)') -> Plot:
    """Return a plot with a lane for every name, the first one at the top."""
    left = min(40.0 + LETTER * max(map(len, names)), 220.0)
    plot = Plot(
        xlim, (-0.6, len(names) - 0.4), xlabel=xlabel, left=left, height=52.0 + 26.0 * len(names)
    )
    plot.yticks = [(len(names) - 1 - lane, name) for lane, name in enumerate(names)]
    return plot


def legend(entries: Sequence[str]) -> str:
    """Return the HTML legend of series 0, 1, ..."""
    items = ''.join(
        f'<span><i class="{colour(index)}"></i>{escape(entry)}</span>'
        for index, entry in enumerate(entries)
    )
    return f'<p class="legend">{items}</p>'


def _widened(limits: tuple[float, float]) -> tuple[float, float]:
    low, high = limits
    if not (math.isfinite(low) and math.isfinite(high)):
        return (0.0, 1.0)
    if high - low < 1e-12:
        margin = abs(low) * 0.01 or 1.0
        return (low - margin, high + margin)
    return (low, high)
