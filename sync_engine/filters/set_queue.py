"""The waiting frames of one input of a SetMatcher, and what is known of the stream."""

from __future__ import annotations

from bisect import bisect_left, insort
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
                 'counts', 'evicted_ns', 'floor_ns', 'index', 'latest_ns', 'messages', 'period_ns',
                 'seen', 'stamps', 'suspect')  # fmt: skip

    def __init__(self, index: int, counts: Counts) -> None:
        self.index = index
        self.counts = counts
        self.messages: dict[int, Payload] = {}
        """By stamp; as the `queues` of message_filters."""
        self.arrivals: dict[int, int] = {}
        self.stamps: list[int] = []
        """In order."""
        self.seen = 0
        self.period_ns = 0
        """Mean spacing of stamps; at first the lower quartile; 0 while unknown."""
        self._disorder_ns = self._old_disorder_ns = 0
        self._early: list[int] = []
        self.start_over()

    def start_over(self) -> None:
        """Forget the frames and the position of the stream, but not its rate and disorder."""
        self.messages.clear()
        self.arrivals.clear()
        self.stamps.clear()
        self.latest_ns = LONG_AGO_NS
        self.floor_ns = LONG_AGO_NS
        """Up to here everything has left."""
        self.evicted_ns = LONG_AGO_NS
        self._block_mark_ns = LONG_AGO_NS
        self._early.clear()
        self.suspect = (LONG_AGO_NS, -1)

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
        self._disorder_ns = max(self._disorder_ns, self.latest_ns - stamp_ns)
        insort(self.stamps, stamp_ns)

    def drop_first(self, at: int = 0) -> None:
        """Remove one frame; the caller counts it."""
        stamp_ns = self.stamps.pop(at)
        del self.messages[stamp_ns], self.arrivals[stamp_ns]

    def evict(self, at: int) -> None:
        """Remove one frame because the queue is full."""
        self.evicted_ns = max(self.evicted_ns, self.stamps[at])
        self.drop_first(at)
        self.counts.overflow += 1

    def take(self, stamp_ns: int) -> tuple[int, Payload]:
        """Return a frame's arrival and message; remove it and every earlier one."""
        stamps = self.stamps
        if stamps[0] == stamp_ns:
            del stamps[0]
        else:
            count = bisect_left(stamps, stamp_ns)
            for unmatched_ns in stamps[:count]:
                del self.messages[unmatched_ns], self.arrivals[unmatched_ns]
            del stamps[: count + 1]
            self.counts.unmatched += count
        self.counts.bundled += 1
        self.floor_ns = stamp_ns
        return self.arrivals.pop(stamp_ns), self.messages.pop(stamp_ns)
