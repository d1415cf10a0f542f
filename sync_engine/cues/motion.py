"""Finds a clock difference by laying a sensor's rotations over the integrated gyro.

The sensor says by how much it turned between two of its stamps; the gyro, integrated, says the
same for any two times. The offset is where both agree:

    argmin_d  sum_k  (value_k - axis_k . (Th(s_k - d) - Th(s_k-1 - d) + bias dt_k))^2 / var_k

Increments between stamps are used, never rates at a stamp: a rate belongs to the middle of its
interval and would be off by half a period. A grid search finds the valley, Gauss-Newton its
bottom; the curvature there is the variance. The gyro's bias is fitted along.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from rig_common.times import NS_PER_S
from sync_engine.config import MotionConfig
from sync_engine.cues.gyro import AxisTrack, FloatArray, GyroTrack

_GRID_STEP_S = 0.01
_STRAY_S = 3.0 * _GRID_STEP_S
"""Farther than this from the best of the grid the refinement is lost."""
_BIAS_SIGMA_RAD_S = 0.02
"""Prior sigma of the gyro's bias, and of what a cue adds to it."""
_BIAS_WALK_RAD_S = 0.001
"""How much of that may come back between two fits."""
_GYRO_DENSITY = 2e-4
"""Noise of the gyro that every increment carries besides the cue's own (rad/s per root hertz); a
MEMS gyro's."""
_LEAST_ROWS = 8
_AMBIGUITY = 9.0
"""A second valley less than this above the best (in chi square) makes a fit ambiguous."""
_HUBER = 2.5
_SETTLED = 0.01
"""A step this short against the sigma of the offset is the last."""

Axis = tuple[float, float, float]
_NO_AXIS: tuple[Axis, ...] = ((0.0, 0.0, 0.0),)
"""Stands for the axis of a norm, which no bias of the gyro can be told from."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """How far a sensor turned from one of its stamps to another."""

    stamp_from_ns: int
    stamp_to_ns: int
    values_rad: tuple[float, ...]
    """Turn about each row of `axes`; a single norm where there are none."""
    axes: tuple[Axis, ...] | None
    """Unit axes in the IMU's frame, one per value; None: the value is the size of the turn."""
    variances: tuple[float, ...]
    """Variance of each value (rad^2)."""


@dataclass(frozen=True, slots=True)
class MotionFix:
    """One accepted comparison."""

    correction_s: float
    """To be added to the clock difference that was assumed."""
    variance: float
    stamp_ns: int
    """Middle of the stretch, on the sensor's clock."""


class RotationFit:
    """The rotations of one sensor that wait to be compared with the gyro."""

    def __init__(self, config: MotionConfig) -> None:
        self._config = config
        self._rotations: deque[Rotation] = deque()
        self._bias = np.zeros(3)
        self._bias_var = np.full(3, _BIAS_SIGMA_RAD_S**2)
        self._tried_at_ns = 0
        self.last_sigma_s = float('inf')
        self.fits = 0
        self.refused = 0

    def clear(self) -> None:
        """Forget the rotations; the bias is kept."""
        self._rotations.clear()
        self._tried_at_ns = 0

    def add(self, rotation: Rotation) -> None:
        """Queue one rotation; the oldest beyond `max_span_s` are let go."""
        self._rotations.append(rotation)
        oldest_ns = rotation.stamp_to_ns - int(self._config.max_span_s * NS_PER_S)
        while self._rotations[0].stamp_from_ns < oldest_ns:
            self._rotations.popleft()

    def solve(self, gyro: GyroTrack, assumed_ns: int, sigma_s: float) -> MotionFix | None:
        """Compare with the gyro; return a fix if the motion makes it sharp, else keep waiting.

        `assumed_ns` is sensor clock minus IMU clock as known so far, `sigma_s` its sigma.
        """
        if not self._is_due(gyro):
            return None
        half_s = min(self._config.grid_s, max(0.05, 6.0 * sigma_s))
        ready = self._covered(gyro, assumed_ns, half_s)
        if not ready:
            return None
        span_ns = ready[-1].stamp_to_ns - ready[0].stamp_from_ns
        if span_ns < self._config.min_span_s * NS_PER_S:
            return None
        self._tried_at_ns = ready[-1].stamp_to_ns
        rows = _Rows(ready, assumed_ns, self._bias, self._bias_var)
        if len(rows.values) < _LEAST_ROWS:
            return None
        rows.look_at(gyro, half_s + _STRAY_S)
        fix = rows.fit(half_s, max(sigma_s, 1e-3))
        self.last_sigma_s = fix.sigma_s
        if fix.ambiguous or fix.sigma_s > self._config.accept_sigma_s:
            self.refused += 1
            return None
        self._accept(fix)
        middle_ns = (ready[0].stamp_from_ns + ready[-1].stamp_to_ns) // 2
        return MotionFix(fix.delta_s, fix.sigma_s**2, middle_ns)

    def _is_due(self, gyro: GyroTrack) -> bool:
        """Return whether enough is there; refused stretches are tried again as they grow."""
        if len(self._rotations) < 4 or gyro.last_ns < 0:
            return False
        span_ns = self._rotations[-1].stamp_to_ns - self._rotations[0].stamp_from_ns
        if span_ns < self._config.min_span_s * NS_PER_S:
            return False
        grown_ns = self._rotations[-1].stamp_to_ns - self._tried_at_ns
        return grown_ns > 0.5 * self._config.min_span_s * NS_PER_S

    def _covered(self, gyro: GyroTrack, assumed_ns: int, half_s: float) -> list[Rotation]:
        """Return the rotations that lie inside the gyro's track wherever the search looks."""
        covered = gyro.covered_ns()
        if covered is None:
            return []
        margin_ns = int(half_s * NS_PER_S)
        first_ns = covered[0] + assumed_ns + margin_ns
        last_ns = covered[1] + assumed_ns - margin_ns
        return [
            rotation
            for rotation in self._rotations
            if rotation.stamp_from_ns >= first_ns and rotation.stamp_to_ns <= last_ns
        ]

    def _accept(self, fix: _Fix) -> None:
        """Each rotation tells once: fits that share none are independent for the filter."""
        last_ns = self._tried_at_ns
        while self._rotations and self._rotations[0].stamp_to_ns <= last_ns:
            self._rotations.popleft()
        self._bias = fix.bias
        self._bias_var = np.minimum(fix.bias_var + _BIAS_WALK_RAD_S**2, _BIAS_SIGMA_RAD_S**2)
        self.fits += 1


@dataclass(frozen=True, slots=True)
class _Fix:
    delta_s: float
    sigma_s: float
    ambiguous: bool
    bias: FloatArray
    bias_var: FloatArray


class _Rows:
    """The least-squares problem of one stretch: one row per (rotation, axis)."""

    def __init__(
        self,
        rotations: list[Rotation],
        assumed_ns: int,
        bias: FloatArray,
        bias_var: FloatArray,
    ) -> None:
        start_ns = rotations[0].stamp_from_ns
        self._origin_ns = start_ns - assumed_ns
        self.norms = rotations[0].axes is None
        by_axis: dict[Axis, list[tuple[float, ...]]] = {}
        for rotation in rotations:
            if (rotation.axes is None) != self.norms:
                continue  # a cue that lost its axis half-way: the first kind decides
            span_ns = rotation.stamp_from_ns - start_ns, rotation.stamp_to_ns - start_ns
            for axis, value, variance in zip(
                rotation.axes or _NO_AXIS, rotation.values_rad, rotation.variances, strict=True
            ):
                by_axis.setdefault(axis, []).append((*span_ns, value, variance))
        self._groups = [(np.array(axis), len(group)) for axis, group in by_axis.items()]
        table = np.array([row for group in by_axis.values() for row in group]).T
        self.spans: FloatArray = table[:2] / NS_PER_S
        """[2, rows] start and end (s after the first start)."""
        self.values, variances = table[2:]
        lasted = self.spans[1] - self.spans[0]
        self.sigmas = np.sqrt(variances + _GYRO_DENSITY**2 * lasted)
        axes = np.repeat([axis for axis, _ in self._groups], [n for _, n in self._groups], axis=0)
        self._columns: FloatArray = axes * lasted[:, None]
        """[rows, 3] what a bias of the gyro adds to each row, per rad/s."""
        self._bias = bias
        self._bias_var = bias_var

    def look_at(self, gyro: GyroTrack, margin_s: float) -> None:
        """Take the gyro's track about every axis: one projection for all that follows."""
        low_s, high_s = float(self.spans.min()) - margin_s, float(self.spans.max()) + margin_s
        axes = np.eye(3) if self.norms else [axis for axis, _ in self._groups]
        self._tracks = [gyro.about(axis, self._origin_ns, low_s, high_s) for axis in axes]

    def _parts(self) -> Iterator[tuple[AxisTrack, FloatArray]]:
        """Yield every track with the spans [2, rows] that are looked up in it."""
        if self.norms:
            yield from ((track, self.spans) for track in self._tracks)
            return
        done = 0
        for track, (_, count) in zip(self._tracks, self._groups, strict=True):
            yield track, self.spans[:, done:done + count]
            done += count

    def _predicted(self, deltas: FloatArray) -> FloatArray:
        """Return what the gyro says for every row and delta, [rows, deltas]."""
        turns = []
        for track, spans in self._parts():
            start, end = track.angle(spans[:, :, None] - deltas)
            turns.append(end - start)
        return _norm(turns) if self.norms else np.concatenate(turns)

    def _predicted_and_slope(self, delta: float) -> tuple[FloatArray, FloatArray]:
        """Return what the gyro says for every row, and d residual / d delta, both [rows]."""
        turns, slopes = [], []
        for track, spans in self._parts():
            angles, rates = track.angle_and_rate(spans - delta)
            turns.append(angles[1] - angles[0])
            slopes.append(rates[1] - rates[0])
        if not self.norms:
            return np.concatenate(turns), np.concatenate(slopes)
        size = _norm(turns)
        inner = sum(turn * slope for turn, slope in zip(turns, slopes, strict=True))
        return size, inner / np.maximum(size, 1e-9)

    def _costs(self, deltas: FloatArray) -> FloatArray:
        """Return chi square at each delta with the bias fitted out."""
        columns = self._columns / self.sigmas[:, None]
        residuals = (self.values[:, None] - self._predicted(deltas)) / self.sigmas[:, None]
        residuals = np.clip(residuals - columns @ self._bias[:, None], -50.0, 50.0)
        normal = columns.T @ columns + np.diag(1.0 / self._bias_var)
        pulled = columns.T @ residuals
        costs: FloatArray = np.sum(residuals**2, axis=0) - np.sum(
            pulled * np.linalg.solve(normal, pulled), axis=0
        )
        return costs

    def fit(self, half_s: float, prior_sigma_s: float) -> _Fix:
        """Search the grid, then refine; the prior picks a valley but does not move its bottom."""
        count = 2 * int(np.ceil(half_s / _GRID_STEP_S)) + 1
        deltas = np.linspace(-half_s, half_s, count)
        chi = self._costs(deltas)
        freedom = max(len(self.values) - 2, 1)
        scaled = chi / max(1.0, float(chi.min()) / freedom) + (deltas / prior_sigma_s) ** 2
        best = int(np.argmin(scaled))
        inner = scaled[1:-1]
        valleys = np.flatnonzero((inner <= scaled[:-2]) & (inner <= scaled[2:])) + 1
        others = [float(scaled[i]) for i in valleys if abs(i - best) > 1]
        ambiguous = any(other - scaled[best] < _AMBIGUITY for other in others)
        at_edge = best in (0, count - 1)
        return self._refine(float(deltas[best]), ambiguous or at_edge)

    def _refine(self, delta: float, ambiguous: bool) -> _Fix:
        """Gauss-Newton on [delta, bias] with Huber weights on what the cue got wrong."""
        columns = self._columns
        bias = self._bias.copy()
        start = delta
        inverse: FloatArray = np.eye(4)
        prior = np.diag([1e-6, *(1.0 / self._bias_var)])
        jacobian = np.column_stack([np.empty(len(columns)), columns])
        for _ in range(5):
            predicted, slope = self._predicted_and_slope(delta)
            residual = self.values - predicted - columns @ bias
            scaled = np.abs(residual) / self.sigmas
            spread = max(1.0, 1.4826 * _median(scaled))
            weight = np.minimum(1.0, _HUBER * spread / np.maximum(scaled, 1e-12))
            weight /= (self.sigmas * spread) ** 2
            np.negative(slope, out=jacobian[:, 0])
            normal = jacobian.T @ (jacobian * weight[:, None]) + prior
            pull = jacobian.T @ (residual * weight)
            pull[1:] += (self._bias - bias) / self._bias_var
            inverse = np.asarray(np.linalg.inv(normal), dtype=np.float64)
            move = inverse @ pull
            delta += min(max(float(move[0]), -_GRID_STEP_S), _GRID_STEP_S)
            bias = bias + move[1:]
            if move[0] ** 2 < _SETTLED**2 * inverse[0, 0]:
                break
        lost = abs(delta - start) > _STRAY_S
        diagonal = np.diag(inverse)
        return _Fix(delta, sqrt(float(diagonal[0])), ambiguous or lost, bias, diagonal[1:].copy())


def _median(values: FloatArray) -> float:
    """Return the median of a few values; numpy's takes ten times as long over its options."""
    ordered, last = np.sort(values), len(values) - 1
    return 0.5 * float(ordered[last // 2] + ordered[(last + 1) // 2])


def _norm(turns: list[FloatArray]) -> FloatArray:
    """Return the size of a turn given by its components."""
    size: FloatArray = np.sqrt(sum(turn * turn for turn in turns))
    return size
