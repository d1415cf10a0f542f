"""The simulated world: one copy of it on one MjData, or (`make_world`) a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import NoReturn

import mujoco
import numpy as np

from rig_common.arrays import AnyArray, Floats, Ids
from sim_sensors.interface import AnySensor
from sim_sensors.timing.config import LinkConfig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.drivers.choice import make_driver
from sim_sensors.world.instability import FULL_KINDS
from sim_sensors.world.world_base import WorldBase


class World(WorldBase):
    """One copy of the world, on one MjData."""

    make_driver = staticmethod(make_driver)

    def _allocate(self, threads: int) -> None:
        self._data = mujoco.MjData(self.model)
        self.sensordata = self._data.sensordata[None]
        self._ctrl: Floats = self._data.ctrl
        self._warned: AnyArray = self._data.warning.number
        self._clock = -1.0

    def data(self, env: int = 0) -> mujoco.MjData:
        """Return the state; read its derived arrays only (see `WorldView`)."""
        return self._data

    def bound(self, name: str) -> Floats:
        """Return array `name` of MjData, [1, ...]."""
        array: Floats = getattr(self._data, name)[None]
        return array

    def _field(self, name: str) -> AnyArray:
        field: AnyArray = attrgetter(name)(self.model)[None]
        return field

    def _set_constants(self, envs: Ids) -> None:
        mujoco.mj_setConst(self.model, self._data)

    def _advance(self, ctrl: Floats) -> None:
        data = self._data
        if self.is_rk4:
            # Runge-Kutta leaves its own substeps in the derived arrays: step first, then compute
            # them for where it came to, under the command that holds from there on.
            if self.tick >= 0:
                mujoco.mj_step(self.model, data)
            self._ctrl[:] = ctrl[0]
            mujoco.mj_forward(self.model, data)
        else:
            self._ctrl[:] = ctrl[0]
            mujoco.mj_step(self.model, data)

    def _check(self) -> None:
        # MuJoCo resets what became unstable; its clock not going on is the cheapest sign of it.
        clock = self._data.time
        if clock <= self._clock:
            self._raise_warning()
        self._clock = clock
        if self.tick & 15 == 15 and any(self._warned[kind] for kind in FULL_KINDS):
            self._raise_warning()

    def _raise_warning(self) -> NoReturn:
        warnings = self._data.warning
        self._unstable(0, np.stack([warnings.lastinfo, warnings.number], 1))

    def _reset(self, envs: Ids, *, is_midway: bool) -> None:
        if not len(envs):
            return
        if self.keyframe < 0:
            mujoco.mj_resetData(self.model, self._data)
        else:
            mujoco.mj_resetDataKeyframe(self.model, self._data, self.keyframe)
        if self._history is not None:
            self._data.history[:] = self._history
        mujoco.mj_forward(self.model, self._data)
        self._command_first_step(envs)
        if is_midway and not self.is_rk4:
            mujoco.mj_step(self.model, self._data)  # the state is one step ahead, as after step()
        self._clock = -1.0


def make_world(
    config: WorldConfig,
    sensors: Iterable[AnySensor] = (),
    base_dir: Path | None = None,
    seed: int = 0,
    links: Mapping[str, LinkConfig] | None = None,
) -> WorldBase:
    """Return the world of `config`: one MjData, or a batch when `num_envs` is larger."""
    if config.num_envs == 1:
        return World(config, sensors, base_dir, seed, links)
    from sim_sensors.world.batch import BatchWorld

    return BatchWorld(config, sensors, base_dir, seed, links)
