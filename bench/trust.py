"""The scorer of `rig trust` on streams with a truth: the engine beside its peers and the bound.

    ./rig python -m bench.trust [--quick] [--json FILE]

Errors in milliseconds, against the true clock. The bound is Cramer and Rao's for the model that
the filter has (offset, skew prior, wander, latency prior), with the motion and the noise that were
drawn; the gyro's bias and the mounting are known to it. Skews and latencies are drawn from their
priors, one for each draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from support.sync_streams import START_S
from support.trust_streams import IMU, SENSOR, Habits

from bench.command import Result, run_as_program
from bench.figures import Figure
from bench.trust_peers import PEERS
from rig_common.arrays import Floats
from sensor_rig.trust.replay import Track, engine_track
from sensor_rig.trust.report import verdict
from sensor_rig.trust.scoring import score
from sync_engine.cues.turn_rows import GYRO_DENSITY

LATE_S = 20.0
DRAWS, QUICK_DRAWS = 100, 12
DRAW_S = 30.0


def bound_s(habits: Habits) -> float:
    """Return the least sigma of the offset at the end that any estimate can have (s)."""
    config = habits.streams().config
    given, walk = config.inputs[SENSOR], config.adakf
    p = np.diag([given.latency_sigma_s**2 + 1e-6, walk.skew_sigma**2, given.latency_sigma_s**2])
    p[0, 2] = p[2, 0] = given.latency_sigma_s**2
    captures = habits.captures_s()
    rates = habits.motion().rate(captures)
    slopes = np.sum(np.diff(rates, axis=0) ** 2, axis=1)
    noise = habits.turn_sigma_rad**2 + GYRO_DENSITY**2 * np.diff(captures)
    block_s, last, since = 0.0, captures[0], 0
    for k, time in enumerate(captures[1:]):
        dt, last = time - last, time
        f = np.eye(3)
        f[0, 1] = dt
        p = (
            f @ p @ f.T
            + np.diag([walk.offset_walk_s**2, walk.skew_walk**2, walk.latency_walk_s**2]) * dt
        )
        p = _told(p, np.array([1.0, 0.0, 0.0]), noise[k] / max(slopes[k], 1e-12))
        block_s, since = block_s + dt, since + 1
        if block_s >= walk.block_s:
            p = _told(p, np.array([1.0, 0.0, -1.0]), (habits.jitter_s / since) ** 2)
            block_s, since = 0.0, 0
    return float(np.sqrt(p[0, 0]))


def _told(p: Floats, h: Floats, variance: float) -> Floats:
    gain = p @ h / (h @ p @ h + variance)
    return np.asarray(p - np.outer(gain, h @ p))


def errors_ms(habits: Habits, found: Track) -> Floats:
    """Return the error at every message of the sensor after the first seconds (ms)."""
    times = found.arrival_ns / 1e9 - START_S
    wrong = found.offset_ns / 1e9 - habits.true_offset_s(times)
    return np.asarray(1e3 * wrong[times > LATE_S])


def _draws(count: int) -> dict[str, Any]:
    """Return rms errors of many noise draws over one motion, beside the bound."""
    ends, sigmas, bounds = [], [], []
    for draw in track(range(count), description='noise draws', transient=True):
        rng = np.random.default_rng([draw, 5])
        habits = Habits(
            seed=draw % 4,
            noise_seed=draw,
            duration_s=DRAW_S,
            drift=float(rng.normal(0.0, 3e-5)),
            declared_off_s=float(np.clip(rng.normal(0.0, 0.01), -0.019, 0.05)),
        )
        found = engine_track(habits.streams())
        last_s = found.arrival_ns[-1] / 1e9 - START_S
        ends.append(found.offset_ns[-1] / 1e9 - float(habits.true_offset_s(np.array(last_s))))
        sigmas.append(float(found.sigma_s[-1]))
        bounds.append(bound_s(habits))
    wrong, claimed, least = np.array(ends), np.array(sigmas), np.array(bounds)
    return {
        'draws': count,
        'rms_ms': 1e3 * float(np.sqrt(np.mean(wrong**2))),
        'mean_ms': 1e3 * float(np.mean(wrong)),
        'bound_ms': 1e3 * float(np.sqrt(np.mean(least**2))),
        'ratio': float(np.sqrt(np.mean((wrong / least) ** 2))),
        'nees': float(np.mean((wrong / claimed) ** 2)),
    }


def run(quick: bool) -> dict[str, Any]:
    """Return the rows of the peers, the draws against the bound, and the verdicts."""
    seeds = range(2 if quick else 6)
    everyone = {'engine': engine_track, **PEERS}
    errors: dict[str, list[Floats]] = {name: [] for name in everyone}
    verdicts = []
    for seed in track(seeds, description='recordings', transient=True):
        habits = Habits(seed)
        streams = habits.streams()
        for name, estimator in everyone.items():
            errors[name].append(np.abs(errors_ms(habits, estimator(streams))))
        if seed < 2:
            found = score(streams, engine_track)
            verdicts.append(
                {
                    'case': f'recording {seed}',
                    'holds': found.holds,
                    'wanted': True,
                    'verdict': verdict(found),
                }
            )
    wandering = score(Habits(1, wander_s=0.006, duration_s=80.0).streams(), engine_track)
    verdicts.append(
        {
            'case': 'clock that wanders by 6 ms',
            'holds': wandering.holds,
            'wanted': False,
            'verdict': verdict(wandering),
        }
    )
    rows = []
    for name, parts in errors.items():
        values = np.concatenate(parts)
        rows.append(
            {
                'estimator': name,
                'median_ms': float(np.median(values)),
                'p95_ms': float(np.percentile(values, 95)),
            }
        )
    return {'rows': rows, 'draws': _draws(QUICK_DRAWS if quick else DRAWS), 'verdicts': verdicts}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that matter."""
    rows = {row['estimator']: row for row in result['rows']}
    draws = result['draws']
    right = sum(each['holds'] == each['wanted'] for each in result['verdicts'])
    peers = [row['median_ms'] for name, row in rows.items() if name != 'engine']
    return [
        Figure(
            'rms error over the Cramer-Rao bound',
            draws['ratio'],
            'x',
            target=1.2,
            better='lower',
            kind='accuracy',
            note=f'{draws["draws"]} noise draws',
        ),
        Figure('NEES of the draws', draws['nees'], kind='accuracy', target=1.3, better='lower'),
        Figure(
            'median error of the engine',
            rows['engine']['median_ms'],
            'ms',
            kind='accuracy',
            better='lower',
        ),
        Figure(
            'median error of the best peer over the engine',
            min(peers) / rows['engine']['median_ms'],
            'x',
            kind='accuracy',
            note='three-axis peers are told the mounting',
        ),
        Figure(
            'verdicts that are right', right / len(result['verdicts']), kind='accuracy', target=1.0
        ),
    ]


def show(result: Result) -> None:
    """Print the result."""
    table = Table('estimator', 'median (ms)', 'p95 (ms)', title=f'{SENSOR} against {IMU}')
    for row in result['rows']:
        table.add_row(row['estimator'], f'{row["median_ms"]:.3f}', f'{row["p95_ms"]:.3f}')
    console = Console()
    console.print(table)
    console.print(result['draws'])
    for each in result['verdicts']:
        console.print(f'{each["case"]}: {each["verdict"]}')


if __name__ == '__main__':
    run_as_program(run, show, quick='two recordings, 12 draws')
