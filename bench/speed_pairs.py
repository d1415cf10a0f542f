"""Offsets by speed: made drives without any turns compared, known offsets.

    ./rig python -m bench.speed_pairs [--runs N] [--seed N] [--json FILE] [PAIR ...]

A machine drives for 120 s at 0 to 1.5 m/s with turns, in a way drawn for each run. Its wheels
(25 Hz) are too large by a share (3 %), lose their heading (1 mrad per root second, and 2 % of each
turn) and slip; a GNSS receiver tells places at 5 Hz. Of each pair: error of the offset at the end,
and NEES.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rig_common.arrays import Floats
from sync_engine.config import load_config
from sync_engine.engine import SyncEngine

RUN_S, START_S, STEP_S = 120.0, 1000.0, 0.005


class Pair(NamedTuple):
    """Two streams; the first one is the reference."""

    reference: str
    other: str
    noise: float
    """Of a place (m) or of a velocity (m/s) of the other."""
    turns: bool = True
    wanted_ms: float = float('inf')


PAIRS = {
    'gnss 2 cm': Pair('wheels', 'fix', 0.02, wanted_ms=10.0),
    'gnss 40 cm': Pair('wheels', 'fix', 0.4, wanted_ms=60.0),
    'gnss doppler': Pair('wheels', 'doppler', 0.05),
    'wheel speed, gnss 2 cm': Pair('speed', 'fix', 0.02),
    'straight, gnss 2 cm': Pair('wheels', 'fix', 0.02, turns=False),
    'straight, wheel speed, gnss 2 cm': Pair('speed', 'fix', 0.02, turns=False),
    'straight, doppler': Pair('speed', 'doppler', 0.05, turns=False),
}


class Drive:
    """Place, heading and speed of a machine over time."""

    def __init__(self, rng: np.random.Generator, *, turns: bool, constant: bool = False) -> None:
        self.t_s = np.arange(-2.0, RUN_S + 2.0, STEP_S)
        knots = np.arange(-5.0, RUN_S + 10.0, 4.0)
        speeds = np.clip(rng.normal(0.8, 0.6, len(knots)), 0.0, 1.5)
        rates = rng.normal(0.0, 0.35, len(knots)) * turns
        self.speed = np.full(len(self.t_s), 1.0) if constant else _smooth(self.t_s, knots, speeds)
        self.turn_rate = _smooth(self.t_s, knots, rates)
        self.heading = rng.uniform(-3.0, 3.0) + np.cumsum(self.turn_rate) * STEP_S
        steps = self.speed * np.exp(1j * self.heading) * STEP_S
        self.place = np.cumsum(steps)

    def at(self, times_s: Floats, values: Floats) -> Floats:
        """Return real values at any time."""
        return np.interp(times_s, self.t_s, values)


def _smooth(times_s: Floats, knots_s: Floats, values: Floats) -> Floats:
    rough = np.interp(times_s, knots_s, values)
    kernel = np.hanning(int(1.5 / STEP_S))
    return np.convolve(np.pad(rough, len(kernel) // 2, 'edge'), kernel / kernel.sum(), 'same')[
        len(kernel) // 2 : len(kernel) // 2 + len(times_s)
    ]


def inputs(kind: str, drive: Drive, noise: float, rng: np.random.Generator) -> list[Any]:
    """Return (time, values) of the messages of a sensor."""
    if kind in ('wheels', 'speed'):
        times = np.arange(0.0, RUN_S, 0.04)
        own = 1.0 + rng.normal(0.0, 0.03)
        speed = own * drive.at(times, drive.speed) * (1.0 + rng.normal(0.0, 0.02, len(times)))
        speed += rng.normal(0.0, 0.005, len(times)) * (speed > 0.01)
        if kind == 'speed':
            return [(t, _velocity(v, 0.0)) for t, v in zip(times, speed, strict=True)]
        turned = np.diff(drive.at(times, drive.heading), prepend=0.0)
        turned[0] = 0.0
        turned = turned * (1.0 + rng.normal(0.0, 0.02)) + rng.normal(
            0.0, 1e-3 * 0.04**0.5, len(times)
        )
        heading = np.cumsum(turned) - 0.5 * turned  # in the middle of each step
        way = drive.at(times, np.cumsum(drive.speed) * STEP_S)
        lengths = np.diff(way, prepend=way[0]) * own * (1.0 + rng.normal(0.0, 0.02, len(times)))
        places = np.cumsum(lengths * np.exp(1j * heading))
        return [
            (t, {'position': (p.real, p.imag, 0.0)}) for t, p in zip(times, places, strict=True)
        ]
    times = np.arange(0.0, RUN_S, 0.2) + rng.uniform(0.0, 0.2)
    if kind == 'doppler':
        speed = drive.at(times, drive.speed)
        heading = drive.at(times, drive.heading)
        east, north = (
            speed * each(heading) + rng.normal(0.0, noise, len(times)) for each in (np.cos, np.sin)
        )
        return [
            (t, {'velocity': np.array([e, n, 0.0]), 'turn_rate': np.zeros(3)})
            for t, e, n in zip(times, east, north, strict=True)
        ]
    drawn = rng.normal(0.0, noise, (len(times), 2))
    places = np.stack([drive.at(times, p) for p in (drive.place.real, drive.place.imag)], axis=1)
    heights = rng.normal(0.0, 2.0 * noise, len(times))
    return [
        (t, {'position': (*place, height)})
        for t, place, height in zip(times, (places + drawn).tolist(), heights, strict=True)
    ]


def _velocity(forward: float, turn_rate: float) -> dict[str, Floats]:
    return {
        'velocity': np.array([forward, 0.0, 0.0]),
        'turn_rate': np.array([0.0, 0.0, turn_rate]),
    }


def run_pair(name: str, seed: int) -> dict[str, Any]:
    """Return error and sigma (ms) of one run."""
    pair = PAIRS[name]
    rng = np.random.default_rng([seed, len(name)])
    drive = Drive(rng, turns=pair.turns)
    section = {
        'inputs': {
            each: {
                'latency_s': 0.1,
                'latency_sigma_s': 0.1,
                'cue': 'speed',
                'cue_wander': 0.02,
            }
            for each in ('reference', 'other')
        },
        'reference_sensor_id': 'reference',
        'motion_reference': 'reference',
    }
    engine = SyncEngine(
        load_config(section), readers=dict.fromkeys(('reference', 'other'), lambda values: values)
    )
    offsets_s = {each: float(rng.uniform(-0.15, 0.15)) for each in ('reference', 'other')}
    events = []
    for sensor, kind in (('reference', pair.reference), ('other', pair.other)):
        arrival_s = 0.0
        for t_s, values in inputs(kind, drive, pair.noise, rng):
            arrival_s = max(arrival_s + 1e-4, t_s + 0.1 + rng.exponential(0.01))
            events.append((arrival_s, sensor, t_s, values))
    for arrival_s, sensor, t_s, values in sorted(events, key=lambda event: event[0]):
        stamp_ns = round((START_S + t_s + offsets_s[sensor]) * 1e9)
        engine.push(sensor, stamp_ns, values, round((START_S + arrival_s) * 1e9))
        while engine.run_cues():
            pass
    found = engine.offset('other', to='reference')
    status = engine.status().sensors['other']
    return {
        'pair': name,
        'seed': seed,
        'rests_on': status.rests_on,
        'refusal': status.motion_refusal,
        'failed': engine.status().cue_failures,
        'fits': status.motion_fixes,
        'scale': status.scale,
        'error_ms': found.offset_ns / 1e6 - 1e3 * (offsets_s['other'] - offsets_s['reference']),
        'sigma_ms': found.sigma_s * 1e3,
    }


def main() -> None:
    """Print what the runs come to; `--json FILE` also writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('pairs', nargs='*', metavar='PAIR', help=f'of {", ".join(PAIRS)}')
    parser.add_argument('--runs', type=int, default=100, help='runs of each pair')
    parser.add_argument('--seed', type=int, default=0, help='seed of the first run')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the result there')
    arguments = parser.parse_args()
    rows = []
    for name in arguments.pairs or PAIRS:
        seeds = range(arguments.seed, arguments.seed + arguments.runs)
        mine = [run_pair(name, seed) for seed in seeds]
        rows += mine
        sure = [row for row in mine if row['rests_on'] == 'speed']
        errors = np.array([row['error_ms'] for row in sure])
        sigmas = np.array([row['sigma_ms'] for row in sure])
        print(
            f'{name}: {len(sure)} of {len(mine)} rest on speed; error median '
            f'{np.median(np.abs(errors)):.2f} ms, rms {np.sqrt(np.mean(errors**2)):.2f}, most '
            f'{np.max(np.abs(errors)):.1f} ms (wanted {PAIRS[name].wanted_ms:g}), mean '
            f'{np.mean(errors):+.2f}, sigma {np.median(sigmas):.2f} ms, NEES '
            f'{np.mean((errors / sigmas) ** 2):.2f}',
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
