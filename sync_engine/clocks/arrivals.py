"""What a block of messages says about the smallest arrival - stamp.

Where messages are late by chance, the smallest delay of a block is the sharpest measure of it.
Many real transports are early by chance instead (a host that timestamps in batches, a driver that
wakes up early now and then): then the smallest delay is the worst measure, and the median, less
its usual distance from the smallest, a good one. So both are watched from block to block, and the
one that scatters less is taken.

    late by chance     20.1 20.0 20.2 20.0    smallest, scatters by 0.1
                       22.9 22.1 23.4 22.6    median
    early by chance    14.0 19.1 12.7 17.9    smallest
                       20.1 20.0 20.1 20.0    median, scatters by 0.1; taken less 4.1
"""

from __future__ import annotations

_GAIN = 0.1
"""Share of a new block in the scatter and in the distance between median and smallest."""
_LEAST_BLOCKS = 6
_CLEARLY = 0.35
"""The other measure is taken when its scatter (a variance) is this much smaller."""


class ArrivalBlocks:
    """The delays (arrival - stamp, ns) of one block after the other."""

    def __init__(self) -> None:
        self._delays: list[int] = []
        self._last: tuple[int, int] | None = None
        self._scatter = [0.0, 0.0]
        """Mean squared change from block to block, of the smallest and of the median, ns^2."""
        self._blocks = 0
        self._above_ns = 0.0
        """How far the median usually is above the smallest."""
        self.takes_median = False

    def __len__(self) -> int:
        return len(self._delays)

    def add(self, delay_ns: int) -> None:
        """Take the delay of one message."""
        self._delays.append(delay_ns)

    @property
    def variance_s2(self) -> float | None:
        """Variance of what `close` returns (s^2), None before enough blocks."""
        if self._blocks < _LEAST_BLOCKS:
            return None
        return 0.5e-18 * self._scatter[self.takes_median]

    def clear(self) -> None:
        """Forget the open block, and that the next one follows another."""
        self._delays.clear()
        self._last = None

    def close(self) -> int:
        """Return the smallest delay that the block shows, and begin the next one."""
        ordered = sorted(self._delays)
        self._delays.clear()
        least, median = ordered[0], ordered[len(ordered) // 2]
        if self._last is not None:
            self._compare(least, median)
        self._last = least, median
        return median - round(self._above_ns) if self.takes_median else least

    def _compare(self, least: int, median: int) -> None:
        assert self._last is not None
        self._blocks += 1
        gain = max(_GAIN, 1.0 / self._blocks)
        changes = least - self._last[0], median - self._last[1]
        for k, change in enumerate(changes):
            self._scatter[k] += gain * (float(change) ** 2 - self._scatter[k])
        if not self.takes_median:  # frozen while it is used, or its own scatter would come in
            self._above_ns += gain * (median - least - self._above_ns)
        if self._blocks >= _LEAST_BLOCKS:
            now, other = self._scatter[self.takes_median], self._scatter[not self.takes_median]
            self.takes_median ^= other < _CLEARLY * now
