"""Where sensors probably belong on a robot, and what probably moves it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import asin, atan2
from typing import Any

import mujoco
import numpy as np

from rig_common.arrays import Floats
from sensor_rig.mounting.survey import Survey
from sim_sensors.world.actuation.diff_drive import custom_text
from sim_sensors.world.actuation.transmissions import ONE_DOF, Actuators
from sim_sensors.world.model.poses import keyframe_names, start_qpos
from sim_sensors.world.model.stance import Stance, is_free, stand

Values = dict[str, Any]

HEAD = re.compile(r'head|camera|cam$|eye|lens|front', re.I)
WRIST = re.compile(r'wrist|flange|gripper|end_?eff|(^|_)ee($|_)|tool|hand$|attachment', re.I)
TORSO = re.compile(r'torso|chest|trunk', re.I)
IMU = re.compile(r'imu|gyro|accel', re.I)
FEW_TIPS, MOST_TIPS = 3, 6
"""A fixed robot with this many ends is a hand."""
LOOKS_ALONG_X = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).T
"""From a MuJoCo camera (along -z, up y) to a sensor (along x, up z)."""


class Guess:
    """The parts of a starting rig file for one model."""

    def __init__(self, survey: Survey) -> None:
        self._survey, self._model = survey, survey.model
        self.keyframe = 0 if survey.model.nkey else -1
        self._data = mujoco.MjData(survey.model)
        self._data.qpos[:] = start_qpos(survey.model, self.keyframe)
        mujoco.mj_forward(survey.model, self._data)
        self._actuators = Actuators(survey.model)
        self.base = self._base()
        self.is_flown = self._is_flown()
        self.stance = self._stance()

    # ---- the world --------------------------------------------------------------------------

    def world(self) -> Values:
        """Return keys of `world:` but the model: start, ground, actuators, driver."""
        model, values = self._model, Values()
        step_s = min(float(model.opt.timestep), 0.002)
        values['timestep_s'] = max(round(step_s * 1e9), 1) / 1e9
        if self._survey.needs_outside_files:
            values['allow_outside_files'] = True
        if self.keyframe >= 0:
            values['keyframe'] = keyframe_names(model)[0] or 0
        is_standing = self.base and is_free(model, self.base) and not self.is_flown
        if is_standing and not (model.body_weldid[model.geom_bodyid] == 0).any():
            values['ground'] = True
            if self.keyframe < 0:
                values['keyframe'] = 'start'
                values['poses'] = {'start': {self._free_name(): round(self._height_m(), 3)}}
        if not model.nu and self._joints():
            values['actuators'] = {'all': {'joint': '*', 'type': 'motor'}}
        values['driver'] = self._driver()
        return values

    def _driver(self) -> object:
        model = self._model
        if custom_text(model, 'drive') is not None:
            return 'figure_eight'
        if self.is_flown:
            return {'type': 'waypoints', 'yaw': 'swing'}
        if any(kind != 'other' for kind in self._actuators.kinds) or (
            not model.nu and self._joints()
        ):
            return {'type': 'excite'}
        if model.nmocap:
            return {'type': 'mocap'} if model.nmocap == 1 else 'none'
        return 'none'

    def _height_m(self) -> float:
        """Return the height of the base at which the lowest point is on the ground."""
        model, data = self._model, self._data
        turn = np.abs(data.geom_xmat.reshape(-1, 3, 3)[:, 2])
        centre = np.einsum(
            'ij,ij->i', data.geom_xmat.reshape(-1, 3, 3)[:, 2], model.geom_aabb[:, :3]
        )
        solid = (model.geom_contype | model.geom_conaffinity) != 0
        bottom = data.geom_xpos[:, 2] + centre - (turn * model.geom_aabb[:, 3:]).sum(1)
        lowest = bottom[solid].min() if solid.any() else bottom.min()
        return float(data.xpos[self.base, 2] - lowest)

    def _free_name(self) -> str:
        joint = self._model.joint(int(self._model.body_jntadr[self.base])).name
        return joint or self._name(self.base)

    # ---- sensors ----------------------------------------------------------------------------

    def sensors(self) -> dict[str, Values]:
        """Return sensors by name, the ones a rig of this kind usually has."""
        found = dict(self._on_base())
        camera = self._camera()
        if camera is not None:
            found['camera'] = {
                'type': 'camera',
                'mount': camera,
                'rate_hz': 15.0,
                'width': 320,
                'height': 240,
                'delay_range_s': [0.025, 0.035],
                'jitter_s': 0.004,
                'clock': {'offset_s': 0.037, 'drift_ppm': 20.0},
            }
        found |= self._touch()
        joints = self._joints()
        if joints:
            found['joint_states'] = {
                'type': 'joint_state',
                'joints': joints,
                'rate_hz': 100.0,
                'namespaced': True,
            }
        return {
            self.free_name(name, values.get('mount', {})): values for name, values in found.items()
        }

    def free_name(self, name: str, mount: Mapping[str, object]) -> str:
        """Return the name of a sensor, another one where the model has a site or camera of it."""
        model = self._model
        sites = {model.site(index).name for index in range(model.nsite)}
        cameras = {model.camera(index).name for index in range(model.ncam)}
        is_taken = (name in sites and mount.get('site') != name) or name in cameras
        return f'rig_{name}' if is_taken else name

    def _on_base(self) -> Iterator[tuple[str, Values]]:
        wrist = None if self.stance or self.is_flown else self._wrist()
        carrier = wrist or self.base
        if carrier:
            yield (
                'imu',
                {
                    'type': 'imu',
                    'mount': self._imu_mount(carrier),
                    'rate_hz': 200.0,
                    'delay_range_s': [0.002, 0.003],
                    'clock': {'offset_s': 0.012, 'drift_ppm': -15.0},
                },
            )
        if wrist:
            yield (
                'wrist_force',
                {'type': 'force_torque', 'mount': {'body': self._name(wrist)}, 'rate_hz': 200.0},
            )

    def _imu_mount(self, body: int) -> Values:
        for site in self._survey.sites():
            if IMU.search(site['name']):
                return {'site': site['name']}
        return {'body': self._name(body), 'pos_m': _rounded(self._model.body_ipos[body])}

    def _camera(self) -> Values | None:
        """Return where to look from: a camera of the model, a head, a wrist, or the front."""
        model = self._model
        for camera in range(model.ncam):
            body = int(model.cam_bodyid[camera])
            if (
                body
                and model.cam_mode[camera] == mujoco.mjtCamLight.mjCAMLIGHT_FIXED
                and (self._name(body))
            ):
                turn = np.empty(9)
                mujoco.mju_quat2Mat(turn, model.cam_quat[camera])
                return {
                    'body': self._name(body),
                    'pos_m': _rounded(model.cam_pos[camera]),
                    'rpy_rad': _rpy(turn.reshape(3, 3) @ LOOKS_ALONG_X),
                }
        for site in range(model.nsite):
            name = model.site(site).name
            if HEAD.search(name) and model.site_bodyid[site]:
                return {'site': name}
        heads = [body for body in range(1, model.nbody) if HEAD.search(self._name(body))]
        heads += [body for body in range(1, model.nbody) if TORSO.search(self._name(body))]
        wrist = None if self.stance or self.is_flown else self._wrist()
        body = (heads or [wrist or self.base])[0]
        if not body:
            return None
        return {'body': self._name(body), 'pos_m': _rounded(self._front_m(body))}

    def _front_m(self, body: int) -> Floats:
        """Return a point just before the front of a body, in its frame."""
        start, count = int(self._model.body_geomadr[body]), int(self._model.body_geomnum[body])
        ahead = 0.05
        for geom in range(start, start + count):
            turn = np.empty(9)
            mujoco.mju_quat2Mat(turn, self._model.geom_quat[geom])
            reach = np.abs(turn.reshape(3, 3)) @ self._model.geom_aabb[geom, 3:]
            ahead = max(ahead, float(self._model.geom_pos[geom, 0] + reach[0]) + 0.02)
        middle = self._model.body_ipos[body]
        return np.array([ahead, middle[1], middle[2]])

    def _touch(self) -> dict[str, Values]:
        """Return force sensors in the feet of what stands, in the fingertips of a hand."""
        bodies = [foot.body for foot in self.stance.feet] if self.stance else self._tips()
        return {
            f'{_token(self._name(body))}_contact': {
                'type': 'contact_force',
                'mount': {'body': self._name(body)},
                'rate_hz': 100.0,
            }
            for body in bodies
            if self._name(body)
        }

    def _tips(self) -> list[int]:
        model = self._model
        if self.is_flown or not self.base:
            return []
        parents = set(model.body_parentid.tolist())
        leaves = [
            body
            for body in range(1, model.nbody)
            if body not in parents
            and model.body_rootid[body] == self.base
            and model.body_jntnum[body]
        ]
        return leaves if FEW_TIPS <= len(leaves) <= MOST_TIPS else []

    def _joints(self) -> list[str]:
        model = self._model
        return [
            model.joint(index).name
            for index in range(model.njnt)
            if model.joint(index).name and int(model.jnt_type[index]) in ONE_DOF
        ]

    # ---- kinds of robots ----------------------------------------------------------------------

    def _base(self) -> int:
        """Return the root body of the heaviest thing that moves; 0 for none."""
        model = self._model
        roots = sorted(
            {int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in range(model.njnt)},
            key=lambda root: (
                int((model.body_rootid == root).sum()),
                float(model.body_subtreemass[root]),
            ),
        )
        return next((root for root in reversed(roots) if self._name(root)), 0)

    def _is_flown(self) -> bool:
        model = self._model
        sites = model.actuator_trntype == mujoco.mjtTrn.mjTRN_SITE
        return bool(self.base and is_free(model, self.base) and sites.sum() >= 4)

    def _stance(self) -> Stance | None:
        model = self._model
        if not self.base or not is_free(model, self.base) or self.is_flown:
            return None
        dofs = [
            dof
            for dof in range(model.nv)
            if model.body_rootid[model.dof_bodyid[dof]] == self.base
            and model.jnt_type[model.dof_jntid[dof]] in ONE_DOF
        ]
        return stand(model, self._data, dofs, needs_ground=False) if dofs else None

    def _wrist(self) -> int:
        """Return the body at the end of an arm: by its name, else the deepest with one child."""
        model = self._model
        named = [
            body
            for body in range(1, model.nbody)
            if WRIST.search(self._name(body)) and model.body_rootid[body] == self.base
        ]
        if named:
            return named[-1]
        inside = [
            body
            for body in range(1, model.nbody)
            if model.body_rootid[body] == self.base
            and self._name(body)
            and not self._is_small(body)
        ]
        return max(inside, key=self._depth, default=0)

    def _is_small(self, body: int) -> bool:
        return bool(model_mass(self._model, body) < 0.02 * model_mass(self._model, self.base))

    def _depth(self, body: int) -> int:
        depth = 0
        while body:
            body, depth = int(self._model.body_parentid[body]), depth + 1
        return depth

    def _name(self, body: int) -> str:
        return str(self._model.body(body).name)


def model_mass(model: mujoco.MjModel, body: int) -> float:
    """Return the mass of a body and all it carries, kg."""
    return float(model.body_subtreemass[body])


def _rounded(vector: Any) -> list[float]:
    return [round(float(value), 4) + 0.0 for value in vector]


def _rpy(turn: Floats) -> list[float]:
    """Return fixed-axis roll, pitch, yaw of a rotation matrix."""
    pitch = -asin(float(np.clip(turn[2, 0], -1.0, 1.0)))
    return _rounded([atan2(turn[2, 1], turn[2, 2]), pitch, atan2(turn[1, 0], turn[0, 0])])


def _token(name: str) -> str:
    token = re.sub(r'[^a-z0-9]+', '_', name.lower()).strip('_')
    return token if token[:1].isalpha() else f'body_{token}'
