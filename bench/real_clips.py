"""The image cue on real clips with a gyro beside the pictures, against a plain peer.

    ./rig python -m bench.real_clips FOLDER [--json FILE]

FOLDER holds `.npz` files: `frames` [k, h, w] (gray), `ts` [k] (s), `gyro` [n, 4] (s, rad/s).
Nothing else is known of a camera: no mounting, no focal length, no shutter; arrivals are invented,
with three latencies. Of each clip: what the offset rests on, the offset with its sigma, with known
changes put into the stamps, of both halves, and what a plain least-squares fit says (three axes,
each with free gains on the gyro's, best lag of all).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sync_engine.config import load_config
from sync_engine.cues.image import ImageCue
from sync_engine.engine import SyncEngine

Array = NDArray[Any]
START_S = 1000.0
CHANGES_S = (0.037, -0.12, 0.25)
LATENCIES_S = (0.03, 0.06, 0.11)
LAGS_S = np.arange(-0.3, 0.3, 0.001)


class Clip(NamedTuple):
    """Pictures and gyro of one clip."""

    frames: Array
    times_s: Array
    gyro: Array

    def part(self, first_s: float, last_s: float) -> Clip:
        """Return the pictures of a span; the gyro stays whole."""
        kept = (self.times_s >= first_s) & (self.times_s < last_s)
        return self._replace(frames=self.frames[kept], times_s=self.times_s[kept])


def run_engine(clip: Clip, change_s: float = 0.0, latency_s: float = 0.03) -> dict[str, Any]:
    """Return what the engine says of the camera after the clip."""
    image, imu = 'sensor_msgs/msg/Image', 'sensor_msgs/msg/Imu'
    camera = {'type': image, 'cue': 'image', 'latency_s': 0.03, 'latency_sigma_s': 0.1}
    section = {
        'inputs': {
            'camera': {'topic': 'image', 'cue_wander': 0.1, **camera},
            'imu': {'topic': 'imu', 'type': imu, 'collect': True, 'latency_s': 0.002,
                    'latency_sigma_s': 0.002},
        },
        'reference_sensor_id': 'camera',
        'imu_sensor_id': 'imu',
    }  # fmt: skip
    engine = SyncEngine(
        load_config(section), readers={'camera': lambda k: {'gray': clip.frames[k]}}
    )
    rng = np.random.default_rng(1)
    events = [
        (time_s + latency_s + rng.exponential(0.004), 'camera', time_s + change_s, k)
        for k, time_s in enumerate(clip.times_s)
    ]
    events += [
        (time_s + 0.002 + rng.exponential(0.0005), 'imu', time_s, k)
        for k, time_s in enumerate(clip.gyro[:, 0])
    ]
    for arrival_s, name, stamp_s, k in sorted(events):
        stamp_ns, arrival_ns = (round((START_S + each) * 1e9) for each in (stamp_s, arrival_s))
        if arrival_ns < 0:
            continue
        engine.push(name, stamp_ns, k, arrival_ns)
        if name == 'imu':
            engine.push_imu(stamp_ns, clip.gyro[k, 1:], (0.0, 0.0, 9.8))
        while engine.run_cues():
            pass
    status = engine.status().sensors['camera']
    offset = engine.offset('camera', to='imu')
    found = status.camera
    return {
        'rests_on': status.rests_on,
        'offset_ms': offset.offset_ns / 1e6,
        'sigma_ms': offset.sigma_s * 1e3,
        'refusal': status.motion_refusal,
        'focal_px': None if found is None else found.focal_px,
        'readout_ms': None if found is None or found.readout_s is None else found.readout_s * 1e3,
        'readout_sigma_ms': None
        if found is None or found.readout_sigma_s is None
        else found.readout_sigma_s * 1e3,
    }


def plain_fit(clip: Clip) -> dict[str, float]:
    """Return lag, its sigma and R2 of a least-squares fit with free gains, all axes together."""
    cue, rows = ImageCue(), []
    for time_s, gray in zip(clip.times_s, clip.frames, strict=True):
        found = cue.feed(
            round((START_S + time_s) * 1e9), {'gray': gray, 'fx': 0.0, 'fy': 0.0, 'readout_s': 0.0}
        )
        if found is not None:
            ends = (found.stamp_from_ns / 1e9 - START_S, found.stamp_to_ns / 1e9 - START_S)
            rows.append((*ends, *found.values_rad))
    table = np.array(rows)
    time_s, rate = clip.gyro[:, 0], clip.gyro[:, 1:]
    steps = 0.5 * (rate[1:] + rate[:-1]) * np.diff(time_s)[:, None]
    angle = np.vstack([np.zeros(3), np.cumsum(steps, axis=0)])
    turns = table[:, 2:] - table[:, 2:].mean(axis=0)
    left = []
    for lag_s in LAGS_S:
        seen = [
            np.interp(table[:, 1] - lag_s, time_s, angle[:, k])
            - np.interp(table[:, 0] - lag_s, time_s, angle[:, k])
            for k in range(3)
        ]
        design = np.column_stack([*seen, np.ones(len(table))])
        residual = turns - design @ np.linalg.lstsq(design, turns, rcond=None)[0]
        left.append((residual**2).sum(axis=0))
    sums = np.array(left)
    noise = sums.min(axis=0) / len(table)
    chi = (sums / noise).sum(axis=1)
    best = int(np.argmin(chi))
    near = np.abs(np.arange(len(LAGS_S)) - best) <= 8
    curvature = np.polyfit(LAGS_S[near], chi[near], 2)[0]
    sigma_s = 1.0 / np.sqrt(curvature) if curvature > 0.0 else np.inf
    explained = 1.0 - sums[best].sum() / (turns**2).sum()
    return {'lag_ms': 1e3 * LAGS_S[best], 'sigma_ms': 1e3 * sigma_s, 'r2': float(explained)}


def run_clip(path: Path) -> dict[str, Any]:
    """Return everything of one clip."""
    data = np.load(path)
    clip = Clip(data['frames'], data['ts'], data['gyro'])
    middle_s = 0.5 * float(clip.times_s[0] + clip.times_s[-1])
    return {
        'clip': path.stem,
        'engine': run_engine(clip),
        'latencies': {f'{1e3 * each:.0f}': run_engine(clip, 0.0, each) for each in LATENCIES_S},
        'changes': {f'{1e3 * each:+.0f}': run_engine(clip, each) for each in CHANGES_S},
        'halves': [run_engine(clip.part(-1e9, middle_s)), run_engine(clip.part(middle_s, 1e9))],
        'peer': plain_fit(clip),
    }


def sentence(found: dict[str, Any]) -> str:
    """Return one run in words."""
    text = f'{found["rests_on"]}: {found["offset_ms"]:.2f} +- {found["sigma_ms"]:.2f} ms'
    if found['refusal']:
        return f'{text}; {found["refusal"]}'
    if found['readout_ms'] is not None:
        text += f', readout {found["readout_ms"]:.1f} +- {found["readout_sigma_ms"]:.1f} ms'
    return f'{text}, focal length {found["focal_px"]:.0f} px' if found['focal_px'] else text


def main() -> None:
    """Print every clip; `--json FILE` also writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('folder', type=Path, help='folder of .npz files')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the result there')
    arguments = parser.parse_args()
    rows = []
    for path in sorted(arguments.folder.glob('*.npz')):
        row = run_clip(path)
        rows.append(row)
        print(f'{row["clip"]}\n  {sentence(row["engine"])}', flush=True)
        for latency, found in row['latencies'].items():
            print(f'  arrivals after {latency} ms: {sentence(found)}')
        for change, found in row['changes'].items():
            moved = found['offset_ms'] - row['engine']['offset_ms']
            print(f'  {change} ms put in: moved by {moved:.2f} ms ({found["rests_on"]})')
        for half in row['halves']:
            print(f'  half: {sentence(half)}')
        peer = row['peer']
        print(
            f'  plain fit: {peer["lag_ms"]:.0f} +- {peer["sigma_ms"]:.1f} ms, R2 {peer["r2"]:.3f}',
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
