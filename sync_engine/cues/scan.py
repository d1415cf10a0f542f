"""Yaw of a planar LiDAR from its consecutive scans, and of a spinning one from a slice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rig_common.times import NS_PER_S
from sync_engine.cues.base import Z_AXIS, FloatArray, GyroLookup
from sync_engine.cues.motion import Rotation
from sync_engine.cues.scan_match import BoolArray, ScanGeometry, ScanShape
from sync_engine.payload import CueValues

_LONGEST_S = 0.5
"""Two scans further apart have too little in common."""
_CLOUD_RAYS = 1024
_SLICES_RAD = (0.035, 0.07, 0.14, 0.28)
"""Half-openings of the horizontal slice that is tried, until half the azimuths have a point."""


class ScanCue:
    """Yaw increments from `ranges` [n] (m) at `angle_min` + i `angle_increment` (rad).

    Optional: `time_increment` (s a ray), `range_min`, `range_max` (m). A scan is stamped at its
    first ray; the motion it tells belongs to its middle.
    """

    def __init__(self) -> None:
        self._geometry: ScanGeometry | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the last scan."""
        self._last: tuple[int, ScanShape] | None = None
        self._twist: FloatArray = np.zeros((3, 1))

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one scan; return the yaw since the last one."""
        ranges = np.asarray(values['ranges'], dtype=np.float64)
        start, increment = float(values['angle_min']), float(values['angle_increment'])
        if len(ranges) < 32 or increment == 0.0:
            return None
        least = max(float(values.get('range_min', 0.0)), 1e-3)
        most = float(values.get('range_max', 0.0)) or np.inf
        with np.errstate(invalid='ignore'):
            valid: BoolArray = (ranges > least) & (ranges < most)  # neither holds for NaN
        middle = 0.5 * (len(ranges) - 1)
        ray_s = float(values.get('time_increment', 0.0))
        times_s: FloatArray = (np.arange(len(ranges), dtype=np.float64) - middle) * ray_s
        middle_ns = stamp_ns + round(middle * ray_s * NS_PER_S)
        return self.match(start, increment, ranges, valid, middle_ns, times_s, gyro)

    def match(
        self,
        angle_min: float,
        increment: float,
        ranges: FloatArray,
        valid: BoolArray,
        middle_ns: int,
        times_s: FloatArray,
        gyro: GyroLookup | None,
    ) -> Rotation | None:
        """Compare with the last scan; `times_s` [n] are after the middle, where both are timed."""
        geometry = self._geometry
        if geometry is None or not geometry.matches(len(ranges), angle_min, increment):
            geometry = self._geometry = ScanGeometry(len(ranges), angle_min, increment)
            self.reset()
        last = self._last
        dt = 0.0 if last is None else (middle_ns - last[0]) / NS_PER_S
        if not 0.0 < dt <= _LONGEST_S:
            last, dt = None, 0.0
        turned, yaw = self._turned(middle_ns, times_s, dt, gyro)
        moved = self._twist * times_s
        if turned is not None:
            moved[0] = turned
        scan = geometry.scan(np.where(valid, ranges, 0.0), valid, moved)
        self._last = middle_ns, scan
        if last is None:
            return None
        if yaw is None:
            yaw = geometry.correlate(last[1], scan)
        shift_x, shift_y = (self._twist[1:, 0] * dt).tolist()
        found = geometry.match(last[1], scan, (yaw, shift_x, shift_y))
        if found is None:
            self._twist = np.zeros((3, 1))
            return None
        self._twist = np.array([[found.yaw_rad], [found.shift_m[0]], [found.shift_m[1]]]) / dt
        return Rotation(last[0], middle_ns, (found.yaw_rad,), Z_AXIS, (found.yaw_variance,))

    @staticmethod
    def _turned(
        middle_ns: int, times_s: FloatArray, dt: float, gyro: GyroLookup | None
    ) -> tuple[FloatArray, float] | tuple[None, None]:
        """Return the gyro's turn from the middle to each ray [n], and since `dt` ago (rad).

        The turn within a sweep is the gyro's. The turn since the last scan would lag, and in a
        yard that is nearer on one side that becomes a time error of a millisecond; the gyro at an
        offset that is wrong by as much does not, its error being in quadrature.
        """
        if gyro is None:
            return None, None
        angles = gyro(middle_ns, np.append(times_s, (0.0, -dt)), Z_AXIS[0])
        if angles is None:
            return None, None
        return angles[:-2] - angles[-2], float(angles[-2] - angles[-1])


class CloudCue:
    """Yaw increments from `points` [n, 3] (m, z up); optional `times` [n] (s after the stamp).

    A horizontal slice of the cloud, nearest point per azimuth, is matched as a scan is.
    """

    def __init__(self) -> None:
        self._scans = ScanCue()

    def reset(self) -> None:
        """Forget the last cloud."""
        self._scans.reset()

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one cloud; return the yaw since the last one."""
        points = np.asarray(values['points'], dtype=np.float64)
        times = values.get('times')
        planar = np.hypot(points[:, 0], points[:, 1])
        near = np.isfinite(planar) & (planar > 0.05)
        for opening in _SLICES_RAD:
            chosen = near & (np.abs(points[:, 2]) < np.tan(opening) * planar)
            bins = self._bins(points[chosen])
            if len(np.unique(bins)) > _CLOUD_RAYS // 2:
                break
        if not chosen.any():
            return None
        ranges = np.full(_CLOUD_RAYS, np.inf)
        order = np.argsort(-planar[chosen])  # the nearest is written last and stays
        ranges[bins[order]] = planar[chosen][order]
        middle_s = 0.0
        times_s = np.zeros(_CLOUD_RAYS)
        if times is not None:
            stamps = np.asarray(times, dtype=np.float64)
            middle_s = 0.5 * float(stamps.min() + stamps.max())
            times_s[bins[order]] = stamps[chosen][order] - middle_s
        increment = 2.0 * np.pi / _CLOUD_RAYS
        middle_ns = stamp_ns + round(middle_s * NS_PER_S)
        valid = np.isfinite(ranges)
        return self._scans.match(-np.pi, increment, ranges, valid, middle_ns, times_s, gyro)

    @staticmethod
    def _bins(points: FloatArray) -> NDArray[np.intp]:
        azimuth = np.arctan2(points[:, 1], points[:, 0]) + np.pi
        return np.rint(azimuth * (_CLOUD_RAYS / (2.0 * np.pi))).astype(np.intp) % _CLOUD_RAYS
