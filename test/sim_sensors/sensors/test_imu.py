from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sensor_run import decode, feed, make_sensor, run

from sim_sensors.timing.arrays.layout import Array

G = 9.81
TURNTABLE = """
<mujoco>
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <body name="table">
      <joint name="spin" axis="0 0 1"/>
      <geom type="cylinder" size="0.5 0.02"/>
    </body>
  </worldbody>
  <keyframe><key name="spinning" qvel="2.0"/></keyframe>
</mujoco>
"""
SPRING = """
<mujoco>
  <option gravity="0 0 -9.81" integrator="RK4"/>
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0" stiffness="40"/>
      <geom type="box" size="0.1 0.1 0.1" mass="1"/>
    </body>
  </worldbody>
  <keyframe><key name="pulled" qpos="0.1"/></keyframe>
</mujoco>
"""


def test_lever_arm_on_a_turntable(tmp_path: Path) -> None:
    mount = {'body': 'table', 'pos_m': [0.3, 0.0, 0.1], 'rpy_rad': [0.0, 0.0, 0.0]}
    done = run(
        tmp_path, TURNTABLE, {'imu': {'type': 'imu', 'mount': mount}}, 1.0, keyframe='spinning'
    )
    assert len(done.samples['imu']) == 201
    np.testing.assert_allclose(
        done.values('imu', 'angular_velocity'), [[0.0, 0.0, 2.0]] * 201, atol=1e-9
    )
    centripetal = [-(2.0**2) * 0.3, 0.0, G]
    np.testing.assert_allclose(
        done.values('imu', 'linear_acceleration'), [centripetal] * 201, atol=1e-9
    )


def test_acceleration_belongs_to_the_time_of_its_stamp(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        SPRING,
        {'imu': {'type': 'imu', 'mount': {'body': 'cart'}}},
        2.0,
        keyframe='pulled',
    )
    omega = np.sqrt(40.0)
    expected = -0.1 * omega**2 * np.cos(omega * done.times_s('imu'))
    measured = done.values('imu', 'linear_acceleration')[:, 0]
    # a sample one step (1 ms) late would be off by 0.1 omega^3 dt = 0.025 m/s^2
    np.testing.assert_allclose(measured, expected, atol=1e-5)


@pytest.mark.parametrize('integrator', ['Euler', 'implicitfast', 'RK4'])
def test_the_rate_belongs_to_the_pose_of_its_stamp(tmp_path: Path, integrator: str) -> None:
    """MuJoCo's own gyro is half a step old: 0.5 ms between the clocks of an IMU and a LiDAR."""
    model = TURNTABLE.replace('<option ', f'<option integrator="{integrator}" ')
    model = model.replace('axis="0 0 1"', 'axis="0 0 1" stiffness="2"')
    sensors = {
        'imu': {
            'type': 'imu',
            'mount': {'body': 'table', 'rpy_rad': [0.4, -0.3, 0.2]},
            'rate_hz': 0.0,
            'orientation': True,
        }
    }
    done = run(tmp_path, model, sensors, 3.0, keyframe='spinning')
    rates = done.values('imu', 'angular_velocity')
    turned = Rotation.from_quat(done.values('imu', 'orientation'))
    seen = (turned[:-100].inv() * turned[100:]).as_rotvec()
    angle = np.cumsum(0.5 * (rates[1:] + rates[:-1]), axis=0) * 1e-3
    summed = np.vstack([np.zeros(3), angle])
    slope = rates[100:] - rates[:-100]
    error = seen - (summed[100:] - summed[:-100])
    lag_s = float(np.sum(slope * error) / np.sum(slope * slope))
    assert np.ptp(rates[:, 2]) > 2.0
    assert abs(lag_s) < 5e-6


def test_mount_turns_the_axes_and_orientation_follows(tmp_path: Path) -> None:
    rpy = [0.3, -0.4, 1.1]
    keys = {'type': 'imu', 'mount': {'body': 'table', 'rpy_rad': rpy}, 'orientation': True}
    done = run(tmp_path, TURNTABLE, {'imu': keys}, 0.5, keyframe='spinning')
    mounted = Rotation.from_euler('xyz', rpy)
    turned = Rotation.from_euler('z', 2.0 * done.times_s('imu')[:, None]) * mounted
    difference = turned * Rotation.from_quat(done.values('imu', 'orientation')).inv()
    assert np.abs(difference.magnitude()).max() < 1e-9
    np.testing.assert_allclose(
        done.values('imu', 'angular_velocity')[3], mounted.inv().apply([0.0, 0.0, 2.0]), atol=1e-9
    )
    np.testing.assert_allclose(
        done.values('imu', 'linear_acceleration')[3], mounted.inv().apply([0.0, 0.0, G]), atol=1e-9
    )


def test_messages_follow_rep_145(tmp_path: Path) -> None:
    keys = {
        'type': 'imu',
        'mount': {'body': 'table'},
        'orientation': True,
        'rate_hz': 100.0,
        'orientation_noise_rad': 0.01,
        'gyro': {'noise_density': [0.001, 0.002, 0.003]},
        'temperature': {
            'publish': True,
            'ambient_c': 20.0,
            'self_heating_k': 10.0,
            'time_constant_s': 0.1,
        },
    }
    done = run(tmp_path, TURNTABLE, {'imu': keys}, 0.1)
    last = done.messages('imu')[-1]
    raw = decode('sensor_msgs/msg/Imu', last['data_raw'])
    full = decode('sensor_msgs/msg/Imu', last['data'])
    assert raw.orientation_covariance[0] == -1.0
    assert full.orientation_covariance[0] == pytest.approx(1e-4)
    expected = np.array([0.001, 0.002, 0.003]) ** 2 * 100.0
    np.testing.assert_allclose(
        np.reshape(raw.angular_velocity_covariance, (3, 3)), np.diag(expected)
    )
    assert not np.any(raw.linear_acceleration_covariance)
    warm = decode('sensor_msgs/msg/Temperature', last['temperature'])
    assert warm.temperature == pytest.approx(20.0 + 10.0 * (1.0 - np.exp(-1.0)))


# ---- noise ------------------------------------------------------------------------------------


def noise_of(rate_hz: float, seconds: float, **gyro: float) -> Array:
    """Return the error of 16 gyros over `seconds`, [n, 48], from a truth of zero."""
    sensor = make_sensor('imu', type='imu', rate_hz=rate_hz, gyro=gyro)
    rows = np.zeros((round(seconds * rate_hz), 6))
    return feed(sensor, rows, period_s=1 / rate_hz, num_envs=16)[:, :, 3:].reshape(len(rows), -1)


def allan(noise: Array, rate_hz: float, taus_s: list[float], alpha: int) -> tuple[Array, Array]:
    """Return the Allan deviation pooled over axes and its relative standard error."""
    allantools = pytest.importorskip('allantools', reason='allantools is not installed')
    variances = []
    for axis in noise.T:
        taus, deviation, _, counts = allantools.oadev(
            axis, rate=rate_hz, data_type='freq', taus=taus_s
        )
        assert len(taus) == len(taus_s)
        assert np.all(counts > 0)
        variances.append(deviation**2)
    freedom = [
        allantools.edf_greenhall(alpha, 2, round(tau * rate_hz), len(noise), overlapping=True)
        for tau in taus_s
    ]
    error = np.sqrt(0.5 / (noise.shape[1] * np.array(freedom)))
    return np.sqrt(np.mean(variances, axis=0)), error


@pytest.mark.parametrize('rate_hz', [20.0, 100.0])
def test_white_noise_is_a_density_at_any_rate(rate_hz: float) -> None:
    noise = noise_of(rate_hz, 30.0, noise_density=0.01)
    taus = [0.1, 1.0, 4.0]
    deviation, error = allan(noise, rate_hz, taus, alpha=0)
    expected = 0.01 / np.sqrt(taus)
    assert np.all(np.abs(deviation / expected - 1.0) < 4.0 * error)


@pytest.mark.parametrize('rate_hz', [4.0, 16.0])
def test_bias_instability_is_the_floor_at_any_rate(rate_hz: float) -> None:
    noise = noise_of(rate_hz, 300.0, bias_instability=0.002)
    deviation, error = allan(noise, rate_hz, [4.0, 20.0, 60.0], alpha=-1)
    assert np.all(np.abs(deviation / 0.002 - 1.0) < 4.0 * error + 0.05)


@pytest.mark.parametrize('rate_hz', [4.0, 16.0])
def test_random_walk_rises_with_the_root_of_time_at_any_rate(rate_hz: float) -> None:
    noise = noise_of(rate_hz, 150.0, random_walk=0.001)
    taus = [4.0, 20.0, 40.0]
    deviation, error = allan(noise, rate_hz, taus, alpha=-2)
    expected = 0.001 * np.sqrt(np.array(taus) / 3.0)
    assert np.all(np.abs(deviation / expected - 1.0) < 4.0 * error)


def test_turn_on_bias_is_drawn_once_per_environment() -> None:
    sensor = make_sensor('imu', type='imu', rate_hz=100.0, accel={'turn_on_bias': 0.2})
    values = feed(sensor, np.zeros((3, 6)), period_s=0.01, num_envs=1000)[:, :, :3]
    assert np.ptp(values, axis=0).max() == 0.0
    assert values[0].std() == pytest.approx(0.2, rel=0.1)
    assert np.abs(np.corrcoef(values[0].T) - np.eye(3)).max() < 0.15


# ---- errors that are no noise -------------------------------------------------------------------


def test_gain_misalignment_and_cross_axis() -> None:
    turn = np.array([0.01, -0.02, 0.03])
    keys = {
        'scale_error': [0.01, 0.02, -0.01],
        'misalignment_rad': turn.tolist(),
        'cross_axis': 0.005,
        'bias': 0.1,
    }
    sensor = make_sensor('imu', type='imu', rate_hz=100.0, accel=keys)
    true = np.array([1.0, 2.0, 9.0])
    along = Rotation.from_rotvec(turn).inv().apply(true)
    expected = [
        gain * (along[i] + 0.005 * (along.sum() - along[i])) + 0.1
        for i, gain in enumerate((1.01, 1.02, 0.99))
    ]
    values = feed(sensor, np.array([[*true, 0.1, 0.2, 0.3]]), period_s=0.01)[0, 0]
    np.testing.assert_allclose(values[:3], expected, rtol=1e-12)
    np.testing.assert_allclose(values[3:], [0.1, 0.2, 0.3])


def test_gyro_reads_acceleration_through_its_g_sensitivity() -> None:
    sensor = make_sensor(
        'imu', type='imu', rate_hz=100.0, gyro={'g_sensitivity': [1e-3, 0.0, 2e-3]}
    )
    values = feed(sensor, np.array([[3.0, 5.0, 9.8, 0.0, 0.0, 1.0]]), period_s=0.01)[0, 0]
    np.testing.assert_allclose(values[3:], [0.003, 0.0, 1.0196])


def test_range_and_resolution() -> None:
    sensor = make_sensor(
        'imu',
        type='imu',
        rate_hz=100.0,
        gyro={'range': 2.0, 'resolution': 0.25},
        accel={'range': 20.0},
    )
    values = feed(sensor, np.array([[-25.0, 19.0, 0.0, 5.0, -0.3, 0.4]]), period_s=0.01)[0, 0]
    np.testing.assert_allclose(values, [-20.0, 19.0, 0.0, 2.0, -0.25, 0.5])


def test_bias_follows_the_temperature() -> None:
    sensor = make_sensor(
        'imu',
        type='imu',
        rate_hz=10.0,
        gyro={'temperature_bias': [0.0, 1e-3, 0.0]},
        temperature={
            'ambient_c': 35.0,
            'reference_c': 25.0,
            'self_heating_k': 20.0,
            'time_constant_s': 5.0,
        },
    )
    drift = feed(sensor, np.zeros((100, 6)), period_s=0.1)[:, 0, 4]
    time_s = np.arange(100) * 0.1
    np.testing.assert_allclose(drift, 1e-3 * (10.0 + 20.0 * (1.0 - np.exp(-time_s / 5.0))))


def test_bandwidth_is_where_the_power_halves() -> None:
    sensor = make_sensor('imu', type='imu', rate_hz=0.0, gyro={'bandwidth_hz': 20.0})
    time_s = np.arange(2000) * 1e-3
    rows = np.zeros((2000, 6))
    rows[:, 5] = rows[:, 0] = np.sin(2.0 * np.pi * 20.0 * time_s)
    values = feed(sensor, rows, period_s=1e-3)[:, 0]
    settled = slice(1000, 2000)
    phasor = 2.0 * np.mean(values[settled, 5] * np.exp(-2j * np.pi * 20.0 * time_s[settled]))
    assert abs(phasor) == pytest.approx(np.sqrt(0.5), rel=0.01)
    # -90 deg of the sine, -45 deg of the filter, half a step of the hold taken back
    assert np.angle(phasor, deg=True) == pytest.approx(-135.0 + 3.6, abs=1.0)
    np.testing.assert_array_equal(values[:, 0], rows[:, 0])


def test_bandwidth_works_on_truth_between_captures(tmp_path: Path) -> None:
    keys = {'type': 'imu', 'mount': {'body': 'cart'}, 'rate_hz': 10.0}
    slow = {**keys, 'accel': {'bandwidth_hz': 2.0}}
    done = run(tmp_path, SPRING, {'slow': slow, 'fast': keys}, 4.0, keyframe='pulled')
    assert len(done.samples['slow']) == len(done.samples['fast']) == 41
    omega = np.sqrt(40.0)
    pole = 2.0 * np.pi * 2.0
    time_s = done.times_s('slow')
    settled = time_s > 1.0
    lagging = -4.0 / np.hypot(1.0, omega / pole) * np.cos(omega * time_s - np.arctan(omega / pole))
    filtered = done.values('slow', 'linear_acceleration')[:, 0]
    np.testing.assert_allclose(filtered[settled], lagging[settled], atol=0.03)
    np.testing.assert_array_equal(
        done.truth('slow', 'linear_acceleration'), done.truth('fast', 'linear_acceleration')
    )


def test_orientation_noise_has_its_size_and_stays_a_rotation() -> None:
    sensor = make_sensor(
        'imu', type='imu', rate_hz=100.0, orientation=True, orientation_noise_rad=0.02
    )
    true = Rotation.from_euler('xyz', [0.5, 0.2, -1.0])
    row = np.concatenate([np.zeros(6), true.as_quat()])
    quats = feed(sensor, np.tile(row, (2000, 1)), period_s=0.01)[:, 0, 6:]
    np.testing.assert_allclose(np.linalg.norm(quats, axis=1), 1.0)
    errors = (true.inv() * Rotation.from_quat(quats)).as_rotvec()
    np.testing.assert_allclose(errors.std(axis=0), 0.02, rtol=0.08)
