"""Finds a clock difference by laying a sensor's rotations over the integrated gyro.

The sensor says by how much it turned between two of its stamps; the gyro, integrated, says the
same for any two times. The offset is where both agree:

    argmin_d  sum_k  (value_k - (R axis_k) . (Th(s_k - d) - Th(s_k-1 - d) + bias dt_k))^2 / var_k

Increments between stamps are used, never rates at a stamp: a rate belongs to the middle of its
interval and would be off by half a period. First the whole history is searched, as it grows, until
one offset alone explains it. From then on every second is one piece for the joint filter
(clocks/clock_filter.py), which also holds the gyro's bias, the sensor's rotation R against the IMU
and a scale of the turns. Example, a handheld camera that nobody declared:

    0 to 1.5 s     searched, ambiguous: two offsets explain it as well
    2.0 s          one offset is left: -41 ms; two pieces of a second each go to the filter
    every second   one more piece, around what the filter knows
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from math import log
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sync_engine.clocks.channel import GateResult
from sync_engine.clocks.clock_filter import MotionFix, MotionPrior
from sync_engine.clocks.offset import ClockEstimate
from sync_engine.config import MotionConfig
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.mounting import (
    Mounting,
    MountingSource,
    MountingStatus,
    turn_between,
    turned_by,
)
from sync_engine.cues.turn_rows import GRID_STEP_S, STRAY_STEPS, Point, Squeezed, TurnRows

_LEAST_ROWS = 8
_SHARP_S = 1e-3
"""Sigma of the offset below which pieces have their full length."""
_GROWTH, _PATIENCE_S = 1.15, 0.5
"""A history that was ambiguous is searched again when it is longer by this factor, or this time:
one pan may decide."""
_SCALE_SIGMAS = 2.2
"""A scale further than this from its prior, in the logarithm, is none: the picture of a camera
with a gimbal or a stabiliser turns by a small share of what the camera does."""
_LEAST_ODD = 0.4
"""Sigma of the scale that is allowed for, however well a focal length is declared."""
_CLAIM_PIECES, _HONESTY_PIECES = 3.0, 60.0
"""Pieces that the claim of a cue counts for against what its residuals show, and pieces after
which these are forgotten."""
_MOST_HONESTY = 50.0
_LOST = 3
"""Pieces in a row that do not fit, after which the history is searched again."""
_FAR_RAD = 0.1
"""A mounting that was found further away than this is counted from there."""

Axis = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Rotation:
    """How far a sensor turned, or went, from one of its stamps to another."""

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
    is_way: bool = False
    """Whether the values are metres that it went along the axes, or in all."""

    def mean_rate(self) -> tuple[int, list[float]] | None:
        """Return its middle stamp (ns) and mean rate [3] (rad/s, sensor frame), None of a size."""
        if self.axes is None:
            return None
        lasted_s = (self.stamp_to_ns - self.stamp_from_ns) / NS_PER_S
        rate = np.array(self.values_rad) @ np.array(self.axes) / lasted_s
        return (self.stamp_from_ns + self.stamp_to_ns) // 2, rate.tolist()


class CueTraits(NamedTuple):
    """What is particular to the turns of a cue, or to its ways.

    Errors that last for many of its rotations, so that no short stretch shows them, and how fast
    what it tells changes.
    """

    scale_sigma: float = 0.0
    """Share by which all turns may be too large or too small: a focal length."""
    scale_walk: float = 0.0
    """How fast that share changes (1 per root second)."""
    first_honesty: float = 1.0
    """Variance over the claimed one before the residuals have shown what it is."""
    least_honesty: float = 0.05
    """The least that it may be."""
    mounting_walk: float = 0.0
    """How fast the rotation to the reference changes (rad per root second)."""
    pace: float = 1.0
    """How slowly what it tells changes, against turns: all times of a search are longer by it."""
    piece_s: tuple[float, float] = (0.4, 1.0)
    """Length of a piece for the filter: until the offset is sharp, and then."""
    piece_sigma_s: float = 0.0
    """What the offset of each piece is wrong by besides (s)."""


class RotationFit:
    """The rotations of one sensor that wait to be compared with the gyro."""

    def __init__(
        self,
        config: MotionConfig,
        mounting: Mounting | None = None,
        traits: CueTraits | None = None,
    ) -> None:
        """Without a `mounting` the sensor's axes are those of the IMU."""
        self.traits = traits = CueTraits() if traits is None else traits
        self._step_s = GRID_STEP_S * traits.pace
        self._stray_s = STRAY_STEPS * self._step_s
        self._half_s = config.grid_s * traits.pace
        self._least_s, self._most_s = (
            config.min_span_s * traits.pace,
            config.max_span_s * traits.pace,
        )
        self._rotations: deque[Rotation] = deque()
        self._next_try_ns = 0
        self.mounting = Mounting(np.eye(3)) if mounting is None else mounting
        self._reference = self.mounting.matrix
        self._is_new = True
        """Whether the filter has to begin bias, mounting and scale again."""
        self.is_found = False
        """Whether one offset alone explains the history."""
        self.scale, self.scale_sigma = 0.0, traits.scale_sigma
        """Share by which the sensor's turns are too large, and its sigma."""
        self.last_sigma_s = float('inf')
        self.explained = 0.0
        """Share of the motion that the gyro explained in what was compared last."""
        self.fits = 0
        self.refused = 0
        self.mismatched = 0
        """Of these, what was refused because the gyro does not explain what the sensor says."""
        self._misfits = 0
        self._shown = self._claimed = 0.0

    def clear(self) -> None:
        """Forget the rotations; what was learnt of bias, mounting and scale is kept."""
        self._rotations.clear()
        self._next_try_ns = 0

    def add(self, rotation: Rotation) -> None:
        """Queue one rotation; the oldest beyond `max_span_s` are let go."""
        self._rotations.append(rotation)
        if self._is_new and rotation.scale_sigmas:
            self.scale_sigma = max(rotation.scale_sigmas)
            self.traits = self.traits._replace(scale_sigma=self.scale_sigma)
        oldest_ns = rotation.stamp_to_ns - int(self._most_s * NS_PER_S)
        while self._rotations[0].stamp_from_ns < oldest_ns:
            self._rotations.popleft()

    @property
    def has_rotations(self) -> bool:
        """Whether the sensor has ever given one."""
        return bool(self._rotations) or self.fits + self.refused > 0

    def refusal(self, of: str = 'the gyro') -> str:
        """Say in one sentence why the last turns, against those `of`, gave no offset, or ''."""
        if self.is_found or not self.refused:
            return ''
        if self.mismatched:
            share = round(100.0 * self.explained)
            return (
                f'the turns do not follow {of}, which explains {share} % of them: '
                'stabilised, covered, or something else is moving?'
            )
        return 'the motion fits more than one offset: too little turning, or always the same'

    def mounting_status(self, sensor_id: str) -> MountingStatus:
        """Return how the sensor is turned against the IMU, as far as it is known and used."""
        sizes = bool(self._rotations) and self._rotations[-1].axes is None
        status = self.mounting.status(sensor_id)
        return replace(status, source=MountingSource.UNUSED) if sizes else status

    @property
    def honesty(self) -> float:
        """Variance of the offset that residuals show, over the one that is claimed, lately."""
        first = self.traits.first_honesty
        shown = (self._shown + _CLAIM_PIECES * first) / (self._claimed + _CLAIM_PIECES)
        return min(max(shown, self.traits.least_honesty), _MOST_HONESTY)

    def solve(self, gyro: GyroTrack, clock: ClockEstimate, imu: ClockEstimate) -> int:
        """Compare what waits with the gyro and tell the clock; return how many pieces it took."""
        if len(self._rotations) < 2 or gyro.last_ns < 0:
            return 0
        span_ns = self._rotations[-1].stamp_to_ns - self._rotations[0].stamp_from_ns
        if span_ns < self._least_s * NS_PER_S:
            return 0
        if self._is_new:
            self._begin(clock, self.mounting)
            self._is_new = False
        return self._follow(gyro, clock, imu) if self.is_found else self._find(gyro, clock, imu)

    def _begin(self, clock: ClockEstimate, mounting: Mounting) -> None:
        traits = self.traits
        walks = traits.scale_walk, traits.mounting_walk
        clock.forget_motion(mounting.prior_covariance, traits.scale_sigma, walks)

    # -- the whole history ---------------------------------------------------------------------

    def _find(self, gyro: GyroTrack, clock: ClockEstimate, imu: ClockEstimate) -> int:
        """Search all that is there; tell the clock piece by piece where one offset is left."""
        if self._rotations[-1].stamp_to_ns < self._next_try_ns:
            return 0
        assumed_ns, prior = self._prior(clock, imu, self._rotations[len(self._rotations) // 2])
        half_s = self._half_s
        # Values that share a start share it at every candidate.
        ready = self._covered(gyro, assumed_ns, half_s if self.traits.pace > 1.0 else 0.0)
        if (
            not ready
            or (rows := TurnRows(ready, assumed_ns, self._step_s)).values.size < _LEAST_ROWS
        ):
            return 0
        span_ns = ready[-1].stamp_to_ns - ready[0].stamp_from_ns
        if span_ns < self._least_s * NS_PER_S:
            return 0
        grown_s = min((_GROWTH - 1.0) * span_ns / NS_PER_S, _PATIENCE_S * self.traits.pace)
        grown_s = max(grown_s, 0.3 * self._least_s)
        self._next_try_ns = self._rotations[-1].stamp_to_ns + int(grown_s * NS_PER_S)
        rows.look_at(gyro, half_s + self._stray_s)
        found = self._search(rows, half_s, prior, gyro, assumed_ns)
        if found is None:
            self.refused += 1
            return 0
        point, covariance, mounting = found
        if mounting is not self.mounting:
            self.mounting = mounting
            self._begin(clock, mounting)
        self._reference = point.reference
        self.is_found, self._misfits = True, 0
        ready = self._covered(gyro, assumed_ns + round(point.delta_s * NS_PER_S), 0.0)
        taken = 0
        for piece in _pieces(ready, self.traits.piece_s[1]):
            part = TurnRows(piece, assumed_ns, self._step_s)
            part.look_at(gyro, self._stray_s + abs(point.delta_s))
            taken += self._tell(
                part.squeeze(point, _loose(prior), covariance), assumed_ns, clock, imu, piece, True
            )
        self._let_go(ready[-1].stamp_to_ns)
        self._learn(clock)
        return taken

    def _is_odd(self, scale: float) -> bool:
        """Return whether turns are too large, or too small, for what the prior allows."""
        sigma = self.traits.scale_sigma
        return sigma > 0.0 and abs(log(1.0 + scale)) > _SCALE_SIGMAS * max(sigma, _LEAST_ODD)

    def _search(
        self,
        rows: TurnRows,
        half_s: float,
        prior: MotionPrior,
        gyro: GyroTrack,
        assumed_ns: int,
    ) -> tuple[Point, Floats, Mounting] | None:
        """Return where all unknowns are, how surely, and the mounting they are counted from."""
        sigma_s = max(float(prior.covariance[0, 0]) ** 0.5, 1e-3)
        mountings = [self.mounting]
        if self.mounting.declared is not None and not rows.norms:
            mountings.append(Mounting())  # what the motion alone says
        is_mismatched = False
        for mounting in mountings:
            if not rows.norms:
                mounting.see(np.unique(rows.axes, axis=0))
            own = prior if mounting is self.mounting else _undeclared(prior, mounting)
            valley = rows.search(half_s, sigma_s, own, mounting)
            there_ns = assumed_ns + round(valley.point.delta_s * NS_PER_S)
            covered = self._covered(gyro, there_ns, 0.0)
            part = TurnRows(covered, assumed_ns, self._step_s) if covered else rows
            part.look_at(gyro, abs(valley.point.delta_s) + 2.0 * self._stray_s)
            settled = part.settle(valley.point, _loose(own))
            if settled is None:
                continue
            point, covariance = settled
            found = part.squeeze(point, _loose(own), covariance)
            self.last_sigma_s, self.explained = found.sigma_s, found.explained
            if found.mismatched or self._is_odd(point.scale):
                is_mismatched = True
                continue
            if valley.ambiguous or found.sigma_s > self._step_s:
                break
            mounting.declared = self.mounting.declared
            return point, covariance, mounting
        self.mismatched += is_mismatched
        return None

    # -- piece by piece ------------------------------------------------------------------------

    def _follow(self, gyro: GyroTrack, clock: ClockEstimate, imu: ClockEstimate) -> int:
        """Tell the clock the next piece."""
        assumed_ns, prior = self._prior(clock, imu, self._rotations[len(self._rotations) // 2])
        reach_s = self._stray_s + min(3.0 * float(prior.covariance[0, 0]) ** 0.5, self._step_s)
        ready = self._covered(gyro, assumed_ns, reach_s)
        if not ready:
            return 0
        span_s = (ready[-1].stamp_to_ns - ready[0].stamp_from_ns) / NS_PER_S
        if span_s < self.traits.piece_s[clock.sigma_s < _SHARP_S]:
            return 0
        rows = TurnRows(ready, assumed_ns, self._step_s)
        if rows.values.size < _LEAST_ROWS:
            return 0
        rows.look_at(gyro, reach_s + self._stray_s)
        start = Point(0.0, prior.mean[1:4], prior.mean[4:7], float(prior.mean[7]), self._reference)
        if not rows.norms and not self.mounting.is_known:
            start = rows.aligned(start, self.mounting)
            turn = turn_between(self._reference, start.reference)
            if np.linalg.norm(turn) > _FAR_RAD:
                self._reference = start.reference
                clock.turn_reference(turn)
                prior = self._prior(clock, imu, ready[len(ready) // 2])[1]
            else:
                start = replace(start, turn=turn, reference=self._reference)
        settled = rows.settle(start, prior)
        self._let_go(ready[-1].stamp_to_ns)
        if settled is None:
            self._lose()
            return 0
        found = rows.squeeze(settled[0], _loose(prior), settled[1])
        self.last_sigma_s, self.explained = found.sigma_s, found.explained
        if found.mismatched:
            self.refused += 1
            self.mismatched += 1
            self._lose()
            return 0
        taken = self._tell(found, assumed_ns, clock, imu, ready)
        self._learn(clock)
        return taken

    def _lose(self) -> None:
        """A piece did not fit; after some in a row the history is searched again."""
        self._misfits += 1
        if self._misfits >= _LOST:
            self.is_found, self._misfits = False, 0
            self._is_new = True
            self.mounting = Mounting(self.mounting.declared)
            self._reference = self.mounting.matrix

    def _prior(
        self, clock: ClockEstimate, imu: ClockEstimate, about: Rotation
    ) -> tuple[int, MotionPrior]:
        """Return the clock difference (ns) that is assumed, and what is known around it."""
        time_ns = clock.host_ns(about.stamp_to_ns)
        known = clock.motion_prior(time_ns)
        assumed_ns = clock.base_ns + round(float(known.mean[0]) * 1e9) - imu.offset_ns(time_ns)
        mean = known.mean.copy()
        mean[0] = 0.0
        return assumed_ns, MotionPrior(mean, known.covariance)

    def _tell(
        self,
        found: Squeezed,
        assumed_ns: int,
        clock: ClockEstimate,
        imu: ClockEstimate,
        piece: list[Rotation],
        is_found: bool = False,
    ) -> bool:
        """Hand one piece to the clock; return whether it was believed."""
        if found.claimed > 0.0:
            fade = 1.0 - 1.0 / _HONESTY_PIECES
            self._shown = fade * self._shown + found.shown / found.claimed
            self._claimed = fade * self._claimed + 1.0
        middle_ns = (piece[0].stamp_from_ns + piece[-1].stamp_to_ns) // 2
        time_ns = clock.host_ns(middle_ns)
        shift_s = (assumed_ns + imu.offset_ns(time_ns) - clock.base_ns) / NS_PER_S
        own_var = found.blur_var + self.traits.piece_sigma_s**2
        fix = MotionFix(found.root, found.value + found.root[:, 0] * shift_s, self.honesty,
                        own_var, time_ns, is_found)  # fmt: skip
        wander = imu.filter.arrival_var if imu.filter else 0.0
        if clock.observe_motion(fix, wander) is GateResult.REJECTED:
            self.refused += 1
            if not is_found:
                self._lose()
            return False
        self._misfits = 0
        self.fits += 1
        return True

    def _learn(self, clock: ClockEstimate) -> None:
        """Take what the filter now knows of mounting and scale."""
        known = clock.motion_prior(clock.now_ns)
        turn = known.mean[4:7]
        self.mounting.take(turned_by(turn) @ self._reference, known.covariance[4:7, 4:7])
        self.scale = float(known.mean[7])
        self.scale_sigma = float(known.covariance[7, 7]) ** 0.5

    def _covered(self, gyro: GyroTrack, assumed_ns: int, half_s: float) -> list[Rotation]:
        """Return the rotations that lie inside the gyro's track wherever the search looks."""
        covered = gyro.covered_ns()
        if covered is None:
            return []
        margin_ns = int((half_s + 2.0 * self._stray_s) * NS_PER_S)
        first_ns = covered[0] + assumed_ns + margin_ns
        last_ns = covered[1] + assumed_ns - margin_ns
        return [
            rotation
            for rotation in self._rotations
            if rotation.stamp_from_ns >= first_ns and rotation.stamp_to_ns <= last_ns
        ]

    def _let_go(self, last_ns: int) -> None:
        """Each rotation tells once: pieces that share none are independent for the filter."""
        while self._rotations and self._rotations[0].stamp_to_ns <= last_ns:
            self._rotations.popleft()


def _pieces(rotations: list[Rotation], lasting_s: float) -> list[list[Rotation]]:
    """Return the rotations in pieces of about this length, none without enough of them."""
    pieces: list[list[Rotation]] = [[]]
    for rotation in rotations:
        piece = pieces[-1]
        if piece and rotation.stamp_to_ns - piece[0].stamp_from_ns > lasting_s * NS_PER_S:
            pieces.append(piece := [])
        piece.append(rotation)
    if len(pieces) > 1 and len(pieces[-1]) < _LEAST_ROWS:
        last = pieces.pop()
        pieces[-1] += last
    return pieces


def _loose(prior: MotionPrior) -> MotionPrior:
    """Return the prior with nothing known of the offset: what motion says alone."""
    covariance = prior.covariance.copy()
    covariance[0, :] = covariance[:, 0] = 0.0
    covariance[0, 0] = 1.0
    return MotionPrior(prior.mean, covariance)


def _undeclared(prior: MotionPrior, mounting: Mounting) -> MotionPrior:
    """Return the prior with nothing known of the mounting."""
    covariance = prior.covariance.copy()
    covariance[4:7, :] = covariance[:, 4:7] = 0.0
    covariance[4:7, 4:7] = mounting.prior_covariance
    return MotionPrior(prior.mean, covariance)
