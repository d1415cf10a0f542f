"""The simulated world: any MJCF, the rig's sensors mounted in it, stepped on an integer clock."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from math import atan2
from pathlib import Path
from typing import Any, NoReturn

import mujoco
import numpy as np
from mujoco.batch import SimulationError
from numpy.typing import ArrayLike, NDArray

from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sim_sensors.config import WorldConfig
from sim_sensors.sensors.base import Sensor
from sim_sensors.world import drivers
from sim_sensors.world.actuators import ControlDelay
from sim_sensors.world.drive import DiffDrive, command_names, find_drive
from sim_sensors.world.modelfile import compile_model, one_line, whole_timestep_ns
from sim_sensors.world.mounts import unknown_name
from sim_sensors.world.native_delay import initial_history

Floats = NDArray[np.float64]

UNSTABLE = {mujoco.mjtWarning.mjWARN_BADQPOS: ('position', 'qpos'),
            mujoco.mjtWarning.mjWARN_BADQVEL: ('velocity', 'qvel'),
            mujoco.mjtWarning.mjWARN_BADQACC: ('acceleration', 'qacc')}
FULL = {mujoco.mjtWarning.mjWARN_CONTACTFULL: 'contacts',
        mujoco.mjtWarning.mjWARN_CNSTRFULL: 'constraints'}

FULL_KINDS = [int(kind) for kind in FULL]

ENGINE_ERRORS = (mujoco.FatalError, SimulationError)

# MuJoCo writes its warnings to a file in the working directory unless somebody takes them.
mujoco.set_mju_user_warning(logging.getLogger('mujoco').warning)


class WorldBase(ABC):
    """What one world and a batch of worlds share: model, time, commands and driver.

    `step()` moves from tick to tick; the first one is tick 0. After it `sensordata` and every
    derived array belong to `time_ns` = tick * dt_ns, whatever integrator the model uses. That
    time counts from the start of the run; `stamp_ns` is the same instant for everybody outside.
    """

    def __init__(self, config: WorldConfig, sensors: Iterable[Sensor[Any]],
                 base_dir: Path | None, num_envs: int) -> None:
        self.config = config
        self.dt_ns = whole_timestep_ns(config.timestep_s)
        self.model = compile_model(config, sensors, base_dir)
        self.num_envs = num_envs
        self.tick = -1
        self.time_ns = -self.dt_ns
        self.time_base = config.time_base
        self.is_rk4 = self.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        self.keyframe = self._keyframe(config.keyframe)
        self.drive = find_drive(self.model)
        self.actuators = command_names(self.model)
        """Actuator ids by the names that `command` takes."""
        self._home = (np.zeros(self.model.nu) if self.keyframe < 0
                      else self.model.key_ctrl[self.keyframe].copy())
        self._wanted = np.tile(self._home, (num_envs, 1))
        self._line = self._delay_line()
        self._history = initial_history(self.model, self.keyframe, self._home)
        self._driver_ticks = max(1, round(drivers.PERIOD_S * NS_PER_S / self.dt_ns))
        self.driver = drivers.make_drivers(config.driver, self.model, self.drive, num_envs,
                                           self._driver_ticks * self.dt_ns / NS_PER_S)

    # ---- time -----------------------------------------------------------------------------

    @property
    def stamp_ns(self) -> int:
        """The present instant as headers and /clock say it, ns."""
        return self.time_base.stamp_ns(self.time_ns)

    def step(self) -> None:
        """Move to the next tick."""
        tick = self.tick + 1
        if self.driver is not None and self.drive is not None and tick % self._driver_ticks == 0:
            self.drive.write(self.driver.twists(self.poses(self.drive.body)), self._wanted)
        ctrl = self._wanted
        if self._line is not None:
            self._line.set(tick * self.dt_ns, ctrl)
            ctrl = self._line.read(tick * self.dt_ns)
        try:
            self._advance(ctrl)
        except ENGINE_ERRORS as error:
            raise self._stopped(error) from None
        self.tick = tick
        self.time_ns = tick * self.dt_ns
        self._check()

    def reset(self, envs: Sequence[int] | NDArray[np.intp] | None = None) -> None:
        """Go back to the start.

        Without `envs` time starts anew: the next `step()` is tick 0. With `envs` time goes on and
        these environments are at their start now, at `time_ns`.
        """
        chosen = np.arange(self.num_envs) if envs is None else np.unique(np.asarray(envs, np.intp))
        if len(chosen) and not 0 <= chosen[0] <= chosen[-1] < self.num_envs:
            raise RigError(f'reset of environments {chosen.tolist()}: there are 0 to '
                           f'{self.num_envs - 1}')
        self._wanted[chosen] = self._home
        if envs is None:
            self.tick, self.time_ns = -1, -self.dt_ns
            self._line = self._delay_line()
        elif self._line is not None:
            self._line.reset(chosen, self._home)
        if self.driver is not None:
            self.driver.reset(chosen)
        try:
            self._reset(chosen, is_midway=self.tick >= 0)
        except ENGINE_ERRORS as error:
            raise self._stopped(error) from None

    # ---- commands -------------------------------------------------------------------------

    def command(self, values: Mapping[str, float], envs: Any = slice(None)) -> None:
        """Set commands by name of actuator or joint, in the actuator's unit, for some `envs`."""
        for name, value in values.items():
            index = self.actuators.get(name)
            if index is None:
                raise RigError(unknown_name('the command', 'actuator', name, self.actuators))
            if not np.isfinite(value):
                raise RigError(f'the command of actuator {name!r} is {value}; it must be finite')
            self._wanted[envs, index] = value

    def command_all(self, ctrl: Floats) -> None:
        """Set every actuator of every environment: [num_envs, nu]."""
        self._wanted[:] = ctrl

    def command_twist(self, forward_m_s: ArrayLike, turn_rad_s: ArrayLike,
                      envs: Any = slice(None)) -> None:
        """Drive the base (cmd_vel): forward speed and yaw rate in its own frame.

        Each is one value for all `envs`, or an array of one for each.
        """
        drive = self._required_drive()
        rows = self._wanted[envs].reshape(-1, self.model.nu)
        twist = np.empty((len(rows), 2))
        twist[:, 0], twist[:, 1] = forward_m_s, turn_rad_s
        if not np.isfinite(twist).all():
            raise RigError(f'the twist ({forward_m_s!r}, {turn_rad_s!r}) is not finite')
        drive.write(twist.tolist(), rows)
        self._wanted[envs] = rows.reshape(self._wanted[envs].shape)

    def base_poses(self) -> Floats:
        """Return (x m, y m, yaw rad) of the driven base at `time_ns`, [num_envs, 3]."""
        return self.poses(self._required_drive().body)

    def _required_drive(self) -> DiffDrive:
        if self.drive is None:
            raise RigError('the model does not say how it is driven; a twist needs the custom '
                           'entries drive, drive_left, drive_right and drive_geometry_m')
        return self.drive

    # ---- state ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def sensordata(self) -> Floats:
        """MuJoCo's sensordata at `time_ns`, [num_envs, nsensordata]."""

    @abstractmethod
    def data(self, env: int) -> mujoco.MjData:
        """Return the state of `env`; read its derived arrays only (see `WorldView`)."""

    @abstractmethod
    def poses(self, body: int) -> Floats:
        """Return (x m, y m, yaw rad) of a body in the world at `time_ns`, [num_envs, 3]."""

    @abstractmethod
    def _advance(self, ctrl: Floats) -> None:
        """Apply `ctrl` [num_envs, nu] and move to the next tick."""

    @abstractmethod
    def _check(self) -> None:
        """Raise where the step just made was unstable."""

    @abstractmethod
    def _reset(self, envs: NDArray[np.intp], *, is_midway: bool) -> None:
        """Put `envs` back to the start; midway, their derived arrays are those of this tick."""

    def _delay_line(self) -> ControlDelay | None:
        """Return what holds commands back on their way to the actuators."""
        if not self.config.control_delay_s or self.config.control_delay_backend == 'mujoco':
            return None
        return ControlDelay(self.num_envs, self.model.nu, self.config.control_delay_s,
                            self.dt_ns, initial=self._home)

    # ---- trouble --------------------------------------------------------------------------

    def _keyframe(self, name: str) -> int:
        if not name:
            return -1
        names = [self.model.key(i).name for i in range(self.model.nkey)]
        if name not in names:
            raise RigError(unknown_name('world.keyframe', 'keyframe', name, names))
        return names.index(name)

    def _stopped(self, error: Exception) -> RigError:
        seconds = max(self.time_ns, 0) / NS_PER_S
        return RigError(f'MuJoCo stopped at {seconds:.3f} s: {one_line(error)}')

    def _unstable(self, env: int, warnings: NDArray[Any]) -> NoReturn:
        """Raise for the first warning in `warnings` [kinds, 2] (last info, count)."""
        where = f' in environment {env}' if self.num_envs > 1 else ''
        seconds = self.time_ns / NS_PER_S
        for kind, (what, array) in UNSTABLE.items():
            info, count = warnings[int(kind)]
            if count:
                raise RigError(f'the simulation became unstable at {seconds:.3f} s{where}: the '
                               f'{what} of {self._degree_of_freedom(array, int(info))} is not '
                               f'finite or huge; use a smaller world.timestep_s or softer '
                               f'contacts and gains')
        for kind, what in FULL.items():
            if warnings[int(kind)][1]:
                raise RigError(f'MuJoCo ran out of memory for {what} at {seconds:.3f} s{where}; '
                               f'give the model more with <size memory="..."/>')
        raise RigError(f'the simulation was reset by MuJoCo at {seconds:.3f} s{where}')

    def _degree_of_freedom(self, array: str, index: int) -> str:
        if array == 'qpos':
            joint = int(np.searchsorted(self.model.jnt_qposadr, index, 'right')) - 1
        else:
            joint = int(self.model.dof_jntid[index])
        found = self.model.joint(joint)
        return f'joint {found.name!r}' if found.name else (
            f'the joint of body {self.model.body(int(found.bodyid[0])).name!r}')


class World(WorldBase):
    """One copy of the world, on one MjData."""

    def __init__(self, config: WorldConfig, sensors: Iterable[Sensor[Any]] = (),
                 base_dir: Path | None = None) -> None:
        """Compile `config.model` with `sensors` mounted; files are looked up in `base_dir`."""
        super().__init__(config, sensors, base_dir, 1)
        self._data = mujoco.MjData(self.model)
        self._sensordata: Floats = self._data.sensordata[None]
        self._ctrl: Floats = self._data.ctrl
        self._xpos: Floats = self._data.xpos
        self._xmat: Floats = self._data.xmat
        self._warned: NDArray[Any] = self._data.warning.number
        self._clock = -1.0
        self.reset()

    @property
    def sensordata(self) -> Floats:
        """MuJoCo's sensordata at `time_ns`, [1, nsensordata]."""
        return self._sensordata

    def data(self, env: int = 0) -> mujoco.MjData:
        """Return the state; read its derived arrays only (see `WorldView`)."""
        return self._data

    def poses(self, body: int) -> Floats:
        """Return (x m, y m, yaw rad) of a body in the world at `time_ns`, [1, 3]."""
        x, y, _ = self._xpos[body].tolist()
        cosine, _, _, sine, *_ = self._xmat[body].tolist()
        return np.array([[x, y, atan2(sine, cosine)]])

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

    def _reset(self, envs: NDArray[np.intp], *, is_midway: bool) -> None:
        if not len(envs):
            return
        if self.keyframe < 0:
            mujoco.mj_resetData(self.model, self._data)
        else:
            mujoco.mj_resetDataKeyframe(self.model, self._data, self.keyframe)
        if self._history is not None:
            self._data.history[:] = self._history
        mujoco.mj_forward(self.model, self._data)
        if is_midway and not self.is_rk4:
            mujoco.mj_step(self.model, self._data)  # the state is one step ahead, as after step()
        self._clock = -1.0


def make_world(config: WorldConfig, sensors: Iterable[Sensor[Any]] = (),
               base_dir: Path | None = None) -> WorldBase:
    """Return the world of `config`: one MjData, or a batch when `num_envs` is larger."""
    if config.num_envs == 1:
        return World(config, sensors, base_dir)
    from sim_sensors.world.batch import BatchWorld
    return BatchWorld(config, sensors, base_dir)
