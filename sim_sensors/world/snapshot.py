"""A still of the world for worker threads: physics goes on while they read it."""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common.arrays import Floats
from sim_sensors.world.world_base import WorldBase


class Snapshot:
    """A `WorldView` of one instant, with its own memory; `take` refills it (about 8 us each)."""

    def __init__(self, world: WorldBase) -> None:
        """Make room for all environments of `world` and take the first still."""
        self.world = world
        self.model = world.model
        self.num_envs = world.num_envs
        self.time_ns, self.stamp_ns = world.time_ns, world.stamp_ns
        self.sensordata: Floats = np.array(world.sensordata)
        self._data = [mujoco.MjData(world.model) for _ in range(world.num_envs)]
        self.take()

    def take(self) -> None:
        """Copy the world as it is now; only the thread that steps the world may call it."""
        self.time_ns, self.stamp_ns = self.world.time_ns, self.world.stamp_ns
        np.copyto(self.sensordata, self.world.sensordata)
        for env, data in enumerate(self._data):
            mujoco.mj_copyData(data, self.model, self.world.data(env))

    def data(self, env: int) -> mujoco.MjData:
        """Return the copied state of `env`."""
        return self._data[env]

    def bound(self, name: str) -> Floats:
        """Return array `name` of the copied states, [num_envs, ...]."""
        return np.stack([getattr(data, name) for data in self._data])

    @property
    def next_velocity(self) -> Floats | None:
        """Velocity at the end of the step that begins now; see `WorldView`."""
        return None if self.world.is_rk4 else self.bound('qvel')
