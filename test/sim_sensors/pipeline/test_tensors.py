"""The pipeline on torch tensors is the pipeline on NumPy arrays, to the bit where it can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.toy_sensors import Plain

from rig_common.errors import RigError
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.sensors.imu import Imu, ImuConfig
from sim_sensors.timing.arrays.devices import tensors_on
from sim_sensors.timing.faults import FaultConfig
from sim_sensors.timing.randomness.random_streams import RandomStreams

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


def run(keys: dict[str, Any], num_envs: int, device: str) -> list[Any]:
    """Return all that is read in 300 steps with resets and faults, as NumPy arrays."""
    pipeline = Pipeline(
        Imu('imu', ImuConfig(type='imu', **keys)),
        RunSetup(num_envs=num_envs, seed=5, dt_ns=MS, device=device),
    )
    width = pipeline.sensor.truth_layout.width
    rng = np.random.default_rng(3)
    seen: list[Any] = []

    def supply(lanes: Any, out: Any) -> None:
        out[:] = pipeline.xp.asarray(truth)[lanes]

    pipeline.supplier = supply
    for tick in range(300):
        truth = rng.normal(size=(num_envs, width))
        truth[:, 6:] /= np.linalg.norm(truth[:, 6:], axis=1, keepdims=True) + (width == 6)
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
