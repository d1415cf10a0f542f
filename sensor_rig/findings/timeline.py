"""The times of one topic as arrays, and what follows from them.

A cause that was found is undone by a new time line without it (`moved`, `only`), so that what is
left is looked at as if the cause had not been there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Floats, Ints
from sensor_rig.bags.inspect import seconds_between as between

BUNCHED = 0.2
"""Share of messages that come together with the one before, from which on these are batches."""
MOST_BLOCKS = 1024
BLOCK_S, BLOCK_PERIODS = 0.1, 2.0
"""Shortest length of a block, by arrival, and at least this many periods. They are cut by time, so
that what queued and comes at once is in one of them."""
GAP_SIGMAS = 5.0
"""Of the spacing's jitter, above which a spacing has room for a frame."""
UNEVEN, UNEVEN_PERIODS = 0.15, 5.0
"""Jitter, in periods, from which on a stream has no grid, and the shortest gap of such a one."""
SILENCE_PERIODS = 2.5
"""A longer wait for an arrival is noted."""


class Event(NamedTuple):
    """Something that happened at one message."""

    arrival_ns: int
    amount_s: float
    """How far the stamp or the arrival jumped, s."""
    stamp_ns: int
    """The stamp of the message."""

    @property
    def span(self) -> tuple[int, int]:
        """From when to when, ns."""
        return self.arrival_ns - int(abs(self.amount_s) * 1e9), self.arrival_ns


class DelayBlocks(NamedTuple):
    """Arrival minus stamp over the messages of each block of time, s."""

    since_s: Floats
    """From the first arrival of all to the first of each block."""
    least_s: Floats
    middle_s: Floats


@dataclass(frozen=True, eq=False)
class TimeLine:
    """Stamps and arrivals of one topic, in the order of arrival; none of them is 0."""

    stamps_ns: Ints
    arrivals_ns: Ints

    def moved(self, stamps_by_ns: Ints | int = 0, arrivals_by_ns: Ints | int = 0) -> TimeLine:
        """Return the line with its times moved."""
        return TimeLine(self.stamps_ns + stamps_by_ns, self.arrivals_ns + arrivals_by_ns)

    def only(self, kept: Flags | Ints | slice) -> TimeLine:
        """Return a part of the line, by flags or by places."""
        return TimeLine(self.stamps_ns[kept], self.arrivals_ns[kept])

    @property
    def count(self) -> int:
        """Messages."""
        return len(self.stamps_ns)

    @cached_property
    def steps_s(self) -> Floats:
        """Time from each stamp to the next, s."""
        return between(self.stamps_ns[:-1], self.stamps_ns[1:])

    @cached_property
    def waits_s(self) -> Floats:
        """Time from each arrival to the next, s."""
        return between(self.arrivals_ns[:-1], self.arrivals_ns[1:])

    @cached_property
    def delays_s(self) -> Floats:
        """Arrival minus stamp, s."""
        return between(self.stamps_ns, self.arrivals_ns)

    @cached_property
    def since_s(self) -> Floats:
        """Time from the first arrival to each, s."""
        return between(np.full(self.count, self.arrivals_ns[:1].sum()), self.arrivals_ns)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival, ns."""
        return int(self.arrivals_ns[0]), int(self.arrivals_ns[-1])

    @cached_property
    def span_s(self) -> float:
        """Time from the first arrival to the last."""
        return float(self.since_s[-1]) if self.count else 0.0

    @cached_property
    def sorted_steps_s(self) -> Floats:
        """Spacings of the different stamps, sorted: their order may have got lost on the way."""
        stamps = np.unique(self.stamps_ns)
        return between(stamps[:-1], stamps[1:])

    @cached_property
    def period_s(self) -> float:
        """Usual spacing of stamps; 0 where there are too few."""
        steps = self.sorted_steps_s
        return float(np.median(steps)) if len(steps) >= 4 else 0.0

    @cached_property
    def jitter_s(self) -> float:
        """Robust sigma of that spacing."""
        return robust_sigma(self.sorted_steps_s)

    @property
    def is_uneven(self) -> bool:
        """Whether its stamps are on no grid."""
        return self.jitter_s > UNEVEN * self.period_s

    @property
    def spacing_s(self) -> float:
        """Period of the stamps; where they come in bunches, the mean one."""
        return max(self.period_s, self.arrival_period_s) if self.is_uneven else self.period_s

    @cached_property
    def arrival_period_s(self) -> float:
        """Usual spacing of arrivals, by their number: batches do not change it."""
        return self.span_s / max(self.count - 1, 1)

    @cached_property
    def median_wait_s(self) -> float:
        """Median spacing of arrivals."""
        return float(np.median(self.waits_s)) if self.count > 1 else 0.0

    @cached_property
    def gaps(self) -> list[Event]:
        """Spacings of stamps that have room for frames, while arrivals waited as long.

        By order of stamps: what comes late is not missing, and what was held up follows fast.
        """
        period_s = self.period_s
        if not period_s:
            return []
        order = np.argsort(self.stamps_ns, kind='stable')
        stamps, arrivals = self.stamps_ns[order], self.arrivals_ns[order]
        steps, waits = between(stamps[:-1], stamps[1:]), between(arrivals[:-1], arrivals[1:])
        long_s = max(1.5 * period_s, period_s + GAP_SIGMAS * self.jitter_s)
        long_s = max(long_s, UNEVEN_PERIODS * self.spacing_s) if self.is_uneven else long_s
        late = np.maximum(3.0 * robust_sigma(self.delays_s), 0.5 * steps)
        gap = (steps > long_s) & (np.abs(waits - steps) < late)
        both = steps[1:] + steps[:-1] > 2.4 * period_s  # else a late stamp, the next is in time
        gap[:-1] &= both
        gap[1:] &= both
        return [
            Event(int(arrivals[i + 1]), float(steps[i]), int(stamps[i + 1]))
            for i in np.flatnonzero(gap)
            if _stays_behind(steps[i:] - self.spacing_s, self.spacing_s)
        ]

    @cached_property
    def silences(self) -> list[Event]:
        """Spacings of arrivals of several periods."""
        long = self.waits_s > SILENCE_PERIODS * max(self.median_wait_s, 1e-3)
        return [
            Event(int(self.arrivals_ns[i + 1]), float(self.waits_s[i]), int(self.stamps_ns[i + 1]))
            for i in np.flatnonzero(long)
        ]

    @cached_property
    def together(self) -> Flags:
        """Whether each message came at once with the one before, though a period later stamped."""
        steps = self.steps_s
        regular = (steps > 0.5 * self.period_s) & (steps < 1.5 * self.period_s)
        return np.asarray(regular & (self.waits_s < 0.2 * self.period_s))

    @property
    def is_bunched(self) -> bool:
        """Whether messages come in batches."""
        return float(self.together.sum()) > BUNCHED * self.count

    @cached_property
    def block_s(self) -> float:
        """Length of the blocks."""
        return max(BLOCK_S, BLOCK_PERIODS * self.period_s, self.span_s / (MOST_BLOCKS - 1))

    @cached_property
    def blocks(self) -> DelayBlocks:
        """Least and middle delay over blocks of equal time."""
        if not self.count:
            return DelayBlocks(*[self.delays_s] * 3)
        numbers = np.maximum.accumulate((self.since_s / self.block_s).astype(np.int64))
        rising = self.delays_s[np.lexsort((self.delays_s, numbers))]  # inside each block
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        ends = np.append(starts[1:], len(numbers))
        middles = (rising[(starts + ends - 1) // 2] + rising[(starts + ends) // 2]) / 2.0
        return DelayBlocks(self.since_s[starts], rising[starts], middles)


def _stays_behind(excess_s: Floats, period_s: float) -> bool:
    """Return whether what follows a gap does not make up for half of it by coming faster."""
    soon = 10 + 4 * round(float(excess_s[0]) / period_s)
    return float(np.cumsum(excess_s[:soon]).min()) > 0.5 * float(excess_s[0])


def robust_sigma(values: Floats) -> float:
    """Return the sigma of most of the values; 0 for none."""
    if not len(values):
        return 0.0
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
