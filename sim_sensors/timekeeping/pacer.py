"""Simulated time against the wall's: how far the world should be by now, and how well it keeps up.

No clock of its own: the caller hands in the steady wall time.
"""

from __future__ import annotations

from collections import deque

from rig_common.times import NEVER_NS, NS_PER_S

MAX_LAG_S = 0.05
"""A world that is further behind than this does not catch up: its clock has been slow."""
WINDOW_S = 2.0
"""Wall time over which the achieved factor is taken."""


class Pacer:
    """Turns wall seconds into simulated nanoseconds at a factor; 0 means as fast as possible."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        """Simulated seconds per wall second that are wanted; 0 is as fast as possible."""
        self._wall_s = 0.0
        self._sim_ns = 0
        self.slipped_s = 0.0
        """Wall time lost so far because the machine was too slow, s."""
        self._marks: deque[tuple[float, int]] = deque()

    def start(self, wall_s: float, sim_ns: int, factor: float | None = None) -> None:
        """Count from here on: at the start, after a pause or a reset, with a new factor."""
        self.factor = self.factor if factor is None else factor
        self._wall_s, self._sim_ns = wall_s, sim_ns
        self._marks.clear()

    def sim_at(self, wall_s: float) -> int:
        """Return the simulated time that is due at `wall_s`, ns."""
        if not self.factor:
            return NEVER_NS
        return self._sim_ns + int((wall_s - self._wall_s) * self.factor * NS_PER_S)

    def wall_at(self, sim_ns: int) -> float:
        """Return the wall time at which `sim_ns` is due, s."""
        if not self.factor:
            return self._wall_s
        return self._wall_s + (sim_ns - self._sim_ns) / (self.factor * NS_PER_S)

    def note(self, wall_s: float, sim_ns: int) -> None:
        """Say how far the world is; when it lags, slow the clock instead of skipping captures."""
        if self.factor:
            lag_s = wall_s - self.wall_at(sim_ns)
            if lag_s > MAX_LAG_S:
                self.slipped_s += lag_s
                self._wall_s += lag_s
        marks = self._marks
        if not marks or wall_s - marks[-1][0] > 0.05:
            marks.append((wall_s, sim_ns))
            while wall_s - marks[0][0] > WINDOW_S:
                marks.popleft()

    @property
    def achieved(self) -> float | None:
        """Simulated seconds per wall second over the last seconds; None before there are any."""
        if len(self._marks) < 2:
            return None
        (wall_a, sim_a), (wall_b, sim_b) = self._marks[0], self._marks[-1]
        return (sim_b - sim_a) / NS_PER_S / (wall_b - wall_a)
