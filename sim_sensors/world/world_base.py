"""What one world and a batch of worlds share: model, time, commands and driver."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import atan2
from pathlib import Path
from typing import ClassVar, NoReturn

import mujoco
import numpy as np
from mujoco.batch import SimulationError
from numpy.typing import ArrayLike

from rig_common.arrays import AnyArray, Floats, Ids, Ints
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sim_sensors.interface import AnySensor
from sim_sensors.timing.arrays import ALL, EnvIndex
from sim_sensors.timing.config import LinkConfig
from sim_sensors.world.actuation.commands import Actuation
from sim_sensors.world.actuation.diff_drive import DiffDrive, find_drive
from sim_sensors.world.actuation.path_following import JointPath, PathFollower
from sim_sensors.world.actuation.placing import Placing
from sim_sensors.world.actuation.transmissions import Actuators, Field
from sim_sensors.world.config.drivers import DriverConfig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.instability import Warnings, instability
from sim_sensors.world.model.model_file import compile_model, one_line, whole_timestep_ns
from sim_sensors.world.model.native_delay import initial_history
from sim_sensors.world.model.poses import find_keyframe

ENGINE_ERRORS = (mujoco.FatalError, SimulationError)
VARIED = (
    *('body_mass', 'body_inertia', 'body_ipos', 'body_iquat', 'body_gravcomp'),
    *('geom_friction', 'geom_solref', 'geom_solimp', 'pair_friction', 'opt.gravity'),
    *('dof_damping', 'dof_armature', 'dof_frictionloss', 'jnt_stiffness', 'jnt_range'),
    *('tendon_stiffness', 'tendon_damping', 'tendon_frictionloss'),
    *('actuator_gainprm', 'actuator_biasprm', 'actuator_dynprm', 'actuator_forcerange'),
)
"""Fields of MjModel that may differ between environments: rays and pictures know no others."""

# MuJoCo writes its warnings to a file in the working directory unless somebody takes them.
mujoco.set_mju_user_warning(logging.getLogger('mujoco').warning)


class Driver(ABC):
    """Decides what the robots of all environments do."""

    period_s: float = 0.0
    """Time between two decisions, s; 0 decides at every physics step."""

    def __init__(self, world: WorldBase) -> None:
        self._begun_ns = np.zeros(world.num_envs, np.int64)

    def reset(self, envs: Ids, time_ns: int) -> None:
        """Begin a new episode in `envs` at `time_ns`."""
        self._begun_ns[envs] = time_ns

    def elapsed_s(self, time_ns: int) -> Floats:
        """Return the time since the start of each environment's episode, s [E]."""
        return (time_ns - self._begun_ns) / NS_PER_S

    def restart(self) -> None:  # noqa: B027 - most drivers know no more than their episodes
        """Prepare for time to start again."""

    def observe(self, world: WorldBase) -> None:  # noqa: B027 - most drivers see the state
        """Look at the world after each step."""

    def take_pose(
        self, body: str, pos_m: Sequence[float], quat_wxyz: Sequence[float], envs: EnvIndex
    ) -> bool:
        """Take a pose command for `body`; False leaves it to the world."""
        return False

    @abstractmethod
    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write what is wanted from `time_ns` on; called once a period."""


class WorldBase(ABC):
    """Any MJCF with the rig's sensors mounted in it, stepped on an integer clock.

    `step()` moves from tick to tick; the first one is tick 0. After it `sensordata` and every
    derived array belong to `time_ns` = tick * dt_ns, whatever integrator the model uses. That
    time counts from the start of the run; `stamp_ns` is the same instant for everybody outside.
    """

    is_batch: ClassVar[bool] = False
    make_driver: Callable[[str | DriverConfig, WorldBase], Driver | None]
    """From `world.driver` to the driver."""
    sensordata: Floats
    """MuJoCo's sensordata at `time_ns`, [num_envs, nsensordata]."""

    def __init__(
        self,
        config: WorldConfig,
        sensors: Iterable[AnySensor] = (),
        base_dir: Path | None = None,
        seed: int = 0,
        links: Mapping[str, LinkConfig] | None = None,
        *,
        threads: int = 0,
    ) -> None:
        """Compile `config.model` with `sensors` mounted; files are looked up in `base_dir`.

        A batch takes `threads` to step in, all usable cores for 0.
        """
        self.config = config
        self.links = links or {}
        """Lines that the sensors share, for a driver that reads them."""
        self.base_dir = base_dir
        self.sensors = list(sensors)
        self.seed = seed
        """Seed of what a driver draws."""
        self.episode = 0
        """Number of resets of the whole world since it got this seed."""
        self.dt_ns = whole_timestep_ns(config.timestep_s)
        self.model = self._compile()
        self.num_envs = num_envs = config.num_envs if self.is_batch else 1
        self.tick = -1
        self.time_ns = -self.dt_ns
        self.time_base = config.time_base
        self.is_rk4 = self.model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
        self.keyframe = find_keyframe(self.model, config.keyframe)
        self._home = (
            np.zeros(self.model.nu)
            if self.keyframe < 0
            else self.model.key_ctrl[self.keyframe].copy()
        )
        actuators = Actuators(self.model)
        self.actuation = Actuation(config, actuators, self._home, num_envs, self.dt_ns)
        self.following = PathFollower(self.actuation, self._position_of)
        self.placing = Placing(self.model, num_envs, config.control_delay_s, self.dt_ns)
        self.drive = find_drive(self.model, actuators, config.drive)
        self.driver = type(self).make_driver(config.driver, self)
        self._history = initial_history(self.model, self.keyframe, self._home)
        period_s = 0.0 if self.driver is None else self.driver.period_s
        self._driver_ticks = max(1, round(period_s * NS_PER_S / self.dt_ns))
        self._is_varied = False
        self._allocate(threads)
        self.reset(seed=seed)

    @abstractmethod
    def _allocate(self, threads: int) -> None:
        """Make the state of all environments."""

    def _compile(self) -> mujoco.MjModel:
        """Return the model with the sensors in it."""
        return compile_model(self.config, self.sensors, self.base_dir)

    # ---- time -----------------------------------------------------------------------------

    @property
    def stamp_ns(self) -> int:
        """The present instant as headers and /clock say it, ns."""
        return self.time_base.stamp_ns(self.time_ns)

    def step(self) -> None:
        """Move to the next tick."""
        tick = self.tick + 1
        now_ns = tick * self.dt_ns
        if self.driver is not None and tick % self._driver_ticks == 0:
            self.driver.act(self, now_ns)
        self.following.act(now_ns)
        self.placing.apply(now_ns, self.bound)
        try:
            self._advance(self.actuation.outputs(now_ns, self.bound))
        except ENGINE_ERRORS as error:
            raise self._stopped(error) from None
        self.tick = tick
        self.time_ns = now_ns
        self._check()
        if self.driver is not None:
            self.driver.observe(self)

    def reset(
        self,
        envs: Sequence[int] | Ids | None = None,
        *,
        seed: int | None = None,
        episode: int = 0,
        commands: tuple[Ints, Floats] | None = None,
    ) -> None:
        """Go back to the start.

        Without `envs` time starts again: the next `step()` is tick 0, of the next episode, or of
        `episode` of another `seed`. With `envs` time goes on and these environments are at their
        start now, at `time_ns`. `commands`, past times [m] and values [n, m, nu], are what they
        were commanded before.
        """
        chosen = np.arange(self.num_envs) if envs is None else np.unique(np.asarray(envs, np.intp))
        if len(chosen) and not 0 <= chosen[0] <= chosen[-1] < self.num_envs:
            raise RigError(
                f'reset of environments {chosen.tolist()}: there are 0 to {self.num_envs - 1}'
            )
        if envs is None:
            self.tick, self.time_ns = -1, -self.dt_ns
            self.episode = self.episode + 1 if seed is None else episode
            self.seed = self.seed if seed is None else seed
            if self.driver is not None:
                self.driver.restart()
        some = None if envs is None else chosen
        self.actuation.reset(some, self.seed, self.episode)
        if commands is not None:
            self.actuation.start_history(*commands, some)
        self.placing.reset(some)
        self.following.reset(chosen)
        try:
            if self._is_varied:
                self._set_constants(chosen)
            self._reset(chosen, is_midway=self.tick >= 0)
        except ENGINE_ERRORS as error:
            raise self._stopped(error) from None
        if self.driver is not None:
            self.driver.reset(chosen, max(self.time_ns, 0))

    # ---- commands -------------------------------------------------------------------------

    @property
    def actuators(self) -> dict[str, int]:
        """Actuator ids by the names that `command` takes."""
        return self.actuation.actuators.names

    def command(self, values: Mapping[str, float], envs: EnvIndex = ALL) -> None:
        """Set commands by name of actuator or joint, in the actuator's unit, for some `envs`.

        All are taken or, with a RigError, none.
        """
        self.actuation.apply(self.actuation.raw_changes(values), envs)

    def command_joints(
        self, values: Mapping[str, Mapping[Field, float]], envs: EnvIndex = ALL
    ) -> None:
        """Set positions, velocities and efforts of joints (rad, rad/s, N m; m, m/s, N).

        Each goes to the actuators that take it, or to the driver's PD layer; all are taken or,
        with a RigError, none.
        """
        self.actuation.apply(self.actuation.joint_changes(values), envs)

    def command_trajectory(
        self, path: JointPath | None, env: int = 0, start_ns: int | None = None
    ) -> None:
        """Let the joints of `env` follow `path` from `start_ns` (now) on; None stops them."""
        now_ns = max(self.time_ns, 0)
        self.following.start(path, env, now_ns if start_ns is None else start_ns)

    def command_pose(
        self,
        body: str,
        pos_m: Sequence[float],
        quat_wxyz: Sequence[float],
        envs: EnvIndex = ALL,
    ) -> None:
        """Put a mocap or free body at a pose in the world; a flown body goes there itself."""
        if self.driver is None or not self.driver.take_pose(body, pos_m, quat_wxyz, envs):
            self.placing.place(body, pos_m, quat_wxyz, envs, self.bound)

    def command_all(self, ctrl: Floats) -> None:
        """Set every actuator of every environment: [num_envs, nu]."""
        self.actuation.ctrl[:] = ctrl

    def command_twist(
        self, forward_m_s: ArrayLike, turn_rad_s: ArrayLike, envs: EnvIndex = ALL
    ) -> None:
        """Drive the base (cmd_vel): forward speed and yaw rate in its own frame.

        Each is one value for all `envs`, or an array of one for each.
        """
        drive = self.required_drive()
        twist = np.empty((np.size(np.arange(self.num_envs)[envs]), 2))
        twist[:, 0], twist[:, 1] = forward_m_s, turn_rad_s
        if not np.isfinite(twist).all():
            raise RigError(f'the twist ({forward_m_s!r}, {turn_rad_s!r}) is not finite')
        drive.write(twist.tolist(), self.actuation, envs)

    def _position_of(self, name: str, env: int) -> float:
        """Return the present position of the joint or tendon of an actuator."""
        actuators = self.actuation.actuators
        index = actuators.of(name)[0]
        return float(
            self.bound('actuator_length')[env, actuators.outs[index]] / actuators.gear[index]
        )

    def base_poses(self) -> Floats:
        """Return (x m, y m, yaw rad) of the driven base at `time_ns`, [num_envs, 3]."""
        return self.poses(self.required_drive().body)

    def required_drive(self) -> DiffDrive:
        """Return the drive of a wheeled base, or say that there is none."""
        if self.drive is None:
            raise RigError(
                'the model does not say how it is driven; a twist needs '
                'world.drive, or the custom entries drive, drive_left, '
                'drive_right and drive_geometry_m'
            )
        return self.drive

    # ---- state ----------------------------------------------------------------------------

    @property
    def next_velocity(self) -> Floats | None:
        """Velocity at the end of the step that begins now, [num_envs, nv]; see `WorldView`."""
        return None if self.is_rk4 else self.bound('qvel')

    @abstractmethod
    def data(self, env: int) -> mujoco.MjData:
        """Return the state of `env`; read its derived arrays only (see `WorldView`)."""

    @abstractmethod
    def bound(self, name: str) -> Floats:
        """Return array `name` of MjData of all environments, [num_envs, ...], for writing too.

        Derived arrays belong to `time_ns`; qpos and qvel are one step ahead.
        """

    def model_field(self, name: str) -> AnyArray:
        """Return field `name` of MjModel of all environments, [num_envs, ...], for writing.

        What MuJoCo derives from it follows in the environments that are reset next.
        """
        if name not in VARIED:
            raise RigError(f'model_field takes {", ".join(VARIED)}, not {name!r}')
        self._is_varied = True
        return self._field(name)

    @abstractmethod
    def _field(self, name: str) -> AnyArray:
        """Return field `name` of the model of all environments, [num_envs, ...]."""

    @abstractmethod
    def _set_constants(self, envs: Ids) -> None:
        """Derive what follows from fields of the model of `envs`."""

    def poses(self, body: int) -> Floats:
        """Return (x m, y m, yaw rad) of a body in the world at `time_ns`, [num_envs, 3]."""
        poses = self.bound('xpos')[:, body].copy()
        turn = self.bound('xmat')[:, body]
        poses[:, 2] = list(map(atan2, turn[:, 3], turn[:, 0]))  # the same bits for any number
        return poses

    @abstractmethod
    def _advance(self, ctrl: Floats) -> None:
        """Apply `ctrl` [num_envs, nu] and move to the next tick."""

    @abstractmethod
    def _check(self) -> None:
        """Raise where the step just made was unstable."""

    @abstractmethod
    def _reset(self, envs: Ids, *, is_midway: bool) -> None:
        """Put `envs` back to the start; midway, their derived arrays are those of this tick."""

    def _command_first_step(self, envs: Ids) -> None:
        """Give `envs`, which were just reset, what their actuators receive in their first step."""
        ctrl = self.actuation.first_outputs(max(self.time_ns, 0), envs, self.bound)
        self.bound('ctrl')[envs] = ctrl[envs]

    # ---- trouble --------------------------------------------------------------------------

    def _stopped(self, error: Exception) -> RigError:
        seconds = max(self.time_ns, 0) / NS_PER_S
        return RigError(f'MuJoCo stopped at {seconds:.3f} s: {one_line(error)}')

    def _unstable(self, env: int, warnings: Warnings) -> NoReturn:
        """Raise for the first of MuJoCo's `warnings`."""
        where = f' in environment {env}' if self.num_envs > 1 else ''
        raise instability(self.model, warnings, f'{self.time_ns / NS_PER_S:.3f} s{where}')
