"""What waiting for late frames costs: how long complete sets stood before they left."""

from __future__ import annotations

from typing import NamedTuple

from rig_common.times import NS_PER_S


class Waits(NamedTuple):
    """What waiting for late frames cost the sets so far."""

    sets: int
    waited: int
    """Sets that were complete before they left."""
    mean_s: float
    """From the arrival of a set's last message until it left, over all sets (host time)."""
    max_s: float
    allowance_s: float
    """Largest reorder allowance of any input, as of now."""


class WaitLog:
    """Sums of the waiting times of sets."""

    __slots__ = ('_longest_ns', '_total_ns', '_waited', 'sets')

    def __init__(self) -> None:
        self.sets = self._waited = self._total_ns = self._longest_ns = 0

    def note(self, waited_ns: int) -> None:
        """Count a set that left `waited_ns` after its last message had come."""
        self.sets += 1
        if waited_ns > 0:
            self._waited += 1
            self._total_ns += waited_ns
            if waited_ns > self._longest_ns:
                self._longest_ns = waited_ns

    def waits(self, allowance_ns: int) -> Waits:
        """Return the sums, with the reorder allowance of now."""
        return Waits(
            self.sets,
            self._waited,
            self._total_ns / NS_PER_S / max(self.sets, 1),
            self._longest_ns / NS_PER_S,
            allowance_ns / NS_PER_S,
        )
