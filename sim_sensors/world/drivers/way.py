"""A way through points in space, with a rest at each and without jumps of acceleration."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats
from sim_sensors.world.drivers.smooth import smooth


class Way:
    """Rests at each of its points before it goes on to the next one."""

    def __init__(
        self,
        points_m: Floats,
        travel_s: Floats,
        rest_s: float,
        start_s: float = 0.0,
        *,
        loop: bool = True,
    ) -> None:
        """Go through `points_m` [k, 3] from `start_s` on, in `travel_s` for each leg.

        A loop has k legs and never ends, else there are k - 1.
        """
        self._from, self._by = points_m[: len(travel_s)], legs(points_m, loop=loop)
        self._travel_s, self._rest_s, self._start_s, self._loop = travel_s, rest_s, start_s, loop
        self._ends_s = np.cumsum(travel_s + rest_s)

    def leg(self, elapsed_s: float) -> tuple[int, float]:
        """Return which leg it is on, and the part of its travel time that has passed."""
        since_s = max(elapsed_s - self._start_s, 0.0)
        since_s = since_s % self._ends_s[-1] if self._loop else min(since_s, self._ends_s[-1])
        leg = min(int(np.searchsorted(self._ends_s, since_s, 'right')), len(self._by) - 1)
        begun_s = self._ends_s[leg] - self._travel_s[leg] - self._rest_s
        return leg, float(
            np.clip((since_s - begun_s - self._rest_s) / self._travel_s[leg], 0.0, 1.0)
        )

    def at(self, elapsed_s: float) -> tuple[Floats, Floats]:
        """Return position and velocity, [3] each."""
        leg, part = self.leg(elapsed_s)
        speed = 30.0 * part**2 * (1.0 - part) ** 2 / self._travel_s[leg]
        return self._from[leg] + smooth(np.array(part)) * self._by[leg], speed * self._by[leg]


def legs(points_m: Floats, *, loop: bool = True) -> Floats:
    """Return the way from each point to the next, [k, 3]; without `loop` [k - 1, 3]."""
    by: Floats = np.roll(points_m, -1, 0) - points_m
    return by if loop else by[:-1]
