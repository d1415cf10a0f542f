"""Senses for learning: what a step of thousands of environments costs, beside what others do.

    python -m bench.learning [--quick] [--json FILE]

- *step*: 4096 environments with an IMU (all errors, 5 to 15 ms of delay, jitter, loss), read
  included: NumPy, NumPy with `fast_noise`, torch on the CPU (one thread).
- *fixed*: an IMU with white noise and a fixed delay, `fast_noise`, against a plain torch ring with
  `torch.randn` of the same shape in float32, the least that anybody can do.
- *jitter*: the same with jitter, against mjlab's delay buffer (a lag drawn at every step) with its
  Gaussian noise, where mjlab is installed.
- *reset*: one and all of 4096 environments, at their first and at a late episode.
- *class*: 64 IMUs alike in one pipeline, per sensor, against one alone.
- *growth*: memory that is still held after many more steps.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.command import run_as_program
from bench.figures import Figure, absent
from bench.pipeline import ENVS, STEP_NS, TRIAD, WIDTH, in_turns
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.sensors.imu import Imu, ImuConfig

WHITE = {'noise_density': 1e-3}
EVERYTHING: dict[str, Any] = {
    'accel': TRIAD,
    'gyro': TRIAD,
    'delay_range_s': (0.005, 0.015),
    'jitter_s': 0.002,
    'loss': {'probability': 0.01},
}
FIXED: dict[str, Any] = {
    'accel': WHITE,
    'gyro': WHITE,
    'delay_range_s': (0.005, 0.005),
    'fast_noise': True,
}


def run(quick: bool) -> dict[str, Any]:
    """Measure everything; times in microseconds of this thread."""
    rounds = 4 if quick else 15
    return {
        'step': step(rounds),
        'fixed': fixed(rounds),
        'jitter': jitter(rounds),
        'reset': reset(rounds),
        'class': alike(rounds),
        'growth': growth(20_000 if quick else 1_000_000),
    }


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    step_us, ratios = (
        result['step'],
        [
            (
                'torch step of 4096 IMUs over the NumPy one',
                result['step'].get('torch / numpy'),
                3.0,
            ),
            (
                'IMU with a fixed delay over a torch ring with randn',
                result['fixed'].get('ratio'),
                1.0,
            ),
            (
                "IMU with jitter over mjlab's delay buffer and noise",
                result['jitter'].get('ratio'),
                1.0,
            ),
        ],
    )
    return [
        Figure(
            'step of 4096 IMUs, delay, jitter, loss, read',
            step_us['numpy'],
            'us',
            1200.0,
            'lower',
            'absolute',
        ),
        Figure(
            'the same with fast_noise',
            step_us['numpy fast_noise'],
            'us',
            1200.0,
            'lower',
            'absolute',
        ),
        *(
            Figure(name, ratio, 'x', limit, 'lower')
            if isinstance(ratio, float)
            else absent(
                name,
                'needs torch, array-api-compat and mjlab',
                unit='x',
                target=limit,
                better='lower',
            )
            for name, ratio, limit in ratios
        ),
        Figure('one IMU over one of 64 alike', result['class']['ratio'], 'x', target=8.0),
        Figure(
            'reset at episode 1000 over the first',
            result['reset']['late / first'],
            'x',
            1.2,
            'lower',
        ),
        Figure(
            f'memory held, {result["growth"]["steps"]} steps later',
            result['growth']['growth'],
            'x',
            1.02,
            'lower',
            'accuracy',
        ),
    ]


def stepping(
    device: str = '', num_envs: int = ENVS, names: tuple[str, ...] = (), **keys: Any
) -> Callable[[], Any]:
    """Return a step and a read of IMUs with `keys`, warmed up."""
    pipeline = Pipeline(
        Imu('imu', ImuConfig(type='imu', rate_hz=0.0, **keys)),
        RunSetup(num_envs=num_envs, seed=1, dt_ns=STEP_NS, device=device),
        names=names,
    )
    rows = num_envs * max(len(names), 1)
    truth = pipeline.xp.asarray(np.random.default_rng(0).normal(size=(rows, WIDTH)))
    now_ns = -STEP_NS

    def one_step() -> Any:
        nonlocal now_ns
        now_ns += STEP_NS
        pipeline.tick(None, now_ns, truth)
        return pipeline.read(now_ns)

    for _ in range(300):
        one_step()
    return one_step


def torch_here() -> Any:
    """Return torch on one thread, or None."""
    try:
        import array_api_compat.torch  # noqa: F401
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    return torch


def step(rounds: int) -> dict[str, Any]:
    """Time a step with everything."""
    turns = {
        'numpy': stepping(**EVERYTHING),
        'numpy fast_noise': stepping(**EVERYTHING, fast_noise=True),
    }
    if torch_here() is not None:
        turns['torch'] = stepping('cpu', **EVERYTHING)
    white = np.random.Generator(np.random.Philox(1))
    turns['its white noise alone'] = lambda: white.standard_normal((ENVS, WIDTH))
    times_us: dict[str, Any] = in_turns(turns, 4 * rounds, repeat=10)
    if 'torch' in turns:
        times_us['torch / numpy'] = times_us['torch'] / times_us['numpy']
    return times_us


def fixed(rounds: int) -> dict[str, Any]:
    """Time a fixed delay against a ring in torch."""
    turns = {'imu': stepping(**FIXED)}
    if (torch := torch_here()) is not None:
        ring, truth, head = torch.zeros(8, ENVS, WIDTH), torch.randn(ENVS, WIDTH), 0
        lags, rows = torch.full((ENVS,), 5), torch.arange(ENVS)

        def written() -> int:
            nonlocal head
            head = (head + 1) % 8
            ring[head] = truth + 1e-3 * torch.randn(ENVS, WIDTH)
            return head

        turns |= {
            'ring, a lag for each': lambda: ring[(written() - lags) % 8, rows],
            'ring, one lag for all': lambda: torch.clone(ring[(written() - 5) % 8]),
        }
    times_us: dict[str, Any] = in_turns(turns, 4 * rounds, repeat=20)
    if torch is not None:
        times_us['ratio'] = times_us['imu'] / times_us['ring, a lag for each']
        times_us['ratio to one lag for all'] = times_us['imu'] / times_us['ring, one lag for all']
    return times_us


def jitter(rounds: int) -> dict[str, Any]:
    """Time jitter against mjlab's delay buffer and noise."""
    turns = {'imu': stepping(**{**FIXED, 'jitter_s': 0.004})}
    theirs = mjlab_step()
    if theirs is not None:
        turns['mjlab'] = theirs
    times_us: dict[str, Any] = in_turns(turns, 4 * rounds, repeat=20)
    if theirs is not None:
        times_us['ratio'] = times_us['imu'] / times_us['mjlab']
    return times_us


def mjlab_step() -> Callable[[], Any] | None:
    """Return noise and a delay that changes at every step, as mjlab's observations have them."""
    torch = torch_here()
    try:
        from mjlab.utils.buffers import DelayBuffer
        from mjlab.utils.noise import GaussianNoiseCfg
    except ImportError:
        return None
    buffer = DelayBuffer(min_lag=5, max_lag=9, batch_size=ENVS, device='cpu')
    noise, truth = GaussianNoiseCfg(std=1e-3), torch.randn(ENVS, WIDTH)

    def one_step() -> Any:
        buffer.append(noise.apply(truth))
        return buffer.compute()

    for _ in range(20):
        one_step()
    return one_step


def reset(rounds: int) -> dict[str, Any]:
    """Time a reset of one and of all environments, at the first and at a late episode."""
    pipeline = Pipeline(
        Imu('imu', ImuConfig(type='imu', rate_hz=0.0, **EVERYTHING)),
        RunSetup(num_envs=ENVS, seed=1, dt_ns=STEP_NS),
    )
    late = Pipeline(
        Imu('imu', ImuConfig(type='imu', rate_hz=0.0, **EVERYTHING)),
        RunSetup(num_envs=ENVS, seed=1, dt_ns=STEP_NS, episode=1000),
    )
    truth = np.zeros((ENVS, WIDTH))
    for each in (pipeline, late):
        each.tick(None, 0, truth)
    times_us: dict[str, Any] = in_turns(
        {
            f'{count} at {name}': (lambda each=each, envs=envs: each.reset(envs, STEP_NS))
            for name, each in (('first', pipeline), ('episode 1000', late))
            for count, envs in (('one', [7]), ('all', None))
        },
        rounds,
        repeat=3,
    )
    times_us['late / first'] = max(
        times_us[f'{count} at episode 1000'] / times_us[f'{count} at first']
        for count in ('one', 'all')
    )
    return times_us


def alike(rounds: int) -> dict[str, Any]:
    """Time one IMU, and one of 64 in one pipeline."""
    names = tuple(f'imu_{number}' for number in range(64))
    times_us: dict[str, Any] = in_turns(
        {
            'one': stepping(num_envs=1, **EVERYTHING),
            '64': stepping(num_envs=1, names=names, **EVERYTHING),
        },
        4 * rounds,
        repeat=50,
    )
    times_us['each of 64'] = times_us['64'] / 64
    times_us['ratio'] = times_us['one'] / times_us['each of 64']
    return times_us


def growth(steps: int) -> dict[str, Any]:
    """Return how much more memory a pipeline holds after `steps` more steps."""
    tracemalloc.start()
    one_step = stepping(num_envs=1, **EVERYTHING)
    held = []
    for count in (2000, steps):
        for _ in range(count):
            one_step()
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    return {'steps': steps, 'bytes_held': held, 'growth': held[1] / held[0]}


if __name__ == '__main__':
    run_as_program(run)
