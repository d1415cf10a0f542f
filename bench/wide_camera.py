"""A camera as most people have it, in made yards: offset at the middle row, and readout time.

    ./rig python -m bench.wide_camera [--runs 100] [--first SEED] [--json FILE]

An uncalibrated fisheye of 120 degrees, 30 frames a second, a rolling shutter of 25 ms: nothing of
it is declared, nor how it is mounted. It drives in figure eights, so it turns about one axis, with
small bumps about the others. The pictures are made row by row by looking up rays on ground, walls
and panels, in three sizes of yard; every run has a texture, panels, a drive and clocks of its own.
`bench.image_cue --wide` has the same camera in the simulated yard, at five times the cost.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from rig_common.arrays import Floats
from sync_engine.config import load_config
from sync_engine.engine import SyncEngine

RUN_S, START_S = 20.0, 1000.0
WIDTH, HEIGHT, FRAME_S, READOUT_S = 160, 120, 1.0 / 30.0, 0.025
FOCAL_PX = WIDTH / np.radians(120.0)
HALF_YARDS_M = (7.0, 9.0, 12.0)
WALL_M, CAMERA_M, AHEAD_M = 2.5, 0.45, 0.4
"""Height of walls and of the camera, and how far it sits ahead of the axle."""
TEXEL_M, TEXELS = 0.06, 512
IMU_S, GYRO_NOISE, BIAS_RAD_S = 0.005, 1.7e-4, 0.002
BIAS_S = 1e-3
"""`cue_bias_s` that `inspect --write` writes for a camera."""


class Drive:
    """Figure eights with a steering that wavers, and bumps."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._size_m = rng.uniform(3.5, 5.0), rng.uniform(1.3, 2.2)
        self._rate, self._phase = rng.uniform(0.2, 0.3), rng.uniform(0.0, 2.0 * np.pi)
        self._waver = 0.08 * rng.uniform(0.3, 1.0, 3), rng.uniform(1.0, 5.0, 3)
        self._bumps = rng.uniform(0.002, 0.01, (2, 3)), rng.uniform(6.0, 25.0, (2, 3))
        self._phases = rng.uniform(0.0, 2.0 * np.pi, (3, 3))

    def angles(self, times_s: Floats) -> Floats:
        """Return roll, pitch and yaw [n, 3] (rad), yaw without jumps."""
        t = np.asarray(times_s)[:, None]
        tilts = [
            (size * np.sin(rate * t + phase)).sum(axis=1)
            for size, rate, phase in zip(*self._bumps, self._phases[:2], strict=True)
        ]
        at = self._rate * t[:, 0] + self._phase
        course = np.unwrap(np.arctan2(2.0 * self._size_m[1] * np.cos(2.0 * at),
                                      self._size_m[0] * np.cos(at)))  # fmt: skip
        size, rate = self._waver
        return np.stack([*tilts, course + (size * np.sin(rate * t + self._phases[2])).sum(1)], 1)

    def axle_m(self, times_s: Floats) -> Floats:
        """Return the position [n, 2]."""
        at = self._rate * np.asarray(times_s) + self._phase
        return np.stack([self._size_m[0] * np.sin(at), self._size_m[1] * np.sin(2.0 * at)], 1)

    def rates(self, times_s: Floats) -> Floats:
        """Return the body's angular rate [n, 3] (rad/s)."""
        step = 1e-4
        fine = (np.asarray(times_s)[:, None] + [-step, 0.0, step]).ravel()
        angles = self.angles(fine).reshape(-1, 3, 3)
        roll, pitch, _ = angles[:, 1].T
        droll, dpitch, dyaw = ((angles[:, 2] - angles[:, 0]) / (2.0 * step)).T
        about_x = droll - dyaw * np.sin(pitch)
        about_y = dpitch * np.cos(roll) + dyaw * np.cos(pitch) * np.sin(roll)
        about_z = -dpitch * np.sin(roll) + dyaw * np.cos(pitch) * np.cos(roll)
        return np.stack([about_x, about_y, about_z], axis=1)


def matrices(angles: Floats) -> Floats:
    """Return the rotations [n, 3, 3] from the body to the world of roll, pitch, yaw [n, 3]."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(angles).T, np.sin(angles).T
    return np.array([[cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                     [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                     [-sp, cp * sr, cp * cr]]).transpose(2, 0, 1)  # fmt: skip


class Yard:
    """Ground, four walls and some panels in front of them, with a texture."""

    def __init__(self, half_m: float, rng: np.random.Generator) -> None:
        noise = rng.normal(0.0, 1.0, (TEXELS, TEXELS))
        tone = np.fft.rfft2(noise)
        down, across = np.fft.fftfreq(TEXELS)[:, None], np.fft.rfftfreq(TEXELS)
        wave = np.hypot(down, across)
        tone *= np.exp(-((wave / 0.2) ** 2)) / np.maximum(wave, 0.04)
        texture = np.fft.irfft2(tone)
        self._texture = 125.0 + 40.0 * texture / texture.std()
        # Planes: axis (0 x, 1 y), where, from, to, height.
        self._planes = [(axis, side * half_m, -half_m, half_m, WALL_M)
                        for axis in (0, 1) for side in (-1.0, 1.0)]  # fmt: skip
        for _ in range(6):
            axis = int(rng.integers(2))
            beyond = rng.uniform(5.9, half_m) if axis == 0 else rng.uniform(3.3, half_m)
            start = rng.uniform(-half_m, half_m - 1.0)
            where = float(rng.choice((-1.0, 1.0))) * beyond
            self._planes.append((axis, where, start, start + rng.uniform(0.6, 2.0), 1.4))

    def seen(self, eyes: Floats, rays: Floats) -> Floats:
        """Return brightness [n] along rays [n, 3] from points [n, 3]."""
        with np.errstate(divide='ignore', invalid='ignore'):
            far = np.where(rays[:, 2] < -1e-6, -eyes[:, 2] / rays[:, 2], np.inf)
            hit = eyes + np.minimum(far, 1e3)[:, None] * rays
            u, v = hit[:, 0].copy(), hit[:, 1].copy()
            contrast = np.where(np.isfinite(far), np.exp(-far / 3.0), 0.0)
            for k, (axis, where, first, last, height) in enumerate(self._planes):
                reach = (where - eyes[:, axis]) / rays[:, axis]
                along = eyes[:, 1 - axis] + reach * rays[:, 1 - axis]
                up = eyes[:, 2] + reach * rays[:, 2]
                is_it = (reach > 0.0) & (reach < far) & (up < height)
                is_it &= (along > first) & (along < last)
                far = np.where(is_it, reach, far)
                u, v = np.where(is_it, along + 3.7 * k, u), np.where(is_it, up + 5.3 * k, v)
                contrast = np.where(is_it, 1.0, contrast)
        return 125.0 + contrast * (self._looked_up(u, v) - 125.0)

    def _looked_up(self, u: Floats, v: Floats) -> Floats:
        """Return the texture at places [n] (m), bilinear."""
        u, v = u / TEXEL_M, v / TEXEL_M
        column, row = np.floor(u).astype(int), np.floor(v).astype(int)
        right, below = u - column, v - row
        left, top = column % TEXELS, row % TEXELS
        after, under = (left + 1) % TEXELS, (top + 1) % TEXELS
        upper = self._texture[top, left] * (1.0 - right) + self._texture[top, after] * right
        lower = self._texture[under, left] * (1.0 - right) + self._texture[under, after] * right
        return np.asarray(upper * (1.0 - below) + lower * below)


class Camera:
    """The fisheye, which looks ahead."""

    def __init__(self, drive: Drive, yard: Yard) -> None:
        self._drive, self._yard = drive, yard
        x = (np.arange(WIDTH) - 0.5 * (WIDTH - 1)) / FOCAL_PX * np.ones((HEIGHT, 1))
        y = ((np.arange(HEIGHT) - 0.5 * (HEIGHT - 1)) / FOCAL_PX)[:, None] * np.ones(WIDTH)
        angle = np.hypot(x, y)
        side = np.sinc(angle / np.pi)
        self._rays = np.stack([np.cos(angle), -side * x, -side * y], axis=-1)

    def picture(self, first_row_s: float, rng: np.random.Generator) -> Floats:
        """Return the picture whose first row is exposed at `first_row_s`, [h, w]."""
        rows_s = first_row_s + READOUT_S * (np.arange(HEIGHT) + 0.5) / HEIGHT
        attitude = matrices(self._drive.angles(rows_s))
        eyes = attitude @ np.array([AHEAD_M, 0.0, 0.0])
        eyes[:, :2] += self._drive.axle_m(rows_s)
        eyes[:, 2] += CAMERA_M
        rays = np.einsum('rij,rcj->rci', attitude, self._rays).reshape(-1, 3)
        gray = self._yard.seen(np.repeat(eyes, WIDTH, axis=0), rays).reshape(HEIGHT, WIDTH)
        noisy = gray + rng.normal(0.0, 2.0, gray.shape)
        return np.asarray(np.clip(noisy, 0, 255), dtype=np.uint8)


def run(seed: int) -> dict[str, Any]:
    """Return the error of the offset at the middle row and of the readout time (ms)."""
    rng = np.random.default_rng([seed, 38])
    drive = Drive(rng)
    yard_m = HALF_YARDS_M[seed % len(HALF_YARDS_M)]
    camera = Camera(drive, Yard(yard_m, rng))
    offset_s, drift = rng.uniform(-0.1, 0.1), rng.normal(0.0, 15e-6)
    given = {'latency_s': 0.025 + READOUT_S + rng.normal(0.0, 0.01), 'latency_sigma_s': 0.01,
             'cue': 'image', 'cue_wander': 0.02, 'cue_bias_s': BIAS_S}  # fmt: skip
    section = {
        'inputs': {
            'camera': given,
            'imu': {'latency_s': 0.003, 'latency_sigma_s': 0.001, 'collect': True},
        },
        'reference_sensor_id': 'camera',
        'imu_sensor_id': 'imu',
    }
    engine = SyncEngine(load_config(section), readers={'camera': lambda gray: {'gray': gray}})
    times_s = np.arange(0.0, RUN_S, IMU_S)
    rates = drive.rates(times_s) + BIAS_RAD_S * rng.normal(0.0, 1.0, 3)
    rates += rng.normal(0.0, GYRO_NOISE / np.sqrt(IMU_S), rates.shape)
    events = [(t + 0.0028 + rng.exponential(3e-4), 'imu', t, k) for k, t in enumerate(times_s)]
    for t in np.arange(0.3, RUN_S, FRAME_S):
        events.append((t + 0.025 + READOUT_S + rng.exponential(0.002), 'camera', t, 0))
    for arrival_s, name, t, k in sorted(events):
        if name == 'imu':
            stamp_ns = round((START_S + t) * 1e9)
            engine.push(name, stamp_ns, None, round((START_S + arrival_s) * 1e9))
            engine.push_imu(stamp_ns, rates[k], (0.0, 0.0, 9.8))
            continue
        stamp_ns = round((START_S + t * (1.0 + drift) + offset_s) * 1e9)
        picture = camera.picture(t, rng)
        engine.push(name, stamp_ns, picture, round((START_S + arrival_s) * 1e9))
        while engine.run_cues():
            pass
    found, status = engine.offset('camera', to='imu'), engine.status().sensors['camera']
    seen = status.camera
    return {
        'seed': seed,
        'yard_m': yard_m,
        'rests_on': status.rests_on,
        'state': found.state.value,
        'error_ms': found.offset_ns / 1e6 - 1e3 * (offset_s + drift * RUN_S - 0.5 * READOUT_S),
        'sigma_ms': 1e3 * found.sigma_s,
        'focal_px': seen and seen.focal_px,
        'readout_ms': 1e3 * seen.readout_s if seen and seen.readout_s is not None else None,
        'readout_sigma_ms': 1e3 * seen.readout_sigma_s if seen and seen.readout_sigma_s else None,
    }


def said(rows: list[dict[str, Any]]) -> str:
    """Return what the runs come to."""
    sure = [row for row in rows if row['rests_on'] == 'rotation']
    locked = np.array([abs(row['error_ms']) for row in sure if row['state'] == 'locked'])
    errors, sigmas = (np.array([row[key] for row in sure]) for key in ('error_ms', 'sigma_ms'))
    known = [row for row in sure if row['readout_ms'] is not None]
    readouts = np.array([row['readout_ms'] for row in known]) - 1e3 * READOUT_S
    claims = np.array([row['readout_sigma_ms'] for row in known])
    return (
        f'{len(sure)} of {len(rows)} rest on rotation, {len(locked)} are locked: median error of '
        f'these {np.median(locked):.2f} ms, p95 {np.quantile(locked, 0.95):.2f}; NEES of all '
        f'{np.mean((errors / sigmas) ** 2):.2f}, without cue_bias_s '
        f'{np.mean(errors**2 / (sigmas**2 - 1e6 * BIAS_S**2)):.2f}, inside 2 sigma '
        f'{np.mean(np.abs(errors) < 2.0 * sigmas):.0%}, mean error {errors.mean():.2f} ms; '
        f'readout {np.median(np.abs(readouts)):.2f} ms off in the median, p95 '
        f'{np.quantile(np.abs(readouts), 0.95):.2f}, {readouts.mean():.2f} in the mean, NEES '
        f'{np.mean((readouts / claims) ** 2):.2f}'
    )


def main() -> None:
    """Print every run and what they come to; `--json FILE` also writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('--runs', type=int, default=100)
    parser.add_argument('--first', type=int, default=0, help='seed of the first')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the result there')
    arguments = parser.parse_args()
    rows = []
    for seed in range(arguments.first, arguments.first + arguments.runs):
        rows.append(run(seed))
        print(json.dumps(rows[-1]), flush=True)
    print(said(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + '\n')


if __name__ == '__main__':
    main()
