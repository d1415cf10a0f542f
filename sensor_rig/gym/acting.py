"""What an action of a learner does to a rig's robot."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box

from rig_common.arrays import Flags, Floats, Floats32
from rig_common.errors import RigError
from sim_sensors.world.world_base import WorldBase

TWIST = np.array([1.0, 1.5])
"""Speed, m/s, and yaw rate, rad/s, of a wheeled base that 1 stands for."""


class Actions:
    """Actions [num_envs, n] between -1 and 1, spread over what each actuator takes.

    A wheeled base is driven by speed and yaw rate. Where the rig's driver has a PD layer (`hold`),
    an action sets the joints' positions within their limits, 0 being the held pose. Any other
    robot gets the controls of its actuators within their ranges, 0 being the start.
    """

    def __init__(self, world: WorldBase) -> None:
        self._world = world
        self._is_twist = world.drive is not None and world.actuation.servo is None
        if self._is_twist:
            self._start, self._down, self._up = np.zeros(2), TWIST, TWIST
        else:
            self._start, low, high = _targets(world)
            self._down, self._up = self._start - low, high - self._start
        if not len(self._start):
            raise RigError(
                'the model of this rig has no actuators, so there is nothing to act '
                'on; add some with world.actuators'
            )
        self.space = Box(-1.0, 1.0, (len(self._start),), np.float32)

    def apply(self, actions: Floats32) -> None:
        """Command all environments."""
        wanted = np.clip(np.asarray(actions, np.float64), -1.0, 1.0)
        if wanted.shape != (self._world.num_envs, len(self._start)):
            raise RigError(
                f'the actions have the shape {list(wanted.shape)}; they should be '
                f'[{self._world.num_envs}, {len(self._start)}]'
            )
        targets = self._start + np.where(wanted < 0.0, wanted * self._down, wanted * self._up)
        if self._is_twist:
            self._world.command_twist(targets[:, 0], targets[:, 1])
        elif self._world.actuation.servo is not None:
            self._world.actuation.lengths[:] = targets
        else:
            self._world.command_all(targets)


def _targets(world: WorldBase) -> tuple[Floats, Floats, Floats]:
    """Return start, lowest and highest of what is commanded, [n] each."""
    model, actuation = world.model, world.actuation
    servo = actuation.servo
    if servo is None:
        start = actuation.start[: model.nu].copy()
        low, high = _limits(model.actuator_ctrlrange, model.actuator_ctrllimited, start)
        return start, low, high
    start = actuation.start[model.nu : model.nu + len(servo.chosen)].copy()
    joints = np.array([actuation.actuators.joint[index] for index in servo.chosen])
    limited = (joints >= 0) & model.jnt_limited[joints].astype(bool)
    ranges = np.sort(model.jnt_range[joints] * servo.gear[:, None], axis=1)
    return start, *_limits(ranges, limited, start)


def _limits(ranges: Floats, limited: Flags, start: Floats) -> tuple[Floats, Floats]:
    """Return lowest and highest targets; what has no limits may go 1 away from its start."""
    is_limited = np.asarray(limited, bool)
    low = np.where(is_limited, np.minimum(ranges[:, 0], start), start - 1.0)
    return low, np.where(is_limited, np.maximum(ranges[:, 1], start), start + 1.0)
