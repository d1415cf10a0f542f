"""What time the world has between its ticks.

In real time a tick says at what pace time goes on by the host's clock, and for how long at most.

A node that was stopped for five seconds takes up messages of these seconds before the tick that
says so. By the last tick heard they would have come before they were captured, and no clock of a
sensor could be told from that. So a tick that is late counts with its age.
"""

from __future__ import annotations

import math

from rig_common.lockstep.messages import Tick
from rig_common.times import NEVER_NS, NS_PER_MS, NS_PER_S

LATE_NS = 200 * NS_PER_MS
"""Age from which a tick is late: ticks come every 50 ms of simulated time and more often."""
PACE_OVER_NS = NS_PER_S
"""Host time over which the pace of the world is taken, and the shortest way of a tick."""
SAME_CLOCK_NS = 5 * NS_PER_MS
"""Ways shorter than this are ways; where the shortest is longer, two hosts' clocks differ."""


class TickClock:
    """The world's time by the last tick and its age on the host's clock."""

    def __init__(self) -> None:
        self._tick = self._since = Tick(0)
        self._pace = 1.0
        """Simulated time in host time: real time, or the fastest of this run. A message that seems
        to come late tells nothing wrong of its clock, one that seems to come early does."""
        self._way_ns = self._way_before_ns = NEVER_NS
        """Host time at which a tick was heard minus that at which it was sent, at the least, in
        the present `PACE_OVER_NS` and in the one before."""
        self._way_since_ns = 0

    def hear(self, tick: Tick, host_ns: int) -> None:
        """Take a tick that is heard at `host_ns`; one of a barrier only what episode it is."""
        if (tick.run, tick.episode) != (self._tick.run, self._tick.episode):
            self._tick = self._since = tick
            self._pace = 1.0
            self._way_ns = self._way_before_ns = NEVER_NS
        if not tick.wall_ns:
            return
        self._tick = tick
        if not self._since.wall_ns:
            self._since = tick
        if host_ns - self._way_since_ns > PACE_OVER_NS:
            self._way_since_ns = host_ns
            self._way_before_ns, self._way_ns = self._way_ns, NEVER_NS
        self._way_ns = min(self._way_ns, host_ns - tick.wall_ns)
        took_ns = tick.wall_ns - self._since.wall_ns
        if took_ns >= PACE_OVER_NS:
            self._pace = max(self._pace, (tick.time_ns - self._since.time_ns) / took_ns)
            self._since = tick

    def now_ns(self, host_ns: int) -> int:
        """Return the simulated time at `host_ns`, also where ticks are late."""
        age_ns = self._age_ns(host_ns)
        if age_ns < LATE_NS:
            return self.between_ns(host_ns)
        return self._tick.time_ns + round(self._pace * age_ns)

    def between_ns(self, host_ns: int) -> int:
        """Return the simulated time at `host_ns` as far as the last tick says it."""
        tick = self._tick
        passed_ns = min(round(tick.pace * self._age_ns(host_ns)), tick.ahead_ns)
        return tick.time_ns + passed_ns

    def until_s(self, time_ns: int, host_ns: int) -> float:
        """Return in how much host time `between_ns` reaches `time_ns`, s; inf where never."""
        tick = self._tick
        left_ns = time_ns - tick.time_ns
        if not tick.pace or left_ns > tick.ahead_ns:
            return math.inf
        return max(left_ns / tick.pace - self._age_ns(host_ns), 0.0) / NS_PER_S

    def _age_ns(self, host_ns: int) -> int:
        """Return how long ago the last tick was, ns."""
        way_ns = min(self._way_ns, self._way_before_ns)
        if way_ns == NEVER_NS:
            return 0
        between_clocks_ns = 0 if 0 <= way_ns < SAME_CLOCK_NS else way_ns
        return max(host_ns - self._tick.wall_ns - between_clocks_ns, 0)
