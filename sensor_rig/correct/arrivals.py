"""The grid behind stamps that a host wrote on arrival: a regular sensor, delayed anew each time.

number of each message: a late one takes no number from those after it, as delays only add
grid: a line through the stamps of some seconds around each message
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats, Ints

FEWEST = 20
"""Messages of a stretch below which nothing is smoothed."""
GAP_PERIODS = 20.0
"""A longer silence begins a new stretch."""
LEAST_S, LEAST_MESSAGES = 5.0, 50
"""Half-width of the stretch that a line is put through: the larger of the two."""
RESTLESS = 0.35
"""Spread of the stamps about the grid, in periods, from which on there is none."""
GAIN, RATE_GAIN = 0.05, 0.002
"""Of the loop that follows phase and period while numbering."""


class Grid(NamedTuple):
    """What became of the stamps of one stream."""

    stamps_ns: Ints
    """As they were, in rising order."""
    grid_ns: Ints
    """As they should have been, but for the latency."""
    jitter_s: float
    """Standard deviation that was taken out."""

    def at(self, stamp_ns: int) -> int:
        """Return the place on the grid for a stamp; one that is not known stays where it is."""
        place = int(np.searchsorted(self.stamps_ns, stamp_ns))
        if place < len(self.stamps_ns) and self.stamps_ns[place] == stamp_ns:
            return int(self.grid_ns[place])
        return stamp_ns


def grid_of(stamps_ns: list[int], *, earliest: bool) -> Grid | None:
    """Return the grid of a stream; None where its messages do not come regularly.

    The grid goes through the middle of the stamps, or, with `earliest`, along those that were
    delayed least.
    """
    stamps = np.unique(np.array(stamps_ns, np.int64))
    if len(stamps) < FEWEST:
        return None
    seconds = (stamps - stamps[0]) / 1e9
    steps = np.diff(seconds)
    period_s = float(np.median(steps))
    grid = np.empty(len(stamps))
    breaks = np.flatnonzero(steps > GAP_PERIODS * period_s) + 1
    rests = []
    for part in np.split(np.arange(len(stamps)), breaks):
        if len(part) < FEWEST:
            grid[part] = seconds[part]
            continue
        numbers = _numbered(seconds[part], period_s)
        grid[part] = _line(numbers, seconds[part], earliest=earliest)
        rests.append(seconds[part] - grid[part])
    if not rests or float(np.std(np.concatenate(rests))) > RESTLESS * period_s:
        return None
    rest = np.concatenate(rests)
    return Grid(stamps, stamps[0] + np.rint(grid * 1e9).astype(np.int64), float(np.std(rest)))


def _numbered(seconds: Floats, period_s: float) -> NDArray[np.int64]:
    """Return the number of each message; one that is missing leaves its number out."""
    numbers = np.empty(len(seconds), np.int64)
    phase_s, number = float(seconds[0]), 0
    for index, time_s in enumerate(seconds.tolist()):
        ahead = round((time_s - phase_s) / period_s)
        number += ahead
        phase_s += ahead * period_s
        rest_s = time_s - phase_s
        phase_s += GAIN * rest_s
        period_s += RATE_GAIN * rest_s
        numbers[index] = number
    # What was held back and came at once looks late: it gives way to those that follow.
    behind = numbers[::-1] + np.arange(len(numbers))
    strict: NDArray[np.int64] = (np.minimum.accumulate(behind) - np.arange(len(numbers)))[::-1]
    return strict


def _line(numbers: NDArray[np.int64], seconds: Floats, *, earliest: bool) -> Floats:
    """Return a line through the stamps around each, at its number."""
    slope, level = np.polyfit(numbers, seconds, 1)
    rest = seconds - (level + slope * numbers)
    half = max(LEAST_MESSAGES, round(LEAST_S / max(float(slope), 1e-6)))
    smooth = _running_line(numbers.astype(np.float64), rest, half)
    if earliest:
        smooth += float(np.percentile(rest - smooth, 2))
    fitted: Floats = level + slope * numbers + smooth
    return fitted


def _running_line(x: Floats, y: Floats, half: int) -> Floats:
    """Return the value at each x of the straight line through the `half` points on either side."""
    count = len(x)
    first = np.maximum(np.arange(count) - half, 0)
    last = np.minimum(np.arange(count) + half + 1, count)

    def sums(values: Floats) -> Floats:
        running = np.concatenate([[0.0], np.cumsum(values)])
        found: Floats = running[last] - running[first]
        return found

    n, sx, sy = (last - first).astype(float), sums(x), sums(y)
    sxx, sxy = sums(x * x), sums(x * y)
    spread = n * sxx - sx * sx
    slope = np.where(spread > 0.0, (n * sxy - sx * sy) / np.where(spread > 0.0, spread, 1.0), 0.0)
    fitted: Floats = sy / n + slope * (x - sx / n)
    return fitted
