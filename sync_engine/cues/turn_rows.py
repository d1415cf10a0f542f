"""The least-squares problem of some motion: one row per (rotation, axis).

    value = (1 + s) (R axis) . (Th(to - d) - Th(from - d) + bias dt)

with the clock difference d, the gyro's bias, the sensor's rotation R and the scale s unknown. (Of
a speed: ways in metres over the way of the reference.) Values that are counted from one stamp
share its error, so only what they differ by is compared. A
grid over d finds the valley, the bias, the scale and (while it is not known) R fitted out at every
point; Gauss-Newton on all of them finds its bottom. There the rows are squeezed into eight, which
say all that the filter can use.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sync_engine.clocks.clock_filter import MotionPrior
from sync_engine.clocks.ways import declared_cost
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.mounting import Mounting, best_rotations, limited, turned_by

if TYPE_CHECKING:
    from sync_engine.cues.motion import Rotation

GRID_STEP_S = 0.01
"""Step of the search for turns; the gyro's rate is averaged over twice this where its slope
counts."""
STRAY_STEPS = 3.0
"""Farther than this from where it began the refinement is lost."""
GYRO_DENSITY = 2e-4
"""Noise of the gyro that every increment carries besides the cue's own (rad/s per root hertz); a
MEMS gyro's."""
_AMBIGUITY = 9.0
"""A second valley less than this above the best (in chi square) makes a search ambiguous."""
_FREE_AMBIGUITY = 25.0
"""The same while the rotation is fitted, too: three more unknowns bend to fit a wrong valley."""
_HUBER = 2.5
_SETTLED = 0.01
"""A step this short against the sigma of the offset is the last."""
_STEPS = 8
_LAGS = 4
"""Rotations over which the errors of a cue may be correlated."""
_MISMATCH = 3.0
"""Residuals this many times the claimed noise do not match it ..."""
_UNEXPLAINED = 0.1
"""... and if this share of the motion is left unexplained, too, something else is compared."""
_FREE_SCALE = 0.7
"""A prior sigma of the scale beyond which it is first taken from the sizes."""
_LEAST_RIPPLES = 20
_MOST_NOISE = 0.9
"""Largest share of the slopes that may be the gyro's noise: with more a piece tells no offset."""


@dataclass(frozen=True, slots=True)
class Point:
    """Values of all unknowns."""

    delta_s: float
    bias: Floats
    turn: Floats
    """Of the mounting, further than `reference` [3] (rad)."""
    scale: float
    """s, 0 where turns are neither too large nor too small."""
    reference: Floats
    """Rotation matrix [3, 3] that `turn` is counted from."""

    @property
    def matrix(self) -> Floats:
        """Rotation matrix of the mounting [3, 3]."""
        return turned_by(self.turn) @ self.reference

    @property
    def vector(self) -> Floats:
        """All unknowns [8]."""
        return np.array([self.delta_s, *self.bias, *self.turn, self.scale])

    def moved(self, step: Floats, longest_s: float) -> Point:
        """Return the point after a step [8], no longer than a linear step may be."""
        delta = min(max(float(step[0]), -longest_s), longest_s)
        scale = max(self.scale + float(step[7]), -0.9)
        return Point(self.delta_s + delta, self.bias + step[1:4],
                     self.turn + limited(step[4:7]), scale, self.reference)  # fmt: skip


class Valley(NamedTuple):
    """What a search found."""

    point: Point
    ambiguous: bool


class Squeezed(NamedTuple):
    """What the rows say at a point: value = root . unknowns, noise 1 where the claim is right."""

    root: Floats
    """[8, 8]."""
    value: Floats
    """[8]."""
    sigma_s: float
    """Of the offset, of these rows and the prior (s)."""
    blur_var: float
    """Variance of the offset that the noise of the gyro's slopes adds (s^2)."""
    shown: float
    """Squared pull of the residuals on the offset ..."""
    claimed: float
    """... and what it would be if the claim of the cue were right."""
    mismatched: bool
    """The gyro explains too little of what the sensor reports: not to be trusted."""
    explained: float
    """Share of the motion that the gyro explains."""
    rows: int


class TurnRows:
    """The rows of some rotations, and the gyro's track below them."""

    def __init__(
        self, rotations: list[Rotation], assumed_ns: int, step_s: float = GRID_STEP_S
    ) -> None:
        self._step_s = step_s
        start_ns = rotations[0].stamp_from_ns
        self._origin_ns = start_ns - assumed_ns
        self.norms = rotations[0].axes is None
        # A cue that lost its axes half-way: the first kind decides.
        rotations = [each for each in rotations if (each.axes is None) == self.norms]
        spans = [
            (each.stamp_from_ns - start_ns, each.stamp_to_ns - start_ns) for each in rotations
        ]
        self.spans: Floats = np.array(spans, dtype=np.float64).T / NS_PER_S
        """[2, k] start and end of every rotation (s after the first start)."""
        counts = [len(each.values_rad) for each in rotations]
        self._of = np.repeat(np.arange(len(rotations)), counts)
        """[rows] which rotation a row belongs to."""
        self.values = np.array([value for each in rotations for value in each.values_rad])
        starts, self._group = np.unique(self.spans[0], return_inverse=True)
        self._shares = len(starts) < len(rotations)
        """Whether some values are counted from one stamp."""
        if self._shares:
            by_axis = self.values.reshape(len(rotations), -1).T
            self.values = self._differences(by_axis).T.ravel()
        variances = np.array([value for each in rotations for value in each.variances])
        scaled = [bool(sigma) for each in rotations for sigma in each.scale_sigmas]
        self._scaled: Floats = np.array(scaled or [True] * len(self.values), dtype=np.float64)
        """[rows] 1 where the scale counts: a focal length has no part in turns about its axis."""
        lasted = self.spans[1] - self.spans[0]
        self.sigmas = np.sqrt(variances + GYRO_DENSITY**2 * lasted[self._of])
        self._lasted = self._differences(lasted[None])[0][self._of]
        self.axes: Floats = (
            np.zeros((len(self.values), 3))
            if self.norms
            else np.array([axis for each in rotations for axis in each.axes or ()])
        )
        """[rows, 3] in the sensor's own frame; zeros for sizes."""

    def _differences(self, values: Floats) -> Floats:
        """Return values [m, k, ...] without the mean of the rotations that share a start."""
        if not self._shares:
            return values
        same: Floats = np.equal.outer(self._group, self._group).astype(np.float64)
        means = np.tensordot(values, same / same.sum(axis=1), (1, 1))
        rest: Floats = values - np.moveaxis(means, -1, 1)
        return rest

    def look_at(self, gyro: GyroTrack, margin_s: float) -> None:
        """Take the gyro's track below the rows."""
        low_s, high_s = float(self.spans.min()) - margin_s, float(self.spans.max()) + margin_s
        first_ns, last_ns = gyro.covered_ns() or (self._origin_ns, self._origin_ns)
        self._known_s = (
            (first_ns - self._origin_ns) / NS_PER_S,
            (last_ns - self._origin_ns) / NS_PER_S,
        )
        self._track = gyro.about(np.eye(3), self._origin_ns, low_s, high_s)
        slope_s = 2.0 * self._step_s
        means = np.diff(self._track(np.arange(low_s, high_s, slope_s)), axis=1)
        ripple = np.diff(means / slope_s, n=3, axis=1)
        if ripple.shape[1] >= _LEAST_RIPPLES:
            gyro.note_noise(float(np.mean(ripple**2)) / 20.0)
        self._rate_var = gyro.rate_var
        """Variance of a rate averaged like the slopes (rad^2/s^2)."""

    # -- search -------------------------------------------------------------------------------

    def search(
        self, half_s: float, prior_sigma_s: float, prior: MotionPrior, mounting: Mounting
    ) -> Valley:
        """Look for the valley within `half_s`; the prior may decide between two, as it is sure
        and as likely as what is declared is right."""
        count = 2 * int(np.ceil(half_s / self._step_s)) + 1
        deltas = np.linspace(-half_s, half_s, count)
        start, end = self._track(self.spans[:, :, None] - deltas).swapaxes(0, 1)
        low_s, high_s = self._known_s
        inside = (self.spans[0][:, None] - deltas >= low_s) & (
            self.spans[1][:, None] - deltas <= high_s
        )
        has: Floats = inside[self._of].astype(np.float64)
        turns = self._differences(end - start)[:, self._of] * has
        free = not self.norms and not mounting.is_known
        matrices = (
            best_rotations(self.axes, self.values, self.sigmas**-2, turns, mounting)
            if free
            else mounting.matrix[None]
        )
        scale = float(prior.mean[7])
        if prior.covariance[7, 7] > _FREE_SCALE**2:
            seen = np.sum(turns[:, :, count // 2] ** 2) / len(turns[0]) * len(self.spans[0])
            scale = float(np.sum(self.values**2) / max(seen, 1e-12)) ** 0.5 - 1.0
        chi = self._costs(turns, has, matrices, prior, scale)
        freedom = max(len(self.values) - 2, 1)
        scaled = chi / max(1.0, float(chi.min()) / freedom)
        scaled += declared_cost(deltas / prior_sigma_s)
        best = int(np.argmin(scaled))
        inner = scaled[1:-1]
        valleys = np.flatnonzero((inner <= scaled[:-2]) & (inner <= scaled[2:])) + 1
        others = [float(scaled[i]) for i in (0, *valleys, count - 1) if abs(i - best) > 1]
        limit = _FREE_AMBIGUITY if free else _AMBIGUITY
        ambiguous = any(other - scaled[best] < limit for other in others)
        point = Point(
            float(deltas[best]),
            prior.mean[1:4].copy(),
            np.zeros(3),
            scale,
            matrices[best] if free else mounting.matrix,
        )
        return Valley(point, ambiguous or best in (0, count - 1))  # fmt: skip

    def _costs(
        self, turns: Floats, inside: Floats, matrices: Floats, prior: MotionPrior, scale: float
    ) -> Floats:
        """Return chi square at each candidate with bias and scale (near `scale`) fitted out, [d].

        `turns` [3, rows, d] by the gyro, which has them where `inside` [rows, d] is 1; `matrices`
        [d or 1, 3, 3]. Rows that a candidate does not have count as they do where the
        best candidate with all of them puts them: all are compared by the rows that they share.
        """
        bias, lasted = prior.mean[1:4], self._lasted[:, None]
        turns = turns + bias[:, None, None] * lasted
        if self.norms:
            predicted = self._sizes(turns)
            along = turns / np.maximum(predicted, 1e-9)
        else:
            along = np.einsum('dij,rj->ird', matrices, self.axes)
            predicted = np.sum(along * turns, axis=0)
            along = np.broadcast_to(along, turns.shape)
        scaled = predicted * self._scaled[:, None]
        columns = np.concatenate([along * lasted, scaled[None]]) / self.sigmas[:, None]
        columns *= inside
        predicted = predicted + scaled * scale
        residuals = np.clip((self.values[:, None] - predicted) / self.sigmas[:, None], -50.0, 50.0)
        residuals *= inside
        inner = [1, 2, 3, 7]
        normal = np.einsum('ird,jrd->dij', columns, columns)
        normal += np.linalg.inv(prior.covariance[np.ix_(inner, inner)])
        pulled = np.einsum('ird,rd->di', columns, residuals)
        taken = np.linalg.solve(normal, pulled[:, :, None])[:, :, 0]
        left = (residuals - np.einsum('ird,di->rd', columns, taken)) ** 2
        costs: Floats = np.sum(residuals**2, axis=0) - np.sum(pulled * taken, axis=1)
        complete = inside.all(axis=0)
        if not complete.any():
            complete = inside.sum(axis=0) == inside.sum(axis=0).max()
        best = int(np.argmin(np.where(complete, costs, np.inf)))
        missing: Floats = np.sum((1.0 - inside) * left[:, best, None], axis=0)
        return costs + missing

    # -- refinement ---------------------------------------------------------------------------

    def settle(self, start: Point, prior: MotionPrior) -> tuple[Point, Floats] | None:
        """Return the bottom of the valley that `start` is in with the covariance [8, 8] of the
        unknowns there; None where it strays from it.

        `prior` is of the unknowns; Huber weights on outliers.
        """
        information = np.linalg.inv(prior.covariance)
        point = start
        for _ in range(_STEPS):
            residual, jacobian = self._linear_at(point)
            weight = self._weights(residual)
            normal = jacobian.T @ (jacobian * weight[:, None]) + information
            pull = jacobian.T @ (residual * weight) + information @ (prior.mean - point.vector)
            move: Floats = np.asarray(np.linalg.solve(normal, pull), dtype=np.float64)
            point = point.moved(move, self._step_s)
            if abs(point.delta_s - start.delta_s) > STRAY_STEPS * self._step_s:
                return None
            covariance: Floats = np.linalg.inv(normal)
            is_short = move[0] ** 2 < _SETTLED**2 * float(covariance[0, 0])
            if is_short and np.abs(move[4:7]).max() < 1e-3:
                break
        return point, covariance

    def squeeze(self, point: Point, prior: MotionPrior, settled: Floats) -> Squeezed:
        """Return what the rows say around a point, which was `settled` with that covariance."""
        residual, jacobian = self._linear_at(point)
        weight = self._weights(residual)
        root_weight = np.sqrt(weight)
        table = np.column_stack([jacobian, residual + jacobian @ point.vector])
        squeezed = np.asarray(np.linalg.qr(table * root_weight[:, None], mode='r'))
        upper: Floats = np.pad(squeezed, ((0, max(9 - len(squeezed), 0)), (0, 0)))
        normal = upper[:8, :8].T @ upper[:8, :8] + np.linalg.inv(prior.covariance)
        inverse = np.asarray(np.linalg.inv(normal), dtype=np.float64)
        alone = normal - np.linalg.inv(prior.covariance)
        others = np.linalg.inv(normal[1:, 1:])
        sharpness = float(alone[0, 0] - alone[0, 1:] @ others @ alone[1:, 0])
        shown, claimed = self._pulls(residual, jacobian, weight, inverse[0], settled)
        spread = 1.4826 * _median(np.abs(residual) / self.sigmas)
        signal = self.values - self.values.mean() if self.norms else self.values
        left = float(np.sum(weight * residual**2)) / max(float(np.sum(weight * signal**2)), 1e-12)
        doubtful = spread > _MISMATCH and spread**2 > _UNEXPLAINED * float(
            np.mean((signal / self.sigmas) ** 2)
        )
        return Squeezed(upper[:8, :8], upper[:8, 8], float(inverse[0, 0]) ** 0.5,
                        self._blur_var(sharpness, weight), shown, claimed, doubtful,
                        max(1.0 - left, 0.0), len(residual))  # fmt: skip

    def _weights(self, residual: Floats) -> Floats:
        """Return the rows' weights (1 / rad^2), Huber's for outliers."""
        scaled = np.abs(residual) / self.sigmas
        limit = _HUBER * max(1.0, 1.4826 * _median(scaled))
        return np.asarray(np.minimum(1.0, limit / np.maximum(scaled, 1e-12)) / self.sigmas**2)

    def _blur_var(self, sharpness: float, weight: Floats) -> float:
        """Return the variance of delta that noisy slopes add to 1 / sharpness (s^2).

        The slopes of the gyro's noise make a valley sharper, and tell nothing. With the sharpness
        S, of which the motion made S0, the variance is S / S0^2, which is 1 / S without noise.
        """
        if sharpness <= 0.0:
            return 1.0
        noise = min(2.0 * self._rate_var * float(weight.sum()) / sharpness, _MOST_NOISE)
        return (1.0 / (1.0 - noise) ** 2 - 1.0) / sharpness

    def _pulls(
        self, residual: Floats, jacobian: Floats, weight: Floats, gain: Floats, settled: Floats
    ) -> tuple[float, float]:
        """Return the variance of delta that the residuals show, and the one that is claimed.

        The sandwich estimate of Newey and West (1987): the rows' pulls on delta, multiplied with
        themselves and with those of the next rotations, because the errors of a cue are
        correlated. What rows this few would show of a cue whose claim is right is known, too:
        fitted rows leave less.
        """
        influence = gain @ (jacobian * weight[:, None]).T
        lags = max(1, min(_LAGS, len(self.spans[0]) // 10))
        apart = np.abs(self._of[:, None] - self._of)
        kernel = np.maximum(1.0 - apart / (lags + 1), 0.0) * np.outer(influence, influence)
        expected = np.diag(self.sigmas**2) - jacobian @ settled @ jacobian.T
        scale = max(float(gain[0]), 1e-18)
        return (
            max(float(residual @ kernel @ residual), 0.0) / scale,
            max(float(np.sum(kernel * expected)), 0.0) / scale,
        )

    def _linear_at(self, point: Point) -> tuple[Floats, Floats]:
        return self.linear(point.delta_s, point.bias, point.matrix, point.scale)

    def linear(
        self, delta: float, bias: Floats, matrix: Floats, scale: float
    ) -> tuple[Floats, Floats]:
        """Return residuals [rows] and d predicted / d (delta, bias, turn, scale) [rows, 8]."""
        beside = np.array([-self._step_s, 0.0, self._step_s])
        start, end = np.moveaxis(self._track(self.spans[..., None] - delta - beside), 1, 0)
        before, turns, after = np.moveaxis(self._differences(end - start), -1, 0)
        slopes = (before - after).T[self._of] / (2.0 * self._step_s)
        jacobian, gain = np.zeros((len(self.values), 8)), 1.0 + scale * self._scaled
        turns = turns.T[self._of] + bias * self._lasted[:, None]
        if self.norms:
            predicted = self._sizes(turns.T)
            axes = turns / np.maximum(predicted, 1e-9)[:, None]
        else:
            axes = self.axes @ matrix.T
            jacobian[:, 4:7] = gain[:, None] * np.cross(axes, turns)
            predicted = np.sum(axes * turns, axis=1)
        jacobian[:, 0] = -gain * np.sum(axes * slopes, axis=1)
        jacobian[:, 1:4] = axes * (gain * self._lasted)[:, None]
        jacobian[:, 7] = self._scaled * predicted
        return self.values - gain * predicted, jacobian

    def _sizes(self, turns: Floats) -> Floats:
        """Return how large turns [3, rows, ...] look: noise across a small one adds to it."""
        across = 2.0 * self.sigmas.reshape(-1, *[1] * (turns.ndim - 2)) ** 2
        sizes: Floats = np.sqrt(np.sum(turns * turns, axis=0) + across)
        return sizes

    def aligned(self, point: Point, mounting: Mounting) -> Point:
        """Return the point with the rotation that fits best there, counted from that rotation."""
        start, end = self._track(self.spans - point.delta_s).swapaxes(0, 1)
        turns = self._differences(end - start)[:, self._of] + point.bias[:, None] * self._lasted
        matrix = best_rotations(
            self.axes, self.values, self.sigmas**-2, turns[:, :, None], mounting
        )[0]
        return replace(point, turn=np.zeros(3), reference=matrix)


def _median(values: Floats) -> float:
    """Return the median of a few values; numpy's takes ten times as long over its options."""
    ordered, last = np.sort(values), len(values) - 1
    return 0.5 * float(ordered[last // 2] + ordered[(last + 1) // 2])
