"""How arrival minus stamp changes over a recording: drift, wander and steps of a clock.

Queues and jitter only add to a delay, so the least delays of short blocks of time show the clock.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from rig_common.arrays import Floats
from sensor_rig.findings.timeline import DelayBlocks, TimeLine, robust_sigma

FEWEST_GROUPS, MOST_GROUPS, GROUP_MESSAGES = 10, 40, 16
"""Parts of a recording whose least delays are compared: the least of many is near the floor."""
FEWEST_MESSAGES = 100
SMOOTHED = 4
"""Groups that are looked at together to see what changes slowly."""
SLOW_NOISE = 2.2 / SMOOTHED**0.5
"""Half of the range that noise of sigma 1 makes of smoothed groups."""
STEP_S = 0.005
"""Smaller clock steps look like jitter."""
STAYS_S, STAYS_BLOCKS = 2.0, 4
"""How long arrival minus stamp stays the same before and after a step, at least."""
SUDDEN = 0.75
"""Part of a step that is there at once; what rises slowly has about half of it there."""


class Trend(NamedTuple):
    """How the clock of a topic runs against the host's."""

    slope_ppm: float = 0.0
    """Of the least delays; a clock that runs fast makes them shrink."""
    sigma_ppm: float = float('inf')
    wander_s: float = 0.0
    """Half of the range in which the delays move slowly about that line."""
    wander_sigma_s: float = 0.0
    """What of it jitter alone makes."""
    span_s: float = 0.0
    bend_s: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """The delays about that line at the start, in the middle and at the end."""
    noise_s: float = 0.0
    """Of the least of a group of delays that are all alike."""


def trend_of(line: TimeLine) -> Trend:
    """Return the trend of a topic's delays; nothing of one with few messages."""
    blocks = line.blocks
    size = len(blocks.since_s)
    if line.count < FEWEST_MESSAGES or size < 2 * FEWEST_GROUPS:
        return Trend()
    count = min(max(line.count // GROUP_MESSAGES, FEWEST_GROUPS), MOST_GROUPS, size // 2)
    groups = np.array_split(blocks.least_s, count)
    times = np.array([part[0] for part in np.array_split(blocks.since_s, count)])
    levels = np.array([part.min() for part in groups])
    middles = np.array([np.median(part) for part in np.array_split(blocks.middle_s, count)])
    span_s = float(times[-1] - times[0])
    if span_s <= 0.0:
        return Trend()
    first, second = np.triu_indices(len(times), max(len(times) // 3, 1))
    apart = times[second] > times[first]
    first, second = first[apart], second[apart]
    slope = float(np.median((levels[second] - levels[first]) / (times[second] - times[first])))
    rest = levels - slope * times
    sigma = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    slow, noise = min(_slow_part(rest), _slow_part(middles - slope * times))
    noise = min(noise, SLOW_NOISE * _noise_inside(groups))
    bent = _smooth(rest - np.median(rest))
    return Trend(
        slope * 1e6,
        1e6 * sigma * 12.0**0.5 / (span_s * len(times) ** 0.5),
        slow,
        noise,
        span_s,
        (float(bent[0]), float(bent[len(bent) // 2]), float(bent[-1])),
        robust_sigma(line.delays_s) / math.sqrt(line.count / count),
    )


def _smooth(levels: Floats) -> Floats:
    calm = np.median(sliding_window_view(np.pad(levels, 1, 'edge'), 3), axis=1)
    return np.asarray(sliding_window_view(calm, SMOOTHED).mean(axis=1))


def _slow_part(levels: Floats) -> tuple[float, float]:
    """Return half of the range that a smoothed series covers, and what noise makes of it."""
    if len(levels) < 2 * SMOOTHED:
        return 0.0, 0.0
    return float(np.ptp(_smooth(levels))) / 2.0, SLOW_NOISE * _noise(levels)


def _noise(levels: Floats) -> float:
    """Return the sigma of what changes from one value to the next; slopes do not count."""
    return 1.4826 * float(np.median(np.abs(np.diff(levels, 2)))) / math.sqrt(6.0)


def _noise_inside(groups: list[Floats]) -> float:
    """Return the sigma of least delays, by the two halves of each group's blocks in turn.

    Few groups of a clock that swings to and fro bend so much that this looks like noise between
    groups; inside of them it does not.
    """
    apart = [group[::2].min() - group[1::2].min() for group in groups]
    return 1.4826 * float(np.median(np.abs(apart))) / math.sqrt(2.0)


def steps_of(line: TimeLine) -> list[tuple[float, float]]:
    """Return (time since the start in s, step of the clock in s) of lasting steps of the stamps.

    A step changes the least delay and the middle one alike, and it stays: the blocks before and
    those after agree among themselves, differ by more than their spread, and do so at once.
    """
    if not line.block_s:
        return []
    width = max(STAYS_BLOCKS, round(STAYS_S / line.block_s))
    blocks = line.blocks
    if len(blocks.since_s) < 2 * width + 2:
        return []
    sizes, spreads = _changes(blocks, width)
    restless = float(np.median(blocks.middle_s - blocks.least_s))
    noise = _noise(blocks.middle_s)
    limit = np.maximum(max(STEP_S, 2.0 * restless, 8.0 * noise / width**0.5), 2.5 * spreads)
    limit = np.maximum(limit, 1.5 * _beside(np.abs(sizes), round(1.5 * width)))
    half = width // 2
    near = _changes(blocks, half)[0][width - half : half - width or None]
    sudden = near * np.sign(sizes) > SUDDEN * np.abs(sizes)
    clear = np.where(sudden & (np.abs(sizes) > limit), np.abs(sizes) - spreads, 0.0)
    found: list[tuple[float, float]] = []
    while clear.any():
        best = int(np.argmax(clear))
        found.append((float(blocks.since_s[best + width + 1]), -float(sizes[best])))
        clear[max(best - width, 0) : best + width + 1] = 0.0
    return sorted(found)


def _beside(sizes: Floats, far: int) -> Floats:
    """Return the larger of the values `far` before and after each: a slope is as large there."""
    padded = np.pad(sizes, far)
    return np.maximum(padded[: -2 * far], padded[2 * far :])


def _changes(blocks: DelayBlocks, width: int) -> tuple[Floats, Floats]:
    """Return (change, spread) from `width` blocks before every block to those after it.

    The block itself may hold messages of both sides.
    """
    sizes, spreads = [], []
    for levels in (blocks.least_s, blocks.middle_s):
        windows = sliding_window_view(levels, width)
        before, after = windows[: -width - 1], windows[width + 1 :]
        sizes.append(np.median(after, axis=1) - np.median(before, axis=1))
        low, high = np.percentile(windows, (10, 90), axis=1)
        spread = high - low
        spreads.append(np.maximum(spread[: -width - 1], spread[width + 1 :]))
    least, middle = sizes
    alike = np.sign(least) == np.sign(middle)
    size = np.where(np.abs(least) < np.abs(middle), least, middle)
    return np.where(alike, size, 0.0), np.minimum(*spreads)
