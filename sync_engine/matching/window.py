"""The selection window follows the motion: calm is wide, fast is narrow.

    intensity = clamp(||a| - gravity| / linear_scale + |w| / angular_scale, 0, 1)
    half-width = max_ms - intensity * (max_ms - min_ms)

|a| and |w| are averaged over `smoothing_s` first; the deviation from gravity is taken of the
average, so that noise at rest does not look like motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt

from rig_common.times import NS_PER_MS, NS_PER_S
from sync_engine.config import WindowConfig


def motion_intensity(linear_m_s2: float, angular_rad_s: float, config: WindowConfig) -> float:
    """Return 0 (at rest) to 1 from the magnitudes of specific force and angular rate."""
    linear = abs(linear_m_s2 - config.gravity_m_s2) / config.linear_scale_m_s2
    angular = angular_rad_s / config.angular_scale_rad_s
    return min(max(linear + angular, 0.0), 1.0)


def window_size_s(intensity: float, config: WindowConfig) -> float:
    """Return the half-width (s) for an intensity of 0 to 1."""
    return (config.max_ms - intensity * (config.max_ms - config.min_ms)) / 1000.0


class AdaptiveWindow:
    """Half-width of the selection window, from IMU samples as they come."""

    def __init__(self, config: WindowConfig) -> None:
        self._linear = 0.0
        self._angular = 0.0
        self._last_stamp_ns: int | None = None
        self._last_seen_ns: int | None = None
        self.configure(config)

    def configure(self, config: WindowConfig) -> None:
        """Take new limits or constants; the averages are kept."""
        self.config = config
        self._stale_ns = int(config.stale_after_s * NS_PER_S)
        self._max_ns = int(config.max_ms * NS_PER_MS)

    def update(
        self, stamp_ns: int, gyro: Sequence[float], accel: Sequence[float], now_ns: int
    ) -> None:
        """Take one sample: angular rate [3] (rad/s) and specific force [3] (m/s^2)."""
        wx, wy, wz = gyro
        ax, ay, az = accel
        angular = sqrt(wx * wx + wy * wy + wz * wz)
        linear = sqrt(ax * ax + ay * ay + az * az)
        if not (angular < 1e6 and linear < 1e6):
            return  # a broken sample (NaN, infinite) says nothing about motion
        last_ns = self._last_stamp_ns
        self._last_seen_ns = now_ns
        if last_ns is None or stamp_ns <= last_ns or self.config.smoothing_s == 0.0:
            self._linear, self._angular = linear, angular
        else:
            gain = 1.0 - exp((last_ns - stamp_ns) / (self.config.smoothing_s * NS_PER_S))
            self._linear += gain * (linear - self._linear)
            self._angular += gain * (angular - self._angular)
        self._last_stamp_ns = stamp_ns

    def reset(self) -> None:
        """Forget the motion."""
        self._last_stamp_ns = self._last_seen_ns = None

    @property
    def has_seen(self) -> bool:
        """Whether any sample came since the start or the last reset."""
        return self._last_seen_ns is not None

    def is_stale(self, now_ns: int) -> bool:
        """Return whether the IMU was seen once and has been silent for too long."""
        return self._last_seen_ns is not None and now_ns - self._last_seen_ns > self._stale_ns

    @property
    def intensity(self) -> float:
        """Motion intensity of the smoothed samples, 0 without any."""
        if self._last_stamp_ns is None:
            return 0.0
        return motion_intensity(self._linear, self._angular, self.config)

    def half_width_ns(self, now_ns: int) -> int:
        """Return the half-width (ns); the maximum without an IMU or with a silent one."""
        if self._last_seen_ns is None or now_ns - self._last_seen_ns > self._stale_ns:
            return self._max_ns
        return int(window_size_s(self.intensity, self.config) * NS_PER_S)
