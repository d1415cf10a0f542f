"""What time the world has, for a node that stood still and has its ticks still to hear.

A node that was stopped for five seconds takes up messages of these seconds before the tick that
says so. By the last tick heard they would have come before they were captured, and no clock of a
sensor could be told from that. So a tick that is late counts with its age.
"""

from __future__ import annotations

from rig_common.lockstep.messages import Tick
from rig_common.times import NS_PER_MS, NS_PER_S

LATE_NS = 200 * NS_PER_MS
"""Age from which a tick is late: ticks come every 50 ms of simulated time and more often."""
PACE_OVER_NS = NS_PER_S
"""Host time over which the pace of the world is taken."""


class TickClock:
    """The world's time by the last tick and its age on the host's clock."""

    def __init__(self) -> None:
        self._tick = self._since = Tick(0)
        self._pace = 1.0
        """Simulated time in host time: real time, or the fastest of this run. A message that seems
        to come late tells nothing wrong of its clock, one that seems to come early does."""
        self._way_ns: int | None = None
        """Host time at which a tick was heard minus that at which it was sent, at the least."""

    def hear(self, tick: Tick, host_ns: int) -> None:
        """Take a tick that is heard at `host_ns`; one of a barrier tells no time."""
        if not tick.wall_ns:
            return
        if (tick.run, tick.episode) != (self._tick.run, self._tick.episode):
            self._since, self._pace, self._way_ns = tick, 1.0, None
        self._tick = tick
        way_ns = host_ns - tick.wall_ns
        self._way_ns = way_ns if self._way_ns is None else min(self._way_ns, way_ns)
        took_ns = tick.wall_ns - self._since.wall_ns
        if took_ns >= PACE_OVER_NS:
            self._pace = max(self._pace, (tick.time_ns - self._since.time_ns) / took_ns)
            self._since = tick

    def now_ns(self, host_ns: int) -> int:
        """Return the simulated time at `host_ns`: the last tick's while that is not late."""
        age_ns = host_ns - self._tick.wall_ns - (self._way_ns or 0)
        if self._way_ns is None or age_ns < LATE_NS:
            return self._tick.time_ns
        return self._tick.time_ns + round(self._pace * age_ns)
