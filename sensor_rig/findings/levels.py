"""Where arrival minus stamp changes and stays: on which side, when, by how much.

A clock that is set makes the stamps jump while messages come as evenly as before; a host that is
set, or a queue, makes the arrivals jump while the stamps go on evenly.
"""

from __future__ import annotations

import itertools
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Floats
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
FIT, MOSTLY = 0.4, 0.9
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


def disorder(line: TimeLine) -> Order | None:
    """Return the messages that are out of order and fit between the others; None for others."""
    if line.count < 10:
        return None
    highest = np.maximum.accumulate(line.stamps_ns)
    late = line.stamps_ns < highest
    if not late.any():
        return None
    order = np.argsort(line.stamps_ns, kind='stable')
    steps = np.diff(line.stamps_ns[order]) / 1e9
    period = line.period_s
    apart = np.full(line.count, np.inf)
    apart[order[1:]] = steps
    apart[order[:-1]] = np.minimum(apart[order[:-1]], steps)
    fits = apart > FIT * period
    if not period or float(fits[late].mean()) < MOSTLY:
        return None
    # A clock that was set back leaves a hole that nothing fills; what comes late fills its own.
    holes = float((np.diff(line.stamps_ns[order]) > 1.6e9 * period).mean())
    gone = float((line.steps_s > 1.6 * period).mean())
    by_s = float((highest - line.stamps_ns)[late].max()) / 1e9
    if by_s > LATEST_S or (holes > 0.5 * gone and gone > 0.0 and holes > 0.01):
        return None
    return Order(late, by_s)


def stray(line: TimeLine) -> Flags:
    """Return single stamps far from those before and after, which agree with each other."""
    found = np.zeros(line.count, bool)
    if line.count < 20:
        return found
    far_s = max(FAR_S, FAR_PERIODS * line.period_s)
    jumps = np.flatnonzero(np.abs(line.steps_s - line.waits_s) > far_s)
    for one, other in itertools.pairwise(jumps):
        inside = slice(one + 1, other + 1)
        if other - one < STAYS and one + 1 > 0 and other + 1 < line.count:
            before, after = line.delays_s[one], line.delays_s[other + 1]
            if abs(after - before) < 0.5 * far_s:
                found[inside] = True
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
    """Return the line with the jumps undone: all on the level of the longest, or first, part."""
    if not changes:
        return line
    moves = np.zeros(line.count, np.int64)
    for change in changes:
        moves[change.place :] += round(change.size_s * 1e9)
    edges = [0, *(change.place for change in changes), line.count]
    longest = 0 if like_the_first else int(np.argmax(np.diff(edges)))
    return line.moved(-(moves - moves[edges[longest]]))


def steps_with_sides(line: TimeLine) -> list[LevelChange]:
    """Return the lasting changes that take many messages to see, with the side they are on."""
    found = []
    for at_s, size_s in steps_of(line):
        at_ns = line.blocks[0].arrival_ns + round(at_s * 1e9)
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


def part_delays(line: TimeLine, changes: list[LevelChange]) -> list[float]:
    """Return the middle delay of each part between changes, s."""
    edges = [0, *sorted(change.place for change in changes), line.count]
    return [
        float(np.median(line.delays_s[begin:end])) for begin, end in pairwise(edges) if end > begin
    ]
