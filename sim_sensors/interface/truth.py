"""How truth gets from MuJoCo into rows: the view a reader sees and the reader itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import mujoco
import numpy as np

from rig_common.arrays import AnyArray, Floats
from sim_sensors.interface.velocities import VelocityColumns
from sim_sensors.timing.arrays import Array


class WorldView(Protocol):
    """One instant of one or many copies of the world.

    `sensordata` and every `x*` array of `data(env)` belong to `time_ns`; `qpos`, `qvel` and
    `data.time` do not (mj_step has already integrated them) and must not be read.
    """

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model, shared by all environments."""

    @property
    def num_envs(self) -> int:
        """Number of copies."""

    @property
    def time_ns(self) -> int:
        """The instant, ns since the start of the run."""

    @property
    def stamp_ns(self) -> int:
        """The instant as headers and /clock say it, ns."""

    @property
    def sensordata(self) -> Floats:
        """MuJoCo's sensordata of every environment, [num_envs, nsensordata]."""

    @property
    def next_velocity(self) -> Floats | None:
        """Velocity at the end of the step that begins now, [num_envs, nv].

        None where velocities belong to the pose already (Runge-Kutta).
        """

    def bound(self, name: str) -> Floats:
        """Return derived array `name` of MjData of all environments, [num_envs, ...]."""

    def data(self, env: int) -> mujoco.MjData:
        """Return environment `env`'s state."""


class TruthReader(Protocol):
    """Fills truth rows from a view. One per sensor and world; owns its scratch buffers."""

    parts_ns: Sequence[int]
    """Offsets after the capture time at which `read` is called, ascending; (0,) is an instant."""

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write part `part` of the truth of `envs` into `out` [len(envs), width]."""


class ColumnReader:
    """Truth that is a set of sensordata columns, taken at once for all environments.

    Velocities are those of the pose, see `velocities`.
    """

    parts_ns: Sequence[int] = (0,)

    def __init__(self, model: mujoco.MjModel, sensor_names: Sequence[str]) -> None:
        """Take the columns of native sensors `sensor_names`, in that order."""
        columns: list[int] = []
        for name in sensor_names:
            native = model.sensor(name)
            start = int(native.adr[0])
            columns.extend(range(start, start + int(native.dim[0])))
        self.model = model
        self.columns: AnyArray = np.asarray(columns, np.intp)

    @cached_property
    def _velocities(self) -> VelocityColumns:
        return VelocityColumns(self.model, self.columns)

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Take the columns of `envs`."""
        self.write(self.values(view, envs), out)

    def values(self, view: WorldView, envs: Sequence[int]) -> Array:
        """Return the columns of `envs`, [n, columns]."""
        chosen = slice(None) if len(envs) == view.num_envs else np.asarray(envs)
        found: Array = view.sensordata[chosen].take(self.columns, axis=1)
        if not self._velocities.is_empty and (after := view.next_velocity) is not None:
            self._velocities.bring_to_pose(view.bound, chosen, after, found)
        return found

    def write(self, columns: Array, out: Array) -> None:
        """Make truth rows `out` [n, width] of the columns' values [n, c]: here, copy them."""
        out[:] = columns
