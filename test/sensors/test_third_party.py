"""Sensors on models that other packages ship, against plain MuJoCo on the untouched model."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from support.sensor_run import run

ASSETS = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets'
ROBOTS = {'ant': ('torso', 'hip_1'), 'half_cheetah': ('torso', 'bfoot'),
          'hopper': ('foot', 'leg_joint'), 'humanoid': ('pelvis', 'right_knee'),
          'walker2d': ('torso', 'thigh_joint'), 'swimmer': ('back', 'motor2_rot')}
STEPS = 60


def plain(file: Path, body: str, joint: str) -> dict[str, np.ndarray]:
    """Step the model by itself; return what an IMU, a tracker and an encoder should see."""
    model = mujoco.MjModel.from_xml_path(str(file))
    data, now = mujoco.MjData(model), mujoco.MjData(model)
    place = model.body(body).id
    seen: dict[str, list[np.ndarray]] = {key: [] for key in (
        'position', 'quat_wxyz', 'velocity', 'acceleration', 'joint')}
    for _ in range(STEPS):
        mujoco.mj_copyData(now, model, data)
        mujoco.mj_forward(model, now)
        mujoco.mj_rnePostConstraint(model, now)
        spatial = np.empty(6)
        seen['position'].append(now.xpos[place].copy())
        seen['quat_wxyz'].append(now.xquat[place].copy())
        mujoco.mj_objectVelocity(model, now, mujoco.mjtObj.mjOBJ_XBODY, place, spatial, 1)
        seen['velocity'].append(spatial.copy())
        mujoco.mj_objectAcceleration(model, now, mujoco.mjtObj.mjOBJ_XBODY, place, spatial, 1)
        seen['acceleration'].append(spatial[3:].copy())
        seen['joint'].append(now.joint(joint).qpos.copy())
        mujoco.mj_step(model, data)
    return {key: np.array(values) for key, values in seen.items()}


@pytest.mark.parametrize('robot', ROBOTS)
def test_sensors_on_a_model_by_somebody_else(tmp_path: Path, robot: str) -> None:
    body, joint = ROBOTS[robot]
    file = ASSETS / f'{robot}.xml'
    step_s = mujoco.MjModel.from_xml_path(str(file)).opt.timestep
    mount = {'mount': {'body': body}, 'rate_hz': 0.0}
    sensors = {'imu': {'type': 'imu', **mount}, 'tracker': {'type': 'pose', **mount},
               'baro': {'type': 'barometer', **mount}, 'mag': {'type': 'magnetometer', **mount},
               'gnss': {'type': 'gnss', **mount}, 'wheels': {'type': 'wheel_odometry', **mount},
               'joints': {'type': 'joint_state', 'joints': [joint], 'rate_hz': 0.0,
                          'velocity_from': 'tachometer'}}
    done = run(tmp_path, file, sensors, (STEPS - 1) * step_s, timestep_s=step_s)
    expected = plain(file, body, joint)
    np.testing.assert_allclose(done.values('tracker', 'position'), expected['position'], atol=1e-6)
    quats = np.roll(done.values('tracker', 'orientation'), 1, axis=1)
    np.testing.assert_allclose(quats, expected['quat_wxyz'], atol=1e-6)
    np.testing.assert_allclose(done.values('joints', 'position'), expected['joint'], atol=1e-6)
    np.testing.assert_allclose(done.values('imu', 'angular_velocity'),
                               expected['velocity'][:, :3], atol=1e-5)
    np.testing.assert_allclose(done.values('tracker', 'linear'), expected['velocity'][:, 3:],
                               atol=1e-5)
    scale = np.abs(expected['acceleration']).max()
    np.testing.assert_allclose(done.values('imu', 'linear_acceleration'),
                               expected['acceleration'], atol=1e-4 * scale)
    assert all(len(done.samples[name]) == STEPS for name in sensors)
