"""The pipeline on torch tensors is the pipeline on NumPy arrays, to the bit where it can be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.all_sensors import SCENE, entry
from support.toy_sensors import Plain

from rig_common.errors import RigError
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.registry import BUILT_IN, sensor_class
from sim_sensors.rig import Rig
from sim_sensors.sensors.imu import Imu, ImuConfig
from sim_sensors.timing.arrays.devices import tensors_on
from sim_sensors.timing.faults import FaultConfig
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.world.config.world import WorldConfig

torch = pytest.importorskip('torch')
pytest.importorskip('array_api_compat')

MS = 1_000_000
TRIAD = {
    'noise_density': 1e-3,
    'bias_instability': 1e-4,
    'random_walk': 1e-5,
    'range': 3.0,
    'turn_on_bias': 1e-2,
    'resolution': 1e-4,
    'temperature_bias': 0.01,
    'scale_error': 0.01,
    'cross_axis': 0.01,
    'misalignment_rad': 0.01,
    'bandwidth_hz': 100.0,
}
CASES: dict[str, dict[str, Any]] = {
    'everything': {
        'accel': TRIAD,
        'gyro': TRIAD,
        'delay_range_s': (0.005, 0.015),
        'jitter_s': 0.002,
        'loss': {'probability': 0.05, 'burst_mean': 3.0},
        'history_length': 5,
        'rate_hz': 333.0,
        'clock': {'offset_s': 0.01, 'drift_ppm': 20.0, 'stamp_jitter_s': 1e-4},
    },
    'latencies and a counter': {
        'rate_hz': 200.0,
        'order': 'fifo',
        'phase_range_s': (0.0, 0.01),
        'latency': {
            'model': 'lognormal',
            'mean_s': 0.02,
            'sigma_s': 0.01,
            'correlation': 0.5,
            'stalls': {'probability': 0.05, 'duration_range_s': (0.01, 0.05)},
        },
        'clock': {
            'white_fm': 1e-6,
            'random_walk_fm': 1e-7,
            'resolution_s': 1e-6,
            'counter_bits': 24,
        },
    },
    'NTP and packets': {
        'rate_hz': 200.0,
        'history_length': 4,
        'noise': 0.1,
        'random_walk': 0.01,
        'clock': {'offset_s': 0.1, 'servo': {'kind': 'ntp', 'period_s': 0.1, 'sigma_s': 1e-3}},
        'loss': {'probability': 0.3, 'bad_probability': 0.6, 'packet_probability': 0.01},
    },
    'cubic, fast': {
        'rate_hz': 100.0,
        'delay_range_s': (0.005, 0.015),
        'interpolation': 'cubic',
        'gyro': TRIAD,
        'fast_noise': True,
    },
    'slerp': {
        'rate_hz': 100.0,
        'delay_range_s': (0.005, 0.015),
        'interpolation': 'slerp',
        'orientation': True,
        'orientation_noise_rad': 0.01,
    },
}


ERRORS = {'noise': 0.01, 'bias': 0.01, 'random_walk': 1e-3, 'resolution': 1e-3}
PHYSICS = {'turbulence': 0.1, 'turbulence_intensity': 0.1, 'drift': 0.1}
WRENCH = {
    'cross_talk': 0.01,
    'bandwidth_hz': 50.0,
    'overload_n': 1.0,
    'force_range_n': 2.0,
    'torque_deadband_nm': 0.5,
    'physics': PHYSICS,
}
SCAN = {'fields': ['intensities'], 'motion_distortion': False, 'physics': PHYSICS}
WEAK = {'dark_range_m': 2.0, 'dropout_probability': 0.05}
RICH: dict[str, dict[str, Any]] = {
    'magnetometer': {'hard_iron_t': 0.1, 'range_t': 1.0, 'physics': PHYSICS},
    'barometer': {'drift_pa': 1.0, 'turn_on_bias_pa': 1.0, 'bandwidth_hz': 20.0},
    'pose': {'orientation_noise_rad': 0.1, 'position_noise_m': 0.1},
    'joint_state': {'backlash': 0.01, 'drop_probability': 0.1, 'effort_noise': 0.1},
    'wheel_odometry': {'slip': 0.1, 'slip_noise': 0.1, 'radius_error': [0.01, 0.0]},
    'clock_pps': {'accuracy_s': 1e-3},
    'wind': {'physics': PHYSICS, 'bandwidth_hz': 20.0},
    'range': {'physics': PHYSICS},
    'height_scan': {'physics': PHYSICS},
    'contact': {'release_n': 0.5, 'debounce_s': 0.005, 'times': True, 'physics': PHYSICS},
    'contact_force': WRENCH,
    'force_torque': WRENCH,
    'contact_probe': {'probes_m': [0.0] * 6},
    'tactile': {'physics': PHYSICS, 'thickness_m': 0.1},
    'temperature_grid': {'physics': PHYSICS},
    'lidar2d': {**SCAN, 'optics': WEAK, 'no_hit': 'max', 'noise_per_m': 0.01},
    'lidar3d': {**SCAN, 'optics': WEAK, 'beam': {'rays': 3}, 'max_range_m': 2.0},
    'camera': {'shot_noise': 2.0, 'read_noise': 1.0, 'vignetting': 0.5},
}
ON_HOST = ['gnss', 'depth_camera', 'segmentation']
"""Types whose stages are not arithmetic: geodesy, the search for what the second eye misses."""


def run(keys: dict[str, Any], num_envs: int, device: str) -> list[Any]:
    """Return all that is read in 300 steps with resets and faults, as NumPy arrays."""
    keys = {'type': 'imu', **keys}
    made = sensor_class(keys['type'])
    pipeline = Pipeline(
        made('s', made.config_class(**keys)),
        RunSetup(num_envs=num_envs, seed=5, dt_ns=MS, device=device),
    )
    layout = pipeline.sensor.truth_layout
    width = layout.width
    rng = np.random.default_rng(3)
    seen: list[Any] = []

    def supply(lanes: Any, out: Any) -> None:
        out[:] = pipeline.xp.asarray(truth)[lanes]

    pipeline.supplier = supply
    for tick in range(300):
        truth = rng.normal(size=(num_envs, width))
        if keys['type'] == 'imu':
            truth[:, 6:] /= np.linalg.norm(truth[:, 6:], axis=1, keepdims=True) + (width == 6)
        truth = (100.0 * truth if keys['type'] == 'camera' else truth).astype(layout.dtype)
        pipeline.update(tick * MS)
        seen += [pipeline.read(), pipeline.read_ground_truth()]
        if keys.get('history_length'):
            seen.append(pipeline.read(history_length=keys['history_length']))
        if tick == 100:
            pipeline.inject(FaultConfig(kind='slow', at_s=0.11, duration_s=0.05, offset=0.004))
        if tick == 150 and num_envs > 1:
            pipeline.reset(torch.tensor([0, 2]) if device else [0, 2], tick * MS)
        if tick == 200:
            pipeline.reset(None, tick * MS)
    if device:
        assert all(isinstance(array, torch.Tensor) for array in seen[-1])
    return [np.asarray(array) for reading in seen for array in reading]


@pytest.mark.parametrize('num_envs', [1, 70])
@pytest.mark.parametrize('case', CASES)
def test_tensors_give_what_arrays_give(case: str, num_envs: int) -> None:
    arrays, tensors = (run(CASES[case], num_envs, device) for device in ('', 'cpu'))
    for ours, theirs in zip(arrays, tensors, strict=True):
        assert ours.dtype == theirs.dtype
        if ours.dtype.kind in 'ib' or case not in ('slerp', 'everything'):
            assert np.array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(theirs, ours, rtol=0.0, atol=1e-12)


def test_every_type_is_tried_or_named() -> None:
    assert sorted([*RICH, *ON_HOST, 'imu']) == sorted(BUILT_IN)


@pytest.mark.parametrize('kind', RICH)
def test_every_sensor_whose_stages_are_arithmetic_runs_on_tensors(kind: str) -> None:
    keys = entry(kind, rate_hz=200.0, delay_range_s=(0.005, 0.01), **{**ERRORS, **RICH[kind]})
    keys = {**keys, 'truth_rate_hz': 0.0} if kind in ('tactile', 'temperature_grid') else keys
    arrays, tensors = (run(keys, 3, device) for device in ('', 'cpu'))
    assert any(each.any() for each in arrays)
    for ours, theirs in zip(arrays, tensors, strict=True):
        assert ours.dtype == theirs.dtype
        close = 2e-5 if ours.dtype == np.float32 else 1e-9
        np.testing.assert_allclose(theirs, ours, rtol=close, atol=close)


@pytest.mark.parametrize('kind', ['lidar2d', 'joint_state', 'contact'])
def test_a_rig_reads_the_same_on_tensors(tmp_path: Path, kind: str) -> None:
    (tmp_path / 'scene.xml').write_text(SCENE)
    read = []
    for device in ('', 'cpu'):
        made = sensor_class(kind)
        sensor = made('s', made.config_class(**entry(kind, history_length=2)))
        world = WorldConfig(model=str(tmp_path / 'scene.xml'), num_envs=3, keyframe='turning')
        rig = Rig(world, [sensor], seed=2, device=device)
        for tick in range(150):
            rig.step()
            if tick == 70:
                rig.reset([1])
        read.append(np.asarray(rig.read('s', history_length=2).values))
    assert read[0].any()
    np.testing.assert_allclose(read[1], read[0], rtol=2e-5)


def test_numbers_of_a_device_are_by_index_and_of_the_same_law() -> None:
    xp = tensors_on('cpu', host_draws=False)
    streams = RandomStreams(3, 'imu', 64, xp=xp)
    every, k = slice(None), torch.arange(64)
    first = streams.normals('white', 6).at(every, k)
    again = RandomStreams(3, 'imu', 70, xp=xp).normals('white', 6)
    assert torch.equal(first[7:9], again.at(torch.tensor([7, 8]), torch.tensor([7, 8])))
    many = torch.cat([streams.normals('white', 6).at(every, k * 0 + i) for i in range(500)])
    assert abs(float(many.mean())) < 0.01 and abs(float(many.std()) - 1.0) < 0.01
    walk = streams.walk_at('drift', every, k * 0 + 400, 2)
    assert float(walk.std()) == pytest.approx(np.sqrt(401.0), rel=0.25)
    streams.reset(torch.tensor([1]))
    changed = (streams.normals('white', 6).at(every, k) != first).any(1)
    assert changed.tolist() == [env == 1 for env in range(64)]


def test_what_cannot_run_on_tensors_says_so() -> None:
    with pytest.raises(RigError, match='written for NumPy alone'):
        Pipeline(Plain('toy', ImuConfig(type='imu')), RunSetup(seed=1, dt_ns=MS, device='cpu'))
    with pytest.raises(RigError, match='torch does not have here'):
        Pipeline(Imu('imu', ImuConfig(type='imu')), RunSetup(seed=1, dt_ns=MS, device='cuda:99'))
