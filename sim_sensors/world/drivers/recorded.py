"""Follows a recorded motion: joints through the PD layer, a driven base, or a mocap body."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.world.actuation.path_following import JointPath
from sim_sensors.world.config.drivers import TrajectoryConfig
from sim_sensors.world.drivers.hold import Hold
from sim_sensors.world.drivers.motion_file import read_motion
from sim_sensors.world.drivers.smooth import smooth
from sim_sensors.world.drivers.wheeled import PERIOD_S, wrap
from sim_sensors.world.world_base import Driver, WorldBase

POSE = ('x', 'y', 'z', 'qw', 'qx', 'qy', 'qz')
PLANAR = ('x', 'y', 'yaw')
ALONG, ACROSS, TURN = 1.5, 4.0, 2.5
"""Gains of a driven base on its track: 1/s along it, 1/m^2 across, 1/s about z."""


def recorded(world: WorldBase, config: TrajectoryConfig) -> Driver:
    """Return the driver for what the columns of the file are."""
    path = read_motion(config, world.base_dir)
    columns = set(path.names)
    if columns == set(POSE):
        return PosePlayer(world, config, path)
    if columns == set(PLANAR):
        return BasePlayer(world, config, path)
    return JointPlayer(world, config, path)


class Clip:
    """A path that is played at a speed, once or again and again."""

    def __init__(self, path: JointPath, config: TrajectoryConfig) -> None:
        times = (path.times_s - path.times_s[0]) / config.speed
        positions = path.positions
        if config.loop and not np.allclose(positions[0], positions[-1], atol=1e-6):
            # The way back, so that the loop has no jump.
            times = np.r_[times, times[-1] + max(config.ramp_s, 1e-3)]
            positions = np.vstack([positions, positions[0]])
        slopes = (
            np.gradient(positions, times, axis=0) if len(times) > 1 else np.zeros_like(positions)
        )
        slopes[[0, -1]] = 0.0
        self.path = JointPath(path.names, times, positions, slopes)
        self.duration_s = float(times[-1])
        self._loop = config.loop

    def at(self, elapsed_s: float) -> tuple[Floats, Floats]:
        """Return values and slopes [n] at a time of the run."""
        inside_s = elapsed_s % self.duration_s if self._loop and self.duration_s else elapsed_s
        return self.path.at(max(inside_s, 0.0))


class JointPlayer(Hold):
    """Plays positions of joints, after a ramp from the start."""

    def __init__(self, world: WorldBase, config: TrajectoryConfig, path: JointPath) -> None:
        super().__init__(world, config)
        actuators, rows, columns = world.actuation.actuators, [], []
        for column, name in enumerate(path.names):
            for index in actuators.of(name, f'world.driver.file {config.file}: the column'):
                if index not in self.servo.row:
                    raise RigError(
                        f'world.driver.file {config.file}: the column {name!r} is for '
                        f'an actuator that a PD layer cannot drive'
                    )
                rows.append(self.servo.row[index])
                columns.append(column)
        self._rows, self._columns = rows, columns
        self._clip = Clip(path, config)

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write the positions of the recording."""
        for env, elapsed_s in enumerate(self.elapsed_s(time_ns).tolist()):
            lengths = self.approach(np.array([elapsed_s]))[0].copy()
            played_s = elapsed_s - self._ramp_s
            place, slope = self._clip.at(max(played_s, 0.0))
            gear = self.servo.gear[self._rows]
            part = float(smooth(np.array(elapsed_s / self._ramp_s))) if played_s < 0.0 else 1.0
            start = self._from[self._rows]
            lengths[self._rows] = start + part * (gear * place[self._columns] - start)
            world.actuation.lengths[env] = lengths
            if played_s >= 0.0:
                world.actuation.rates[env, self._rows] = gear * slope[self._columns]


class BasePlayer(Driver):
    """Keeps a driven base on a recorded track (x m, y m, yaw rad in the world)."""

    period_s = PERIOD_S

    def __init__(self, world: WorldBase, config: TrajectoryConfig, path: JointPath) -> None:
        super().__init__(world)
        world.required_drive()
        self._order = [path.names.index(name) for name in PLANAR]
        yaw = self._order[2]
        unwrapped = path.positions.copy()
        unwrapped[:, yaw] = np.unwrap(unwrapped[:, yaw])
        self._clip = Clip(JointPath(path.names, path.times_s, unwrapped), config)

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Steer all bases to where the recording is (Kanayama et al. 1990)."""
        drive, twists = world.required_drive(), []
        poses = world.poses(drive.body).tolist()
        for (x, y, yaw), elapsed_s in zip(poses, self.elapsed_s(time_ns).tolist(), strict=True):
            place, slope = self._clip.at(elapsed_s)
            goal_x, goal_y, goal_yaw = place[self._order]
            speed_x, speed_y, turn = slope[self._order]
            ahead = np.cos(yaw) * (goal_x - x) + np.sin(yaw) * (goal_y - y)
            aside = np.cos(yaw) * (goal_y - y) - np.sin(yaw) * (goal_x - x)
            off = wrap(float(goal_yaw) - yaw)
            speed = np.cos(goal_yaw) * speed_x + np.sin(goal_yaw) * speed_y
            twists.append(
                (
                    float(speed * np.cos(off) + ALONG * ahead),
                    float(turn + ACROSS * abs(speed) * aside + TURN * np.sin(off)),
                )
            )
        drive.write(twists, world.actuation)


class PosePlayer(Driver):
    """Plays poses of a mocap body."""

    def __init__(self, world: WorldBase, config: TrajectoryConfig, path: JointPath) -> None:
        super().__init__(world)
        body = world.placing.mocap_body(config.body, 'world.driver.body')
        first = 7 * world.placing.mocap[body]
        self._target = slice(first, first + 7)
        self._order = [path.names.index(name) for name in POSE]
        poses = path.positions.copy()
        quats = poses[:, self._order[3:]]
        flips = np.cumprod(np.sign(np.r_[1.0, (quats[1:] * quats[:-1]).sum(1)]) + 1e-12)
        poses[:, self._order[3:]] = quats * np.sign(flips)[:, None]
        self._clip = Clip(JointPath(path.names, path.times_s, poses), config)

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write the pose of the recording."""
        for env, elapsed_s in enumerate(self.elapsed_s(time_ns).tolist()):
            pose = self._clip.at(elapsed_s)[0][self._order]
            pose[3:] /= np.linalg.norm(pose[3:])
            world.placing.move(env, self._target, pose)
