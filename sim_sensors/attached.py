"""A rig on a simulation that somebody else steps.

    rig = AttachedRig(model, data, world, sensors, seed=7)
    mujoco.mj_step(model, data)         # or an environment does so, several steps at once
    rig.observe()
    rig.read('imu').values

`sensor_rig.inprocess.attach` makes one from a rig file.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import mujoco

from sim_sensors.interface import AnySensor
from sim_sensors.outbox import Message
from sim_sensors.pipeline.sources import Instant
from sim_sensors.rig import Rig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.foreign.attached_world import AttachedWorld


class AttachedRig(Rig):
    """Sensors on somebody else's MjModel and MjData; `observe` instead of `step`."""

    world: AttachedWorld

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        world: WorldConfig,
        sensors: Iterable[AnySensor],
        **keys: Any,
    ) -> None:
        """Mount `sensors` in a twin of `model`; `data` is looked at and never changed.

        `keys` are those of a `Rig`.
        """
        super().__init__(world, sensors, make=partial(AttachedWorld, model, data), **keys)

    def observe(self) -> list[Message]:
        """Take what happened since the last call; return the messages that arrived by now.

        The first call after a reset is tick 0. Time that went back begins a new episode.
        """
        world = self.world
        steps = world.look() if world.tick >= 0 else 1
        if steps < 0:
            self.reset()
            steps = 1
        last_ns = world.time_ns + steps * world.dt_ns
        walk = any(
            each.next_ns < last_ns and not (isinstance(each, Instant) and each.pipeline.is_lazy)
            for each in self._in_order
        )
        found: list[Message] = []
        for _ in range(world.follow(steps, walk=walk)):
            found += self.step()
        return found

    def attach(self, data: mujoco.MjData) -> None:
        """Follow another MjData of the same model, and begin a new episode there."""
        self.world.attach(data)
        self.reset()
