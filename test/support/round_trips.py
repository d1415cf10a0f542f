"""Streams of known timing, as a recording of them would be: for fits that must find it again."""

from __future__ import annotations

from typing import Any

import numpy as np

from rig_common.validation import validated
from sensor_rig.fit.times import StreamTimes
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import CaptureNumbers, StreamTraits, Transit

MS = 1e-3
CASES: dict[str, dict[str, Any]] = {
    'uniform': {
        'latency': {'model': 'uniform', 'min_s': 5 * MS, 'max_s': 20 * MS, 'correlation': 0.3}
    },
    'normal': {
        'latency': {'model': 'normal', 'mean_s': 30 * MS, 'sigma_s': 3 * MS, 'correlation': -0.4}
    },
    'gamma': {
        'latency': {
            'model': 'gamma',
            'min_s': 4 * MS,
            'mean_s': 10 * MS,
            'sigma_s': 3 * MS,
            'correlation': 0.5,
        }
    },
    'lognormal': {
        'latency': {
            'model': 'lognormal',
            'min_s': 4 * MS,
            'mean_s': 10 * MS,
            'sigma_s': 3 * MS,
            'correlation': 0.3,
        }
    },
    'mixture_2': {
        'latency': {
            'model': 'mixture',
            'weights': [0.7, 0.3],
            'means_s': [10 * MS, 25 * MS],
            'sigmas_s': [1 * MS, 3 * MS],
            'correlation': 0.2,
        }
    },
    'drift': {
        'latency': {'model': 'normal', 'mean_s': 30 * MS, 'sigma_s': 1 * MS},
        'clock': {'drift_ppm': 60.0},
    },
    'white_fm': {
        'latency': {'model': 'normal', 'mean_s': 30 * MS, 'sigma_s': 0.1 * MS},
        'clock': {'white_fm': 5e-5},
    },
    'random_walk_fm': {
        'latency': {'model': 'normal', 'mean_s': 30 * MS, 'sigma_s': 0.1 * MS},
        'clock': {'random_walk_fm': 3e-6},
    },
    'loss': {
        'latency': {'model': 'normal', 'mean_s': 30 * MS, 'sigma_s': 1 * MS},
        'loss': {'probability': 0.1, 'burst_mean': 4.0},
    },
}


def recorded(keys: dict[str, Any], count: int, seed: int, rate_hz: float = 10.0) -> StreamTimes:
    """Return the receive times and stamps of a stream with the timing `keys`."""
    config = validated(TimingConfig, {'rate_hz': rate_hz, **keys}, 'test')
    schedule = Schedule(rate_hz, 1_000_000)
    transit = Transit(config, RandomStreams(seed, 'stream'), StreamTraits(schedule=schedule))
    rows = []
    for k in range(count):
        index = np.array([k])
        sent = transit.send(CaptureNumbers(np.arange(1), index, schedule.times_of(index)))
        if sent.lost is None or not sent.lost[0]:
            rows.append((sent.arrival_ns, sent.stamp_ns))
    receive_ns, stamp_ns = np.array(rows, np.int64).T
    base_ns = 1_700_000_000 * 10**9
    return StreamTimes('stream', receive_ns + base_ns, stamp_ns + base_ns)


def truths(name: str) -> dict[str, float]:
    """Return the true parameters of a case, by the names that a fit gives them."""
    keys = CASES[name]
    found: dict[str, float] = {}
    for key, value in keys['latency'].items():
        if isinstance(value, list):
            found |= {f'{key}.{i}': each for i, each in enumerate(value)}
        elif key != 'model':
            found[key] = value
    found.setdefault('correlation', 0.0)
    if 'clock' in keys:  # what a clock has walked is no other than latency to who only listens
        found = {}
    return (
        found
        | keys.get('clock', {})
        | {f'loss.{key}': value for key, value in keys.get('loss', {}).items()}
    )


def estimates(fit: Any) -> dict[str, Any]:
    """Return everything that a fit states an interval for."""
    return {
        **fit.parameters,
        'correlation': fit.correlation,
        'drift_ppm': fit.clock.drift_ppm,
        'white_fm': fit.clock.white_fm,
        'random_walk_fm': fit.clock.random_walk_fm,
        'loss.probability': fit.gaps.probability,
        'loss.burst_mean': fit.gaps.burst_mean,
    }
