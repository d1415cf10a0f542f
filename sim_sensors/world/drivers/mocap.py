"""Moves a mocap body through waypoints; what is welded to it follows."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import product
from sim_sensors.world.config.drivers import MocapConfig
from sim_sensors.world.drivers.smooth import smooth
from sim_sensors.world.world_base import Driver, WorldBase

TURNS = np.array([1.0, 1.618, 2.236])
"""Turns about x, y and z per way: in no simple ratio, so that no axis repeats another."""


class Mocap(Driver):
    """Goes from the start round the waypoints, with a rest at each; without any it waits."""

    def __init__(self, world: WorldBase, config: MocapConfig) -> None:
        super().__init__(world)
        self._config = config
        self.body = world.placing.mocap_body(config.body, 'world.driver.body')
        first = 7 * world.placing.mocap[self.body]
        self._columns = slice(first, first + 7)
        home = world.placing.wanted[0, self._columns]
        self._home_quat = home[3:].copy()
        points = np.reshape(config.waypoints_m, (-1, 3))
        self._points = np.vstack([home[:3], points]) if len(points) else points
        lengths = np.linalg.norm(np.roll(self._points, -1, 0) - self._points, axis=1)
        self._durations_s = config.rest_s + np.maximum(lengths / config.speed_m_s, 1e-3)

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write where the body is to be."""
        if not len(self._points):
            return
        for env, elapsed_s in enumerate(self.elapsed_s(time_ns).tolist()):
            world.placing.move(env, self._columns, self._pose(elapsed_s))

    def _pose(self, elapsed_s: float) -> Floats:
        ends_s = np.cumsum(self._durations_s)
        inside_s = elapsed_s % ends_s[-1]
        leg = int(np.searchsorted(ends_s, inside_s, 'right'))
        since_s = inside_s - (ends_s[leg - 1] if leg else 0.0)
        travel_s = self._durations_s[leg] - self._config.rest_s
        part = smooth(np.array((since_s - self._config.rest_s) / travel_s))
        start, end = self._points[leg], self._points[(leg + 1) % len(self._points)]
        turn = (
            self._config.tilt_rad
            * np.sin(np.pi * part)
            * np.sin(2 * np.pi * TURNS * (leg + float(part)))
        )
        return np.concatenate([start + part * (end - start), turned(self._home_quat, turn)])


def turned(quat_wxyz: Floats, vector_rad: Floats) -> Floats:
    """Return an orientation turned by a rotation vector in the world."""
    angle = float(np.linalg.norm(vector_rad))
    x, y, z = vector_rad * (np.sin(angle / 2) / angle) if angle > 1e-12 else np.zeros(3)
    return np.array(product((float(np.cos(angle / 2)), x, y, z), tuple(quat_wxyz)))
