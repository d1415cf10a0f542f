"""The least-squares problem of one stretch of motion: one row per (rotation, axis).

    value = gain (R axis) . (Th(to - d) - Th(from - d) + bias dt)

with the clock difference d, the gyro's bias, the sensor's rotation R and the gain unknown. A grid
over d finds the valley, the bias and (while it is not known) R fitted out at every point;
Gauss-Newton on all of them finds its bottom.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from rig_common.times import NS_PER_S
from sync_engine.cues.gyro import FloatArray, GyroTrack
from sync_engine.cues.mounting import Mounting, best_rotations, limited, turned_by

if TYPE_CHECKING:
    from sync_engine.cues.motion import Rotation

GRID_STEP_S = 0.01
STRAY_S = 3.0 * GRID_STEP_S
"""Farther than this from the best of the grid the refinement is lost."""
GYRO_DENSITY = 2e-4
"""Noise of the gyro that every increment carries besides the cue's own (rad/s per root hertz); a
MEMS gyro's."""
_SLOPE_S = GRID_STEP_S
"""Half of the time over which the gyro's rate is averaged where its slope counts."""
_BESIDE = np.array([-_SLOPE_S, 0.0, _SLOPE_S])
_AMBIGUITY = 9.0
"""A second valley less than this above the best (in chi square) makes a fit ambiguous."""
_FREE_AMBIGUITY = 25.0
"""The same while the rotation is fitted, too: three more unknowns bend to fit a wrong valley."""
_HUBER = 2.5
_SETTLED = 0.01
"""A step this short against the sigma of the offset is the last."""
_STEPS = 8
_LAGS = 4
"""Rotations over which the errors of a cue may be correlated."""
_GAIN_SIGMA = 1e-4
"""By how much all turns of a stretch may be too large or too small, where the cue knows no such
error: not at all."""
_MISMATCH = 3.0
"""Residuals this many times the claimed noise do not match it ..."""
_UNEXPLAINED = 0.1
"""... and if this share of the motion is left unexplained, too, something else is compared."""


@dataclass(frozen=True, slots=True)
class Fix:
    """What one stretch says."""

    delta_s: float
    sigma_s: float
    ambiguous: bool
    mismatched: bool
    """The gyro explains too little of what the sensor reports: not to be trusted."""
    spread: float
    """Residuals over the noise that the cue claims."""
    bias: FloatArray
    bias_var: FloatArray
    matrix: FloatArray
    information: FloatArray
    """All that is known of the rotation now (1 / rad^2), [3, 3]."""
    honesty: float
    """Variance of `delta_s` that the residuals show, over that of `sigma_s`; one noisy draw."""
    rows: int


class TurnRows:
    """One stretch: the rows, and the gyro's track below them."""

    def __init__(
        self,
        rotations: list[Rotation],
        assumed_ns: int,
        bias: FloatArray,
        bias_var: FloatArray,
        least_spread: float = 1.0,
        gain_sigma: float = 0.0,
    ) -> None:
        start_ns = rotations[0].stamp_from_ns
        self._origin_ns = start_ns - assumed_ns
        self.norms = rotations[0].axes is None
        # A cue that lost its axes half-way: the first kind decides.
        rotations = [each for each in rotations if (each.axes is None) == self.norms]
        spans = [
            (each.stamp_from_ns - start_ns, each.stamp_to_ns - start_ns) for each in rotations
        ]
        self.spans: FloatArray = np.array(spans, dtype=np.float64).T / NS_PER_S
        """[2, k] start and end of every rotation (s after the first start)."""
        counts = [len(each.values_rad) for each in rotations]
        self._of = np.repeat(np.arange(len(rotations)), counts)
        """[rows] which rotation a row belongs to."""
        self.values = np.array([value for each in rotations for value in each.values_rad])
        variances = np.array([value for each in rotations for value in each.variances])
        self._lasted = (self.spans[1] - self.spans[0])[self._of]
        self.sigmas = np.sqrt(variances + GYRO_DENSITY**2 * self._lasted)
        self.axes: FloatArray = (
            np.zeros((len(self.values), 3))
            if self.norms
            else np.array([axis for each in rotations for axis in each.axes or ()])
        )
        """[rows, 3] in the sensor's own frame; zeros for sizes, which tell no bias either."""
        self._bias, self._bias_var = bias, bias_var
        self._least_spread = least_spread
        self._gain_info = max(gain_sigma, _GAIN_SIGMA) ** -2

    def look_at(self, gyro: GyroTrack, margin_s: float) -> None:
        """Take the gyro's track below the rows."""
        low_s, high_s = float(self.spans.min()) - margin_s, float(self.spans.max()) + margin_s
        self._track = gyro.about(np.eye(3), self._origin_ns, low_s, high_s)
        means = np.diff(self._track.angles(np.arange(low_s, high_s, 2.0 * _SLOPE_S)), axis=1)
        ripple = np.diff(means / (2.0 * _SLOPE_S), n=3, axis=1)
        self._rate_var = float(np.mean(ripple**2)) / 20.0 if ripple.size else 0.0
        """Variance of a rate averaged like the slopes, in which no motion is left (rad^2/s^2):
        third differences of white noise have 1 + 9 + 9 + 1 times its variance."""

    def fit(self, half_s: float, prior_sigma_s: float, mounting: Mounting) -> Fix:
        """Search the grid, then refine; the prior picks a valley but does not move its bottom."""
        count = 2 * int(np.ceil(half_s / GRID_STEP_S)) + 1
        deltas = np.linspace(-half_s, half_s, count)
        start, end = self._track.angles(self.spans[:, :, None] - deltas).swapaxes(0, 1)
        turns = (end - start)[:, self._of]
        free = not self.norms and not mounting.is_known
        matrices = (
            mounting.matrix[None]
            if not free
            else best_rotations(self.axes, self.values, self.sigmas**-2, turns, mounting)
        )
        chi = self._costs(turns, matrices)
        freedom = max(len(self.values) - 2, 1)
        scaled = chi / max(1.0, float(chi.min()) / freedom) + (deltas / prior_sigma_s) ** 2
        best = int(np.argmin(scaled))
        inner = scaled[1:-1]
        valleys = np.flatnonzero((inner <= scaled[:-2]) & (inner <= scaled[2:])) + 1
        others = [float(scaled[i]) for i in valleys if abs(i - best) > 1]
        limit = _FREE_AMBIGUITY if free else _AMBIGUITY
        ambiguous = any(other - scaled[best] < limit for other in others)
        at_edge = best in (0, count - 1)
        matrix = matrices[best] if free else mounting.matrix
        return self._refine(float(deltas[best]), ambiguous or at_edge, mounting, matrix)

    def _costs(self, turns: FloatArray, matrices: FloatArray) -> FloatArray:
        """Return chi square at each candidate with the bias fitted out, [d].

        `turns` [3, rows, d] by the gyro; `matrices` [d or 1, 3, 3]. The bias is fitted in the
        sensor's frame, where it does not depend on the rotation.
        """
        if self.norms:
            predicted = _sizes(turns)
        else:
            axes = np.einsum('dij,rj->ird', matrices, self.axes)
            predicted = np.sum(axes * turns, axis=0)
            predicted += np.einsum('ird,i->rd', axes, self._bias) * self._lasted[:, None]
        columns = self.axes * (self._lasted / self.sigmas)[:, None]
        residuals = (self.values[:, None] - predicted) / self.sigmas[:, None]
        residuals = np.clip(residuals, -50.0, 50.0)
        normal = columns.T @ columns + np.eye(3) / float(self._bias_var.max())
        pulled = columns.T @ residuals
        costs: FloatArray = np.sum(residuals**2, axis=0) - np.sum(
            pulled * np.linalg.solve(normal, pulled), axis=0
        )
        return costs

    def _refine(
        self, delta: float, ambiguous: bool, mounting: Mounting, matrix: FloatArray
    ) -> Fix:
        """Gauss-Newton on [delta, bias, turn of the mounting, gain]; Huber weights on outliers."""
        bias, start, gain = self._bias.copy(), delta, 1.0
        prior = np.zeros((8, 8))
        prior[0, 0] = 1e-6
        prior[1:4, 1:4] = np.diag(1.0 / self._bias_var)
        prior[4:7, 4:7] = mounting.information
        prior[7, 7] = self._gain_info
        spread, normal, lost = 1.0, prior, False
        weight = residual = self.values  # set by the first step
        jacobian = np.zeros((len(residual), 8))
        for _ in range(_STEPS):
            residual, jacobian = self.linear(delta, bias, matrix, gain)
            scaled = np.abs(residual) / self.sigmas
            spread = max(self._least_spread, 1.4826 * _median(scaled))
            weight = np.minimum(1.0, _HUBER * spread / np.maximum(scaled, 1e-12))
            weight /= (self.sigmas * spread) ** 2
            normal = jacobian.T @ (jacobian * weight[:, None]) + prior
            pull = jacobian.T @ (residual * weight)
            pull[1:4] += (self._bias - bias) / self._bias_var
            pull[4:7] -= mounting.information @ _turn_between(mounting.matrix, matrix)
            pull[7] -= self._gain_info * (gain - 1.0)
            move = np.linalg.solve(normal, pull)
            delta += min(max(float(move[0]), -GRID_STEP_S), GRID_STEP_S)
            bias = bias + move[1:4]
            gain += float(move[7])
            turn = limited(move[4:7])
            matrix = turned_by(turn) @ matrix
            lost = abs(delta - start) > STRAY_S
            variance = float(np.linalg.inv(normal)[0, 0])
            if lost or (move[0] ** 2 < _SETTLED**2 * variance and np.abs(turn).max() < 1e-3):
                break
        inverse = np.asarray(np.linalg.inv(normal), dtype=np.float64)
        honesty = self._shown_over_claimed(residual, jacobian, weight, inverse)
        return Fix(delta, self._sigma_s(1.0 / float(inverse[0, 0]), weight), ambiguous or lost,
                   self._is_mismatched(spread), spread, bias, np.diag(inverse)[1:4].copy(),
                   matrix, np.asarray(np.linalg.inv(inverse[4:7, 4:7])), honesty,
                   len(residual))  # fmt: skip

    def _sigma_s(self, sharpness: float, weight: FloatArray) -> float:
        """Return the sigma of delta, from how sharp the valley is (1 / s^2).

        The slopes of the gyro's noise make it sharper, too, and tell nothing. With the sharpness
        S, of which the motion made S0, the variance is S / S0^2, which is 1 / S without noise.
        """
        unsure = 1.0 + 2.0 * sqrt(2.0 / len(weight))
        noisy = 2.0 * self._rate_var * unsure * float(weight.sum())
        return sqrt(sharpness) / (sharpness - noisy) if sharpness > noisy else np.inf

    def _shown_over_claimed(
        self, residual: FloatArray, jacobian: FloatArray, weight: FloatArray, inverse: FloatArray
    ) -> float:
        """Return the variance of delta that the residuals show over the one that is claimed.

        The sandwich estimate of Newey and West (1987): the rows' pulls on delta, multiplied with
        themselves and with those of the next rotations, because the errors of a cue are
        correlated. What a stretch this short would show of a cue whose claim is right is known,
        too: fitted rows leave less.
        """
        influence = inverse[0] @ (jacobian * weight[:, None]).T
        lags = max(1, min(_LAGS, len(self.spans[0]) // 10))
        apart = np.abs(self._of[:, None] - self._of)
        kernel = np.maximum(1.0 - apart / (lags + 1), 0.0) * np.outer(influence, influence)
        expected = np.diag(1.0 / weight) - jacobian @ inverse @ jacobian.T
        claimed = float(np.sum(kernel * expected))
        shown = float(residual @ kernel @ residual)
        return max(shown, 0.0) / claimed if claimed > 0.0 else 1.0

    def linear(
        self, delta: float, bias: FloatArray, matrix: FloatArray, gain: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return residuals [rows] and d predicted / d (delta, bias, turn, gain) [rows, 8]."""
        angles = self._track.angles(self.spans - delta - _BESIDE[:, None, None])
        before, turns, after = (angles[:, :, 1] - angles[:, :, 0]).swapaxes(0, 1)
        slopes = (before - after) / (2.0 * _SLOPE_S)
        jacobian = np.zeros((len(self.values), 8))
        if self.norms:
            sizes = jacobian[:, 7] = _sizes(turns)
            jacobian[:, 0] = -gain * np.sum(turns * slopes, axis=0) / np.maximum(sizes, 1e-9)
            return self.values - gain * sizes, jacobian
        axes = self.axes @ matrix.T
        turns = turns.T[self._of] + bias * self._lasted[:, None]
        jacobian[:, 0] = -gain * np.sum(axes * slopes.T[self._of], axis=1)
        jacobian[:, 1:4] = axes * (gain * self._lasted)[:, None]
        jacobian[:, 4:7] = gain * np.cross(axes, turns)
        jacobian[:, 7] = np.sum(axes * turns, axis=1)
        return self.values - gain * jacobian[:, 7], jacobian

    def _is_mismatched(self, spread: float) -> bool:
        """Return whether the residuals neither match the claimed noise nor are small."""
        if spread <= _MISMATCH:
            return False
        moved = self.values - self.values.mean() if self.norms else self.values
        signal = float(np.mean((moved / self.sigmas) ** 2))
        return spread**2 > _UNEXPLAINED * signal


def _turn_between(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the rotation vector [3] (rad) that takes `one` to `other`, to first order in size."""
    between = other @ one.T
    vector = 0.5 * np.array(
        [
            between[2, 1] - between[1, 2],
            between[0, 2] - between[2, 0],
            between[1, 0] - between[0, 1],
        ]
    )
    sine = float(np.linalg.norm(vector))
    cosine = 0.5 * (float(np.trace(between)) - 1.0)
    if sine < 1e-6:
        return vector
    turn: FloatArray = vector * (float(np.arctan2(sine, cosine)) / sine)
    return turn


def _median(values: FloatArray) -> float:
    """Return the median of a few values; numpy's takes ten times as long over its options."""
    ordered, last = np.sort(values), len(values) - 1
    return 0.5 * float(ordered[last // 2] + ordered[(last + 1) // 2])


def _sizes(turns: FloatArray) -> FloatArray:
    """Return the size of turns given by their components [3, ...]."""
    sizes: FloatArray = np.sqrt(np.sum(turns * turns, axis=0))
    return sizes
