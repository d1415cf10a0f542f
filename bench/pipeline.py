"""The sensor pipeline's speed, as ratios within one run.

    ./rig python -m bench.pipeline [--quick] [--json FILE]

- *retrieval*: 4096 environments, 50 slots, 6 values, a delay per environment. Against the double
  loop of the original design notes (over environments, over slots) and the same retrieval in torch
  on the CPU, on one thread. Ours also returns validity, capture times and stamps. `regular` is a
  fixed delay (slots by arithmetic), `irregular` has jitter on every sample (slots by search).
- *step*: one physics step of a 6-value IMU with white noise, flicker, random walk, bandwidth,
  range, resolution and delay for 4096 environments, read included, on one core.
- *emulator*: one truth tick of that IMU in one environment, messages only, 1 kHz truth and 200 Hz
  captures.
- *lazy*: a step of a sensor nobody reads.
- *growth*: memory that is still held after many more steps, which must not grow with time.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np

from bench.command import run_as_program
from bench.figures import Figure, absent
from rig_common import msgs
from rig_common.cdr import Template
from sim_sensors.interface.config import SensorConfig
from sim_sensors.interface.sensor import Sample, Sensor, Topic
from sim_sensors.interface.truth import WorldView
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.sensors.imu import Imu, ImuConfig
from sim_sensors.timing.arrays.layout import Array, Layout

ENVS, SLOTS, WIDTH = 4096, 50, 6
STEP_NS = 1_000_000
TRIAD = {
    'noise_density': 1e-3,
    'bias_instability': 1e-4,
    'random_walk': 1e-5,
    'turn_on_bias': 1e-2,
    'resolution': 1e-4,
    'range': 100.0,
    'bandwidth_hz': 100.0,
}


def run(quick: bool) -> dict[str, Any]:
    """Measure everything; times in microseconds."""
    rounds = 5 if quick else 25
    report: dict[str, Any] = {'retrieval': retrieval(rounds)}
    report['step'] = step(rounds)
    report['emulator'] = {'tick_us': emulator_us(rounds), 'target_us': 60.0}
    report['lazy'] = {'step_us': lazy_us(rounds), 'target_us': 2.0}
    report['growth'] = growth(200 if quick else 2000)
    return report


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    loop = result['retrieval']['times faster than the double loop']
    torch = result['retrieval']['torch / regular']
    against = 'delayed read of 4096 environments, times faster than'
    return [
        Figure(f'{against} the double loop', loop['regular'], 'x', target=200.0),
        Figure(f'{against} torch on the CPU', torch, 'x', target=1.0)
        if isinstance(torch, float)
        else absent(f'{against} torch on the CPU', 'torch is not installed', unit='x', target=1.0),
        Figure(f'{against} the double loop, jitter on every sample', loop['irregular'], 'x'),
        Figure(
            'step of 4096 IMUs over drawing their white noise',
            result['step']['ratio'],
            'x',
            better='lower',
        ),
        Figure(
            'step of 4096 IMUs with all errors, read included',
            result['step']['imu_4096_us'],
            'us',
            2000.0,
            'lower',
            'absolute',
        ),
        Figure(
            'truth tick of one IMU in an emulator',
            result['emulator']['tick_us'],
            'us',
            60.0,
            'lower',
            'absolute',
        ),
        Figure(
            'step of a sensor nobody reads',
            result['lazy']['step_us'],
            'us',
            2.0,
            'lower',
            'absolute',
        ),
        Figure(
            f'memory held by a pipeline, {result["growth"]["steps"]} steps later',
            result['growth']['growth'],
            'x',
            1.02,
            'lower',
            'accuracy',
        ),
    ]


# ---- retrieval -------------------------------------------------------------------------------


def retrieval(rounds: int) -> dict[str, Any]:
    """Time one delayed read of the whole batch, our way and others'."""
    regular, irregular = delayed_pipeline(0.0), delayed_pipeline(0.004)
    now_ns = 3 * SLOTS * STEP_NS
    times_ns, data, target_ns = plain_buffer(regular, now_ns)
    turns: dict[str, Callable[[], Any]] = {
        'regular': lambda: regular.read(now_ns),
        'irregular': lambda: irregular.read(now_ns),
        'double loop': lambda: double_loop(times_ns, data, target_ns),
    }
    torch_way = torch_retrieval(times_ns, data, target_ns)
    if torch_way is not None:
        turns['torch'] = torch_way
    assert np.array_equal(regular.read(now_ns).values, double_loop(times_ns, data, target_ns))
    times_us = in_turns(turns, rounds, slow={'double loop'})
    loop = times_us['double loop']
    return {
        'us': times_us,
        'times faster than the double loop': {
            name: loop / t for name, t in times_us.items() if name != 'double loop'
        },
        'torch / regular': times_us['torch'] / times_us['regular'] if torch_way else 'absent',
        'target': 'regular at least 200 times the double loop, and no slower than torch',
    }


def delayed_pipeline(jitter_s: float) -> Pipeline:
    """Return a pipeline that keeps `SLOTS` samples in flight and has wrapped three times."""
    config = SensorConfig(type='bench', delay_range_s=(0.010, 0.046 - jitter_s), jitter_s=jitter_s)
    pipeline = Pipeline(_Bare('bench', config), RunSetup(num_envs=ENVS, seed=1, dt_ns=STEP_NS))
    rng = np.random.default_rng(0)
    for tick in range(3 * SLOTS + 1):
        pipeline.tick(None, tick * STEP_NS, rng.normal(size=(ENVS, WIDTH)))
    return pipeline


def plain_buffer(pipeline: Pipeline, now_ns: int) -> tuple[Any, Any, Any]:
    """Return the same samples as a plain ring: times [SLOTS], data, targets [ENVS]."""
    ring = pipeline._readout._samples  # type: ignore[union-attr]
    newest = now_ns // STEP_NS
    times_ns, data = np.empty(SLOTS, np.int64), np.empty((SLOTS, ENVS, WIDTH))
    for k in range(newest - SLOTS + 1, newest + 1):
        slot = ring.cursor.back(slice(0, 1), newest - k)[0]
        times_ns[k % SLOTS], data[k % SLOTS] = k * STEP_NS, ring.values[slot]
    return times_ns, data, now_ns - pipeline.transit.latency_ns


def double_loop(times_ns: Any, data: Any, target_ns: Any) -> Any:
    """Search every slot for every environment, as the design notes' first version does."""
    out = np.empty((len(target_ns), data.shape[2]))
    for env in range(len(target_ns)):
        best, best_ns = 0, -1
        for slot in range(len(times_ns)):
            if best_ns < times_ns[slot] <= target_ns[env]:
                best, best_ns = slot, times_ns[slot]
        out[env] = data[best, env]
    return out


def torch_retrieval(times_ns: Any, data: Any, target_ns: Any) -> Callable[[], Any] | None:
    """Return the design notes' vectorised retrieval in torch, or None where there is no torch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    order = np.argsort(times_ns)
    times, values = torch.from_numpy(times_ns), torch.from_numpy(data)
    newest = int(order[-1])
    latency = torch.from_numpy(times_ns.max() - target_ns)
    envs = torch.arange(len(target_ns))

    def retrieve() -> Any:
        unrolled = torch.roll(times, SLOTS - 1 - newest)  # a ring must be put in order to search
        wanted = int(times_ns[newest]) - latency
        place = torch.clamp(torch.searchsorted(unrolled, wanted, right=True) - 1, min=0)
        return values[(place + newest + 1) % SLOTS, envs]

    assert np.array_equal(retrieve().numpy(), double_loop(times_ns, data, target_ns))
    return retrieve


# ---- the whole pipeline ----------------------------------------------------------------------


def step(rounds: int) -> dict[str, float]:
    """Time one step and read of 4096 IMUs, and drawing the white noise it needs from numpy."""
    config = ImuConfig(
        type='imu', rate_hz=0.0, accel=TRIAD, gyro=TRIAD, delay_range_s=(0.002, 0.010)
    )
    pipeline = Pipeline(Imu('imu', config), RunSetup(num_envs=ENVS, seed=1, dt_ns=STEP_NS))
    generator = np.random.Generator(np.random.Philox(1))
    truth = generator.normal(size=(ENVS, WIDTH))
    clock = _Clock()

    def one_step() -> None:
        now_ns = clock.next()
        pipeline.tick(None, now_ns, truth)
        pipeline.read(now_ns)

    times_us = in_turns(
        {
            'imu_4096_us': one_step,
            'its_white_noise_alone_us': lambda: generator.standard_normal((ENVS, WIDTH)),
        },
        20 * rounds,
        repeat=3,
    )
    return {
        **times_us,
        'target_us': 2000.0,
        'ratio': times_us['imu_4096_us'] / times_us['its_white_noise_alone_us'],
    }


def emulator_us(rounds: int) -> float:
    """Return the mean time of one truth tick of one IMU, as an emulator runs it."""
    config = ImuConfig(
        type='imu',
        rate_hz=200.0,
        accel=TRIAD,
        gyro=TRIAD,
        jitter_s=0.001,
        delay_range_s=(0.002, 0.002),
        loss={'probability': 0.01},
        clock={'drift_ppm': 20.0, 'stamp_jitter_s': 1e-5},
    )
    pipeline = Pipeline(
        Imu('imu', config), RunSetup(seed=1, dt_ns=STEP_NS, messages=True, arrays=False)
    )
    truth = np.random.default_rng(0).normal(size=(1, WIDTH))
    clock = _Clock()

    def tick() -> None:
        now_ns = clock.next()
        pipeline.tick(None, now_ns, truth)
        pipeline.due(now_ns)

    return in_turns({'tick': tick}, rounds, repeat=500)['tick']


def lazy_us(rounds: int) -> float:
    """Return the time of a step of a sensor that nobody reads."""

    def unwanted(envs: Any, out: Any) -> None:
        raise AssertionError('nobody asked')

    config = SensorConfig(type='bench', rate_hz=100.0, noise=0.1)
    pipeline = Pipeline(
        _Bare('bench', config), RunSetup(num_envs=ENVS, seed=1, dt_ns=STEP_NS), supplier=unwanted
    )
    clock = _Clock()
    return in_turns({'lazy': lambda: pipeline.update(clock.next())}, rounds, repeat=5000)['lazy']


def growth(steps: int) -> dict[str, Any]:
    """Return how much more memory is held after `steps` more steps of a pipeline with everything.

    Medians, because the samples on their way are more at one time than at another.
    """
    config = ImuConfig(
        type='imu',
        rate_hz=0.0,
        accel=TRIAD,
        gyro=TRIAD,
        history_length=5,
        delay_range_s=(0.010, 0.020),
        jitter_s=0.005,
        loss={'probability': 0.1},
    )
    pipeline = Pipeline(
        Imu('imu', config), RunSetup(num_envs=64, seed=1, dt_ns=STEP_NS, messages=True)
    )
    truth = np.zeros((64, WIDTH))
    clock = _Clock()

    def some(count: int) -> None:
        for _ in range(count):
            now_ns = clock.next()
            pipeline.tick(None, now_ns, truth)
            pipeline.read(now_ns)
            pipeline.due(now_ns)

    def usual() -> float:
        samples = []
        for _ in range(10):
            some(steps // 10)
            gc.collect()
            samples.append(tracemalloc.get_traced_memory()[0])
        return median(samples)

    tracemalloc.start()
    some(300)  # blocks, rings and the heap reach their size
    before, after = usual(), usual()
    tracemalloc.stop()
    return {'steps': steps, 'bytes_held': after, 'growth': after / before}


# ---- measuring -------------------------------------------------------------------------------


def in_turns(
    turns: dict[str, Callable[[], Any]],
    rounds: int,
    repeat: int = 10,
    slow: set[str] | None = None,
) -> dict[str, float]:
    """Return the best time of each on this thread's core, us; all have a turn in every round."""
    best = dict.fromkeys(turns, float('inf'))
    for call in turns.values():
        call()
    for number in range(rounds):
        for name, call in turns.items():
            if slow and name in slow and number >= 3:
                continue
            count = 1 if slow and name in slow else repeat
            start = time.thread_time()
            for _ in range(count):
                call()
            best[name] = min(best[name], (time.thread_time() - start) / count * 1e6)
    return best


class _Clock:
    """Hands out the next tick's time."""

    def __init__(self) -> None:
        self._now_ns = -STEP_NS

    def next(self) -> int:
        self._now_ns += STEP_NS
        return self._now_ns


class _Rest:
    """Truth of a world in which nothing pulls."""

    parts_ns: Sequence[int] = (0,)

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write zeros into `out` [len(envs), WIDTH]."""
        out[:] = 0.0


class _Bare(Sensor[SensorConfig]):
    """Six values, every stage of the pipeline left as it is, nothing published."""

    truth_layout = Layout({'force': (3,), 'torque': (3,)}, np.float64)

    def reader(self, view: WorldView) -> _Rest:
        """Return what fills truth rows."""
        return _Rest()

    def truth_template(self) -> tuple[str, Template]:
        """Return the wire form of a truth row."""
        return 'geometry_msgs/msg/WrenchStamped', msgs.wrench_stamped(self.frame_id)

    def topics(self) -> Sequence[Topic]:
        """Return no topics."""
        return ()

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Return no messages."""
        return ()


if __name__ == '__main__':
    run_as_program(run)
