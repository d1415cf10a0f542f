"""The times of one topic, in one pass and in bounded memory.

Messages are gathered in chunks and a chunk is looked at with numpy, so that a message costs little
more than two appends. What is kept of a chunk does not grow with the recording: counters, the
first events of each kind, and levels over blocks that are merged when there are too many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
Seconds = NDArray[np.float64]

CHUNK = 4096
"""Messages that are looked at together; the first of them tell the period."""
BUNCHED = 0.2
"""Share of messages that come together with the one before, from which on these are batches."""
MOST_EVENTS = 500
MOST_BLOCKS = 1024
BLOCK_S, BLOCK_PERIODS = 0.1, 2.0
"""Length of a block at first, by arrival, and at least this many periods; doubled when there are
too many blocks. They are cut by time, so that what queued and comes at once is in one of them."""
GAP_SIGMAS = 5.0
"""Of the spacing's jitter, above which a spacing has room for a frame."""
SILENCE_PERIODS = 2.5
"""A longer wait for an arrival is noted."""
FAR_NS = 4 * 10**18
"""Times further apart than this overflow int64 when they are subtracted."""


class Event(NamedTuple):
    """Something that happened at one message."""

    arrival_ns: int
    amount_s: float
    """How far the stamp or the arrival jumped, s."""
    stamp_ns: int
    """The stamp of the message."""


class DelayBlock(NamedTuple):
    """Arrival minus stamp over some consecutive messages, s."""

    number: int
    """Since the first arrival, in lengths of a block."""
    arrival_ns: int
    least_s: float
    middle_s: float


@dataclass
class TimeLine:
    """What one topic's stamps and arrivals came to so far."""

    count: int = 0
    zero: int = 0
    """Stamps of zero."""
    repeated: int = 0
    """Stamps equal to the one before."""
    longest_repeat: int = 0
    backward: list[Event] = field(default_factory=list)
    """Stamps before the one before, the first of them."""
    backward_count: int = 0
    gaps: list[Event] = field(default_factory=list)
    """Spacings of stamps of two periods or more, the first of them."""
    missing: int = 0
    """Frames that such gaps have room for."""
    silences: list[Event] = field(default_factory=list)
    """Spacings of arrivals of several periods, the first of them."""
    bunched: int = 0
    """Arrivals that follow the one before at once, although their stamps are a period apart."""
    period_s: float = 0.0
    """Usual spacing of stamps; 0 before it is known."""
    jitter_s: float = 0.0
    """Robust sigma of that spacing."""
    arrival_period_s: float = 0.0
    blocks: list[DelayBlock] = field(default_factory=list)
    spacings_s: Seconds = field(default_factory=lambda: np.zeros(0))
    """Spacings of stamps of the newest chunk."""
    _stamps: list[int] = field(default_factory=list)
    _arrivals: list[int] = field(default_factory=list)
    _last: tuple[int, int] | None = None
    _repeats: int = 0
    block_s: float = 0.0
    """Length of a block; 0 before the period is known."""
    _start_ns: int = 0

    @property
    def is_bunched(self) -> bool:
        """Whether messages come in batches."""
        return self.bunched > BUNCHED * self.count

    def add(self, stamp_ns: int, arrival_ns: int) -> None:
        """Take one message."""
        self._stamps.append(stamp_ns)
        self._arrivals.append(arrival_ns)
        if len(self._stamps) >= CHUNK:
            self.flush()

    def flush(self) -> None:
        """Look at what was gathered; called once more at the end."""
        if not self._stamps:
            return
        before = [] if self._last is None else [self._last]
        stamps = np.array([*(each[0] for each in before), *self._stamps], np.int64)
        arrivals = np.array([*(each[1] for each in before), *self._arrivals], np.int64)
        new = len(self._stamps)
        if self._stamps[-1]:
            self._last = self._stamps[-1], self._arrivals[-1]
        self._stamps, self._arrivals = [], []
        self.count += new
        self.zero += int((stamps[-new:] == 0).sum())
        told = stamps != 0
        stamps, arrivals = stamps[told], arrivals[told]
        new = min(new, len(stamps))
        if not new:
            return
        steps, waits = between(stamps[:-1], stamps[1:]), between(arrivals[:-1], arrivals[1:])
        self._learn_period(steps, waits)
        self._look_at_steps(steps, waits, stamps[1:], arrivals[1:])
        self._add_blocks(stamps[-new:], arrivals[-new:])
        self.spacings_s = steps

    def _learn_period(self, steps: Seconds, waits: Seconds) -> None:
        forward = steps[steps > 0.0]
        if not self.period_s and len(forward) >= 5:
            self.period_s = float(np.median(forward))
            self.jitter_s = 1.4826 * float(np.median(np.abs(forward - self.period_s)))
            self.arrival_period_s = float(np.median(waits))

    def _look_at_steps(
        self, steps: Seconds, waits: Seconds, stamps: Times, arrivals: Times
    ) -> None:
        def note(where: NDArray[np.bool_], amounts: Seconds, events: list[Event]) -> int:
            found = np.flatnonzero(where)
            events += [
                Event(int(arrivals[i]), float(amounts[i]), int(stamps[i]))
                for i in found[: max(MOST_EVENTS - len(events), 0)]
            ]
            return len(found)

        self.backward_count += note(steps < 0.0, steps, self.backward)
        same = steps == 0.0
        self.repeated += int(same.sum())
        if same.any():
            self._count_repeats(same)
        if not self.period_s:
            return
        period = self.period_s
        long_s = max(1.5 * period, period + GAP_SIGMAS * self.jitter_s)
        gap = (steps > long_s) & (np.abs(waits - steps) < 0.5 * steps)
        both = steps[1:] + steps[:-1] > 2.4 * period  # else a late stamp, and the next is in time
        gap[:-1] &= both
        gap[1:] &= both
        gap[:-1] &= steps[1:] >= 0.0  # what comes later, out of order, is not missing
        gap[1:] &= steps[:-1] >= 0.0
        note(gap, steps, self.gaps)
        self.missing += int((np.rint(steps[gap] / period) - 1).sum())
        note(waits > SILENCE_PERIODS * max(self.arrival_period_s, 1e-3), waits, self.silences)
        regular = (steps > 0.5 * period) & (steps < 1.5 * period)
        self.bunched += int((regular & (waits < 0.2 * period)).sum())

    def _count_repeats(self, same: NDArray[np.bool_]) -> None:
        for each in same.tolist():
            self._repeats = self._repeats + 1 if each else 0
            self.longest_repeat = max(self.longest_repeat, self._repeats)

    def _add_blocks(self, stamps: Times, arrivals: Times) -> None:
        if not self.block_s:
            self.block_s = max(BLOCK_S, BLOCK_PERIODS * self.period_s)
            self._start_ns = int(arrivals[0])
        since_s = between(np.full(len(arrivals), self._start_ns), arrivals)
        numbers = np.maximum.accumulate((since_s / self.block_s).astype(np.int64))
        delays = between(stamps, arrivals)
        rising = delays[np.lexsort((delays, numbers))]  # inside each block
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        ends = np.append(starts[1:], len(numbers))
        middles = (rising[(starts + ends - 1) // 2] + rising[(starts + ends) // 2]) / 2.0
        for first, middle_s in zip(starts.tolist(), middles.tolist(), strict=True):
            self.blocks.append(
                DelayBlock(
                    int(numbers[first]), int(arrivals[first]), float(rising[first]), middle_s
                )
            )
        while len(self.blocks) > MOST_BLOCKS:
            self.block_s *= 2.0
            self.blocks = merged(self.blocks)


def merged(blocks: list[DelayBlock]) -> list[DelayBlock]:
    """Return blocks of twice the length."""
    found: list[DelayBlock] = []
    for block in blocks:
        number = block.number // 2
        if found and found[-1].number == number:
            last = found[-1]
            found[-1] = DelayBlock(
                number,
                last.arrival_ns,
                min(last.least_s, block.least_s),
                (last.middle_s + block.middle_s) / 2.0,
            )
        else:
            found.append(block._replace(number=number))
    return found


def between(earlier_ns: Times, later_ns: Times) -> Seconds:
    """Return the differences, s; exact, but for times so far apart that int64 cannot hold them."""
    rough: Seconds = (later_ns.astype(np.float64) - earlier_ns) / 1e9
    if len(rough) and np.abs(rough).max() > FAR_NS / 1e9:
        return rough
    exact: Seconds = (later_ns - earlier_ns) / 1e9
    return exact
