"""Clocks of one sensor and an IMU without an engine, for tests of what motion tells them."""

from __future__ import annotations

import numpy as np

from sync_engine.clocks.clock_filter import MotionFix
from sync_engine.clocks.offset import ClockEstimate
from sync_engine.config import EpochConfig, InputConfig
from sync_engine.config.sync_config import AdaKFConfig
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.motion import Rotation, RotationFit

_LATENCY_S = 0.02


def offset_fix(offset_s: float, sigma_s: float) -> MotionFix:
    """Return a piece of motion that tells the offset alone."""
    root, value = np.zeros((8, 8)), np.zeros(8)
    root[0, 0] = 1.0 / sigma_s
    value[0] = offset_s / sigma_s
    return MotionFix(root, value, 1.0, 0.0, 0)


class LonePair:
    """A sensor whose declared latency puts its clock `assumed_s` ahead, and an exact IMU."""

    def __init__(self, assumed_s: float, sigma_s: float, wander: float = 0.0) -> None:
        given = InputConfig(latency_s=_LATENCY_S, latency_sigma_s=sigma_s, cue_wander=wander)
        exact = InputConfig(latency_s=_LATENCY_S, latency_sigma_s=1e-6)
        self._assumed_ns = round(assumed_s * 1e9)
        self.clock = ClockEstimate(given, AdaKFConfig(), EpochConfig(), 1e-6)
        self.imu = ClockEstimate(exact, AdaKFConfig(), EpochConfig(), 0.0, True)

    def follow(
        self, fit: RotationFit, gyro: GyroTrack, turns: list[Rotation]
    ) -> list[tuple[float, float]]:
        """Feed the turns one by one; return (offset, sigma) after every piece (s)."""
        found = []
        for turn in turns:
            arrival_ns = turn.stamp_to_ns - self._assumed_ns + round(_LATENCY_S * 1e9)
            self.clock.observe(turn.stamp_to_ns, arrival_ns)
            self.imu.observe(arrival_ns - round(_LATENCY_S * 1e9), arrival_ns)
            fit.add(turn)
            if fit.solve(gyro, self.clock, self.imu):
                offset_ns = self.clock.offset_ns(arrival_ns) - self.imu.offset_ns(arrival_ns)
                found.append(((offset_ns - self.clock.anchor_ns) / 1e9, self.clock.sigma_s))
        return found
