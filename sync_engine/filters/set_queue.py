"""The waiting frames of one input of a SetMatcher, and what is known of the stream."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container
from itertools import pairwise

from rig_common.times import LONG_AGO_NS, NEVER_NS, NS_PER_MS
from sync_engine.streams.ledger import Counts
from sync_engine.streams.payload import Payload

EARLY = 4
"""Frames that are needed before the spacing of a stream counts as known."""
BLOCK = 32
"""Messages over which a stream's period is averaged."""
_MEMORY = 512
"""Messages after which disorder is half forgotten; a multiple of `BLOCK`."""
_UNKNOWN_NS = 250 * NS_PER_MS
"""Least allowance while fewer than `_MEMORY` messages are known."""


class SetQueue:
    """The frames of one input that wait, and how the stream behaves."""

    __slots__ = ('_block_mark_ns', '_disorder_ns', '_early', '_old_disorder_ns', 'arrivals',
                 'beside', 'counts', 'evicted_ns', 'floor_ns', 'index', 'latest_ns', 'messages',
                 'passed', 'period_ns', 'seen', 'stamps')  # fmt: skip

    def __init__(self, index: int, counts: Counts) -> None:
        self.index = index
        self.counts = counts
        self.messages: dict[int, Payload] = {}
        """By stamp; as the `queues` of message_filters."""
        self.arrivals: dict[int, int] = {}
        self.stamps: list[int] = []
        """In order: those that can still be in the next sets."""
        self.passed: list[int] = []
        """In order, all before `stamps`: those that only an exact partner can use."""
        self.seen = 0
        self.period_ns = 0
        """Mean spacing of stamps; at first the lower quartile; 0 while unknown."""
        self.beside: set[int] = set()
        """Those for which the queue has no place: kept while they may complete a set."""
        self._disorder_ns = self._old_disorder_ns = 0
        self._early: list[int] = []
        self.start_over()

    def start_over(self) -> None:
        """Forget the frames and the position of the stream, but not its rate and disorder."""
        self.messages.clear()
        self.arrivals.clear()
        self.stamps.clear()
        self.passed.clear()
        self.latest_ns = LONG_AGO_NS
        self.floor_ns = LONG_AGO_NS
        """The latest stamp that has left or was passed over."""
        self.evicted_ns = LONG_AGO_NS
        self.beside.clear()
        self._block_mark_ns = LONG_AGO_NS
        self._early.clear()

    @property
    def disorder_ns(self) -> int:
        """Largest recent disorder."""
        return max(self._disorder_ns, self._old_disorder_ns)

    @property
    def allowance_ns(self) -> int:
        """How far behind the latest stamp a message may still come."""
        disorder_ns = self.disorder_ns
        if self.seen < EARLY:
            return NEVER_NS
        if self.seen < _MEMORY:
            return max(_UNKNOWN_NS, 10 * self.period_ns, disorder_ns)
        return disorder_ns + self.period_ns if disorder_ns else 0

    def learn(self, stamp_ns: int) -> None:
        """Learn from an accepted frame, before its stamp is the latest.

        `seen` counts it already. It is called for the first `BLOCK` frames and for the last of
        every block; nothing is learned from others.
        """
        if self.seen <= BLOCK:
            self._learn_early(stamp_ns)
        if self.seen % BLOCK:
            return
        latest_ns = max(self.latest_ns, stamp_ns)
        if self._block_mark_ns != LONG_AGO_NS:
            self.period_ns = (latest_ns - self._block_mark_ns) // BLOCK
        self._block_mark_ns = latest_ns
        if self.seen % _MEMORY == 0:
            self._old_disorder_ns, self._disorder_ns = self._disorder_ns, 0

    def _learn_early(self, stamp_ns: int) -> None:
        """Take the lower quartile of the spacings: neither a hole nor a stray frame counts."""
        insort(self._early, stamp_ns)
        gaps = sorted(after - before for before, after in pairwise(self._early))
        if gaps:
            self.period_ns = gaps[len(gaps) // 4]
        if self.seen == BLOCK:
            self._early.clear()

    def insert_late(self, stamp_ns: int) -> None:
        """Put a stamp that is not the latest in its place."""
        self.seen += 1
        self.learn(stamp_ns)
        self.counts.out_of_order += 1
        if stamp_ns <= self.floor_ns:
            insort(self.passed, stamp_ns)
            return
        self._disorder_ns = max(self._disorder_ns, self.latest_ns - stamp_ns)
        insort(self.stamps, stamp_ns)

    def pass_over(self, count: int) -> None:
        """Keep the first frames for exact partners only."""
        passed = self.stamps[:count]
        self.passed += passed
        self.floor_ns = passed[-1]
        del self.stamps[:count]

    def make_room(self, kept: Container[tuple[int, int]]) -> bool:
        """Remove a frame that was passed over and has no place left; False where there is none.

        Those whose (input, stamp) is `kept` stay.
        """
        for at, stamp_ns in enumerate(self.passed):
            if stamp_ns in self.beside and (self.index, stamp_ns) not in kept:
                self._remove(self.passed, at)
                self.counts.unmatched += 1
                return True
        return False

    def evict(self, at: int) -> None:
        """Remove one frame because the queue is full."""
        self.evicted_ns = max(self.evicted_ns, self.stamps[at])
        self._remove(self.stamps, at)
        self.counts.overflow += 1

    def _remove(self, stamps: list[int], at: int) -> tuple[int, Payload]:
        stamp_ns = stamps.pop(at)
        self.beside.discard(stamp_ns)
        return self.arrivals.pop(stamp_ns), self.messages.pop(stamp_ns)

    def remove(self, stamp_ns: int) -> tuple[int, Payload]:
        """Remove a frame and return its arrival and message; the caller counts it."""
        stamps = self.passed if stamp_ns <= self.floor_ns else self.stamps
        return self._remove(stamps, bisect_left(stamps, stamp_ns))

    def take(self, stamp_ns: int) -> tuple[int, Payload]:
        """Return a frame's arrival and message; pass over every earlier one."""
        self.counts.bundled += 1
        if stamp_ns > self.floor_ns:
            if self.stamps[0] != stamp_ns:
                self.pass_over(bisect_left(self.stamps, stamp_ns))
            frame = self._remove(self.stamps, 0)
            self.floor_ns = stamp_ns
            return frame
        return self.remove(stamp_ns)
