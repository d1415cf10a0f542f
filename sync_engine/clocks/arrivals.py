"""What a block of messages says about the smallest arrival - stamp.

Where messages are late by chance, the smallest delay of a block is the sharpest measure of it.
Many real transports are early by chance instead (a host that timestamps in batches, a driver that
wakes up early now and then): then the smallest delay is the worst measure, and the median a good
one; where only few are early, something in between. So several ranks of the ordered delays are
watched from block to block, and the one that scatters least is taken, less its usual distance from
what was taken before.

    late by chance     20.1 20.0 20.2 20.0    smallest, scatters by 0.1
                       22.9 22.1 23.4 22.6    median
    early by chance    14.0 19.1 12.7 17.9    smallest
                       20.1 20.0 20.1 20.0    median, scatters by 0.1; taken less 4.1
"""

from __future__ import annotations

_RANKS = (0.0, 0.1, 0.25, 0.5)
"""Shares of a block that come before the delay that is taken: 0 is the smallest."""
_QUARTER = 2
"""Which of them is a quarter."""
_LEAST_WITHIN = 12
"""Delays of a block that show how much they scatter."""
_GAIN = 0.1
"""Share of a new block in the scatters and in the distances."""
_LEAST_BLOCKS = 6
_CLEARLY = 0.35
"""Another rank is taken when its scatter (a variance) is this much smaller."""


class ArrivalBlocks:
    """The delays (arrival - stamp, ns) of one block after the other."""

    def __init__(self) -> None:
        self._delays: list[int] = []
        self._last: list[int] | None = None
        self._scatter = [0.0] * len(_RANKS)
        """Mean squared change from block to block, of each rank, ns^2."""
        self._above_ns = [0.0] * len(_RANKS)
        """How far each rank usually is above what `close` returns."""
        self._blocks = 0
        self._taken = 0
        self._first_s2: float | None = None
        """What the first blocks show of it within: how far apart their early delays are."""

    def __len__(self) -> int:
        return len(self._delays)

    def add(self, delay_ns: int) -> None:
        """Take the delay of one message."""
        self._delays.append(delay_ns)

    @property
    def rank(self) -> float:
        """Share of a block that comes before the delay that is taken."""
        return _RANKS[self._taken]

    @property
    def variance_s2(self) -> float | None:
        """Variance of what `close` returns (s^2), None before the first."""
        if self._blocks < _LEAST_BLOCKS:
            return self._first_s2
        return 0.5e-18 * self._scatter[self._taken]

    def clear(self) -> None:
        """Forget the open block, and that the next one follows another."""
        self._delays.clear()
        self._last = None

    def close(self) -> int:
        """Return the smallest delay that the block shows, and begin the next one."""
        ordered = sorted(self._delays)
        self._delays.clear()
        found = [ordered[int(rank * len(ordered))] for rank in _RANKS]
        if len(ordered) >= _LEAST_WITHIN:
            within = (1e-9 * (found[_QUARTER] - found[0])) ** 2
            self._first_s2 = max(within, self._first_s2 or 0.0)
        if self._last is not None:
            self._compare(found, self._last)
        self._last = found
        return found[self._taken] - round(self._above_ns[self._taken])

    def _compare(self, found: list[int], last: list[int]) -> None:
        self._blocks += 1
        gain = max(_GAIN, 1.0 / self._blocks)
        level_ns = found[self._taken] - self._above_ns[self._taken]
        for k, delay_ns in enumerate(found):
            self._scatter[k] += gain * (float(delay_ns - last[k]) ** 2 - self._scatter[k])
            if k != self._taken:
                self._above_ns[k] += gain * (delay_ns - level_ns - self._above_ns[k])
        best = min(range(len(found)), key=self._scatter.__getitem__)
        if self._blocks >= _LEAST_BLOCKS and (
            self._scatter[best] < _CLEARLY * self._scatter[self._taken]
        ):
            self._taken = best
