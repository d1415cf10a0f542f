"""Clocks and triggers as a sensor's user meets them: in headers and capture times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.all_sensors import EXACT, KINDS, SCENE, entry
from support.body_sensors import PLATE
from support.sensor_run import decode, make_sensor, run

from rig_common.cdr import read_stamp_ns


@pytest.mark.parametrize('kind', KINDS)
def test_host_stamped_sensors_carry_the_time_of_arrival(tmp_path: Path, kind: str) -> None:
    keys = entry(
        kind,
        delay_range_s=[0.02, 0.02],
        jitter_s=0.01,
        clock={'stamp_at': 'arrival', 'offset_s': 5.0},
    )
    done = run(tmp_path, SCENE, {'s': keys}, 0.5)
    samples = done.samples['s']
    assert len({each.arrival_ns - each.capture_ns for each in samples}) > 10
    for sample, messages in zip(samples, done.messages('s'), strict=True):
        latency_ns = sample.arrival_ns - sample.capture_ns - done.sensors['s'].duration_ns
        assert 20_000_000 <= latency_ns < 30_000_000
        assert {read_stamp_ns(data) for data in messages.values()} == {sample.arrival_ns}


@pytest.mark.parametrize('kind', KINDS)
def test_device_stamped_sensors_carry_their_own_clock(tmp_path: Path, kind: str) -> None:
    keys = entry(kind, delay_range_s=[0.02, 0.02], clock={'offset_s': 5.0, 'drift_ppm': 100.0})
    done = run(tmp_path, SCENE, {'s': keys}, 0.3)
    assert len(done.samples['s']) >= 14
    for sample, messages in zip(done.samples['s'], done.messages('s'), strict=True):
        expected = sample.capture_ns * (1.0 + 100e-6) + 5e9
        assert abs(sample.stamp_ns - expected) <= 1
        assert {read_stamp_ns(data) for data in messages.values()} == {sample.stamp_ns}


@pytest.mark.parametrize('kind', KINDS)
def test_triggered_sensors_capture_after_each_pulse(tmp_path: Path, kind: str) -> None:
    pulse = {'type': 'clock_pps', 'rate_hz': 7.0, 'phase_s': 0.02}
    keys = entry(kind, rate_hz=333.0, trigger='pps', trigger_delay_s=0.004)
    done = run(tmp_path, SCENE, {'s': keys, 'pps': pulse}, 2.0, keyframe='turning')
    pulses = [each.capture_ns for each in done.samples['pps']]
    assert pulses == [20_000_000 + round(k * 1e3 / 7.0) * 1_000_000 for k in range(14)]
    assert [each.capture_ns for each in done.samples['s']] == [
        pulse_ns + 4_000_000 for pulse_ns in pulses
    ]


def test_a_triggered_sensor_measures_at_its_own_delay(tmp_path: Path) -> None:
    pulse = {'type': 'clock_pps', 'rate_hz': 10.0}
    tracker = {
        'type': 'pose',
        'mount': {'body': 'plate'},
        'trigger': 'pps',
        'trigger_delay_s': 0.05,
    }
    done = run(tmp_path, PLATE, {'pps': pulse, 'pose': tracker}, 1.0, keyframe='turning')
    quats = done.values('pose', 'orientation')
    yaw = 2.0 * np.arctan2(quats[:, 2], quats[:, 3])
    np.testing.assert_allclose(yaw, 2.0 * (np.arange(len(yaw)) * 0.1 + 0.05), atol=1e-9)


def test_a_pulse_tells_which_time_it_marks(tmp_path: Path) -> None:
    keys = {'type': 'clock_pps', 'rate_hz': 4.0, 'clock': {'offset_s': 100.0}, 'source': 'gps'}
    done = run(tmp_path, PLATE, {'pps': keys}, 1.0)
    messages = [
        decode('sensor_msgs/msg/TimeReference', each['pps']) for each in done.messages('pps')
    ]
    marked = [(each.time_ref.sec, each.time_ref.nanosec) for each in messages]
    assert marked == [
        (1000, 0),
        (1000, 250_000_000),
        (1000, 500_000_000),
        (1000, 750_000_000),
        (1001, 0),
    ]
    assert [each.header.stamp.sec for each in messages] == [100, 100, 100, 100, 101]
    assert {each.source for each in messages} == {'gps'}


def test_accuracy_of_a_pulse(tmp_path: Path) -> None:
    keys = {'type': 'clock_pps', 'rate_hz': 1000.0, 'accuracy_s': 50e-9}
    done = run(tmp_path, PLATE, {'pps': keys}, 1.0)
    error_ns = done.values('pps', 'time_ref') - done.truth('pps', 'time_ref')
    assert error_ns.std() == pytest.approx(50.0, rel=0.1)
    assert make_sensor('pps', **keys).truth_layout.dtype == np.int64


@pytest.mark.parametrize('kind', KINDS)
def test_faults_happen_when_the_config_says(tmp_path: Path, kind: str) -> None:
    faults = {
        'silence': {'kind': 'dead', 'at_s': 0.1, 'duration_s': 0.1},
        'leap': {'kind': 'clock_step', 'at_s': 0.3, 'offset': 1.5},
        'frozen': {'kind': 'stuck', 'at_s': 0.4, 'duration_s': 0.05},
        'late': {'kind': 'slow', 'at_s': 0.5, 'duration_s': 0.05, 'offset': 0.2},
    }
    done = run(
        tmp_path, SCENE, {'s': entry(kind, rate_hz=100.0, faults=faults)}, 0.61, keyframe='turning'
    )
    samples = sorted(done.samples['s'], key=lambda each: each.index)[:51]
    ms = np.array([each.capture_ns for each in samples]) // 1_000_000
    np.testing.assert_array_equal(ms, [k for k in range(0, 601, 10) if not 100 <= k < 200])
    duration_ns = done.sensors['s'].duration_ns
    for each, time in zip(samples, ms, strict=True):
        assert each.stamp_ns - each.capture_ns == (1_500_000_000 if time >= 300 else 0)
        late_ns = 200_000_000 if 500 <= time < 550 else 0
        assert each.arrival_ns - each.capture_ns == duration_ns + late_ns
    rows = np.array([each.values for each in samples])
    still = rows[(ms >= 390) & (ms < 450)]
    np.testing.assert_array_equal(still, still[:1].repeat(len(still), axis=0))
    if kind in ('pose', 'clock_pps', 'wheel_odometry', 'joint_state', 'lidar2d', 'camera'):
        assert (rows[ms == 450] != still[-1]).any()


WRONG: dict[str, dict[str, Any]] = {
    'contact': {'offset': 100.0, 'scale': 1.0},
    'clock_pps': {'offset': 0.0, 'scale': 1.2},
    'range': {'offset': 0.0, 'scale': 1.5},
    'segmentation': {'offset': 1.0, 'scale': 1.0},
}


@pytest.mark.parametrize('kind', KINDS)
def test_a_wrong_sensor_is_wrong_for_its_time(tmp_path: Path, kind: str) -> None:
    fault = {
        'kind': 'wrong',
        'at_s': 0.1,
        'duration_s': 0.1,
        **WRONG.get(kind, {'scale': 1.2, 'offset': 0.3}),
    }
    keys = entry(kind, **EXACT.get(kind, {}), faults={'f': fault})
    if kind == 'contact':
        keys['threshold_n'] = 50.0
    done = run(tmp_path, SCENE, {'s': keys}, 0.31, keyframe='turning')
    for sample in done.samples['s']:
        if 100_000_000 <= sample.capture_ns < 200_000_000:
            assert not np.allclose(sample.values, sample.truth, equal_nan=True), sample
        elif sample.capture_ns < 100_000_000 or kind != 'wheel_odometry':  # which adds up
            np.testing.assert_allclose(sample.values, sample.truth, rtol=1e-6, atol=1e-6)


NOISE = {
    'camera': 5.0,
    'imu': 0.05,
    'magnetometer': 1e-6,
    'barometer': 2.0,
    'joint_state': 0.01,
    'lidar2d': 0.02,
    'lidar3d': 0.02,
    'range': 0.01,
    'height_scan': 0.01,
    'contact_force': 0.2,
    'force_torque': 0.2,
    'contact_probe': 0.001,
    'tactile': 1e-5,
    'temperature_grid': 0.2,
    'depth_camera': 0.01,
    'wind': 0.2,
}
"""White noise of the types that the generic noise suits, each in its own unit."""


@pytest.mark.parametrize('kind', [param for param in KINDS if param.values[0] in NOISE])
def test_a_noisy_sensor_is_noisier_for_its_time(tmp_path: Path, kind: str) -> None:
    fault = {'kind': 'noisy', 'at_s': 0.5, 'scale': 4.0}
    keys = entry(
        kind, **{**EXACT.get(kind, {}), 'noise': NOISE[kind]}, rate_hz=100.0, faults={'f': fault}
    )
    done = run(tmp_path, SCENE, {'s': keys}, 1.0)
    with np.errstate(invalid='ignore'):
        errors = np.array(
            [each.values.astype(float) - each.truth.astype(float) for each in done.samples['s']]
        )
    if kind in ('contact_force', 'force_torque'):
        errors = errors[:, :3]
    elif kind == 'joint_state':
        errors = errors[:, :1]
    elif kind in ('lidar2d', 'lidar3d'):
        errors = errors[:, : errors.shape[1] // 2]
    calm, loud = (
        part[np.isfinite(part) & (part != 0.0)].std() for part in (errors[:50], errors[50:])
    )
    assert loud / calm == pytest.approx(4.0, rel=0.3), (calm, loud)


@pytest.mark.parametrize('kind', KINDS)
def test_a_loss_burst_loses_its_fraction(tmp_path: Path, kind: str) -> None:
    fault = {'kind': 'loss_burst', 'at_s': 0.1, 'duration_s': 0.8, 'scale': 0.4}
    done = run(tmp_path, SCENE, {'s': entry(kind, rate_hz=100.0, faults={'f': fault})}, 0.92)
    ms = np.array([each.capture_ns for each in done.samples['s']]) / 1e6
    assert (ms < 100).sum() == 10
    assert ((ms >= 100) & (ms < 900)).sum() == pytest.approx(48, abs=14)
    assert (ms == 900).sum() == 1
