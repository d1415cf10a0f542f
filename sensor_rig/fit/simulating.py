"""The fitted stream, simulated by the same code that a rig runs."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import CaptureNumbers, StreamTraits, Transit


def simulated_latencies(config: TimingConfig, count: int, runs: int = 1, seed: int = 1) -> Floats:
    """Return latencies of `count` captures in `runs` independent runs, s [count, runs]."""
    dt_ns = 10_000
    schedule = Schedule(min(config.rate_hz, 1e9 / dt_ns), dt_ns)
    transit = Transit(config, RandomStreams(seed, 'fit', runs), StreamTraits(schedule=schedule))
    envs, found = np.arange(runs), np.empty((count, runs))
    for k in range(count):
        index = np.full(runs, k)
        times_ns = schedule.times_of(index)
        sent = transit.send(CaptureNumbers(envs, index, times_ns))
        found[k] = (sent.arrival_ns - times_ns) / 1e9
    return found
