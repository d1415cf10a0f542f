"""Sensors on models that other packages ship, against plain MuJoCo on the untouched model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from support.rendering import needs_renderer
from support.sensor_run import run

pytest.importorskip('gymnasium', reason='gymnasium is not installed')

import gymnasium

ASSETS = Path(gymnasium.__file__).parent / 'envs' / 'mujoco' / 'assets'
ROBOTS = {
    'ant': ('torso', 'hip_1'),
    'half_cheetah': ('torso', 'bfoot'),
    'hopper': ('foot', 'leg_joint'),
    'humanoid': ('pelvis', 'right_knee'),
    'walker2d': ('torso', 'thigh_joint'),
    'swimmer': ('back', 'motor2_rot'),
}
STEPS = 60


def plain(file: Path, body: str, joint: str) -> dict[str, np.ndarray]:
    """Step the model by itself; return what an IMU, a tracker and an encoder should see."""
    model = mujoco.MjModel.from_xml_path(str(file))
    data, now = mujoco.MjData(model), mujoco.MjData(model)
    place = model.body(body).id
    seen: dict[str, list[np.ndarray]] = {
        key: [] for key in ('position', 'quat_wxyz', 'velocity', 'acceleration', 'rate', 'joint')
    }
    for _ in range(STEPS):
        mujoco.mj_copyData(now, model, data)
        mujoco.mj_forward(model, now)
        mujoco.mj_rnePostConstraint(model, now)
        spatial = np.empty(6)
        seen['position'].append(now.xpos[place].copy())
        seen['quat_wxyz'].append(now.xquat[place].copy())
        mujoco.mj_objectAcceleration(model, now, mujoco.mjtObj.mjOBJ_XBODY, place, spatial, 1)
        seen['acceleration'].append(spatial[3:].copy())
        mean = np.zeros(6)
        for velocity in (data.qvel.copy(), next_velocity(model, data)):
            now.qvel[:] = velocity
            mujoco.mj_forward(model, now)
            mujoco.mj_objectVelocity(model, now, mujoco.mjtObj.mjOBJ_XBODY, place, spatial, 1)
            mean += 0.5 * spatial
        seen['velocity'].append(mean)
        seen['rate'].append(mean[:3])
        seen['joint'].append(now.joint(joint).qpos.copy())
        mujoco.mj_step(model, data)
    return {key: np.array(values) for key, values in seen.items()}


def next_velocity(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the velocity after the next step; with Runge-Kutta the present one is exact."""
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:
        return data.qvel.copy()
    after = mujoco.MjData(model)
    mujoco.mj_copyData(after, model, data)
    mujoco.mj_step(model, after)
    return np.array(after.qvel)


@pytest.mark.parametrize('robot', ROBOTS)
def test_sensors_on_a_model_by_somebody_else(tmp_path: Path, robot: str) -> None:
    body, joint = ROBOTS[robot]
    file = ASSETS / f'{robot}.xml'
    step_s = mujoco.MjModel.from_xml_path(str(file)).opt.timestep
    mount = {'mount': {'body': body}, 'rate_hz': 0.0}
    sensors = {
        'imu': {'type': 'imu', **mount},
        'tracker': {'type': 'pose', **mount},
        'baro': {'type': 'barometer', **mount},
        'mag': {'type': 'magnetometer', **mount},
        'gnss': {'type': 'gnss', **mount},
        'wheels': {'type': 'wheel_odometry', **mount},
        'joints': {
            'type': 'joint_state',
            'joints': [joint],
            'rate_hz': 0.0,
            'velocity_from': 'tachometer',
        },
    }
    done = run(tmp_path, file, sensors, (STEPS - 1) * step_s, timestep_s=step_s)
    expected = plain(file, body, joint)
    np.testing.assert_allclose(done.values('tracker', 'position'), expected['position'], atol=1e-6)
    quats = np.roll(done.values('tracker', 'orientation'), 1, axis=1)
    np.testing.assert_allclose(quats, expected['quat_wxyz'], atol=1e-6)
    np.testing.assert_allclose(done.values('joints', 'position'), expected['joint'], atol=1e-6)
    scale = np.abs(expected['rate']).max()
    np.testing.assert_allclose(
        done.values('imu', 'angular_velocity'), expected['rate'], atol=1e-4 * scale
    )
    np.testing.assert_allclose(
        done.values('tracker', 'linear'), expected['velocity'][:, 3:], atol=1e-5
    )
    scale = np.abs(expected['acceleration']).max()
    np.testing.assert_allclose(
        done.values('imu', 'linear_acceleration'), expected['acceleration'], atol=1e-4 * scale
    )
    assert all(len(done.samples[name]) == STEPS for name in sensors)


@needs_renderer
@pytest.mark.parametrize('robot', ROBOTS)
def test_sensors_that_look_and_touch_on_a_model_by_somebody_else(
    tmp_path: Path, robot: str
) -> None:
    body = ROBOTS[robot][0]
    file = ASSETS / f'{robot}.xml'
    model = mujoco.MjModel.from_xml_path(str(file))
    step_s = model.opt.timestep
    above = {
        'mount': {'body': body, 'pos_m': [0.0, 0.0, 0.3], 'rpy_rad': [0.0, 0.3, 0.0]},
        'rate_hz': 0.01 / step_s,
    }
    down = {
        'mount': {'body': body, 'pos_m': [0.0, 0.0, 0.3], 'rpy_rad': [0.0, np.pi / 2, 0.0]},
        'rate_hz': 0.01 / step_s,
        'width': 32,
        'height': 24,
    }
    always = {'mount': {'body': body}, 'rate_hz': 0.0}
    sensors = {
        'scan': {
            'type': 'lidar2d',
            'num_rays': 90,
            'noise': 0.0,
            'motion_distortion': False,
            'exclude_own_body': False,
            'min_range_m': 0.0,
            'max_range_m': 100.0,
            **above,
        },
        'eye': {'type': 'camera', **down},
        'labels': {'type': 'segmentation', **down},
        'touch': {'type': 'contact', 'threshold_n': 0.0, **always},
        'load': {'type': 'contact_force', 'noise': 0.0, 'torque_noise_nm': 0.0, **always},
    }
    touched: list[float] = []

    def watch(world: Any) -> None:
        if world.tick >= 0:
            touched.append(contact_force(world.model, world.data(0), body))

    done = run(tmp_path, file, sensors, 300 * step_s, timestep_s=step_s, on_step=watch)
    data, site = done.world.data(0), done.world.model.site('scan')
    ranges = done.values('scan', 'ranges')[-1]
    expected = cast(done.world.model, data, site.id, 90)
    assert np.isfinite(expected).sum() > 10
    np.testing.assert_allclose(ranges, expected, atol=1e-4)
    force = np.linalg.norm(done.values('load', 'force'), axis=1)
    np.testing.assert_allclose(force[:300], touched, atol=1e-6 * max(touched) + 1e-9)
    np.testing.assert_array_equal(done.values('touch', 'contact'), force > 0.0)
    own = {g for g in range(done.world.model.ngeom) if done.world.model.geom(g).bodyid[0] != 0}
    assert own & set(np.unique(done.values('labels', 'data')[-1])), 'it does not see the robot'
    assert done.values('eye', 'data')[-1].std() > 1.0


def contact_force(model: mujoco.MjModel, data: mujoco.MjData, body: str) -> float:
    """Return the size of the net contact force on a body, N, summed contact by contact."""
    total, wrench = np.zeros(3), np.empty(6)
    for index in range(data.ncon):
        contact = data.contact[index]
        bodies = [int(model.geom_bodyid[geom]) for geom in contact.geom]
        if model.body(body).id in bodies and bodies[0] != bodies[1]:
            mujoco.mj_contactForce(model, data, index, wrench)
            sign = 1.0 if bodies[1] == model.body(body).id else -1.0
            total += sign * contact.frame.reshape(3, 3).T @ wrench[:3]
    return float(np.linalg.norm(total))


def cast(model: mujoco.MjModel, data: mujoco.MjData, site: int, count: int) -> np.ndarray:
    """Return the ranges of `count` rays around a site, one mj_ray each."""
    axes = data.site_xmat[site].reshape(3, 3)
    hit = np.zeros(1, np.int32)
    ranges = []
    for angle in np.arange(count) * 2 * np.pi / count:
        along = axes @ [np.cos(angle), np.sin(angle), 0.0]
        distance = mujoco.mj_ray(model, data, data.site_xpos[site], along, None, 1, -1, hit, None)
        ranges.append(distance if hit[0] >= 0 and distance <= 100.0 else np.inf)
    return np.array(ranges)
