"""Yaw of a planar LiDAR from its consecutive scans, and of a spinning one from a slice."""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Flags, Floats
from rig_common.times import NS_PER_S
from sync_engine.cues.base import Z_AXIS, GyroLookup
from sync_engine.cues.motion import Rotation
from sync_engine.cues.scan_match import Match, ScanGeometry, ScanShape
from sync_engine.streams.payload import CueValues

_LONGEST_S = 0.5
"""Two scans further apart have too little in common."""
_SHIFTED_M = 0.001
"""A sweep whose ends were put wrong by more than this is put together again."""
_CLOUD_RAYS = (1024, 512, 256, 128)
"""Azimuths that a slice of a cloud may be sorted into: the most that are next to each other."""
_DENSE, _CLEARLY_DENSE = 0.75, 0.9
"""Share of the filled azimuths whose neighbour is filled, too: of a sensor with fewer columns than
azimuths every second one is empty, and nothing looks like a line (scan_match.py)."""
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
        self._twist: Floats = np.zeros((3, 1))

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
            valid: Flags = (ranges > least) & (ranges < most)  # neither holds for NaN
        middle = 0.5 * (len(ranges) - 1)
        ray_s = float(values.get('time_increment', 0.0))
        times_s: Floats = (np.arange(len(ranges), dtype=np.float64) - middle) * ray_s
        middle_ns = stamp_ns + round(middle * ray_s * NS_PER_S)
        return self.match(start, increment, ranges, valid, middle_ns, times_s, gyro)

    def match(
        self,
        angle_min: float,
        increment: float,
        ranges: Floats,
        valid: Flags,
        middle_ns: int,
        times_s: Floats,
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
        clean = np.where(valid, ranges, 0.0)

        def placed(twist: Floats) -> ScanShape:
            moved = twist * times_s
            if turned is not None:
                moved[0] = turned
            return geometry.scan(clean, valid, moved)

        scan = placed(self._twist)
        self._last = middle_ns, scan
        if last is None:
            return None
        if yaw is None:
            yaw = geometry.correlate(last[1], scan)
        shift_x, shift_y = (self._twist[1:, 0] * dt).tolist()
        found = geometry.match(last[1], scan, (yaw, shift_x, shift_y))
        if found is not None:
            now = self._now(found, dt)
            reach_s = float(np.abs(times_s).max())
            if float(np.abs(now - self._twist)[1:].max()) * reach_s > _SHIFTED_M:
                scan = placed(now)
                self._last = middle_ns, scan
                found = geometry.match(last[1], scan, (found.yaw_rad, *found.shift_m))
        if found is None:
            self._twist = np.zeros((3, 1))
            return None
        self._twist = _twist(found, dt)
        return Rotation(last[0], middle_ns, (found.yaw_rad,), Z_AXIS, (found.yaw_variance,))

    def _now(self, found: Match, dt: float) -> Floats:
        """Return the twist [3, 1] at the middle of this sweep, from the mean since the last one.

        The rays of a sweep are put together with it. The twist of the last interval is a tenth of
        a second old; in turns its sideways part lags behind the lever arm's, and the yaw with it:
        the offset in the yard was 0.2 ms off by that. Half of the full extrapolation, because it
        adds noise.
        """
        mean = _twist(found, dt)
        return mean + 0.25 * (mean - self._twist) if self._twist.any() else mean

    @staticmethod
    def _turned(
        middle_ns: int, times_s: Floats, dt: float, gyro: GyroLookup | None
    ) -> tuple[Floats, float] | tuple[None, None]:
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


def _twist(found: Match, dt: float) -> Floats:
    """Return the mean yaw rate and velocity [3, 1] (rad/s, m/s) over a motion that took `dt` s.

    A match tells the shift in the frame of the first scan; half of the turn leads to the frame in
    between.
    """
    cosine, sine = cos(0.5 * found.yaw_rad), sin(0.5 * found.yaw_rad)
    x, y = found.shift_m
    return np.array([[found.yaw_rad], [cosine * x + sine * y], [cosine * y - sine * x]]) / dt


class CloudCue:
    """Yaw increments from `points` [n, 3] (m, z up); optional `times` [n] (s after the stamp).

    A horizontal slice of the cloud, nearest point per azimuth, is matched as a scan is. How many
    azimuths there are is seen on the first cloud, and again when they are no longer filled.
    """

    def __init__(self) -> None:
        self._scans = ScanCue()
        self._rays = 0

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
        slope = np.full(len(points), np.inf)
        np.divide(np.abs(points[:, 2]), planar, out=slope, where=near)
        turns = (np.arctan2(points[:, 1], points[:, 0]) + np.pi) / (2.0 * np.pi)
        chosen = self._slice(slope, turns)
        if not chosen.any():
            return None
        bins = _bins(turns[chosen], self._rays)
        ranges = np.full(self._rays, np.inf)
        order = np.argsort(-planar[chosen])  # the nearest is written last and stays
        ranges[bins[order]] = planar[chosen][order]
        middle_s = 0.0
        times_s = np.zeros(self._rays)
        valid = np.isfinite(ranges)
        if times is not None:
            stamps = np.asarray(times, dtype=np.float64)
            middle_s = 0.5 * float(stamps.min() + stamps.max())
            times_s[bins[order]] = stamps[chosen][order] - middle_s
            # azimuths without a point have a time all the same: the first and the last ray tell
            # how far the sensor turned in a sweep
            times_s[~valid] = np.interp(
                np.flatnonzero(~valid), np.flatnonzero(valid), times_s[valid]
            )
        increment = 2.0 * np.pi / self._rays
        middle_ns = stamp_ns + round(middle_s * NS_PER_S)
        return self._scans.match(-np.pi, increment, ranges, valid, middle_ns, times_s, gyro)

    def _slice(self, slope: Floats, turns: Floats) -> Flags:
        """Return the points [n] of the slice, and settle how many azimuths it has.

        `slope` [n] is |z| over range in the plane, `turns` [n] the azimuth from 0 to 1.
        """
        for opening in _SLICES_RAD:
            chosen: Flags = slope < np.tan(opening)
            rays, filled = _azimuths(turns[chosen], self._rays)
            if filled > rays // 2:
                break
        self._rays = rays
        return chosen


def _azimuths(turns: Floats, before: int) -> tuple[int, int]:
    """Return how many azimuths the points have, the most that are next to each other, and filled.

    More than `before` only where that is clear: two scans are compared by the same azimuths.
    """
    for rays in _CLOUD_RAYS:
        filled: Flags = np.zeros(rays, dtype=np.bool_)
        filled[_bins(turns, rays)] = True
        count = int(np.count_nonzero(filled))
        share = _CLEARLY_DENSE if 0 < before < rays else _DENSE
        if np.count_nonzero(filled & np.roll(filled, 1)) > share * count:
            break
    return rays, count


def _bins(turns: Floats, rays: int) -> NDArray[np.intp]:
    """Return which of `rays` azimuths each point falls on."""
    return np.rint(turns * rays).astype(np.intp) % rays
