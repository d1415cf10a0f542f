"""How cost and memory grow with sensors, rays, environments, rate and time.

    ./rig python -m bench.growth [--quick] [--json FILE]

Each is measured at several sizes, in turns within one run, in CPU time of the thread. What grows
in a straight line costs the same per item at every size, or less where a fixed part is spread over
more items; `bend` is the cost per item at the largest size over that at a quarter of it, so a
straight line gives at most 1. Memory is what Python and numpy still hold after more and more
simulated seconds of a whole rig.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from bench.command import run_as_program
from bench.figures import Figure
from bench.pipeline import TRIAD
from bench.realtime import without
from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import load_rig
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.registry import sensor_class
from sim_sensors.rig import Rig
from sim_sensors.sensors.imu import Imu, ImuConfig
from sim_sensors.world.config.world import WorldConfig

SIZES = {
    'sensors': (1, 2, 4, 8, 16, 32),
    'rays': (256, 1024, 4096, 16384),
    'envs': (1, 4, 16, 64, 256, 1024, 4096, 16384),
    'rate_hz': (125, 250, 500, 1000, 2000),
}
ITEMS = {'sensors': 'sensors', 'rays': 'rays', 'envs': 'environments', 'rate_hz': 'captures'}
TARGET = 1.2
"""Cost per item at the largest size over that at a quarter of it; 1 is a straight line."""
SAMPLES = 10
"""Looks at the memory held, per quarter of a run."""
MOUNT = {'body': 'rover'}


def run(quick: bool) -> dict[str, Any]:
    """Return cost per step at every size, and memory over time."""
    makers: dict[str, Callable[[int], Callable[[], object]]] = {
        'sensors': many_sensors,
        'rays': many_rays,
        'envs': many_envs,
        'rate_hz': fast_sensor,
    }
    report: dict[str, Any] = {
        name: in_turns({size: make(size) for size in SIZES[name]}, 4 if quick else 15)
        for name, make in makers.items()
    }
    report['memory'] = memory(6.0 if quick else 10.0)
    return report


# ---- what grows -------------------------------------------------------------------------------


def yard(sensors: dict[str, dict[str, Any]], timestep_s: float) -> Rig:
    """Return a rig of these sensors in the yard, messages only, the rover at rest."""
    world = WorldConfig(model='rover_yard.xml', timestep_s=timestep_s, driver='none')
    made = []
    for name, given in sensors.items():
        kind = sensor_class(given['type'])
        made.append(kind(name, kind.config_class(mount=MOUNT, **given)))
    return Rig(world, made, seed=1, messages=True, arrays=False)


def many_sensors(count: int) -> Callable[[], object]:
    """Return a step with so many IMUs, each measuring at every step."""
    imu = {'type': 'imu', 'rate_hz': 0.0, 'accel': {'noise_density': 1e-3}}
    return yard({f'imu_{i}': imu for i in range(count)}, 0.005).step


def many_rays(count: int) -> Callable[[], object]:
    """Return a step with a scan of so many rays."""
    return yard(
        {
            'lidar': {
                'type': 'lidar2d',
                'rate_hz': 200.0,
                'num_rays': count,
                'noise': 0.01,
                'motion_distortion': False,
            }
        },
        0.005,
    ).step


def many_envs(count: int) -> Callable[[], object]:
    """Return a step and a read of an IMU with all its errors in so many environments."""
    dt_ns = 1_000_000
    config = ImuConfig(
        type='imu', rate_hz=0.0, accel=TRIAD, gyro=TRIAD, delay_range_s=(0.002, 0.010)
    )
    pipeline = Pipeline(Imu('imu', config), RunSetup(num_envs=count, seed=1, dt_ns=dt_ns))
    truth = np.random.default_rng(0).normal(size=(count, 6))
    clock = iter(range(0, 2**62, dt_ns))

    def step() -> None:
        now_ns = next(clock)
        pipeline.tick(None, now_ns, truth)
        pipeline.read(now_ns)

    return step


def fast_sensor(rate_hz: int) -> Callable[[], object]:
    """Return a tenth of a simulated second of an IMU's pipeline at this rate, messages only."""
    dt_ns = 500_000
    config = ImuConfig(
        type='imu',
        rate_hz=float(rate_hz),
        accel=TRIAD | {'bandwidth_hz': 0.0},
        delay_range_s=(0.002, 0.002),
        jitter_s=0.001,
    )
    pipeline = Pipeline(
        Imu('imu', config), RunSetup(seed=1, dt_ns=dt_ns, messages=True, arrays=False)
    )
    truth = np.zeros((1, 6))
    every = 2000 // rate_hz
    clock = iter(range(0, 2**62, dt_ns))

    def tenth_of_a_second() -> None:
        for tick in range(200):
            now_ns = next(clock)
            if tick % every == 0:
                pipeline.tick(None, now_ns, truth)
                pipeline.due(now_ns)

    return tenth_of_a_second


# ---- measuring ----------------------------------------------------------------------------------


def in_turns(calls: dict[int, Callable[[], object]], rounds: int) -> dict[str, Any]:
    """Return the time of one call at every size, us, and how far the growth is from straight."""
    best = dict.fromkeys(calls, float('inf'))
    for call in calls.values():
        for _ in range(20):
            call()
    for _ in range(rounds):
        for size, call in calls.items():
            repeat = max(3, 400 // size)
            start = time.thread_time()
            for _ in range(repeat):
                call()
            best[size] = min(best[size], (time.thread_time() - start) / repeat * 1e6)
    largest = max(calls)
    return {
        'us': {str(size): value for size, value in best.items()},
        'us_per_item': best[largest] / largest,
        'bend': (best[largest] / largest) / (best[largest // 4] / (largest // 4)),
    }


def memory(seconds: float) -> dict[str, Any]:
    """Return what the demo rig without camera holds over four quarters of a run, sync included.

    Each is the median of ten samples: what a cue happens to be working on is a fifth of it all.
    """
    rig = InProcessRig(without(load_rig('demo'), cameras=True), arrays=False)
    ticks = round(seconds / rig.config.simulated_world.timestep_s / SAMPLES)
    tracemalloc.start()
    held = []
    for _ in range(4):
        samples = []
        for _ in range(SAMPLES):
            for _ in range(ticks):
                rig.step()
            gc.collect()
            samples.append(tracemalloc.get_traced_memory()[0])
        held.append(median(samples))
    tracemalloc.stop()
    return {
        'seconds': [seconds * (i + 1) for i in range(len(held))],
        'bytes': held,
        'bytes_per_second': (held[-1] - held[-2]) / seconds,
        'growth': held[-1] / held[-2],
    }


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    figures = []
    for name, item in ITEMS.items():
        largest = max(SIZES[name])
        unit = ' a second' if name == 'rate_hz' else ''
        figures.append(
            Figure(
                f'cost per item, {largest} {item}{unit} over {largest // 4}',
                result[name]['bend'],
                'x',
                TARGET,
                'lower',
            )
        )
    held = result['memory']
    return [
        *figures,
        Figure(
            'memory held by a rig, last quarter of its run over the quarter before',
            held['growth'],
            'x',
            1.1,
            'lower',
            'accuracy',
        ),
    ]


if __name__ == '__main__':
    run_as_program(run, quick='fewer rounds, less time')
