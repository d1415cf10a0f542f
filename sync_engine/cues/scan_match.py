"""The motion between two planar scans: correlation of log range, then point-to-line steps.

Correlating log range over azimuth finds the turn to a fraction of a ray, but a translation leans
on it. A few robust point-to-line steps with projective association (the partner of a point is the
ray it falls on) take the translation out; `docs/offsets.md` has what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_HALF_WIDTH = 4
"""Neighbours on each side that a ray's line is fitted through."""
_LEAST_SHARE = 0.6
"""Share of these neighbours that must have a range."""
_FLATNESS = 0.05
"""Largest ratio of a line's thickness to its length."""
_STEPS = 8
_ROUGH_STEPS, _ROUGH_STRIDE = 3, 4
"""The first steps only have to come near; they look at every fourth point."""
_REACH_M = (0.5, 0.3, 0.2, 0.15)
"""How far from its line a point may be to count, step by step."""
_LEAST_PAIRS = 15
_TRUST = 2.0
"""Factor on the formal sigma: lines are not quite lines, and pairs not quite independent."""


@dataclass(frozen=True, slots=True)
class Scan:
    """One sweep as points in the sensor's frame at its middle, with a line through each."""

    points: FloatArray
    """[n, 2] (m)."""
    valid: BoolArray
    """[n]."""
    centres: FloatArray
    """[n, 2] centre of the local line."""
    normals: FloatArray
    """[n, 2] its unit normal."""
    lined: BoolArray
    """[n] whether there is a line."""
    signature: FloatArray
    """[n] log range without its mean, for correlation."""
    bearing_step: float
    """Bearing from one ray to the next (rad): the increment, plus the turn meanwhile."""


@dataclass(frozen=True, slots=True)
class Match:
    """Motion of the sensor from one scan to the next, in the frame of the first."""

    yaw_rad: float
    shift_m: FloatArray
    yaw_variance: float


class ScanGeometry:
    """The rays that all scans of a sensor share."""

    def __init__(self, count: int, angle_min: float, angle_increment: float) -> None:
        self.count = count
        self.angle_min = angle_min
        self.increment = angle_increment
        angles = angle_min + angle_increment * np.arange(count)
        self.directions: FloatArray = np.column_stack([np.cos(angles), np.sin(angles)])
        self.is_full = abs(abs(angle_increment) * count - 2.0 * np.pi) < 2.5 * abs(angle_increment)

    def matches(self, count: int, angle_min: float, angle_increment: float) -> bool:
        """Return whether these are the same rays."""
        same = abs(angle_min - self.angle_min) + abs(angle_increment - self.increment) < 1e-6
        return count == self.count and same

    def scan(self, ranges: FloatArray, valid: BoolArray, moved: FloatArray) -> Scan:
        """Build a scan; `moved` [n, 3] is where the sensor was at each ray (rad, m, m)."""
        points = self.directions * np.where(valid, ranges, 0.0)[:, None]
        turn = moved[:, 0]
        cosine, sine = np.cos(turn), np.sin(turn)
        x = cosine * points[:, 0] - sine * points[:, 1] + moved[:, 1]
        y = sine * points[:, 0] + cosine * points[:, 1] + moved[:, 2]
        points = np.column_stack([x, y])
        centres, normals, lined = self._lines(points, ranges, valid)
        logs = np.log(np.where(valid, np.maximum(ranges, 0.05), 1.0))
        mean = float(logs[valid].mean()) if valid.any() else 0.0
        signature = np.where(valid, logs - mean, 0.0)
        step = self.increment + float(turn[-1] - turn[0]) / (self.count - 1)
        return Scan(points, valid, centres, normals, lined, signature, step)

    def _lines(
        self, points: FloatArray, ranges: FloatArray, valid: BoolArray
    ) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Fit a line through the neighbours of every ray (sums over a sliding window)."""
        x, y = np.where(valid, points[:, 0], 0.0), np.where(valid, points[:, 1], 0.0)
        rows = np.stack([valid.astype(np.float64), x, y, x * x, x * y, y * y])
        count, sx, sy, sxx, sxy, syy = self._windowed(rows)
        enough = count > _LEAST_SHARE * (2 * _HALF_WIDTH + 1)
        safe = np.maximum(count, 1.0)
        cx, cy = sx / safe, sy / safe
        vxx, vxy, vyy = sxx / safe - cx * cx, sxy / safe - cx * cy, syy / safe - cy * cy
        angle = 0.5 * np.arctan2(2.0 * vxy, vxx - vyy)
        half_trace, difference = 0.5 * (vxx + vyy), np.hypot(0.5 * (vxx - vyy), vxy)
        thin, long = half_trace - difference, half_trace + difference
        lined = enough & valid & (thin < _FLATNESS * long + 4e-4) & (long > 0.0)
        # A line seen end-on jumps over corners: its neighbours' ranges must run on smoothly.
        one, other = np.roll(ranges, _HALF_WIDTH), np.roll(ranges, -_HALF_WIDTH)
        known = (one > 0.0) & (other > 0.0)
        lined &= ~known | (np.abs(one - other) < 0.5 * np.maximum(ranges, 0.2))
        normals = np.column_stack([-np.sin(angle), np.cos(angle)])
        return np.column_stack([cx, cy]), normals, lined

    def _windowed(self, rows: FloatArray) -> FloatArray:
        width = 2 * _HALF_WIDTH + 1
        mode = 'wrap' if self.is_full else 'constant'
        padded = np.pad(rows, ((0, 0), (_HALF_WIDTH + 1, _HALF_WIDTH)), mode=mode)  # type: ignore[call-overload]
        total = np.cumsum(padded, axis=1)
        sums: FloatArray = total[:, width:] - total[:, :-width]
        return sums

    def correlate(self, before: Scan, after: Scan) -> float:
        """Return the turn (rad) that lays `after` over `before` best, from log range alone."""
        length = self.count if self.is_full else 2 * self.count
        spectrum = np.fft.rfft(before.signature, length) * np.conj(
            np.fft.rfft(after.signature, length)
        )
        overlap = np.fft.irfft(spectrum, length)
        best = int(np.argmax(overlap))
        left, middle, right = (overlap[(best + k) % length] for k in (-1, 0, 1))
        curve = left - 2.0 * middle + right
        fraction = 0.5 * (left - right) / curve if curve < 0.0 else 0.0
        lag = best + float(fraction)
        return (lag - length if lag > length / 2 else lag) * self.increment

    def match(self, before: Scan, after: Scan, guess: Match | None = None) -> Match | None:
        """Return the sensor's motion from `before` to `after`, None where they do not fit.

        `guess` is a motion that is nearly right already, and saves the search.
        """
        yaw = self.correlate(before, after) if guess is None else guess.yaw_rad
        shift = np.zeros(2) if guess is None else guess.shift_m
        points = after.points[after.valid]
        normal, spread = np.eye(3), 0.0
        for step in range(0 if guess is None else _ROUGH_STEPS, _STEPS):
            reach = _REACH_M[min(step, len(_REACH_M) - 1)]
            used = points[::_ROUGH_STRIDE] if step < _ROUGH_STEPS else points
            solved = self._step(before, used, yaw, shift, reach)
            if solved is None:
                return None
            move, normal, spread = solved
            yaw += float(move[0])
            shift = shift + move[1:]
            if step >= _ROUGH_STEPS and abs(move[0]) < 3e-6:
                break
        variance = float(np.linalg.inv(normal)[0, 0]) * (_TRUST * spread) ** 2
        if not variance < 1e-4 or abs(yaw) > 1.0:
            return None
        return Match(yaw, shift, variance)

    def _rays(self, scan: Scan, bearings: FloatArray) -> tuple[NDArray[np.intp], BoolArray]:
        """Return the ray of `scan` that each bearing falls on, and where there is one."""
        middle = 0.5 * (self.count - 1)
        away = bearings - (self.angle_min + self.increment * middle)
        away -= 2.0 * np.pi * np.rint(away / (2.0 * np.pi))
        ray = np.rint(middle + away / scan.bearing_step).astype(np.intp)
        inside = (ray >= 0) & (ray < self.count)
        return np.where(inside, ray, 0), inside

    def _step(
        self, before: Scan, points: FloatArray, yaw: float, shift: FloatArray, reach: float
    ) -> tuple[FloatArray, FloatArray, float] | None:
        """One weighted least-squares step: (move [3], information [3, 3], residual sigma)."""
        cosine, sine = np.cos(yaw), np.sin(yaw)
        x = cosine * points[:, 0] - sine * points[:, 1] + shift[0]
        y = sine * points[:, 0] + cosine * points[:, 1] + shift[1]
        ray, inside = self._rays(before, np.arctan2(y, x))
        nx, ny = before.normals[ray, 0], before.normals[ray, 1]
        dx, dy = x - before.centres[ray, 0], y - before.centres[ray, 1]
        residual = nx * dx + ny * dy
        keep = inside & before.lined[ray] & (np.abs(residual) < reach)
        keep &= np.abs(dx) + np.abs(dy) < 4.0 * reach + 0.5
        if int(keep.sum()) < _LEAST_PAIRS:
            return None
        nx, ny, x, y, residual = nx[keep], ny[keep], x[keep], y[keep], residual[keep]
        jacobian = np.column_stack([-nx * (y - shift[1]) + ny * (x - shift[0]), nx, ny])
        half = len(residual) // 2
        spread = max(1.4826 * float(np.partition(np.abs(residual), half)[half]), 1e-4)
        weight = 1.0 / (1.0 + (residual / (2.0 * spread)) ** 2) ** 2
        weighted = jacobian * weight[:, None]
        normal = jacobian.T @ weighted + np.diag([1e-9, 1e-6, 1e-6])
        move = np.linalg.solve(normal, -(weighted.T @ residual))
        return move, normal, spread
