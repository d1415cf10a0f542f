"""Flies a free body through waypoints: a position loop, an attitude loop, and its rotors.

The reference goes from waypoint to waypoint without jumps of acceleration. Its error gives a
wanted acceleration; thrust points along it, the attitude follows (Lee, Leok, McClamroch 2010), and
the least squares of thrust and torques over what each actuator does to the body give the commands.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ids
from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.timing.arrays import EnvIndex
from sim_sensors.world.actuation.servo import moments
from sim_sensors.world.actuation.transmissions import FIXED, NO_BIAS
from sim_sensors.world.config.drivers import WaypointsConfig
from sim_sensors.world.drivers.way import Way, legs
from sim_sensors.world.model.poses import start_qpos
from sim_sensors.world.model.stance import free_bodies
from sim_sensors.world.world_base import Driver, WorldBase

POSITION_RAD_S, ATTITUDE_RAD_S = 2.5, 14.0
"""Natural frequencies of the two loops; the inner one is several times faster."""
DAMPING = 0.9
MOST_TILT = 0.6
"""Largest sideways part of the thrust's direction, tan of the tilt."""
PEAK = 1.875
"""Peak over mean speed of a smooth way."""
PEAK_ACCELERATION = 5.77
"""Peak acceleration of a smooth way of 1 m in 1 s, m/s^2."""
SWING_RAD_S = (0.9, 2.3)
"""Two tones of the swinging heading."""


class Flight(Driver):
    """Flies one body of every environment."""

    def __init__(self, world: WorldBase, config: WaypointsConfig) -> None:
        super().__init__(world)
        self._config = config
        model = world.model
        self._body = _flown(world, config.body)
        self.name = model.body(self._body).name
        joint = int(model.body_jntadr[self._body])
        self._at, self._dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        self._start = start_qpos(model, world.keyframe)[self._at : self._at + 7]
        self._tour = self._way(np.reshape([*self._start[:3], *config.waypoints_m], (-1, 3)))
        self._goals: dict[int, tuple[Way, float]] = {}
        self._yaw = _yaw(_matrix(self._start[3:]))
        self._weigh(world)

    def _way(self, points_m: Floats, start_s: float = 0.0, *, loop: bool = True) -> Way:
        """Return the reference through points: no faster and no harder than the config says."""
        config, length = self._config, np.linalg.norm(legs(points_m, loop=loop), axis=1)
        travel_s = np.maximum(
            PEAK * length / config.speed_m_s,
            np.sqrt(PEAK_ACCELERATION * length / config.acceleration_m_s2),
        )
        return Way(points_m, np.maximum(travel_s, 0.1), config.rest_s, start_s, loop=loop)

    def _weigh(self, world: WorldBase) -> None:
        """Find mass, inertia and what each actuator does to the body."""
        model = world.model
        data = mujoco.MjData(model)
        data.qpos[:] = start_qpos(model, world.keyframe)
        data.qpos[self._at + 3 : self._at + 7] = 1.0, 0.0, 0.0, 0.0
        mujoco.mj_forward(model, data)
        actuators = world.actuation.actuators
        arms = moments(model, data)[actuators.outs, self._dof : self._dof + 6]
        wrench = (arms * actuators.gain[:, None]).T
        self._acting = np.flatnonzero(np.abs(wrench).max(0) > 1e-12)
        acting = actuators.ids[self._acting]
        plain = (model.actuator_gaintype[acting] == FIXED) & (
            model.actuator_biastype[acting] == NO_BIAS
        )
        thrusts = wrench[2:, self._acting]
        if not plain.all() or np.linalg.matrix_rank(thrusts, 1e-6) < 4:
            raise RigError(
                f'world.driver is waypoints, but the actuators of body {self.name!r} '
                f'cannot give it thrust along z and torque about every axis; it needs '
                f'four rotors or more, or motors of these forces, on its free joint'
            )
        self._to_ctrl = np.linalg.pinv(thrusts)
        inertia = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, inertia)
        block = inertia[self._dof : self._dof + 6, self._dof : self._dof + 6]
        self._mass, self._inertia = float(block[0, 0]), block[3:, 3:]
        self._com = data.subtree_com[self._body] - data.xpos[self._body]
        self._gravity = -np.asarray(model.opt.gravity, float)

    def reset(self, envs: Ids, time_ns: int) -> None:
        """Begin the tour again in `envs`."""
        super().reset(envs, time_ns)
        for env in envs.tolist():
            self._goals.pop(env, None)

    def take_pose(
        self, body: str, pos_m: Sequence[float], quat_wxyz: Sequence[float], envs: EnvIndex
    ) -> bool:
        """Fly to a pose that is commanded for this body, and hover there."""
        if body != self.name:
            return False
        goal, turn = np.asarray(pos_m, float), np.asarray(quat_wxyz, float)
        if not np.isfinite(goal).all() or not 0.9 < np.linalg.norm(turn) < 1.1:
            raise RigError(
                f'the pose command of {body!r} should be a finite position and a unit quaternion'
            )
        for env in np.atleast_1d(np.arange(len(self._begun_ns))[envs]).tolist():
            here, _ = self._reference(env, self._now_s[env])
            way = self._way(np.stack([here, goal]), self._now_s[env], loop=False)
            self._goals[env] = way, _yaw(_matrix(turn))
        return True

    def _reference(self, env: int, elapsed_s: float) -> tuple[Floats, Floats]:
        return (
            self._goals[env][0].at(elapsed_s) if env in self._goals else (self._tour.at(elapsed_s))
        )

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write the commands of the rotors."""
        self._now_s = self.elapsed_s(time_ns).tolist()
        qpos, qvel = world.bound('qpos'), world.bound('qvel')
        for env, elapsed_s in enumerate(self._now_s):
            pose = qpos[env, self._at : self._at + 7]
            rate = qvel[env, self._dof : self._dof + 6]
            place, speed = self._reference(env, elapsed_s)
            world.actuation.ctrl[env, self._acting] = self._command(
                pose, rate, place, speed, self._heading(env, elapsed_s, speed)
            )

    def _heading(self, env: int, elapsed_s: float, speed: Floats) -> float:
        if env in self._goals:
            return self._goals[env][1]
        if self._config.yaw == 'ahead' and np.hypot(*speed[:2]) > 0.05:
            return float(np.arctan2(speed[1], speed[0]))
        if self._config.yaw == 'swing':
            slow, fast = SWING_RAD_S
            return self._yaw + self._config.swing_rad * float(
                0.7 * np.sin(slow * elapsed_s) + 0.3 * np.sin(fast * elapsed_s)
            )
        return self._yaw

    def _command(
        self, pose: Floats, rate: Floats, place: Floats, speed: Floats, yaw: float
    ) -> Floats:
        turn = _matrix(pose[3:])
        wanted = (
            POSITION_RAD_S**2 * (place - pose[:3])
            + 2 * DAMPING * POSITION_RAD_S * (speed - rate[:3])
            + self._gravity
        )
        sideways, most = np.hypot(*wanted[:2]), MOST_TILT * max(wanted[2], 1.0)
        if sideways > most:
            wanted[:2] *= most / sideways
        up = wanted / np.linalg.norm(wanted)
        left = np.cross(up, [np.cos(yaw), np.sin(yaw), 0.0])
        left /= np.linalg.norm(left)
        goal = np.stack([np.cross(left, up), left, up], axis=1)
        skew = goal.T @ turn - turn.T @ goal
        error = 0.5 * np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
        spin = rate[3:]
        torque = self._inertia @ (-(ATTITUDE_RAD_S**2) * error - 2 * ATTITUDE_RAD_S * spin)
        torque += np.cross(spin, self._inertia @ spin)
        thrust = max(self._mass * float(wanted @ turn[:, 2]), 0.0)
        torque += np.cross(self._com, [0.0, 0.0, thrust])
        command: Floats = self._to_ctrl @ np.r_[thrust, torque]
        return command


def _flown(world: WorldBase, name: str) -> int:
    """Return the free body called `name`, or the first one that actuators act on."""
    model = world.model
    free = free_bodies(model)
    if name:
        found = [body for body in free if model.body(body).name == name]
        if not found:
            raise RigError(
                unknown_name(
                    'world.driver.body',
                    'free body',
                    name,
                    (model.body(body).name for body in free),
                )
            )
        return found[0]
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    arms = np.abs(moments(model, data)).max(0) if model.nu else np.zeros(model.nv)
    for body in free:
        dof = int(model.jnt_dofadr[model.body_jntadr[body]])
        if arms[dof : dof + 6].max() > 0.0:
            return body
    raise RigError(
        'world.driver is waypoints, but no actuator acts on a body with a free joint; '
        'a body without rotors can be moved as a mocap body (type: mocap)'
    )


def _matrix(quat_wxyz: Floats) -> Floats:
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.ascontiguousarray(quat_wxyz))
    return matrix.reshape(3, 3)


def _yaw(turn: Floats) -> float:
    return float(np.arctan2(turn[1, 0], turn[0, 0]))
