"""Wind, and disturbances of what is sensed: wind, temperature, contact."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.registry import sensor_class
from sim_sensors.rig import Rig
from sim_sensors.world.config.world import WorldConfig

MS = 1_000_000


def make(kind: str, **keys: Any) -> Any:
    made = sensor_class(kind)
    return made('s', made.config_class(type=kind, **keys))


def series(sensor: Any, truth: Any, ticks: int = 4000, num_envs: int = 50) -> tuple[Any, Any]:
    """Return what was measured and the ground truth, [ticks, envs, width], of a constant truth."""
    pipeline = Pipeline(sensor, RunSetup(num_envs=num_envs, seed=2, dt_ns=10 * MS))
    rows = np.zeros((num_envs, sensor.truth_layout.width), sensor.truth_layout.dtype)
    rows[:] = truth
    read = []
    for tick in range(ticks):
        pipeline.tick(None, tick * 10 * MS, rows)
        read.append((pipeline.read().values, pipeline.read_ground_truth().values))
    measured, true = zip(*read, strict=True)
    return np.array(measured), np.array(true)


def test_the_wind_is_the_worlds_less_the_mounts_motion(tmp_path) -> None:
    model = tmp_path / 'slide.xml'
    model.write_text("""<mujoco><option gravity="0 0 0"/><worldbody><body name="cart">
      <joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" contype="0"/></body></worldbody>
      <keyframe><key name="go" qvel="2"/></keyframe></mujoco>""")
    sensor = make(
        'wind',
        mount={'body': 'cart', 'rpy_rad': (0.3, -0.2, 0.5)},
        rate_hz=0.0,
        wind_m_s=(3.0, 1.0, -0.5),
    )
    rig = Rig(WorldConfig(model=str(model), keyframe='go', num_envs=2), [sensor])
    rig.step()
    mount = np.empty(9)
    site = mujoco.mj_name2id(rig.world.model, mujoco.mjtObj.mjOBJ_SITE, 's')
    mount[:] = rig.world.data(0).site_xmat[site]
    expected = mount.reshape(3, 3).T @ (np.array([3.0, 1.0, -0.5]) - [2.0, 0.0, 0.0])
    np.testing.assert_allclose(rig.read('s').values, [expected, expected], atol=1e-9)


def test_gusts_have_their_size_and_time_and_ground_truth_has_none() -> None:
    physics = {'turbulence': 0.5, 'turbulence_intensity': 0.1, 'turbulence_time_s': 0.5}
    measured, true = series(make('wind', rate_hz=0.0, physics=physics), [3.0, 4.0, 0.0])
    gusts = measured - true
    assert (true == [3.0, 4.0, 0.0]).all()
    assert gusts.std() == pytest.approx(1.0, rel=0.05)  # 0.5 + 0.1 * 5 m/s
    lag = 50  # 0.5 s at 100 Hz
    assert (gusts[lag:] * gusts[:-lag]).mean() == pytest.approx(np.exp(-1.0), abs=0.05)


def test_a_slow_instrument_smooths_gusts_but_not_its_own_noise() -> None:
    physics = {'turbulence': 1.0, 'turbulence_time_s': 0.05}
    quick = series(make('wind', rate_hz=0.0, physics=physics), 0.0, 1000)[0]
    slow = series(make('wind', rate_hz=0.0, physics=physics, bandwidth_hz=1.0), 0.0, 1000)[0]
    noisy = series(make('wind', rate_hz=0.0, noise=1.0, bandwidth_hz=1.0), 0.0, 1000)[0]
    assert slow[100:].std() < 0.6 * quick.std()
    assert noisy.std() == pytest.approx(1.0, rel=0.05)


def test_a_drift_walks_with_time_not_with_ticks() -> None:
    for rate_hz in (100.0, 20.0):
        sensor = make('wind', rate_hz=rate_hz, physics={'drift': 0.2})
        pipeline = Pipeline(sensor, RunSetup(num_envs=400, seed=2, dt_ns=10 * MS))
        for tick in range(int(9.0 * rate_hz) + 1):
            pipeline.tick(None, round(tick * 1e9 / rate_hz), np.zeros((400, 3)))
        assert pipeline.read().values.std() == pytest.approx(0.2 * 3.0, rel=0.1)


def test_a_contact_chatters_where_its_load_fluctuates() -> None:
    physics = {'turbulence': 0.5, 'turbulence_time_s': 0.1}
    measured, true = series(make('contact', rate_hz=0.0, physics=physics), [1.3, 0.0, 0.0], 500)
    assert true.all()
    assert 0.5 < measured.mean() < 0.95


def test_a_thermometer_follows_disturbed_exposure_slowly() -> None:
    keys: dict[str, Any] = {
        'rows': 2,
        'columns': 2,
        'noise': 0.0,
        'truth_rate_hz': 0.0,
        'rate_hz': 0.0,
        'diffusivity_m2_s': 0.0,
        'time_constant_s': 0.5,
    }
    physics = {'turbulence': 5.0, 'turbulence_time_s': 0.02}
    measured, true = series(make('temperature_grid', physics=physics, **keys), 22.0, 1000)
    assert np.abs(true - 22.0).max() < 1e-3
    assert 0.1 < measured[300:].std() < 1.5


DISTURBED: dict[str, tuple[str, int, dict[str, Any]]] = {
    'imu': ('linear_acceleration', 3, {}),
    'magnetometer': ('magnetic_field', 3, {}),
    'barometer': ('fluid_pressure', 1, {}),
    'range': ('range', 1, {'noise': 0.0}),
    'force_torque': ('force', 3, {'noise': 0.0, 'torque_noise_nm': 0.0}),
    'contact_force': ('force', 3, {'noise': 0.0, 'torque_noise_nm': 0.0}),
    'tactile': ('data', 12, {'rows': 3, 'columns': 4, 'shear': False, 'recovery_s': 0.0}),
    'lidar2d': ('ranges', 9, {'num_rays': 9, 'noise': 0.0, 'motion_distortion': False}),
    'lidar3d': ('ranges', 32, {'columns': 2, 'noise': 0.0, 'motion_distortion': False}),
}
"""Type -> the field that is disturbed, its width, and what makes the rest exact."""


@pytest.mark.parametrize('kind', DISTURBED)
def test_what_is_sensed_is_disturbed_and_nothing_else(kind: str) -> None:
    field, width, keys = DISTURBED[kind]
    value = {'barometer': 1e5, 'tactile': 1e-3}.get(kind, 2.0)
    if kind == 'tactile':
        keys = {**keys, 'noise': 0.0, 'truth_rate_hz': 0.0, 'spread_m': 0.0}
    physics = {'turbulence': 0.1 * value, 'turbulence_time_s': 0.05}
    sensor = make(kind, rate_hz=50.0, physics=physics, **keys)
    measured, true = series(sensor, value, 200, 20)
    layout = sensor.return_layout
    off = layout.view(measured - true, field).reshape(200, 20, -1)
    assert off.shape[-1] == width
    assert off.std(axis=(0, 1)) == pytest.approx(np.full(width, 0.1 * value), rel=0.3)
    assert off.mean() == pytest.approx(0.0, abs=0.02 * value)
    for other in set(layout.shapes) - {field, 'intensities'}:
        assert not layout.view(measured - true, other).any()


@pytest.mark.parametrize('kind', ['range', 'lidar2d'])
def test_where_nothing_is_sensed_nothing_is_disturbed(kind: str) -> None:
    physics = {'turbulence_intensity': 0.1, 'drift': 0.1}
    sensor = make(kind, rate_hz=50.0, physics=physics, **DISTURBED[kind][2])
    measured, _ = series(sensor, np.inf, 20, 2)
    assert np.isposinf(measured[..., 0]).all()


def test_other_sensors_have_no_physics_and_say_so() -> None:
    with pytest.raises(ValueError, match='physics'):
        make('pose', physics={'drift': 1.0})
    first = make('wind', wind_m_s=(1.0, 0.0, 0.0))
    second = sensor_class('wind')('t', type(first.config)(type='wind', wind_m_s=(2.0, 0, 0)))
    with pytest.raises(RigError, match='another anemometer'):
        Rig(WorldConfig(model='rover_yard.xml'), [first, second])
