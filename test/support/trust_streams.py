"""Streams with the habits of real recordings, and the truth about their clocks.

A handheld camera (turns from its pictures, 20 Hz) and an IMU: frames that are missing, stamps off
the grid, arrivals that are skewed and correlated, a clock that wanders, a mounting that nobody
declared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import matrix_from_wxyz
from sensor_rig.bags.starter import PAYLOAD_WANDER
from sensor_rig.trust.streams import Streams
from support.sync_streams import START_S, Motion
from sync_engine.config import SyncConfig, load_config
from sync_engine.cues.base import XYZ_AXES
from sync_engine.cues.motion import Rotation

OPTICAL_WXYZ = (0.5, -0.5, 0.5, -0.5)
SENSOR, IMU = 'camera', 'imu'
LONGEST_TURN_S = 0.5
"""Over a longer gap of the frames no turn is known."""


@dataclass(frozen=True)
class Habits:
    """How the streams behave (s, Hz, rad)."""

    seed: int
    """Of the motion."""
    noise_seed: int = 0
    """Of everything that is drawn besides the motion."""
    duration_s: float = 60.0
    rate_hz: float = 20.0
    imu_hz: float = 100.0
    offset_s: float = 0.037
    drift: float = 2e-5
    wander_s: float = 0.0
    """Amplitude of a slow wander of the clock with a period of 25 s."""
    latency_s: float = 0.02
    declared_off_s: float = 0.008
    """What the declared latency is wrong by; its sigma is 10 ms."""
    jitter_s: float = 0.002
    jitter_memory: float = 0.5
    """Lag-1 correlation of the arrival jitter."""
    early: float = 0.02
    """Share of arrivals that are early by up to the jitter."""
    stamp_jitter_s: float = 1e-3
    """Frames off the grid: they are captured when they are stamped."""
    loss: float = 0.1
    turn_sigma_rad: float = 1e-3
    claimed_sigma_rad: float = 1e-3
    gyro_sigma_rad_s: float = 0.002
    motion_scale: float = 2.0
    quat_wxyz: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """The declared mounting; zeros: unknown. The true one is that of a camera."""
    cue_wander: float = PAYLOAD_WANDER
    """Declared chance that the times of its turns wander."""

    def true_offset_s(self, time_s: Floats) -> Floats:
        """Return the sensor's clock minus the host's (and the IMU's) at times after the start."""
        wander = self.wander_s * np.sin(2.0 * np.pi * time_s / 25.0)
        return np.asarray(self.offset_s + self.drift * time_s + wander)

    def motion(self) -> Motion:
        """Return the body's motion: all three axes, as a hand moves."""
        drawn = Motion.random(np.random.default_rng([self.seed, 1]), self.motion_scale)
        return Motion(
            drawn.amplitudes * np.array([[2.0], [1.6], [0.8]]), drawn.omegas, drawn.phases
        )

    def captures_s(self) -> Floats:
        """Return when frames were captured that were not lost."""
        rng = np.random.default_rng([self.seed, self.noise_seed, 2])
        count = int(self.duration_s * self.rate_hz)
        times = (0.3 + np.arange(count)) / self.rate_hz
        times = np.sort(times + rng.normal(0.0, self.stamp_jitter_s, count))
        return np.asarray(times[rng.random(count) >= self.loss])

    def turned(self, captures_s: Floats) -> Floats:
        """Return the true turns between captures, in the sensor's frame [n - 1, 3] (rad)."""
        angles = np.diff(self.motion().angle(captures_s), axis=0)
        return np.asarray(angles @ matrix_from_wxyz(OPTICAL_WXYZ))

    def imu_rates(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the times [m] (s) and what the gyro says then [m, 3] (rad/s)."""
        times = np.arange(0.0, self.duration_s, 1.0 / self.imu_hz)
        noise = rng.normal(0.0, self.gyro_sigma_rad_s, (len(times), 3))
        return times, np.asarray(self.motion().rate(times) + 0.004 + noise)

    def streams(self) -> Streams:
        """Return the streams in order of arrival."""
        rng = np.random.default_rng([self.seed, self.noise_seed, 3])
        captures = self.captures_s()
        stamps = captures + self.true_offset_s(captures)
        arrivals = np.maximum.accumulate(captures + self._latencies(len(captures), rng))
        imu, rates = self.imu_rates(rng)
        imu_arrivals = np.maximum.accumulate(imu + 0.003 + rng.exponential(3e-4, len(imu)))
        times = np.concatenate([arrivals, imu_arrivals])
        order = np.argsort(times, kind='stable')
        place = np.argsort(order, kind='stable')
        gyro = np.zeros((len(times), 3))
        gyro[len(captures) :] = rates
        turned = self.turned(captures)
        turned = turned + rng.normal(0.0, self.turn_sigma_rad, turned.shape)
        stamp_ns = _ns(np.concatenate([stamps, imu]))
        variances = (self.claimed_sigma_rad**2,) * 3
        turns = tuple(
            (
                int(place[k + 1]),
                Rotation(int(stamp_ns[k]), int(stamp_ns[k + 1]), tuple(turn), XYZ_AXES, variances),
            )
            for k, turn in enumerate(turned.tolist())
            if captures[k + 1] - captures[k] < LONGEST_TURN_S
        )
        is_imu = np.arange(len(times)) >= len(captures)
        return Streams(
            SENSOR,
            IMU,
            self._config(),
            is_imu[order],
            _ns(times)[order],
            stamp_ns[order],
            stamp_ns[order],
            gyro[order],
            turns,
        )

    def _latencies(self, count: int, rng: np.random.Generator) -> Floats:
        """Return latencies (s): a least one, correlated jitter above it, a few early ones."""
        steps = rng.normal(0.0, np.sqrt(1.0 - self.jitter_memory**2), count)
        level = np.zeros(count)
        for k in range(1, count):
            level[k] = self.jitter_memory * level[k - 1] + steps[k]
        early = np.where(rng.random(count) < self.early, rng.random(count), 0.0)
        return np.asarray(self.latency_s + self.jitter_s * (np.abs(level) - early))

    def _config(self) -> SyncConfig:
        declared = self.latency_s + self.declared_off_s
        return load_config(
            {
                'inputs': {
                    SENSOR: {
                        'latency_s': declared,
                        'latency_sigma_s': 0.01,
                        'imu_quat_wxyz': self.quat_wxyz,
                        'cue_wander': self.cue_wander,
                    },
                    IMU: {'latency_s': 0.003, 'latency_sigma_s': 0.001, 'collect': True},
                },
                'reference_sensor_id': SENSOR,
                'required_sensors': [SENSOR],
                'imu_sensor_id': IMU,
            }
        )


def _ns(times_s: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.rint((START_S + times_s) * 1e9).astype(np.int64)
