"""Holds a pose through the PD layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from rig_common.arrays import Floats
from sim_sensors.world.actuation.servo import Servo, lengths_at
from sim_sensors.world.config.drivers import GainConfig, JointServoConfig
from sim_sensors.world.drivers.smooth import smooth
from sim_sensors.world.model.poses import find_pose, start_qpos
from sim_sensors.world.world_base import Driver, WorldBase


class Hold(Driver):
    """Goes from the start to the pose in `ramp_s`, then lets commands move it."""

    def __init__(self, world: WorldBase, config: JointServoConfig) -> None:
        super().__init__(world)
        start = start_qpos(world.model, world.keyframe)
        self.qpos = find_pose(world.model, config.pose, world.config.poses, start)
        self.servo = servo_at(world, self.qpos, config.gains)
        self._ramp_s = config.ramp_s
        self._from = lengths_at(world.model, start, self.servo.outs)
        self.lengths = lengths_at(world.model, self.qpos, self.servo.outs)
        """What is held, [n]."""
        self._is_there = np.array_equal(self._from, self.lengths)
        world.actuation.add_servo(self.servo, self._from)

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write the way to the pose; nothing once it is reached."""
        elapsed_s = self.elapsed_s(time_ns)
        moving = elapsed_s <= self._ramp_s + world.dt_ns * 1e-9
        if not self._is_there and moving.any():
            world.actuation.lengths[moving] = self.approach(elapsed_s[moving])

    def approach(self, elapsed_s: Floats) -> Floats:
        """Return the lengths on the way to the pose, [E, n]."""
        if not self._ramp_s:
            return np.broadcast_to(self.lengths, (len(elapsed_s), len(self.lengths)))
        part = smooth(elapsed_s / self._ramp_s)[:, None]
        return self._from + part * (self.lengths - self._from)


def servo_at(
    world: WorldBase, qpos: Floats, gains: Mapping[str, GainConfig], wheels: Sequence[int] = ()
) -> Servo:
    """Return a PD layer whose own gains are those of the pose `qpos`."""
    data = mujoco.MjData(world.model)
    data.qpos[:] = qpos
    mujoco.mj_forward(world.model, data)
    return Servo(world.model, world.actuation.actuators, data, gains, wheels)
