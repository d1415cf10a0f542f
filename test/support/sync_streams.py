"""Synthetic sensor streams with known truth, as messages in order of arrival.

A camera (30 Hz, clock +37 ms and 20 ppm), a planar LiDAR (10 Hz, clock -85 ms, beyond half its
period) and an IMU (200 Hz, 20 ppm against the host) on a body that turns. Every sensor has a
smallest latency that its declaration misses by some milliseconds, jitter on top, and stamp jitter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats

Pairs = list[tuple[float, float]]

START_S = 1000.0
"""Host time at which the streams begin; any large number will do."""


@dataclass(frozen=True)
class Sensor:
    """Truth of one sensor (s, Hz, rad)."""

    rate_hz: float
    offset_s: float
    drift_ppm: float
    latency_s: float
    jitter_s: float
    """Mean of the exponential jitter on top of the latency."""
    stamp_jitter_s: float
    turn_sigma_rad: float = 0.0
    """Noise of one rotation increment."""
    turn_claim: float = 1.0
    """What it says about the sigma of that noise, over the true one."""
    clock_step: tuple[float, float] = (np.inf, 0.0)
    """(time after the start, size): the clock steps (s)."""
    latency_step: tuple[float, float] = (np.inf, 0.0)
    """(time after the start, size): the latency steps (s)."""

    wander: tuple[float, float] = (0.0, 100.0)
    """(amplitude, period): the clock swings, as with temperature (s)."""
    cue_wander: tuple[float, float] = (0.0, 100.0)
    """(amplitude, period): the times of its rotations swing against its stamps (s)."""
    early: tuple[float, float] = (0.0, 0.0)
    """(share, mean): messages that are early instead of late (s)."""

    def true_offset(self, time_s: Floats | float) -> Floats:
        """Return sensor clock minus host at `time_s` after the start."""
        time = np.asarray(time_s, dtype=np.float64)
        stepped = np.where(time >= self.clock_step[0], self.clock_step[1], 0.0)
        swing = self.wander[0] * np.sin(2.0 * np.pi * time / self.wander[1])
        return self.offset_s + self.drift_ppm * 1e-6 * time + stepped + swing

    def cue_offset(self, time_s: Floats | float) -> Floats:
        """Return the clock of its rotations minus the host's; what motion can find."""
        time = np.asarray(time_s, dtype=np.float64)
        swing = self.cue_wander[0] * np.sin(2.0 * np.pi * time / self.cue_wander[1])
        return self.true_offset(time) + swing


@dataclass(frozen=True)
class Motion:
    """Angular rate of the body: sums of sines, [3] axes."""

    amplitudes: Floats
    """[3, k] (rad/s)."""
    omegas: Floats
    phases: Floats

    @classmethod
    def random(cls, rng: np.random.Generator, scale: float = 1.0) -> Motion:
        """Return a drive: mostly yaw, some pitch and roll, up to about 1 Hz."""
        count = 6
        strength = np.array([0.06, 0.08, 0.25])[:, None] * rng.uniform(0.6, 1.4, (3, count))
        omegas = rng.uniform(0.5, 6.5, (3, count))
        return cls(scale * strength, omegas, rng.uniform(0.0, 2.0 * np.pi, (3, count)))

    def rate(self, time_s: Floats) -> Floats:
        """Return the angular rate [n, 3] (rad/s)."""
        arguments = self.omegas[None] * time_s[:, None, None] + self.phases[None]
        rates: Floats = np.sum(self.amplitudes[None] * np.sin(arguments), axis=2)
        return rates

    def angle(self, time_s: Floats) -> Floats:
        """Return the integral of the rate [n, 3] (rad)."""
        arguments = self.omegas[None] * time_s[:, None, None] + self.phases[None]
        parts = -self.amplitudes[None] / self.omegas[None] * np.cos(arguments)
        angles: Floats = np.sum(parts, axis=2)
        return angles


class Message(NamedTuple):
    """One message as the host receives it."""

    sensor_id: str
    arrival_ns: int
    stamp_ns: int
    capture_s: float
    """True capture after the start; what the payload of a real message would show."""
    turn: tuple[float, ...]
    """Rotation since the last frame (camera: vector; LiDAR: yaw), empty for the first."""
    gyro: tuple[float, float, float]
    accel: tuple[float, float, float]


@dataclass(frozen=True)
class Scenario:
    """Sensors, motion and length of one run."""

    seed: int
    duration_s: float = 120.0
    motion_scale: float = 1.0
    prior_sigma_s: float = 0.008
    """How far off the declared latencies are, one sigma."""
    gyro_sigma_rad_s: float = 0.003
    gyro_bias_rad_s: float = 0.005
    sensors: dict[str, Sensor] = field(default_factory=lambda: dict(SENSORS))

    def with_sensor(self, sensor_id: str, **changes: object) -> Scenario:
        """Return the scenario with one sensor changed."""
        sensors = dict(self.sensors)
        sensors[sensor_id] = replace(sensors[sensor_id], **changes)  # type: ignore[arg-type]
        return replace(self, sensors=sensors)

    def declared_latency_s(self, sensor_id: str) -> float:
        """Return the latency a user would write: the true one, missed by the prior's sigma."""
        rng = np.random.default_rng([self.seed, 77, sorted(self.sensors).index(sensor_id)])
        sigma = IMU_PRIOR_SIGMA_S if sensor_id == 'imu' else self.prior_sigma_s
        return max(0.0, self.sensors[sensor_id].latency_s + float(rng.normal(0.0, sigma)))

    def motion(self) -> Motion:
        """Return the body's motion."""
        return Motion.random(np.random.default_rng([self.seed, 1]), self.motion_scale)

    def messages(self) -> list[Message]:
        """Return every message in order of arrival."""
        made = [m for name in self.sensors for m in self._of(name)]
        return sorted(made, key=lambda message: message.arrival_ns)

    def _of(self, name: str) -> Iterator[Message]:
        sensor = self.sensors[name]
        rng = np.random.default_rng([self.seed, 2, sorted(self.sensors).index(name)])
        count = int(self.duration_s * sensor.rate_hz)
        phase = np.random.default_rng([self.seed, 3, sorted(self.sensors).index(name)]).random()
        capture = (phase + np.arange(count)) / sensor.rate_hz
        stamp = capture + sensor.true_offset(capture)
        stamp = stamp + rng.normal(0.0, sensor.stamp_jitter_s, count)
        late = np.where(capture >= sensor.latency_step[0], sensor.latency_step[1], 0.0)
        arrival = capture + sensor.latency_s + late + rng.exponential(sensor.jitter_s, count)
        share, mean_s = sensor.early
        odd = np.random.default_rng([self.seed, 4, sorted(self.sensors).index(name)])
        early = np.where(odd.random(count) < share, odd.exponential(1.0, count), 0.0)
        arrival = arrival - mean_s * early
        arrival = np.maximum.accumulate(arrival)  # a transport keeps the order of one topic
        motion = self.motion()
        angle = motion.angle(capture + sensor.true_offset(capture) - sensor.cue_offset(capture))
        turns = np.diff(angle, axis=0) + rng.normal(0.0, sensor.turn_sigma_rad, (count - 1, 3))
        rate = motion.rate(capture) + rng.normal(0.0, self.gyro_sigma_rad_s, (count, 3))
        rate = rate + self.gyro_bias_rad_s
        accel = np.array([0.0, 0.0, 9.81]) + rng.normal(0.0, 0.05, (count, 3))
        for k in range(count):
            turn: tuple[float, ...] = ()
            if k and name != 'imu':
                turn = tuple(turns[k - 1]) if name == 'camera' else (float(turns[k - 1, 2]),)
            yield Message(
                name,
                round((START_S + arrival[k]) * 1e9),
                round((START_S + stamp[k]) * 1e9),
                float(capture[k]),
                turn,
                tuple(rate[k]),
                tuple(accel[k]),
            )


IMU_PRIOR_SIGMA_S = 0.001
"""An IMU's latency is short and known better than a camera's."""

SENSORS = {
    'camera': Sensor(30.0, 0.037, 20.0, 0.020, 0.003, 0.0002, turn_sigma_rad=0.0008),
    'lidar': Sensor(10.0, -0.085, -10.0, 0.030, 0.004, 0.0002, turn_sigma_rad=0.0012),
    'imu': Sensor(200.0, 0.002, 20.0, 0.003, 0.0005, 0.00005),
}
"""The streams of the accuracy benchmark."""
