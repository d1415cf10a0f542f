"""Numbers the stretches between which nothing may be compared."""

from __future__ import annotations

from collections import deque

from rig_common.times import NS_PER_S

_SAME_EVENT_NS = 2 * NS_PER_S
"""Streams that restart within this time of each other tell of one event."""


class Epochs:
    """The current epoch number and why the last ones began."""

    def __init__(self) -> None:
        self.number = 0
        self.recent: deque[tuple[int, int, str]] = deque(maxlen=16)
        """(epoch, host time it began, reason)."""
        self._restarted: set[str] = set()

    def begin(self, now_ns: int, reason: str) -> None:
        """Start a new epoch of everything."""
        self.number += 1
        self.recent.append((self.number, now_ns, reason))
        self._restarted.clear()

    def split(self) -> None:
        """Go on in another epoch for the same reason: stamps went back while it began."""
        self.number += 1
        self.recent.append((self.number, *self.recent[-1][1:]))

    def restart(self, now_ns: int, sensor_id: str) -> bool:
        """One stream started over; return whether this began a new epoch.

        A looped bag restarts all streams one after the other: the first begins the epoch, the
        others join it. The same stream again is a new event.
        """
        joins = (
            bool(self._restarted)
            and sensor_id not in self._restarted
            and now_ns - self.recent[-1][1] < _SAME_EVENT_NS
        )
        if not joins:
            self.begin(now_ns, f'{sensor_id} started over')
        self._restarted.add(sensor_id)
        return not joins
