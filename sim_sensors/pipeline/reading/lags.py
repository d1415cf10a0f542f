"""How late samples may be: where to look for the newest that has arrived, and how many to keep."""

from __future__ import annotations

from rig_common.arrays import Ints
from sim_sensors.pipeline.progress import Progress
from sim_sensors.timing.arrays import Arrays, Rows
from sim_sensors.timing.faults import Faults
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import Transit


class Lags:
    """Bounds of the latency of all samples on their way, for each row.

    Latency changes with an episode and with a new config, while samples of the old config are
    still on their way. So the bounds of an episode only widen.
    """

    def __init__(self, transit: Transit, xp: Arrays) -> None:
        """Start with the latencies of `transit`; `plan` derives everything else."""
        self._transit, self._xp = transit, xp
        self._least_ns: Ints = xp.copy(transit.latency_ns)
        self._most_ns: Ints = self._least_ns + transit.spread_ns

    def reset(self, rows: Rows) -> None:
        """Take the latencies that `rows` have in their new episode."""
        self._least_ns[rows] = self._transit.latency_ns[rows]
        self._most_ns[rows] = self._least_ns[rows] + self._transit.spread_ns

    def widen(self) -> None:
        """Take in the latencies of a new config."""
        latency_ns = self._transit.latency_ns
        self._least_ns = self._xp.minimum(self._least_ns, latency_ns)
        self._most_ns = self._xp.maximum(self._most_ns, latency_ns + self._transit.spread_ns)

    def plan(self, progress: Progress, faults: Faults) -> None:
        """Derive what reads need, from here and from where the episodes began."""
        slow_ns = faults.most_latency_ns
        self._spread_ns = int((self._most_ns - self._least_ns).max()) + slow_ns
        self._latency_ns = max(int(self._most_ns.max()), self._transit.most_latency_ns) + slow_ns
        self._irregular = bool(self._spread_ns or faults or not self._transit.is_regular)
        self.least_ns: Ints = progress.origin_ns + self._least_ns
        """Nothing captured later than this before now has arrived, ns [rows]; episodes' starts
        are in it, so that what remains counts from there."""
        self.line_ns: Ints = progress.origin_ns + self._transit.latency_ns
        """The same for interpolation, which is for a line of one latency: the present one, for
        what is under way too."""
        first_ns = int(self.least_ns[0])
        same = progress.is_together and bool((self.least_ns == first_ns).all())
        self.common_ns = first_ns if same else None
        """`least_ns` where it is the same for all, which makes reads several times faster."""

    @property
    def are_zero(self) -> bool:
        """Whether every sample arrives at once, so that older ones are never needed."""
        return not (self._latency_ns or self._irregular)

    def overtaking(self, schedule: Schedule) -> int:
        """Return how many captures one that has arrived may have overtaken."""
        return schedule.captures_in(self._spread_ns) if self._irregular else 0

    def under_way(self, schedule: Schedule) -> int:
        """Return how many captures may be on their way at once."""
        return schedule.captures_in(self._latency_ns) if self._latency_ns else 0
