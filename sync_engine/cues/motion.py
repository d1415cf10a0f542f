"""Finds a clock difference by laying a sensor's rotations over the integrated gyro.

The sensor says by how much it turned between two of its stamps; the gyro, integrated, says the
same for any two times. The offset is where both agree:

    argmin_d  sum_k  (value_k - (R axis_k) . (Th(s_k - d) - Th(s_k-1 - d) + bias dt_k))^2 / var_k

Increments between stamps are used, never rates at a stamp: a rate belongs to the middle of its
interval and would be off by half a period. The gyro's bias and the sensor's rotation R against the
IMU are fitted along (turn_rows.py has the least squares, mounting.py the rotation).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rig_common.times import NS_PER_S
from sync_engine.config import MotionConfig
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.mounting import Mounting, MountingSource, MountingStatus
from sync_engine.cues.turn_rows import STRAY_S, Fix, TurnRows

_BIAS_SIGMA_RAD_S = 0.02
"""Prior sigma of the gyro's bias, and of what a cue adds to it."""
_BIAS_WALK_RAD_S = 0.001
"""How much of that may come back between two fits."""
_LEAST_ROWS = 8
_CLAIM_ROWS, _HONESTY_ROWS = 200, 3000
"""Rows that the claim of a cue counts for against what its residuals show, and rows after which
these are forgotten."""
_LEAST_HONESTY, _MOST_HONESTY = 0.05, 50.0
_BLUNT = 5.0
"""A stretch that has reached its full length may be this much less sharp: it will not grow any
more, and little is better than nothing."""
_LOST = 20
"""Stretches in a row that were refused, after which the search takes its full width."""
_FREE_SPAN_S = 3.0
"""Shortest stretch that is tried while the rotation is unknown: it has three more unknowns."""

Axis = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Rotation:
    """How far a sensor turned from one of its stamps to another."""

    stamp_from_ns: int
    stamp_to_ns: int
    values_rad: tuple[float, ...]
    """Turn about each row of `axes`; a single norm where there are none."""
    axes: tuple[Axis, ...] | None
    """Unit axes in the sensor's frame, one per value; None: the value is the size of the turn."""
    variances: tuple[float, ...]
    """Variance of each value (rad^2)."""
    scale_sigmas: tuple[float, ...] = ()
    """Prior sigma of the logarithm of a factor that all values with a sigma above 0 share, as a
    camera's focal length is one about x and y; empty: the values are in true radians."""


@dataclass(frozen=True, slots=True)
class MotionFix:
    """One accepted comparison."""

    correction_s: float
    """To be added to the clock difference that was assumed."""
    variance: float
    stamp_ns: int
    """Middle of the stretch, on the sensor's clock."""


class LastingErrors(NamedTuple):
    """Errors of a cue that last for many of its rotations, so that no short stretch shows them."""

    gain_sigma: float = 0.0
    """Share by which all turns of a stretch may be too large or too small."""
    first_honesty: float = 1.0
    """Variance over the claimed one before the residuals have shown what it is."""


class RotationFit:
    """The rotations of one sensor that wait to be compared with the gyro."""

    def __init__(
        self,
        config: MotionConfig,
        mounting: Mounting | None = None,
        errors: LastingErrors | None = None,
    ) -> None:
        """Without a `mounting` the sensor's axes are those of the IMU."""
        self._config = config
        self._errors = LastingErrors() if errors is None else errors
        self._rotations: deque[Rotation] = deque()
        self._bias = np.zeros(3)
        self._bias_var = np.full(3, _BIAS_SIGMA_RAD_S**2)
        self._tried_at_ns = 0
        self.mounting = Mounting(np.eye(3)) if mounting is None else mounting
        self._witness = Mounting() if self.mounting.declared is not None else None
        """What the motion alone says, asked where the declared rotation does not fit."""
        self.last_sigma_s = float('inf')
        self.fits = 0
        self.refused = 0
        self._refused_since_fit = 0
        self.honesty = self._errors.first_honesty
        """Variance of the fits that their residuals show, over the claimed one, lately."""
        self._shown_rows = 0.0
        self.mismatched = 0
        """Stretches that were refused because the gyro does not explain what the sensor says."""

    def clear(self) -> None:
        """Forget the rotations; bias and mounting are kept."""
        self._rotations.clear()
        self._tried_at_ns = 0

    def add(self, rotation: Rotation) -> None:
        """Queue one rotation; the oldest beyond `max_span_s` are let go."""
        self._rotations.append(rotation)
        oldest_ns = rotation.stamp_to_ns - int(self._config.max_span_s * NS_PER_S)
        while self._rotations[0].stamp_from_ns < oldest_ns:
            self._rotations.popleft()

    @property
    def has_rotations(self) -> bool:
        """Whether the sensor has ever given one."""
        return bool(self._rotations) or self.fits + self.refused > 0

    def mounting_status(self, sensor_id: str) -> MountingStatus:
        """Return how the sensor is turned against the IMU, as far as it is known and used."""
        sizes = bool(self._rotations) and self._rotations[-1].axes is None
        status = self.mounting.status(sensor_id)
        return replace(status, source=MountingSource.UNUSED) if sizes else status

    def solve(self, gyro: GyroTrack, assumed_ns: int, sigma_s: float) -> MotionFix | None:
        """Compare with the gyro; return a fix if the motion makes it sharp, else keep waiting.

        `assumed_ns` is sensor clock minus IMU clock as known so far, `sigma_s` its sigma.
        """
        if not self._is_due(gyro):
            return None
        lost = self._refused_since_fit >= _LOST
        if lost:  # a declared latency that is wrong by many sigmas: nothing is near
            sigma_s = self._config.grid_s
        half_s = min(self._config.grid_s, max(0.05, 6.0 * sigma_s))
        ready = self._covered(gyro, assumed_ns, half_s)
        if not ready:
            return None
        span_ns = ready[-1].stamp_to_ns - ready[0].stamp_from_ns
        if span_ns < self._least_span_s(ready[0]) * NS_PER_S:
            return None
        self._tried_at_ns = ready[-1].stamp_to_ns
        rows = TurnRows(
            ready, assumed_ns, self._bias, self._bias_var, gain_sigma=self._errors.gain_sigma
        )
        if len(rows.values) < _LEAST_ROWS:
            return None
        rows.look_at(gyro, half_s + STRAY_S)
        fix = self._fit(rows, half_s, max(sigma_s, 1e-3))
        if fix is None:
            self.refused += 1
            self._refused_since_fit += 1
            return None
        self._refused_since_fit = 0
        middle_ns = (ready[0].stamp_from_ns + ready[-1].stamp_to_ns) // 2
        return MotionFix(fix.delta_s, fix.sigma_s**2 * self._learnt(fix), middle_ns)

    def _learnt(self, fix: Fix) -> float:
        """Return by how much the variance of the cue is larger, or smaller, than it claims."""
        fade = 1.0 - fix.rows / _HONESTY_ROWS
        self._shown_rows = max(fade, 0.5) * self._shown_rows + fix.rows
        gain = fix.rows / (self._shown_rows + _CLAIM_ROWS)
        self.honesty += gain * (min(fix.honesty, _MOST_HONESTY) - self.honesty)
        return max(self.honesty, _LEAST_HONESTY)

    def _least_span_s(self, first: Rotation) -> float:
        known = first.axes is None or self.mounting.is_known
        return self._config.min_span_s if known else max(self._config.min_span_s, _FREE_SPAN_S)

    def _fit(self, rows: TurnRows, half_s: float, sigma_s: float) -> Fix | None:
        """Return a fix that can be believed, None where there is none."""
        if not rows.norms:
            self.mounting.see(np.unique(rows.axes, axis=0))
        fix = rows.fit(half_s, sigma_s, self.mounting)
        self.last_sigma_s = fix.sigma_s
        if fix.mismatched:
            self.mismatched += 1
            return self._doubt(rows, half_s, sigma_s)
        if not self._is_sharp(fix):
            return None
        self._accept(fix)
        if not rows.norms:
            self.mounting.take(fix.matrix, fix.information)
        return fix

    def _doubt(self, rows: TurnRows, half_s: float, sigma_s: float) -> Fix | None:
        """The declared rotation does not fit: ask the motion alone, and believe it once sure."""
        witness = self._witness
        if witness is None or rows.norms:
            return None
        witness.see(self.mounting.axes)
        fix = rows.fit(half_s, sigma_s, witness)
        if fix.mismatched or not self._is_sharp(fix):
            return None
        self._accept(fix)
        witness.take(fix.matrix, fix.information)
        if not witness.is_known:
            return None
        witness.declared, self.mounting, self._witness = self.mounting.declared, witness, None
        return fix if self.mounting.is_contradicted else None

    def _is_sharp(self, fix: Fix) -> bool:
        limit_s = self._config.accept_sigma_s
        span_ns = self._tried_at_ns - self._rotations[0].stamp_from_ns
        if span_ns > 0.9 * self._config.max_span_s * NS_PER_S:
            limit_s *= _BLUNT
        return not fix.ambiguous and fix.sigma_s <= limit_s

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

    def _accept(self, fix: Fix) -> None:
        """Each rotation tells once: fits that share none are independent for the filter."""
        last_ns = self._tried_at_ns
        while self._rotations and self._rotations[0].stamp_to_ns <= last_ns:
            self._rotations.popleft()
        self._bias = fix.bias
        self._bias_var = np.minimum(fix.bias_var + _BIAS_WALK_RAD_S**2, _BIAS_SIGMA_RAD_S**2)
        self.fits += 1
