"""Offsets over the motion of real recordings, many draws: engine, plain peer, and the bound.

    ./rig python -m bench.real_motion [FOLDER ...] [--draws N] [--made] [--quick] [--json FILE]

A folder holds recordings as `test/support/real_motion.py` reads them; the orientations must follow
the same IMU, so that the drawn truth is exact. Without a folder the motion is made. The offset,
the drift, the latency, the noise of turns (1 mrad) and of arrivals are drawn; the mounting is not
declared, and is told to the peer. The chance of wander is the default of turns found in a payload.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from support.real_motion import RealHabits, read_recorded, recordings
from support.sync_streams import START_S
from support.trust_streams import Habits

from bench.trust_bound import bounds_s
from bench.trust_peers import PEERS
from rig_common.arrays import Floats
from sensor_rig.trust.replay import Track, engine_track

AT_S = (15.0, 30.0, 60.0)
LOCK_S = 0.002
PEER = 'three axes, pieces of a second'


def draws(folders: list[Path], count: int) -> Iterator[Habits]:
    """Yield the streams of every draw; those of a recording begin anywhere in its first third."""
    found = [each for folder in folders for each in recordings(folder)]
    for draw in range(count):
        rng = np.random.default_rng([draw, 5])
        drift = float(rng.normal(0.0, 3e-5))
        declared_off_s = float(np.clip(rng.normal(0.0, 0.01), -0.019, 0.05))
        if not found:
            yield Habits(draw % 8, draw, 61.0, drift=drift, declared_off_s=declared_off_s)
            continue
        folder = found[draw % len(found)]
        whole_s = float(read_recorded(folder).poses_s[-1])
        start_s = float(rng.uniform(0.0, min(whole_s / 3.0, whole_s - 65.0)))
        yield RealHabits.of(
            folder, start_s, noise_seed=draw, duration_s=1e3, drift=drift,
            declared_off_s=declared_off_s,
        )  # fmt: skip


def errors_s(habits: Habits, found: Track) -> tuple[Floats, Floats]:
    """Return times after the start and errors (s), by message."""
    times = found.arrival_ns / 1e9 - START_S
    return times, np.asarray(found.offset_ns / 1e9 - habits.true_offset_s(times))


def measure(habits: Habits, estimator: Callable[..., Track] = engine_track) -> dict[str, Any]:
    """Return what one draw shows at `AT_S` and at the end."""
    streams = habits.streams()
    found, peer = estimator(streams), PEERS[PEER](streams)
    times, wrong = errors_s(habits, found)
    peer_times, peer_wrong = errors_s(habits, peer)
    captures, bound = bounds_s(habits)
    index = np.minimum(np.searchsorted(times, [*AT_S, np.inf]), len(times) - 1)
    peer_index = np.minimum(np.searchsorted(peer_times, [*AT_S, np.inf]), len(peer_times) - 1)
    of_bound = np.minimum(np.searchsorted(captures, [*AT_S, np.inf]), len(captures) - 1)
    late = times > 20.0
    scaled = wrong / found.sigma_s
    return {
        'error_s': wrong[index].tolist(),
        'sigma_s': found.sigma_s[index].tolist(),
        'peer_error_s': peer_wrong[peer_index].tolist(),
        'bound_s': bound[of_bound].tolist(),
        'late_ms': [_ranks(wrong[late]), _ranks(peer_wrong[peer_times > 20.0])],
        'inside': float(np.mean(np.abs(scaled[times > 5.0]) < 2.0)),
        'bad': float(np.mean((np.abs(scaled) > 3.0) & found.locked)),
        'worst': float(np.max(np.abs(scaled), where=found.locked, initial=0.0)),
        'lock_s': float(times[np.argmax(found.locked)]) if found.locked.any() else None,
        'bound_lock_s': float(captures[np.argmax(bound < LOCK_S)]) if bound.min() < LOCK_S
        else None,
        'steps': found.clock_steps,
    }  # fmt: skip


def _ranks(wrong: Floats) -> list[float]:
    return np.percentile(1e3 * np.abs(wrong), [50.0, 95.0]).tolist()


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures of many draws; those with `se` have their standard error behind."""
    table = {key: np.array([row[key] for row in rows])
             for key in ('error_s', 'sigma_s', 'peer_error_s', 'bound_s')}  # fmt: skip
    nees = (table['error_s'] / table['sigma_s']) ** 2
    over = (table['error_s'] / table['bound_s']) ** 2
    peer = (table['peer_error_s'] / table['bound_s']) ** 2
    waits = [row['lock_s'] / row['bound_lock_s'] for row in rows
             if row['lock_s'] and row['bound_lock_s']]  # fmt: skip
    return {
        'draws': len(rows),
        'at_s': [*AT_S, 'end'],
        'nees': nees.mean(axis=0).round(2).tolist(),
        'inside_2_sigma_pct': round(100.0 * float(np.mean([row['inside'] for row in rows])), 1),
        'locked_beyond_3_sigma_pct': 100.0 * float(np.mean([row['bad'] for row in rows])),
        'largest_locked_sigma': max(row['worst'] for row in rows),
        'rms_over_bound': np.sqrt(over.mean(axis=0)).round(3).tolist(),
        'rms_over_bound_se': _se(over),
        'peer_over_bound': np.sqrt(peer.mean(axis=0)).round(3).tolist(),
        'bound_ms': (1e3 * np.sqrt((table['bound_s'] ** 2).mean(axis=0))).round(3).tolist(),
        'sigma_ms': (1e3 * table['sigma_s'].mean(axis=0)).round(3).tolist(),
        'late_median_p95_ms': np.mean([row['late_ms'] for row in rows], axis=0).round(3).tolist(),
        'lock_s': _spread([row['lock_s'] for row in rows]),
        'bound_lock_s': _spread([row['bound_lock_s'] for row in rows]),
        'lock_over_bound': _spread(waits),
        'false_steps': sum(row['steps'] for row in rows),
    }


def _se(over: Floats) -> list[float]:
    rms = np.sqrt(over.mean(axis=0))
    return np.asarray(over.std(axis=0) / np.sqrt(len(over)) / (2.0 * rms)).round(3).tolist()


def _spread(values: list[float | None]) -> list[float | int]:
    """Return median, 90th percentile and largest, and how many there are."""
    known = [value for value in values if value is not None]
    if not known:
        return [0]
    return [*np.percentile(known, [50.0, 90.0, 100.0]).round(2).tolist(), len(known)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').partition('\n')[0])
    parser.add_argument('folders', nargs='*', type=Path, help='folders of recordings')
    parser.add_argument('--draws', type=int, default=200)
    parser.add_argument('--quick', action='store_true', help='12 draws')
    parser.add_argument('--json', type=Path, metavar='FILE')
    given = parser.parse_args()
    count = 12 if given.quick else given.draws
    result = summary([measure(habits) for habits in draws(given.folders, count)])
    for key, value in result.items():
        print(f'{key:28} {value}')
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + '\n')


if __name__ == '__main__':
    main()
