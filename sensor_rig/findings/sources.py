"""Two publishers on one topic: a stream that is uneven, and splits into two that are even."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Floats
from sensor_rig.bags.inspect import seconds_between as between
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import WRONG, Finding, lasting
from sensor_rig.findings.timeline import TimeLine, robust_sigma

FEWEST = 60
LOOKED_AT = 3000
"""Messages of which a pattern is learned."""
NEAR = 0.15
"""Of a period: how far a message may be from its place."""
EVEN = 0.9
"""Share of spacings that are whole periods, in an even stream."""
LEAST = 0.1
"""Share of the messages of the smaller source."""
TURNS = 0.8
"""How often a message is of another source than the one before, over the smaller share."""
FEW_BACK = 0.05
"""Share of stamps before the one before, below which a stream is in order."""
ALIKE, LEAST_RATIO = 0.05, 2.3
"""How far the sums of two spacings may differ in a pattern; a gate makes one and two periods."""
GAP = 20.0
"""Usual steps from which on a gap is where a pattern may begin anew."""
STEADIER = 0.5
"""Range of the spacings in the parts, of that in the whole."""
PARTS = 5
"""Parts of a recording, in each of which both sources must be."""
APART = 5.0
"""Distance of the delays of two clocks, in their spreads."""


class Split(NamedTuple):
    """Two sources of one topic."""

    finding: Finding
    larger: Flags
    """Messages of the source that has more of them."""


def two_sources(name: str, line: TimeLine, frames: int) -> Split | None:
    """Return how a stream splits into two, if it is not of one source."""
    if line.count < FEWEST or line.span_s < 2.0:
        return None
    if _even_somewhere(line):
        return None  # one source, whole or with lost frames
    first = _by_comb(line)
    if first is None:
        return None
    larger = first if first.mean() >= 0.5 else ~first
    one, other = line.only(larger), line.only(~larger)
    rates = [part.count / max(part.span_s, 1e-9) for part in (one, other)]
    apart_s = float(np.median(one.delays_s) - np.median(other.delays_s))
    clocks = ''
    if abs(apart_s) > max(APART * max(map(_sigma, (one, other))), 0.002):
        clocks = f', whose stamps are {lasting(apart_s)} apart'
    names = f' ({frames} frame names)' if frames > 1 else ' under one frame name'
    return Split(
        found(
            'two_sources',
            WRONG,
            name,
            f'two interleaved sources{names}: {rates[0]:.4g} and {rates[1]:.4g} messages a '
            f'second, each of them even, together not{clocks}',
            {'first_hz': rates[0], 'second_hz': rates[1], 'apart_ms': apart_s * 1e3},
        ),
        larger,
    )


def _sigma(line: TimeLine) -> float:
    return robust_sigma(line.delays_s)


def _is_even(steps: Floats) -> bool:
    """Return whether most spacings are whole multiples of the usual one."""
    steps = steps[steps > 0.0]
    if len(steps) < FEWEST // 4:
        return False
    parts = steps / float(np.median(steps))
    whole = np.maximum(np.rint(parts), 1.0)
    return float((np.abs(parts - whole) < NEAR).mean()) > EVEN and float(whole.mean()) < 4.0


def _even_somewhere(line: TimeLine) -> bool:
    """Return whether any part of the stream is even: two sources are uneven all along."""
    for part in np.array_split(np.arange(line.count), PARTS):
        steps: Floats = np.diff(line.stamps_ns[part]) / 1e9
        in_order = float((steps < 0.0).mean()) < FEW_BACK
        stamps = np.unique(line.stamps_ns[part])
        if _has_holes(between(stamps[:-1], stamps[1:])):
            return True
        if in_order and _has_holes(steps):
            return True
    return False


def _has_holes(steps: Floats) -> bool:
    """Return whether the spacings are whole multiples of one, as exactly as that one is kept."""
    steps = steps[steps > 0.0]
    base = float(np.percentile(steps, 20)) if len(steps) else 0.0
    near = steps[np.abs(steps / base - 1.0) < NEAR] if base else steps
    if not len(near):
        return False
    if _alternates(steps):
        return False
    base = float(np.median(near))
    low, high = np.percentile(near, (5, 95))  # rounded stamps have two usual spacings
    slack = min(max(7.0 * robust_sigma(near) / base, 1.2 * (high - low) / base, 0.02), NEAR)
    parts = steps / base
    return float((np.abs(parts - np.maximum(np.rint(parts), 1.0)) < slack).mean()) > EVEN


def _alternates(steps: Floats) -> bool:
    """Return whether short and long spacings alternate, further apart than a time gate makes."""
    if len(steps) < 8:
        return False
    twos = steps[1:] + steps[:-1]
    even = np.abs(twos / float(np.median(twos)) - 1.0) < ALIKE
    short, long = np.percentile(steps, (25, 75))
    return float(even.mean()) > EVEN and long > LEAST_RATIO * short


def _in_turn(split: Flags) -> bool:
    """Return whether messages of both sources come in turn, and not one source after the other."""
    share = min(float(split.mean()), 1.0 - float(split.mean()))
    return share >= LEAST and float((split[1:] != split[:-1]).mean()) > TURNS * share


def _steadier(line: TimeLine, split: Flags) -> bool:
    """Return whether both parts are far more even than the whole: else it is one that jitters."""
    whole, one, other = (
        float(np.ptp(np.percentile(np.diff(np.sort(line.stamps_ns[part])), (15, 85))))
        for part in (split | True, split, ~split)
    )
    return max(one, other) < STEADIER * whole


def _all_along(line: TimeLine, split: Flags) -> bool:
    """Return whether both sources are there in every part of the recording."""
    parts = (line.since_s / max(line.span_s, 1e-9) * PARTS).astype(int).clip(0, PARTS - 1)
    counts = [np.bincount(parts[each], minlength=PARTS) for each in (split, ~split)]
    return all(count.min() > 0.5 * count.mean() for count in counts)


def _by_comb(line: TimeLine) -> Flags | None:
    """Split by the places of the stamps, where one source has an even comb."""
    order = np.argsort(line.stamps_ns, kind='stable')
    stamps = between(np.full(line.count, line.stamps_ns[order[0]]), line.stamps_ns[order])
    steps = np.diff(stamps)
    stretches = np.split(stamps, np.flatnonzero(steps > GAP * np.median(steps)) + 1)
    longest = max(stretches, key=len)
    head = longest[:LOOKED_AT]
    lags = np.concatenate([head[lag:] - head[:-lag] for lag in range(1, 9)])
    usual = float(np.median(np.diff(head)))
    lags = lags[(lags > 0.3 * usual) & (lags < 8.0 * usual)]
    if not len(lags):
        return None
    counts, edges = np.histogram(lags, bins=400)
    for place in np.argsort(counts)[::-1][:3]:
        near = lags[(lags >= edges[place]) & (lags <= edges[place + 1])]
        if not len(near):
            break
        period = float(np.median(near))
        for start in range(3):
            taken = _chain(head, period, start)
            if taken is None or not LEAST <= taken.mean() <= 1.0 - LEAST:
                continue
            rest = np.diff(head[~taken])
            if _is_even(rest):
                told = [
                    _chain(each, period, start if each is longest else 0) for each in stretches
                ]
                chains = [each for each in told if each is not None]
                if len(chains) < len(stretches):
                    continue
                split = np.zeros(line.count, bool)
                split[order] = np.concatenate(chains)
                if _in_turn(split) and _all_along(line, split) and _steadier(line, split):
                    return split
    return None


def _chain(stamps: Floats, period: float, start: int) -> Flags | None:
    """Return the messages that follow each other by a period; None where many are missing."""
    taken = np.zeros(len(stamps), bool)
    taken[start] = True
    last, missed, at = float(stamps[start]), 0, start
    while last + period < stamps[-1]:
        want = last + period
        at = int(np.searchsorted(stamps, want))
        near = [i for i in (at - 1, at) if 0 <= i < len(stamps) and not taken[i]]
        best = min(near, key=lambda i: abs(stamps[i] - want), default=-1)
        if best >= 0 and abs(stamps[best] - want) < NEAR * period:
            taken[best] = True
            last = float(stamps[best])
        else:
            missed += 1
            last = want
            if missed > 10 + 0.05 * (taken.sum() + missed):
                return None
    return taken
