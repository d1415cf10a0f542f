"""Where arrival minus stamp changes and stays: on which side, when, by how much.

A clock that is set makes the stamps jump while messages come as evenly as before; a host that is
set, or a queue, makes the arrivals jump while the stamps go on evenly.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Floats, Ints
from sensor_rig.findings.timeline import TimeLine, robust_sigma
from sensor_rig.findings.trend import steps_of

JUMP_S, JUMP_SIGMAS = 0.05, 8.0
"""Smallest jump that one message shows; smaller ones take many messages to see."""
STAYS = 3
"""Messages that a new level must have; fewer are stray ones."""
LOOKED_AT = 7
"""Messages whose median tells the level beside a jump."""
FAR_S, FAR_PERIODS = 1.0, 20.0
"""A single stamp that is as far away as this is stray, and not just late."""
FILLED, STRETCH = 0.5, 20
"""Places that what is late fills, of as many; messages in order between two stretches."""
HOST_S, ZONES_S = 1.0, 900.0
"""Stamps nearer to their arrivals than this are of the host's time; how far time zones differ."""
LATEST_S = 4.0
"""Nothing that is merely late comes later than this."""
UNEVEN = 0.3
"""Jitter of the stamps, as a part of a change, above which they do not tell its side."""
ODD = 0.5
"""Part of a change that the times of one message must show."""


class LevelChange(NamedTuple):
    """A lasting change of arrival minus stamp."""

    at_ns: int
    """Arrival of the first message after it."""
    place: int
    """Of that message in the line."""
    size_s: float
    """How far the stamps jumped against the arrivals; an arrival that jumps ahead is negative."""
    of_stamps: bool
    """Whether the stamps jumped, not the arrivals."""
    sure: bool = True
    """False where the stamps are too uneven to tell."""


class Order(NamedTuple):
    """Messages that come after ones with later stamps."""

    late: Flags
    by_s: float
    """How far the worst is behind."""
    sorted: TimeLine


def disorder(line: TimeLine) -> Order | None:
    """Return the messages that are out of order, and the line with them in order.

    What is late fills places that were left out before it; after a clock was set back there are
    none. Each stretch is looked at by itself.
    """
    highest = np.maximum.accumulate(line.stamps_ns)
    places = np.flatnonzero(line.stamps_ns < highest)
    if line.count < 10 or not line.period_s or not len(places):
        return None
    late, order = np.zeros(line.count, bool), np.arange(line.count)
    for own in np.split(places, np.flatnonzero(np.diff(places) > STRETCH) + 1):
        begin = int(np.searchsorted(highest, line.stamps_ns[own].min()))
        inside = slice(max(begin - 2, 0), own[-1] + 3)
        stamps = line.stamps_ns[inside]
        filled = _left_out(line, highest[inside]) - _left_out(line, np.sort(stamps))
        by_s = float((highest - line.stamps_ns)[own].max()) / 1e9
        if by_s < LATEST_S and filled > FILLED * len(own):
            late[own] = True
            order[inside] = inside.start + np.argsort(stamps, kind='stable')
    by_s = float((highest - line.stamps_ns)[late].max(initial=0)) / 1e9
    return Order(late, by_s, line.only(order)) if late.any() else None


def _left_out(line: TimeLine, stamps_ns: Ints) -> int:
    """Return how many places are left out between stamps."""
    return int(np.maximum(np.rint(np.diff(stamps_ns) / 1e9 / line.period_s) - 1.0, 0.0).sum())


def stray(line: TimeLine) -> Flags:
    """Return single stamps far from those before and after, which agree with each other."""
    found = np.zeros(line.count, bool)
    if line.count < 20:
        return found
    far_s = max(FAR_S, FAR_PERIODS * line.period_s)
    jumps = np.flatnonzero(np.abs(line.steps_s - line.waits_s) > far_s)
    runs = np.diff(jumps, prepend=-1, append=line.count - 1)
    for number, (one, other) in enumerate(pairwise(jumps), 1):
        before, after = line.delays_s[one], line.delays_s[other + 1]
        alone = runs[number] < STAYS <= min(runs[number - 1], runs[number + 1])
        if alone and abs(after - before) < 0.5 * far_s:
            found[one + 1 : other + 1] = True
    return found


def jumps_of(line: TimeLine, least_s: float = JUMP_S) -> list[LevelChange]:
    """Return the jumps of the stamps that are large enough to be seen at one message."""
    if line.count < 2 * STAYS:
        return []
    excess = line.steps_s - line.waits_s
    period = max(line.period_s, 1e-9)
    limit = max(least_s, JUMP_SIGMAS * robust_sigma(excess))
    lost = np.maximum(np.rint(np.minimum(line.steps_s, line.waits_s) / period), 1.0)
    stamp_off = np.abs(line.steps_s - lost * period)
    wait_off = np.abs(line.waits_s - lost * period)
    places = np.flatnonzero((np.abs(excess) > limit) & (stamp_off > wait_off)) + 1
    edges = [0, *places.tolist(), line.count]
    found: list[LevelChange] = []
    start = 0
    for number, place in enumerate(places.tolist(), 1):
        before = line.delays_s[max(start, place - LOOKED_AT) : place]
        after = line.delays_s[place : min(place + LOOKED_AT, edges[number + 1])]
        size = float(np.median(before) - np.median(after)) if len(before) else 0.0
        if len(after) < STAYS or len(before) < STAYS or abs(size) < 0.7 * limit:
            continue
        found.append(LevelChange(int(line.arrivals_ns[place]), place, size, True))
        start = place
    return found


def without(
    line: TimeLine, changes: list[LevelChange], *, like_the_first: bool = False
) -> TimeLine:
    """Return the line with the jumps undone: all on the likeliest level, or on the first."""
    if not changes:
        return line
    moves = np.zeros(line.count, np.int64)
    for change in changes:
        near = slice(max(change.place - LOOKED_AT, 0), change.place + LOOKED_AT)
        before = float(np.median(line.delays_s[near.start : change.place]))
        # What is late at a jump is on the level that its delay is nearer to.
        after = (before - line.delays_s[near]) / change.size_s > 0.5
        moves[near] += np.where(after, round(change.size_s * 1e9), 0)
        moves[near.stop :] += round(change.size_s * 1e9)
    edges = [0, *(change.place for change in changes), line.count]
    delays_s = [float(np.median(line.delays_s[begin:end])) for begin, end in pairwise(edges)]
    # The level of the host's time or of a time zone, if one is; else that of the longest part.
    best = max(
        range(len(delays_s)),
        key=lambda part: (
            abs(math.remainder(delays_s[part], ZONES_S)) < HOST_S,
            edges[part + 1] - edges[part],
        ),
    )
    return line.moved(-(moves - moves[0 if like_the_first else edges[best]]))


def steps_with_sides(line: TimeLine) -> list[LevelChange]:
    """Return the lasting changes that take many messages to see, with the side they are on."""
    found = []
    for at_s, size_s in steps_of(line):
        at_ns = line.arrivals_ns[0] + round(at_s * 1e9)
        near = int(np.searchsorted(line.arrivals_ns, at_ns))
        found.append(_with_side(line, near, size_s))
    return found


def _with_side(line: TimeLine, near: int, size_s: float) -> LevelChange:
    """Return a change near a message, at the message that shows it."""
    period = max(line.period_s, 1e-9)
    reach = max(3, round((2.0 * line.block_s + abs(size_s)) / period))
    window = slice(max(near - reach, 0), min(near + reach, line.count - 1))
    steps, waits = line.steps_s[window], line.waits_s[window]
    lost = np.maximum(np.rint(np.minimum(steps, waits) / period), 1.0)
    odd: Floats = steps - lost * period
    at = int(np.argmin(np.abs(odd - size_s)))
    of_stamps = abs(odd[at] - size_s) < ODD * abs(size_s)
    sure = line.jitter_s < UNEVEN * abs(size_s)
    if not of_stamps:
        at = int(np.argmax(np.abs(waits - steps)))
    index = window.start + at + 1
    return LevelChange(int(line.arrivals_ns[index]), index, size_s, of_stamps or not sure, sure)


def longest_part(line: TimeLine, changes: list[LevelChange]) -> tuple[int, int]:
    """Return the arrivals (ns) of the first and last message of the longest part."""
    edges = [0, *sorted(change.place for change in changes), line.count]
    first = int(np.argmax(np.diff(edges)))
    return int(line.arrivals_ns[edges[first]]), int(line.arrivals_ns[edges[first + 1] - 1])
