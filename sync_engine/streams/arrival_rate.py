"""When the messages of one input come: the last one, how often, and whether they stopped."""

from __future__ import annotations

from rig_common.times import NS_PER_S

_SHARE = 0.05
"""Share of the newest gap in the mean gap: an average over some twenty messages."""


class Arrivals:
    """The arrival times of one input, on the host's clock."""

    __slots__ = ('_awaited_ns', 'last_ns', 'period_ns')

    def __init__(self) -> None:
        self.last_ns: int | None = None
        self.period_ns = 0.0
        """Mean gap between messages; 0 before the second one."""
        self._awaited_ns: int | None = None

    def see(self, arrival_ns: int) -> None:
        """Take the arrival of a message."""
        if self.last_ns is not None:
            share = _SHARE if self.period_ns else 1.0
            self.period_ns += share * (arrival_ns - self.last_ns - self.period_ns)
        self.last_ns = arrival_ns

    @property
    def rate_hz(self) -> float:
        """Messages a second; 0 before the second one."""
        return NS_PER_S / self.period_ns if self.period_ns > 0.0 else 0.0

    def are_silent(self, now_ns: int, deadline_ns: int) -> bool:
        """Return whether nothing has come for `deadline_ns` and two periods.

        Before the first message the wait counts from the first question.
        """
        since_ns = self._awaited_ns if self.last_ns is None else self.last_ns
        if since_ns is None:
            self._awaited_ns = since_ns = now_ns
        return now_ns - since_ns > deadline_ns + 2.0 * self.period_ns
