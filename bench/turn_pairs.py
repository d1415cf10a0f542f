"""Offsets between two streams without an IMU: made turns with drawn noise, known offsets.

    ./rig python -m bench.turn_pairs [--runs N] [--json FILE]

A camera (30 Hz, 1.1 mrad a turn, as measured in the yard) against a planar LiDAR (10 Hz, 0.1 mrad
a turn) on a rover that also wobbles; a wrist camera against the joint states (100 Hz, 0.1 mrad) of
an arm. Mountings are not known. Of each: error of the offset after 40 s, and NEES.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import rotation_vector, wxyz_from_matrix
from sync_engine.config import load_config
from sync_engine.cues.mounting import turned_by
from sync_engine.engine import SyncEngine

RUN_S, START_S = 40.0, 1000.0
CAMERA_RAD = 1.1e-3
PAIRS = {'camera against LiDAR': 3.0, 'wrist camera against joints': 5.0}
"""Name -> the median error that is wanted (ms)."""


class Motion:
    """Attitudes of a body: each angle a sum of slow waves."""

    def __init__(self, rng: np.random.Generator, sizes: tuple[float, float, float]) -> None:
        self._sizes = np.array(sizes)[:, None] * rng.uniform(0.4, 1.0, (3, 4))
        self._rates = rng.uniform(0.3, 3.0, (3, 4))
        self._phases = rng.uniform(0.0, 2.0 * np.pi, (3, 4))

    def attitude(self, t_s: float) -> Floats:
        """Return the rotation matrix [3, 3] from the body to the world."""
        angles = (self._sizes * np.sin(self._rates * t_s + self._phases)).sum(axis=1)
        roll, pitch, yaw = (
            turned_by(angle * axis) for angle, axis in zip(angles, np.eye(3), strict=True)
        )
        return np.asarray(yaw @ pitch @ roll)


def turn_between(one: Floats, other: Floats) -> Floats:
    """Return the rotation vector [3] (rad) in the body's frame."""
    ends = [np.roll(np.array(wxyz_from_matrix(each)), -1) for each in (one, other)]
    return rotation_vector(ends[0], ends[1])


def run_pair(name: str, seed: int) -> dict[str, Any]:
    """Return error and sigma (ms) of one run."""
    rng = np.random.default_rng(seed)
    on_arm = name.startswith('wrist')
    motion = Motion(rng, (0.3, 0.3, 0.4) if on_arm else (0.006, 0.01, 0.6))
    camera_mount = turned_by(rng.normal(0.0, 1.0, 3))
    rates_hz = {'camera': 30.0, 'other': 100.0 if on_arm else 10.0}
    offsets_s = {each: float(rng.uniform(-0.1, 0.1)) for each in rates_hz}
    plain = {'latency_s': 0.02, 'latency_sigma_s': 0.05, 'cue_wander': 0.02}
    section = {
        'inputs': {
            'camera': {**plain, 'cue': 'image'},
            'other': {**plain, 'cue': 'odometry' if on_arm else 'scan'},
        },
        'reference_sensor_id': 'camera',
    }
    engine = SyncEngine(load_config(section))
    events = []
    for sensor, rate_hz in rates_hz.items():
        arrival_s = 0.0  # messages of one stream come in order
        for t_s in np.arange(0.0, RUN_S, 1.0 / rate_hz):
            arrival_s = max(arrival_s + 1e-4, t_s + 0.02 + rng.exponential(0.003))
            events.append((arrival_s, sensor, t_s))
    last: dict[str, tuple[int, Floats]] = {}
    for arrival_s, sensor, t_s in sorted(events):
        stamp_ns = round((START_S + t_s + offsets_s[sensor]) * 1e9)
        engine.push(sensor, stamp_ns, None, round((START_S + arrival_s) * 1e9))
        attitude = motion.attitude(t_s)
        if sensor in last:
            before_ns, before = last[sensor]
            turn = turn_between(before, attitude)
            if sensor == 'camera':
                seen = camera_mount.T @ turn + rng.normal(0.0, CAMERA_RAD, 3)
                engine.push_rotation(sensor, before_ns, stamp_ns, seen, None, CAMERA_RAD**2)
            elif on_arm:
                seen = turn + rng.normal(0.0, 1e-4, 3)
                engine.push_rotation(sensor, before_ns, stamp_ns, seen, None, 1e-8)
            else:
                yaw = float(turn[2]) + rng.normal(0.0, 1e-4)
                engine.push_rotation(sensor, before_ns, stamp_ns, yaw, (0.0, 0.0, 1.0), 1e-8)
        last[sensor] = stamp_ns, attitude
        while engine.run_cues():
            pass
    found = engine.offset('camera', to='other')
    true_ms = 1e3 * (offsets_s['camera'] - offsets_s['other'])
    status = engine.status()
    return {
        'pair': name,
        'seed': seed,
        'reference': status.motion_reference,
        'rests_on': status.sensors['camera'].rests_on,
        'error_ms': found.offset_ns / 1e6 - true_ms,
        'sigma_ms': found.sigma_s * 1e3,
    }


def main() -> None:
    """Print what the runs come to; `--json FILE` also writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('--runs', type=int, default=100, help='runs of each pair')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the result there')
    arguments = parser.parse_args()
    rows = []
    for name, wanted_ms in PAIRS.items():
        mine = [run_pair(name, seed) for seed in range(arguments.runs)]
        rows += mine
        sure = [row for row in mine if row['rests_on'] == 'rotation']
        errors = np.array([row['error_ms'] for row in sure])
        sigmas = np.array([row['sigma_ms'] for row in sure])
        print(
            f'{name}: {len(sure)} of {len(mine)} rest on rotation; median error '
            f'{np.median(np.abs(errors)):.2f} ms (wanted {wanted_ms:g}), sigma '
            f'{np.median(sigmas):.2f} ms, NEES {np.mean((errors / sigmas) ** 2):.2f}',
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
