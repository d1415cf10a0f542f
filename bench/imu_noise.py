"""Are an IMU's noise parameters what an Allan deviation plot recovers, at any rate?

    ./rig python -m bench.imu_noise [--quick] [--json FILE]

Each parameter runs alone, at two rates, through the whole pipeline; 32 environments of six axes
give 192 independent records, whose scatter gives the 95 % interval of the mean. A ratio of 1 is a
parameter recovered. `per sample` is plain noise with one deviation per sample, what most
simulators offer: its density halves when the rate grows four times.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.command import run_as_program
from bench.figures import Figure
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.sensors.imu import Imu, ImuConfig

ENVS, AXES = 32, 6
RATES_HZ = (50.0, 200.0)
SIZE = 1e-3
CASES: dict[str, dict[str, Any]] = {
    'noise_density': {'noise_density': SIZE},
    'bias_instability': {'bias_instability': SIZE},
    'random_walk': {'random_walk': SIZE},
    'per sample': {},
}


def run(quick: bool) -> dict[str, Any]:
    """Return recovered / configured with its 95 % interval, for each parameter and rate."""
    seconds = 60.0 if quick else 600.0
    report: dict[str, Any] = {'seconds': seconds, 'records': ENVS * AXES}
    for name, errors in CASES.items():
        report[name] = {
            f'{rate:g} Hz': recovered(name, errors, rate, seconds) for rate in RATES_HZ
        }
    return report


def recovered(
    name: str, errors: dict[str, float], rate_hz: float, seconds: float
) -> dict[str, float]:
    """Return what the Allan deviation says of one parameter, in units of what was asked for."""
    start = time.thread_time()
    noise = records(errors, rate_hz, seconds, noise=SIZE if name == 'per sample' else 0.0)
    each = estimate(name, noise, rate_hz) / SIZE
    half = 1.96 * each.std() / np.sqrt(len(each))
    # the root of a mean variance: the deviations themselves are biased low at long times
    ratio = float(np.sqrt((each**2).mean()))
    return {
        'ratio': ratio,
        'from': ratio - float(half),
        'to': ratio + float(half),
        'us_per_sample_and_axis': (time.thread_time() - start) / noise.size * 1e6,
    }


def records(
    errors: dict[str, float], rate_hz: float, seconds: float, noise: float
) -> NDArray[np.float64]:
    """Return [samples, records] of an IMU at perfect rest in perfect weightlessness."""
    config = ImuConfig(type='imu', rate_hz=rate_hz, accel=errors, gyro=errors, noise=noise)
    dt_ns = round(1e9 / rate_hz)
    pipeline = Pipeline(Imu('imu', config), RunSetup(num_envs=ENVS, seed=1, dt_ns=dt_ns))
    truth = np.zeros((ENVS, AXES))
    out = np.empty((round(seconds * rate_hz), ENVS * AXES))
    for k in range(len(out)):
        pipeline.tick(None, k * dt_ns, truth)
        out[k] = pipeline.read(k * dt_ns).values.ravel()
    return out


def estimate(name: str, noise: NDArray[np.float64], rate_hz: float) -> NDArray[np.float64]:
    """Return the parameter of every record, [records]."""
    seconds = len(noise) / rate_hz
    if name == 'bias_instability':
        return allan(noise, rate_hz, seconds / 12.0)
    if name == 'random_walk':
        tau = seconds / 12.0
        return np.asarray(allan(noise, rate_hz, tau) / np.sqrt(tau / 3.0))
    return allan(noise, rate_hz, 1.0)


def allan(noise: NDArray[np.float64], rate_hz: float, tau_s: float) -> NDArray[np.float64]:
    """Return the overlapping Allan deviation at `tau_s` of rate records, [records]."""
    count = round(tau_s * rate_hz)
    angle = np.concatenate([np.zeros((1, noise.shape[1])), np.cumsum(noise, axis=0)]) / rate_hz
    second = angle[2 * count :] - 2.0 * angle[count:-count] + angle[: -2 * count]
    return np.asarray(np.sqrt((second**2).mean(axis=0) / 2.0) / tau_s)


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return how far the recovered parameters are from the configured ones, at the worst rate."""
    figures = []
    for name in ('noise_density', 'bias_instability', 'random_walk'):
        far = [abs(row['ratio'] - 1.0) for row in result[name].values()]
        sure = max((row['to'] - row['from']) / 2.0 for row in result[name].values())
        figures.append(
            Figure(
                f'{name} recovered from its Allan deviation, error',
                100.0 * max(far),
                '%',
                10.0,
                'lower',
                'accuracy',
                note=f'95 % interval +-{100.0 * sure:.1f} %',
            )
        )
    slow, fast = (row['ratio'] for row in result['per sample'].values())
    return [
        *figures,
        Figure(
            'density of plain noise per sample, 50 Hz over 200 Hz',
            slow / fast,
            'x',
            better='lower',
            kind='accuracy',
            note='what the rate does to noise that is not given as a density',
        ),
    ]


if __name__ == '__main__':
    run_as_program(run, quick='a tenth of the time')
