"""The camera of the demo against the IMU: when it locks, and how wrong it is after a minute.

    ./rig python -m bench.image_cue [--quick] [--json FILE]
    ./rig python -m bench.image_cue --wide 100

The rover with camera and IMU alone, in several drives and yards, each with seeds of its own; the
offset of the engine against the true one. Also the time of one pair of images at 160 x 120, and of
a whole VGA frame. `--wide N`: N runs with a camera as most people have it, of which nothing is
declared (a fisheye of 120 degrees, a rolling shutter of 25 ms, 30 frames a second).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.figures import Figure
from rig_common.arrays import Floats
from rig_common.paths import share_dir
from rig_common.times import NS_PER_S
from sensor_rig.inprocess import InProcessRig, open_rig
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.cues.image import ImageCue
from sync_engine.cues.motion import Axis

RUN_S = 60.0
DRIVES: dict[str, tuple[str, str]] = {
    'figure eight': ('figure_eight', '6.0 2.3'),
    'rest, cruise, turn': ('rest_cruise_turn', '6.0 2.3'),
    'small eight': ('figure_eight', '5.2 2.0'),
    'wide eight': ('figure_eight', '7.0 3.0'),
}
"""Name -> driver and size of its course (m), which lead past other things in other bends."""
RUNS = [(drive, seed) for seed in (1, 2, 3) for drive in DRIVES][:10]
SYNC = """    sync:
      reference_sensor_id: camera
      imu_sensor_id: imu
      inputs:
        imu: {collect: true}
        camera_camera_info: {topic: camera/camera_info, type: sensor_msgs/msg/CameraInfo, clock_of: camera}
"""  # noqa: E501

READOUT_S = 0.025
WIDE_CAMERA = f"""        rate_hz: 30.0
        width: 160
        height: 120
        lens: equidistant
        fovy_deg: 90.0
        readout_s: {READOUT_S}
        readout_bands: 8
"""
WIDE_SYNC = """    sync:
      reference_sensor_id: camera
      imu_sensor_id: imu
      inputs:
        imu: {collect: true}
        camera: {focal_px: 0.0, readout_s: 0.0, imu_quat_wxyz: [0.0, 0.0, 0.0, 0.0]}
"""
WIDE_RUN_S = 20.0


def rig_of(folder: Path, drive: str, seed: int, wide: bool = False) -> InProcessRig:
    """Return the demo's rover with its camera and IMU on another drive."""
    driver, course = DRIVES[drive]
    model = (share_dir() / 'worlds' / 'rover_yard.xml').read_text(encoding='utf-8')
    if wide:  # a rolling shutter draws every picture in bands, each for the cost of its facets
        model = model.replace('numslices="18" numstacks="12"', 'numslices="8" numstacks="6"')
    (folder / 'rover_yard.xml').write_text(
        model.replace('data="6.0 2.3"', f'data="{course}"'), encoding='utf-8'
    )
    text = (share_dir() / 'config' / 'demo.yaml').read_text(encoding='utf-8')
    text = text.replace('seed: 7', f'seed: {seed}').replace(
        'driver: figure_eight', f'driver: {driver}'
    )
    for name, following in (('front_lidar', 'camera'), ('wheels', 'gnss')):
        text = re.sub(rf'      {name}:.*?(?=      {following}:)', '', text, flags=re.S)
    text = re.sub(r'      gnss:.*', '', text, flags=re.S)
    if wide:
        plain = r'        rate_hz: 15.0\n.*?        fovy_deg: 60.0\n'
        text = re.sub(plain, WIDE_CAMERA, text, flags=re.S)
    text += WIDE_SYNC if wide else SYNC
    (folder / 'rig.yaml').write_text(text, encoding='utf-8')
    return open_rig(folder / 'rig.yaml')


def run_drive(drive: str, seed: int, run_s: float) -> dict[str, Any]:
    """Return when the camera locked (s) and its error (ms) at the end and over the run."""
    with tempfile.TemporaryDirectory() as folder:
        rig = rig_of(Path(folder), drive, seed)
        clocks = {name: sensor.config.clock for name, sensor in rig.config.make_sensors().items()}
        assert rig.sync is not None
        engine, locked_s, rows = rig.sync.engine, float('inf'), []
        start_ns = None
        for tick in range(round(run_s * 1000)):
            rig.step()
            start_ns = rig.time_ns if start_ns is None else start_ns
            if tick % 500:
                continue
            now_s = (rig.time_ns - start_ns) / NS_PER_S
            true = (
                clocks['camera'].offset_s
                - clocks['imu'].offset_s
                + (clocks['camera'].drift_ppm - clocks['imu'].drift_ppm) * 1e-6 * now_s
            )
            known = engine.offset('camera', to='imu')
            if known.state is OffsetState.LOCKED:
                locked_s = min(locked_s, now_s)
            rows.append((now_s, known.offset_ns / 1e6 - true * 1e3, known.sigma_s * 1e3))
    table = np.array(rows)
    late = table[:, 0] > 20.0
    return {
        'drive': drive,
        'seed': seed,
        'locked_s': locked_s,
        'error_ms': float(table[-1, 1]),
        'sigma_ms': float(table[-1, 2]),
        'inside_2_sigma': float(np.mean(np.abs(table[late, 1]) < 2.0 * table[late, 2])),
    }


def run_wide(seed: int, run_s: float) -> dict[str, Any]:
    """Return the error (ms) at the middle row of a camera of which nothing is declared."""
    drive = list(DRIVES)[seed % 3 if seed % 3 != 1 else 3]  # three yards; the second hardly turns
    with tempfile.TemporaryDirectory() as folder:
        rig = rig_of(Path(folder), drive, seed, wide=True)
        clocks = {name: sensor.config.clock for name, sensor in rig.config.make_sensors().items()}
        assert rig.sync is not None
        engine, start_ns = rig.sync.engine, None
        for _ in range(round(run_s * 1000)):
            rig.step()
            start_ns = rig.time_ns if start_ns is None else start_ns
        lasted_s = (rig.time_ns - start_ns) / NS_PER_S if start_ns is not None else 0.0
        true_s = (
            clocks['camera'].offset_s
            - clocks['imu'].offset_s
            + (clocks['camera'].drift_ppm - clocks['imu'].drift_ppm) * 1e-6 * lasted_s
            - 0.5 * READOUT_S
        )
        known = engine.offset('camera', to='imu')
        status = engine.status().sensors['camera']
        camera = status.camera
        return {
            'drive': drive,
            'seed': seed,
            'rests_on': status.rests_on,
            'state': known.state.value,
            'error_ms': known.offset_ns / 1e6 - true_s * 1e3,
            'sigma_ms': known.sigma_s * 1e3,
            'focal_px': camera.focal_px if camera else None,
            'readout_ms': 1e3 * camera.readout_s if camera and camera.readout_s else None,
            'readout_sigma_ms': 1e3 * camera.readout_sigma_s
            if camera and camera.readout_sigma_s
            else None,
            'bias_ms': 1e3 * engine.config.inputs['camera'].cue_bias_s,
        }


def say_wide(count: int, first: int) -> None:
    """Print the runs and what they come to."""
    rows = []
    for seed in range(first, first + count):
        rows.append(run_wide(seed, WIDE_RUN_S))
        print(rows[-1], flush=True)
    sure = [row for row in rows if row['rests_on'] == 'rotation']
    errors = np.array([row['error_ms'] for row in sure])
    sigmas, biases = (np.array([row[key] for row in sure]) for key in ('sigma_ms', 'bias_ms'))
    known = [row for row in sure if row['readout_ms']]
    readouts = np.array([row['readout_ms'] for row in known]) - 1e3 * READOUT_S
    honest = np.mean((readouts / np.array([row['readout_sigma_ms'] for row in known])) ** 2)
    print(
        f'{len(sure)} of {len(rows)} rest on rotation: median {np.median(np.abs(errors)):.2f} ms, '
        f'NEES {np.mean((errors / sigmas) ** 2):.2f}, without the declared bias of the cue '
        f'{np.mean(errors**2 / (sigmas**2 - biases**2)):.2f}; readout off by '
        f'{np.median(np.abs(readouts)):.2f} ms in the median, {np.abs(readouts).max():.2f} at '
        f'most, {np.mean(readouts):.2f} in the mean, NEES {honest:.2f}'
    )


def frame_ms(count: int = 60) -> float:
    """Return the median processor time of a VGA frame, readout estimate included (ms)."""
    rng = np.random.default_rng(1)
    wide = 128.0 + 10.0 * np.cumsum(rng.normal(0.0, 0.6, (480, 1600)), axis=1)
    cue, spent = ImageCue(), []

    def gyro(stamp_ns: int, times_s: Floats, axis: Axis) -> Floats:
        return 0.1 * np.sin(3.0 * (stamp_ns / 1e9 + times_s)) * axis[1]

    for k in range(count):
        at = round(400.0 + 240.0 * np.sin(0.1 * k))
        gray = np.clip(wide[:, at : at + 640] + rng.normal(0.0, 2.0, (480, 640)), 0, 255)
        values = {'gray': gray.astype(np.uint8), 'fx': 416.0, 'fy': 416.0}
        before = time.process_time()
        cue.feed(1 + k * 33_000_000, values, gyro)
        spent.append(time.process_time() - before)
    return 1e3 * float(np.median(spent[1:]))


def pair_ms(count: int = 60) -> float:
    """Return the median processor time of one pair of images at 160 x 120 (ms)."""
    rng = np.random.default_rng(1)
    wide = 128.0 + 40.0 * np.cumsum(rng.normal(0.0, 0.15, (120, 400)), axis=1)
    wide += 40.0 * np.cumsum(rng.normal(0.0, 0.15, (120, 400)), axis=0)
    cue, spent = ImageCue(), []
    for k in range(count):
        at = round(100.0 + 60.0 * np.sin(0.1 * k))
        gray = np.clip(wide[:, at : at + 160] + rng.normal(0.0, 2.0, (120, 160)), 0, 255)
        before = time.process_time()
        cue.feed(1 + k * 66_000_000, {'gray': gray.astype(np.uint8), 'fx': 104.0, 'fy': 104.0})
        spent.append(time.process_time() - before)
    return 1e3 * float(np.median(spent[1:]))


def run(quick: bool) -> dict[str, Any]:
    """Return a row for every run, and the cost."""
    runs = RUNS[:2] if quick else RUNS
    rows = [run_drive(drive, seed, RUN_S / 2 if quick else RUN_S) for drive, seed in runs]
    return {'rows': rows, 'pair_ms': pair_ms(), 'frame_ms': frame_ms()}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that matter."""
    rows = result['rows']
    errors = [abs(row['error_ms']) for row in rows]
    return [
        Figure(
            'camera of the demo locked after, at most',
            max(row['locked_s'] for row in rows),
            's',
            target=20.0,
            better='lower',
            kind='accuracy',
        ),
        Figure(
            'camera against the IMU, median error at the end',
            float(np.median(errors)),
            'ms',
            target=0.7,
            better='lower',
            kind='accuracy',
            note=f'{len(rows)} runs',
        ),
        Figure(
            'a VGA frame of a camera, processor time',
            result['frame_ms'],
            'ms',
            target=4.0,
            better='lower',
            kind='absolute',
        ),
    ]


def main() -> None:
    """Print the rows; `--json FILE` also writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('--quick', action='store_true', help='two runs of 30 s')
    parser.add_argument('--only', type=int, nargs='*', help='these runs only, by number')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the result there')
    parser.add_argument('--wide', type=int, metavar='N', help='runs of an uncalibrated camera')
    parser.add_argument('--first', type=int, default=0, help='seed of the first of these')
    parser.add_argument('--cost', action='store_true', help='the cost of a frame alone')
    arguments = parser.parse_args()
    if arguments.wide:
        say_wide(arguments.wide, arguments.first)
        return
    if arguments.cost:
        print(f'{frame_ms():.2f} ms of a processor a VGA frame, {pair_ms():.2f} ms a small pair')
        return
    if arguments.only is not None:
        for index in arguments.only:
            print(run_drive(*RUNS[index], RUN_S), flush=True)
        return
    result = run(arguments.quick)
    for row in result['rows']:
        print(row)
    print(f'{result["pair_ms"]:.2f} ms a pair of images, {result["frame_ms"]:.2f} a VGA frame')
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + '\n')


if __name__ == '__main__':
    main()
