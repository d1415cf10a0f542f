"""Moves a mocap body through waypoints; what is welded to it follows."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import product
from sim_sensors.world.config.drivers import MocapConfig
from sim_sensors.world.drivers.smooth import smooth
from sim_sensors.world.drivers.way import Way, legs
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
        self._way: Way | None = None
        if config.waypoints_m:
            points = np.reshape([*home[:3], *config.waypoints_m], (-1, 3))
            lengths = np.linalg.norm(legs(points), axis=1)
            self._way = Way(points, np.maximum(lengths / config.speed_m_s, 1e-3), config.rest_s)

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write where the body is to be."""
        if self._way is None:
            return
        for env, elapsed_s in enumerate(self.elapsed_s(time_ns).tolist()):
            leg, part = self._way.leg(elapsed_s)
            done = smooth(np.array(part))
            swing = np.sin(np.pi * done) * np.sin(2 * np.pi * TURNS * (leg + float(done)))
            quat = turned(self._home_quat, self._config.tilt_rad * swing)
            world.placing.move(env, self._columns, np.r_[self._way.at(elapsed_s)[0], quat])


def turned(quat_wxyz: Floats, vector_rad: Floats) -> Floats:
    """Return an orientation turned by a rotation vector in the world."""
    angle = float(np.linalg.norm(vector_rad))
    x, y, z = vector_rad * (np.sin(angle / 2) / angle) if angle > 1e-12 else np.zeros(3)
    return np.array(product((float(np.cos(angle / 2)), x, y, z), tuple(quat_wxyz)))
