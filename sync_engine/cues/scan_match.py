"""The motion between two planar scans: point-to-line steps from a guess to where they settle.

The steps are robust, with projective association (the partner of a point is the ray it falls on);
`docs/offsets_theory.md` has what is left. The better the guess, the fewer steps it takes, but the
result does not depend on it. Without a guess, log range is correlated over azimuth: that finds the
turn to a fraction of a ray, with an error that follows the translation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import cos, pi, sin
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Flags, Floats

_UNKNOWNS = np.ix_([0, 2, 3], [0, 2, 3])
"""Lever, shift x and y among the rows of a step; the other one is the residual."""
_REGULAR = np.diag([1e-9, 1e-6, 1e-6])

Pose = tuple[float, float, float]
"""Yaw (rad), x, y (m)."""

_HALF_WIDTH = 4
"""Neighbours on each side that a ray's line is fitted through."""
_LEAST_SHARE = 0.6
"""Share of these neighbours that must have a range."""
_FLATNESS = 0.05
"""Largest ratio of a line's thickness to its length."""
_STEPS = 20
"""Two scans that have not settled by then do not fit; from a good guess it takes three or four."""
_ROUGH_STRIDE = 4
_NEAR_RAD = 2e-3
"""Until a step is this short it only has to come near, and looks at every fourth point."""
_ROUGH_REACH_M = (0.5, 0.3, 0.2)
_REACH_M = 0.15
"""How far from its line a point may be to count, step by step while rough, and then."""
_STRETCH = 1.7
"""A step takes the weights of outliers for fixed and falls short: with these weights and normal
residuals it goes 0.5 to 0.6 of the way."""
_SETTLED = 0.05
"""A step this short against the sigma of the yaw is the last."""
_LEAST_PAIRS = 15
_TRUST = 2.0
"""Factor on the formal sigma: lines are not quite lines, and pairs not quite independent."""
_NOWHERE_M = 1e9
"""Centre of the line of a ray that has none: no point comes near it."""


@dataclass(frozen=True)
class ScanShape:
    """One sweep in the sensor's frame at its middle."""

    geometry: ScanGeometry
    x: Floats
    """[n] where each ray ends (m), with `y`."""
    y: Floats
    ranges: Floats
    """[n] as measured (m), 0 where there is none."""
    valid: Flags
    """[n] whether there is one."""
    bearing_step: float
    """Bearing from one ray to the next (rad): the increment, plus the turn meanwhile."""

    @cached_property
    def points(self) -> Floats:
        """Return [2, m] x and y of the valid rays (m)."""
        return np.stack([self.x, self.y]).compress(self.valid, axis=1)

    @cached_property
    def lines(self) -> Floats:
        """Return [4, n + 2] centre x, y (m) and unit normal x, y of each ray's line.

        One ray more on either side, without a line, stands for everything that is out of view. A
        sweep that is put together once more has none: only the last one is compared with.
        """
        return self.geometry.lines(self.x, self.y, self.ranges, self.valid)


@dataclass(frozen=True, slots=True)
class Match:
    """Motion of the sensor from one scan to the next, in the frame of the first."""

    yaw_rad: float
    shift_m: tuple[float, float]
    yaw_variance: float


class _Move(NamedTuple):
    """What one least-squares step asks for."""

    yaw_rad: float
    shift_x_m: float
    shift_y_m: float
    information: float
    """Of the yaw with the shift unknown, for residuals of unit variance (1 / rad^2)."""
    spread_m: float
    """Robust sigma of the residuals."""


class ScanGeometry:
    """The rays that all scans of a sensor share."""

    def __init__(self, count: int, angle_min: float, angle_increment: float) -> None:
        self.count = count
        self.angle_min = angle_min
        self.increment = angle_increment
        self._angles: Floats = angle_min + angle_increment * np.arange(count, dtype=np.float64)
        self.is_full = abs(abs(angle_increment) * count - 2.0 * np.pi) < 2.5 * abs(angle_increment)
        self._middle = 0.5 * (count - 1)

    def matches(self, count: int, angle_min: float, angle_increment: float) -> bool:
        """Return whether these are the same rays."""
        same = abs(angle_min - self.angle_min) + abs(angle_increment - self.increment) < 1e-6
        return count == self.count and same

    def scan(self, ranges: Floats, valid: Flags, moved: Floats) -> ScanShape:
        """Build a scan from ranges [n] (m), 0 where they are not `valid`.

        `moved` [3, n] is where the sensor was at each ray (rad, m, m).
        """
        turn, right, up = moved
        bearings = self._angles + turn
        x = ranges * np.cos(bearings) + right
        y = ranges * np.sin(bearings) + up
        step = self.increment + float(turn[-1] - turn[0]) / (self.count - 1)
        return ScanShape(self, x, y, ranges, valid, step)

    def lines(self, x: Floats, y: Floats, ranges: Floats, valid: Flags) -> Floats:
        """Fit a line through the neighbours of every ray, [4, n + 2] (see `ScanShape.lines`)."""
        count, cx, cy, sxx, sxy, syy = self._windowed(x * valid, y * valid, valid)
        enough = count > _LEAST_SHARE * (2 * _HALF_WIDTH + 1)
        safe = np.maximum(count, 1.0)
        cx /= safe
        cy /= safe
        vxx, vxy, vyy = sxx / safe - cx * cx, sxy / safe - cx * cy, syy / safe - cy * cy
        half_trace, half_gap = 0.5 * (vxx + vyy), 0.5 * (vxx - vyy)
        difference = np.sqrt(half_gap * half_gap + vxy * vxy)
        thin, long = half_trace - difference, half_trace + difference
        lined = enough & valid & (thin < _FLATNESS * long + 4e-4) & (long > 0.0)
        # A line seen end-on jumps over corners: its neighbours' ranges must run on smoothly.
        around = np.concatenate([ranges[-_HALF_WIDTH:], ranges, ranges[:_HALF_WIDTH]])
        one, other = around[: self.count], around[2 * _HALF_WIDTH :]
        smooth = np.abs(one - other) < 0.5 * np.maximum(ranges, 0.2)
        lined &= smooth | (one <= 0.0) | (other <= 0.0)
        lines = np.full((4, self.count + 2), _NOWHERE_M)
        inner = lines[:, 1:-1]
        np.copyto(inner[0], cx, where=lined)
        np.copyto(inner[1], cy, where=lined)
        # The line's angle is half of atan2(vxy, half_gap); this is its sine, negated, and cosine.
        half_cosine = 0.5 * half_gap / np.maximum(difference, 1e-300)
        np.copysign(np.sqrt(np.maximum(0.5 - half_cosine, 0.0)), -vxy, out=inner[2])
        np.sqrt(np.maximum(0.5 + half_cosine, 0.0), out=inner[3])
        return lines

    def _windowed(self, x: Floats, y: Floats, valid: Flags) -> Floats:
        """Return the sums of 1, x, y, xx, xy, yy over every ray's neighbourhood, [6, n]."""
        from scipy.ndimage import uniform_filter1d  # loaded by then, with the filters

        width = 2 * _HALF_WIDTH + 1
        mode = 'wrap' if self.is_full else 'constant'
        sums = np.stack([valid, x, y, x * x, x * y, y * y])
        return np.asarray(uniform_filter1d(sums, width, mode=mode)) * width

    def correlate(self, before: ScanShape, after: ScanShape) -> float:
        """Return the turn (rad) that lays `after` over `before` best, from log range alone."""
        length = self.count if self.is_full else 2 * self.count
        spectra = np.fft.rfft([_log_range(before), _log_range(after)], length)
        overlap = np.fft.irfft(spectra[0] * np.conj(spectra[1]), length)
        best = int(np.argmax(overlap))
        left, middle, right = (float(overlap[(best + k) % length]) for k in (-1, 0, 1))
        curve = left - 2.0 * middle + right
        fraction = 0.5 * (left - right) / curve if curve < 0.0 else 0.0
        lag = best + fraction
        return (lag - length if lag > length / 2 else lag) * self.increment

    def match(self, before: ScanShape, after: ScanShape, guess: Pose) -> Match | None:
        """Return the sensor's motion from `before` to `after`, None where they do not fit."""
        yaw, x, y = guess
        some = np.ascontiguousarray(after.points[:, ::_ROUGH_STRIDE])
        near, stretch, last_yaw = False, _STRETCH, 0.0
        for step in range(_STEPS):
            reach = _REACH_M if near else _ROUGH_REACH_M[min(step, len(_ROUGH_REACH_M) - 1)]
            move = self._step(before, after.points if near else some, (yaw, x, y), reach)
            if move is None:
                return None
            if near and move.yaw_rad * last_yaw < 0.0:
                stretch *= 0.5  # points that fall on one ray, then on another, must not go on so
            share = stretch if near else 1.0
            yaw += share * move.yaw_rad
            x += share * move.shift_x_m
            y += share * move.shift_y_m
            variance = (_TRUST * move.spread_m) ** 2 / move.information
            if near and (share * move.yaw_rad) ** 2 < _SETTLED**2 * variance:
                return Match(yaw, (x, y), variance) if variance < 1e-4 and abs(yaw) < 1.0 else None
            last_yaw = move.yaw_rad if near else 0.0
            near = near or abs(move.yaw_rad) < _NEAR_RAD
        return None

    def _columns(self, scan: ScanShape, x: Floats, y: Floats) -> NDArray[np.intp]:
        """Return the column of `scan.lines` whose ray each point falls on.

        What is out of view may lie beyond the ends; `take` with mode='clip' brings it to them.
        """
        per_rad, turn = 1.0 / scan.bearing_step, 2.0 * pi / scan.bearing_step
        away = np.arctan2(y, x)
        away -= self.angle_min + self.increment * self._middle
        away *= per_rad
        away -= turn * np.rint(away * (1.0 / turn))
        away += self._middle + 1.5  # one column stands before the first ray; then to the nearest
        return away.astype(np.intp)

    def _step(self, before: ScanShape, points: Floats, pose: Pose, reach: float) -> _Move | None:
        """One weighted least-squares step from `pose` (rad, m, m), with points up to `reach`."""
        yaw, shift_x, shift_y = pose
        cosine, sine = cos(yaw), sin(yaw)
        turned = np.array([[cosine, -sine], [sine, cosine]]) @ points
        x, y = turned[0] + shift_x, turned[1] + shift_y
        rows = before.lines.take(self._columns(before, x, y), axis=1, mode='clip')
        x -= rows[0]
        y -= rows[1]
        normal_x, normal_y = rows[2], rows[3]
        residual = normal_x * x + normal_y * y
        keep = np.abs(residual) < reach
        keep &= np.abs(x) + np.abs(y) < 4.0 * reach + 0.5
        # The centres are done with; in their place: d residual / d yaw, and the residual.
        np.subtract(normal_y * turned[0], normal_x * turned[1], out=rows[0])
        rows[1] = residual
        rows = rows.compress(keep, axis=1)
        return _solve(rows) if rows.shape[1] >= _LEAST_PAIRS else None


def _log_range(scan: ScanShape) -> Floats:
    """Return the log of the ranges without their mean [n]; 0, the mean, where there is none."""
    valid = scan.ranges > 0.0
    logs = np.log(np.where(valid, np.maximum(scan.ranges, 0.05), 1.0))
    mean = float(logs.sum()) / max(int(np.count_nonzero(valid)), 1)
    return np.where(valid, logs - mean, 0.0)


def _solve(rows: Floats) -> _Move | None:
    """Solve for the move that the rows [4, m] ask for: lever, residual, normal x, normal y."""
    size = np.abs(rows[1])
    half = len(size) // 2
    spread = max(1.4826 * float(np.partition(size, half)[half]), 1e-4)
    size *= 0.5 / spread
    size *= size
    size += 1.0
    size *= size
    normal = (rows / size) @ rows.T
    # What is left of the yaw's information is its inverse variance.
    inverse = np.linalg.inv(normal[_UNKNOWNS] + _REGULAR)
    yaw, shift_x, shift_y = (-inverse @ normal[_UNKNOWNS[1][0], 1]).tolist()
    information = 1.0 / float(inverse[0, 0])
    return _Move(yaw, shift_x, shift_y, information, spread) if information > 0.0 else None
