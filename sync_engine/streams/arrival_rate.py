"""When the messages of one input come: the last one, how often, and whether they stopped."""

from __future__ import annotations

from rig_common.times import NS_PER_S

_SHARE = 0.05
"""Share of the newest gap in the mean gap: an average over some twenty messages."""
_LONGEST = 100.0
"""Mean gaps that a gap counts for at most: that of an outage, or of a host clock that is set, must
not hide the next silence."""


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
            gap_ns, mean_ns = arrival_ns - self.last_ns, self.period_ns
            self.period_ns = (
                mean_ns + _SHARE * (min(gap_ns, _LONGEST * mean_ns) - mean_ns)
                if mean_ns > 0.0
                else float(gap_ns)
            )
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
