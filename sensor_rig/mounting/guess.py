"""Where sensors probably belong on a robot, and what probably moves it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from math import asin, atan2
from typing import Any

import mujoco
import numpy as np

from rig_common.arrays import Floats
from sensor_rig.mounting.anatomy import HEAD, UP, Anatomy
from sensor_rig.mounting.looks import rays, seen
from sensor_rig.mounting.survey import Survey
from sim_sensors.world.actuation.diff_drive import custom_text
from sim_sensors.world.model.poses import keyframe_names

Values = dict[str, Any]

IMU = re.compile(r'imu|gyro|accel', re.I)
LIDAR = re.compile(r'lidar|laser|velodyne|ouster|livox|hokuyo|sick_|mid.?360', re.I)
CAMERA = re.compile(r'camera|(^|_)cam($|_)|realsense|lens|(^|_)eye', re.I)
TORSO = re.compile(r'torso|chest|trunk', re.I)
LONGEST_STEP_S = 0.002
GAP_M = 0.01
"""From this height above the floor on a robot is put down."""
BESIDE_M = 0.03
"""Between the side of a wrist or palm and its camera."""
WORK_M = 0.2
"""How far ahead a tool without fingers works."""
LOOKS_ALONG_X = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).T
"""From a MuJoCo camera (along -z, up y) to a sensor (along x, up z)."""
HOST = {'offset_s': 0.004, 'drift_ppm': 8.0}
"""Clock of the controller that reads joints, feet and wheels."""
KEYS: dict[str, Values] = {
    'imu': {
        'extends': 'datasheets/imu_bosch_bmi088.yaml',
        'clock': {'offset_s': 0.012, 'drift_ppm': -15.0},
    },
    'camera': {
        'extends': 'datasheets/camera_global_shutter.yaml',
        'rate_hz': 15.0,
        'width': 320,
        'height': 240,
        'encoding': 'rgb8',
        'jitter_s': 0.004,
        'clock': {'offset_s': 0.037, 'drift_ppm': 20.0},
    },
    'lidar2d': {
        'extends': 'datasheets/lidar2d_sick_tim571.yaml',
        'clock': {'offset_s': -0.06, 'drift_ppm': 10.0},
    },
    'lidar3d': {
        'extends': 'datasheets/lidar3d_spinning_16.yaml',
        'clock': {'offset_s': -0.06, 'drift_ppm': 10.0},
    },
    'wheel_odometry': {'extends': 'datasheets/odometry_diff_drive.yaml', 'clock': HOST},
    'force_torque': {
        'rate_hz': 200.0,
        'noise': 0.2,
        'torque_noise_nm': 0.01,
        'delay_range_s': [0.001, 0.003],
        'clock': HOST,
    },
    'contact_force': {
        'rate_hz': 100.0,
        'noise': 0.5,
        'delay_range_s': [0.001, 0.003],
        'clock': HOST,
    },
    'joint_state': {'rate_hz': 100.0, 'namespaced': True, 'clock': HOST},
}
"""What a sensor of a type begins with: noise and latency of a datasheet, a clock of its own."""
MOTORS, GEARED = (
    {'extends': f'datasheets/encoder_{name}.yaml'} for name in ('motor_2048', 'geared_arm')
)
MIXED = {'resolution': 0.0005, 'delay_range_s': [0.001, 0.002]}
"""Encoders of a robot with slides, which make no counts a turn."""


class Guess:
    """The parts of a starting rig file for one model."""

    def __init__(self, survey: Survey) -> None:
        self._survey, self._model = survey, survey.model
        self.robot = Anatomy(survey.model)
        """The model, looked at as a robot."""

    # ---- the world --------------------------------------------------------------------------

    def world(self) -> Values:
        """Return keys of `world:` but the model: start, ground, actuators, driver."""
        model, robot, values = self._model, self.robot, Values()
        step_s = min(self._survey.timestep_s, LONGEST_STEP_S)
        values['timestep_s'] = max(round(step_s * 1e9), 1) / 1e9
        if self._survey.needs_outside_files:
            values['allow_outside_files'] = True
        if robot.keyframe >= 0:
            values['keyframe'] = keyframe_names(model)[0] or 0
        if self._wants_ground():
            values['ground'] = True
        if robot.is_free and robot.keyframe < 0 and self.robot.kind != 'drone':
            gap_m = robot.lowest_m - self._floor_m()
            if abs(gap_m) > GAP_M:
                height_m = float(robot.data.xpos[self.robot.base, 2]) - gap_m
                values['keyframe'] = 'start'
                values['poses'] = {'start': {self._free_name(): round(height_m, 3)}}
        if not model.nu and robot.joints:
            values['actuators'] = self._motors()
        wheels = robot.wheels
        if wheels and custom_text(model, 'drive') is None and self._turns(wheels.left):
            values['drive'] = {
                'body': robot.name(self.robot.base),
                'left': self._joint_names(wheels.left),
                'right': self._joint_names(wheels.right),
                'wheel_radius_m': round(wheels.radius_m, 4),
                'track_m': round(wheels.track_m, 4),
            }
        values['driver'] = self._driver('drive' in values)
        return values

    def _driver(self, is_driven: bool) -> object:
        model, robot = self._model, self.robot
        if custom_text(model, 'drive') is not None:
            return 'figure_eight'
        if is_driven:
            x, y, _ = robot.data.xpos[self.robot.base].tolist()
            square = [(1.5, 0.0), (1.5, 1.5), (0.0, 1.5), (0.0, 0.0)]
            return {
                'type': 'rest_cruise_turn',
                'waypoints_m': _rounded([a for dx, dy in square for a in (x + dx, y + dy)]),
            }
        if self.robot.kind == 'drone':
            place = robot.data.xpos[self.robot.base]
            legs = ((0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 1.5), (0.0, 1.0, 1.0))
            return {
                'type': 'waypoints',
                'waypoints_m': _rounded(np.ravel([place + leg for leg in legs])),
            }
        if any(kind != 'other' for kind in robot.actuators.kinds) or (
            not model.nu and robot.joints
        ):
            return {'type': 'excite'}
        return {'type': 'mocap'} if model.nmocap == 1 else 'none'

    def _wants_ground(self) -> bool:
        model = self._model
        kinds = model.geom_type[model.body_weldid[model.geom_bodyid] == 0]
        flat = (mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD)
        if not self.robot.base or np.isin(kinds, flat).any():
            return False
        return not len(kinds) if self.robot.is_free else self.robot.lowest_m > -GAP_M

    def _floor_m(self) -> float:
        """Return the height of what is below the robot; 0 where that is the ground to add."""
        robot = self.robot
        model, data = self._model, robot.data
        below = np.array([*data.xpos[self.robot.base][:2], robot.lowest_m - 1e-6])
        distance = float(seen(model, data, below, -UP[None])[0][0])
        if np.isfinite(distance):
            return float(below[2] - distance)
        is_plane = (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE) & (model.geom_bodyid == 0)
        return max(data.geom_xpos[is_plane, 2].tolist(), default=0.0)

    def _motors(self) -> Values:
        """Return a motor for every joint, but for those that only roll along."""
        robot = self.robot
        if not robot.wheels:
            return {'all': {'joint': '*', 'type': 'motor'}}
        driven = {*robot.wheels.left, *robot.wheels.right}
        driven |= {joint for joint in robot.joints if self._model.jnt_limited[joint]}
        return {
            name: {'joint': name, 'type': 'motor'} for name in self._joint_names(sorted(driven))
        }

    def _turns(self, joints: list[int]) -> bool:
        """Whether something can drive these joints by speed or torque."""
        robot = self.robot
        kinds = [
            robot.actuators.kinds[robot.actuators.joint.index(joint)]
            for joint in joints
            if joint in robot.actuators.joint
        ]
        return not self._model.nu or (
            len(kinds) == len(joints) and set(kinds) <= {'velocity', 'effort'}
        )

    def _free_name(self) -> str:
        joint = self._model.joint(int(self._model.body_jntadr[self.robot.base])).name
        return joint or self.robot.name(self.robot.base)

    def _joint_names(self, joints: list[int]) -> list[str]:
        names = (self._model.joint(joint).name for joint in joints)
        return [name for name in names if name]

    # ---- sensors ----------------------------------------------------------------------------

    def sensors(self) -> dict[str, Values]:
        """Return sensors by name, the ones a robot of this kind usually has."""
        return {
            self.free_name(name, values.get('mount', {})): {
                'type': kind,
                **deepcopy({**KEYS[kind], **values}),
            }
            for name, kind, values in self._placed()
        }

    def free_name(self, name: str, mount: Mapping[str, object]) -> str:
        """Return the name of a sensor, another one where the model has a site or camera of it."""
        model = self._model
        sites = {model.site(index).name for index in range(model.nsite)}
        cameras = {model.camera(index).name for index in range(model.ncam)}
        is_taken = (name in sites and mount.get('site') != name) or name in cameras
        return f'rig_{name}' if is_taken else name

    def _placed(self) -> Iterator[tuple[str, str, Values]]:
        """Yield name, type and keys of every sensor."""
        robot, model = self.robot, self._model
        carrier = {'arm': robot.wrist, 'hand': robot.palm}.get(self.robot.kind, self.robot.base)
        if carrier:
            middle = {'body': robot.name(carrier), 'pos_m': _rounded(model.body_ipos[carrier])}
            yield 'imu', 'imu', {'mount': self._site(IMU, carrier) or middle}
        if robot.wrist and robot.wrist != self.robot.base:
            yield 'wrist_force', 'force_torque', {'mount': {'body': robot.name(robot.wrist)}}
        camera = self._camera()
        if camera:
            yield 'camera', 'camera', camera
        lidar = self._lidar()
        if lidar:
            yield (
                'lidar',
                'lidar2d' if self.robot.kind == 'wheeled' else 'lidar3d',
                {'mount': lidar},
            )
        if robot.wheels:
            yield (
                'wheels',
                'wheel_odometry',
                {
                    'mount': {'body': robot.name(self.robot.base)},
                    'left_joints': self._joint_names(robot.wheels.left),
                    'right_joints': self._joint_names(robot.wheels.right),
                    'wheel_radius_m': round(robot.wheels.radius_m, 4),
                    'track_m': round(robot.wheels.track_m, 4),
                },
            )
        touching = {'legged': robot.feet, 'hand': robot.tips}.get(robot.kind, [])
        if robot.kind == 'arm' and len(robot.tips) > 2:
            touching = robot.tips
        for name in filter(None, map(robot.name, touching)):
            yield f'{_token(name)}_contact', 'contact_force', {'mount': {'body': name}}
        joints = self._joint_names(robot.joints)
        if joints:
            slide = mujoco.mjtJoint.mjJNT_SLIDE
            has_slide = any(model.jnt_type[joint] == slide for joint in robot.joints)
            sheet = GEARED if self.robot.kind == 'arm' else MOTORS
            yield (
                'joint_states',
                'joint_state',
                {'joints': joints, **(MIXED if has_slide else sheet)},
            )

    def _site(self, pattern: re.Pattern[str], first: int = 0) -> Values | None:
        """Return a site of the robot that is called so, on the body `first` if there is one."""
        model = self._model
        found = [
            site
            for site in range(model.nsite)
            if pattern.search(model.site(site).name)
            and model.site_bodyid[site] in self.robot.bodies
        ]
        found.sort(key=lambda site: model.site_bodyid[site] != first)
        return {'site': model.site(found[0]).name} if found else None

    def _lidar(self) -> Values | None:
        """Return where a LiDAR sits: where the model says, or in front of a base with wheels."""
        robot = self.robot
        site, bodies = self._site(LIDAR), robot.named(LIDAR)
        if site or bodies:
            return site or {'body': robot.name(bodies[0])}
        return self._before(self.robot.base) if self.robot.kind == 'wheeled' else None

    def _camera(self) -> Values | None:
        """Return where to look from: a camera of the model, a head, a wrist, or the front."""
        model, robot = self._model, self.robot
        fixed = int(mujoco.mjtCamLight.mjCAMLIGHT_FIXED)
        for camera in range(model.ncam):
            body = int(model.cam_bodyid[camera])
            if body and model.cam_mode[camera] == fixed and robot.name(body):
                turn = np.empty(9)
                mujoco.mju_quat2Mat(turn, model.cam_quat[camera])
                mount = {
                    'body': robot.name(body),
                    'pos_m': _rounded(model.cam_pos[camera]),
                    'rpy_rad': _rpy(turn.reshape(3, 3) @ LOOKS_ALONG_X),
                }
                return {'mount': mount, 'fovy_deg': round(float(model.cam_fovy[camera]), 2)}
        site = self._site(CAMERA) or self._site(HEAD)
        if site:
            return {'mount': site}
        if self.robot.kind in ('arm', 'hand'):
            body = robot.wrist or robot.palm
            return {'mount': self._beside(body)} if body else None
        heads = robot.named(CAMERA)[:1] or robot.named(HEAD)[-1:] or robot.named(TORSO)[:1]
        body = (heads or [self.robot.base])[0]
        return {'mount': self._before(body)} if body else None

    def _before(self, body: int) -> Values:
        """Return a mount just before the front of a body, which looks ahead."""
        along = self.robot.forward(body)
        ahead = self.robot.ahead_m(body, along) + 0.02
        return self._mount(body, self.robot.data.xipos[body] + ahead * along, along, UP)

    def _beside(self, body: int) -> Values:
        """Return a mount beside a wrist or palm, which looks at what the tool or fingers work on.

        Of its four sides it is the one that sees most and is covered least.
        """
        robot = self.robot
        along, middle = robot.forward(body), robot.data.xipos[body]
        target = middle + max(1.2 * robot.length_m(body), WORK_M) * along
        axes = robot.data.xmat[body].reshape(3, 3).T
        aside = axes[int(np.abs(axes @ along).argmin())]
        aside = aside - (aside @ along) * along
        aside /= np.linalg.norm(aside)

        def pose(up: Floats) -> tuple[Floats, Floats]:
            place = middle + (robot.ahead_m(body, up) + BESIDE_M) * up
            return place, (target - place) / np.linalg.norm(target - place)

        def worth(up: Floats) -> float:
            place, way = pose(up)
            left = np.cross(up, way)
            turn = np.stack([way, left, np.cross(way, left)])
            far, _ = seen(self._model, robot.data, place, rays(65.0, 50.0) @ turn)
            return float(np.isfinite(far).mean() - 2.0 * (far < 0.04).mean())

        across = np.cross(along, aside)
        up = max((aside, across, -aside, -across), key=worth)
        return self._mount(body, *pose(up), up)

    def _mount(self, body: int, place: Floats, along: Floats, up: Floats) -> Values:
        """Return the keys of a mount on `body` from a pose in the world."""
        data = self.robot.data
        left = np.cross(up, along) / np.linalg.norm(np.cross(up, along))
        turn = np.stack([along, left, np.cross(along, left)], 1)
        own = data.xmat[body].reshape(3, 3).T
        mount = {
            'body': self.robot.name(body),
            'pos_m': _rounded(own @ (place - data.xpos[body])),
        }
        rpy = _rpy(own @ turn)
        return {**mount, 'rpy_rad': rpy} if any(rpy) else mount


def _rounded(vector: Any) -> list[float]:
    return [round(float(value), 4) + 0.0 for value in vector]


def _rpy(turn: Floats) -> list[float]:
    """Return fixed-axis roll, pitch, yaw of a rotation matrix."""
    pitch = -asin(float(np.clip(turn[2, 0], -1.0, 1.0)))
    if abs(turn[2, 0]) > 1.0 - 1e-6:  # roll and yaw are one
        return _rounded([0.0, pitch, atan2(-turn[0, 1], turn[1, 1])])
    return _rounded([atan2(turn[2, 1], turn[2, 2]), pitch, atan2(turn[1, 0], turn[0, 0])])


def _token(name: str) -> str:
    token = re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')
    return token if token[:1].isalpha() else f'body_{token}'
