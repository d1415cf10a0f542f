"""The page's drawings as SVG text: the timeline, the offsets, the window.

Colours are chosen to be told apart by colour-blind eyes and on light and dark ground alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from rig_common.times import NS_PER_S
from sensor_rig.page.history import History, Mark, OffsetPoint, WindowPoint

WIDTH = 540
LABEL = 92
CAPTURE, STAMP, ARRIVAL, BUNDLE = '#2f80ed', '#e8890c', '#8a8f98', '#1a9c5b'
INK = 'currentColor'
LANE = 46
ROWS = {'capture': 10, 'stamp': 22, 'arrival': 34}
MANY = 60
"""Marks in a lane above which single samples are not connected any more."""
CELL = 2
"""Width of a mark, px: where there are more marks than cells, a lane is drawn as bars."""


def timeline(history: History) -> str:
    """Draw a lane per sensor: when each sample was taken, what its stamp says, when it came."""
    names = list(history.marks)
    lanes = {name: 26 + LANE * index for index, name in enumerate(names)}
    height = 26 + LANE * len(names) + 20
    parts = [_time_axis(history, height), _legend()]
    for name, top in lanes.items():
        parts.append(_lane(history, name, top))
    for captures in history.bundle_captures():
        if min(captures.values()) < history.now_ns - history.span_ns:
            continue
        points = ' '.join(f'{_x(history, captures[name]):.1f},{lanes[name] + ROWS["capture"]}'
                          for name in names if name in captures)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{BUNDLE}" '
                     f'stroke-width="1.4" stroke-opacity="0.8"/>')
    return _svg(height, parts)


def _x(history: History, time_ns: int) -> float:
    share = (time_ns - history.now_ns + history.span_ns) / history.span_ns
    return LABEL + share * (WIDTH - LABEL - 8)


def _lane(history: History, name: str, top: int) -> str:
    marks = [mark for mark in history.marks[name]
             if mark.capture_ns > history.now_ns - history.span_ns]
    line = (f'<line x1="{LABEL}" x2="{WIDTH - 8}" y1="{top + LANE - 4}" y2="{top + LANE - 4}" '
            f'stroke="{INK}" stroke-opacity="0.12"/>')
    label = (f'<text x="4" y="{top + 26}" font-weight="600">{escape(name)}</text>')
    links = '' if len(marks) > MANY else ''.join(_link(history, mark, top) for mark in marks)
    return line + label + links + ''.join(
        _ticks(history, [mark[index] for mark in marks], top + row, colour)
        for index, (row, colour) in enumerate(
            zip(ROWS.values(), (CAPTURE, STAMP, ARRIVAL), strict=True)))


def _link(history: History, mark: Mark, top: int) -> str:
    points = ' '.join(f'{_x(history, time_ns):.1f},{top + row}'
                      for time_ns, row in zip(mark, ROWS.values(), strict=True))
    return (f'<polyline points="{points}" fill="none" stroke="{INK}" stroke-opacity="0.22" '
            f'stroke-width="1"/>')


def _ticks(history: History, times_ns: Sequence[int], y: int, colour: str) -> str:
    if len(times_ns) * CELL > WIDTH - LABEL:
        return _bars(history, times_ns, y, colour)
    path = ''.join(f'M{x:.1f} {y - 4}v8' for x in (_x(history, t) for t in times_ns)
                   if LABEL - 2 <= x <= WIDTH)
    return f'<path d="{path}" stroke="{colour}" stroke-width="{CELL}" fill="none"/>'


def _bars(history: History, times_ns: Sequence[int], y: int, colour: str) -> str:
    """Draw runs of marks that touch as one bar each; what is lost leaves a gap."""
    shares = (np.asarray(times_ns) - history.now_ns + history.span_ns) / history.span_ns
    x = LABEL + shares * (WIDTH - LABEL - 8)
    cells = np.unique((x[(x >= LABEL - 2) & (x <= WIDTH)] // CELL).astype(int))
    if not len(cells):
        return ''
    breaks = np.flatnonzero(np.diff(cells) > 1)
    runs = zip(cells[np.append(0, breaks + 1)], cells[np.append(breaks, -1)], strict=True)
    path = ''.join(f'M{CELL * first} {y}H{CELL * (last + 1)}' for first, last in runs)
    return f'<path d="{path}" stroke="{colour}" stroke-width="8" fill="none"/>'


def _legend() -> str:
    pieces, x = [], LABEL
    for text, colour in (('taken', CAPTURE), ('stamped', STAMP), ('arrived', ARRIVAL),
                         ('bundle', BUNDLE)):
        pieces.append(f'<rect x="{x}" y="6" width="10" height="10" rx="2" fill="{colour}"/>'
                      f'<text x="{x + 14}" y="15">{text}</text>')
        x += 26 + 7 * len(text)
    return ''.join(pieces)


def _time_axis(history: History, height: int) -> str:
    pieces = []
    step_ns = NS_PER_S // 2
    first = -(-(history.now_ns - history.span_ns) // step_ns) * step_ns
    for time_ns in range(first, history.now_ns + 1, step_ns):
        x = _x(history, time_ns)
        anchor = 'middle' if x < WIDTH - 20 else 'end'
        pieces.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="22" y2="{height - 18}" '
                      f'stroke="{INK}" stroke-opacity="0.12"/>'
                      f'<text x="{x:.1f}" y="{height - 4}" text-anchor="{anchor}" '
                      f'opacity="0.7">{time_ns / NS_PER_S:.1f} s</text>')
    return ''.join(pieces)


# ---- offsets ------------------------------------------------------------------------------------

PLOT = 58


def offsets(lines: dict[str, Sequence[OffsetPoint]], now_s: float, long_s: float) -> str:
    """Draw, for each clock, the estimate minus the truth in ms with its two-sigma band."""
    parts = [f'<text x="{LABEL}" y="14" opacity="0.7">estimate minus truth, band 2 sigma, '
             f'last {long_s:.0f} s</text>']
    for index, (name, line) in enumerate(lines.items()):
        parts.append(_offset_plot(name, line, now_s, long_s, 22 + PLOT * index))
    return _svg(26 + PLOT * max(len(lines), 1), parts)


def _offset_plot(name: str, line: Sequence[OffsetPoint], now_s: float, long_s: float,
                 top: int) -> str:
    last = line[-1]
    recent = [abs(p.offset_ms - p.true_ms) + 2 * p.sigma_ms for p in list(line)[-20:]]
    limit = _nice(max(*recent, 0.5))
    middle, half = top + PLOT / 2 - 4, PLOT / 2 - 8

    def at(point: OffsetPoint, ms: float) -> str:
        x = LABEL + (point.time_s - now_s + long_s) / long_s * (WIDTH - LABEL - 60)
        y = middle - max(min(ms / limit, 1.0), -1.0) * half
        return f'{x:.1f},{y:.1f}'
    errors = [p.offset_ms - p.true_ms for p in line]
    upper = [at(p, e + 2 * p.sigma_ms) for p, e in zip(line, errors, strict=True)]
    lower = [at(p, e - 2 * p.sigma_ms) for p, e in zip(line, errors, strict=True)]
    path = ' '.join(at(p, e) for p, e in zip(line, errors, strict=True))
    return (f'<text x="4" y="{middle - 4:.0f}" font-weight="600">{escape(name)}</text>'
            f'<text x="4" y="{middle + 11:.0f}" opacity="0.7">{last.offset_ms:+.2f} ms</text>'
            f'<polygon points="{" ".join(upper + lower[::-1])}" fill="{STAMP}" '
            f'fill-opacity="0.22"/>'
            f'<line x1="{LABEL}" x2="{WIDTH - 60}" y1="{middle}" y2="{middle}" stroke="{BUNDLE}" '
            f'stroke-dasharray="4 3"/>'
            f'<polyline points="{path}" fill="none" stroke="{STAMP}" stroke-width="1.6"/>'
            f'<text x="{WIDTH - 54}" y="{middle - half + 9:.0f}" '
            f'opacity="0.7">+{limit:g} ms</text>'
            f'<text x="{WIDTH - 54}" y="{middle + half:.0f}" opacity="0.7">-{limit:g} ms</text>')


def _nice(value: float) -> float:
    """Return the next of 1, 2, 5, 10 ... above `value`, so that the scale rarely changes."""
    scale = 0.5
    while True:
        for factor in (1.0, 2.0, 4.0, 10.0):
            if value <= scale * factor:
                return scale * factor
        scale *= 10.0


# ---- window -------------------------------------------------------------------------------------


def window(points: Sequence[WindowPoint], now_s: float, long_s: float, max_ms: float) -> str:
    """Draw the window's half-width in ms and the motion intensity it follows."""
    height, top, bottom = 96, 22, 84

    def x(point: WindowPoint) -> float:
        return LABEL + (point.time_s - now_s + long_s) / long_s * (WIDTH - LABEL - 60)
    wide = ' '.join(f'{x(p):.1f},{bottom - (bottom - top) * min(p.window_ms / max_ms, 1):.1f}'
                    for p in points)
    motion = ' '.join(f'{x(p):.1f},{bottom - (bottom - top) * p.intensity:.1f}' for p in points)
    last = points[-1] if points else WindowPoint(0.0, max_ms, 0.0)
    return _svg(height, [
        f'<text x="4" y="44" font-weight="600" fill="{CAPTURE}">window</text>'
        f'<text x="4" y="59" opacity="0.7">{last.window_ms:.0f} ms</text>'
        f'<text x="4" y="78" fill="{ARRIVAL}">motion {last.intensity:.2f}</text>'
        f'<text x="{WIDTH - 54}" y="{top + 8}" opacity="0.7">{max_ms:g} ms</text>'
        f'<text x="{WIDTH - 54}" y="{bottom}" opacity="0.7">0</text>'
        f'<polyline points="{motion}" fill="none" stroke="{ARRIVAL}" stroke-width="1.2"/>'
        f'<polyline points="{wide}" fill="none" stroke="{CAPTURE}" stroke-width="1.8"/>'])


def _svg(height: float, parts: Iterable[str]) -> str:
    return (f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="100%" '
            f'style="font: 11.5px system-ui, sans-serif; fill: {INK}" '
            f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>')
