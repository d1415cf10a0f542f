"""Scores an estimator on a recording: does it respond to known changes, and agree with itself?"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.special import chdtri

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sensor_rig.trust.changes import (
    Change,
    Wanted,
    changes_of,
    settled_from_ns,
    step_ns_of,
)
from sensor_rig.trust.replay import Estimator, Track
from sensor_rig.trust.streams import Streams

STRETCHES, LEAST_STRETCHES = 8, 4
LEAST_STRETCH_S, LONGEST_STRETCH_S = 6.0, 60.0
FOLLOWED_S = 5e-4
"""A difference that counts as none, where sigma is smaller."""
STEP_SETTLES_S = 3.0
STEP_FOLLOWED_S = 2e-3
DOUBT_MESSAGES = 3
"""Messages after a step by which a wrong estimate must have left `locked`."""
UNLIKELY = 0.025
"""Chance that honest claims have a NEES above its limit."""


@dataclass(frozen=True)
class Response:
    """What an estimate did about one change."""

    name: str
    wanted: Wanted
    passed: bool
    error_s: float
    """Estimate with the change minus without it minus the change, in the median at the end."""
    sigma_s: float
    """Claimed sigma there."""
    fixes: int
    extra_steps: int
    """Clock steps reported beyond those without the change."""
    says: str
    """One clause for people."""
    times_s: Floats
    errors_s: Floats
    """The error over time, for a plot."""
    sigmas_s: Floats


@dataclass(frozen=True)
class Stretch:
    """One part of the recording, estimated alone."""

    start_s: float
    end_s: float
    offset_ms: float
    """Against the line through all stretches (ms)."""
    sigma_ms: float
    observed: bool
    """Whether motion told anything in it; others claim nothing."""


@dataclass(frozen=True)
class Consistency:
    """How disjoint stretches agree."""

    stretches: tuple[Stretch, ...]
    length_s: float
    nees: float
    """Mean squared difference from the line over its variance; 1 where claims are honest."""
    nees_limit: float
    """What honest claims stay below with a chance of 97.5 %."""
    coverage: float
    """Share of stretches inside 2 sigma."""
    spread_s: float
    claimed_s: float
    drift_ppm: float
    passed: bool
    enough: bool
    """Whether there are enough stretches with motion to say anything."""


@dataclass(frozen=True)
class Score:
    """Everything about one sensor."""

    sensor: str
    imu: str
    duration_s: float
    base: Track
    responses: tuple[Response, ...]
    consistency: Consistency
    sigma_s: float
    """Claimed sigma at the end."""
    locked: bool
    observed: bool
    """Whether motion told anything at all."""

    @property
    def holds(self) -> bool:
        """Whether the claims hold, as far as they can be tested."""
        return self.observed and self.consistency.passed and not self.refuted

    @property
    def refuted(self) -> bool:
        """Whether a test contradicts the claims; where none can, they are not shown either."""
        disagree = self.consistency.enough and not self.consistency.passed
        return disagree or not all(response.passed for response in self.responses)


def score(streams: Streams, estimator: Estimator) -> Score:
    """Return how an estimator does on one sensor of a recording."""
    base = estimator(streams)
    responses = tuple(
        _response(change, streams, base, estimator) for change in changes_of(streams)
    )
    end = len(base.sigma_s) - 1
    return Score(
        streams.sensor,
        streams.imu,
        streams.duration_s,
        base,
        responses,
        consistency(streams, estimator),
        float(base.sigma_s[end]) if end >= 0 else float('inf'),
        bool(base.locked[end]) if end >= 0 else False,
        base.fixes > 0,
    )


def _response(change: Change, streams: Streams, base: Track, estimator: Estimator) -> Response:
    changed = change.apply(streams)
    track = estimator(changed)
    usual_ns, _ = base.at(track.arrival_ns)
    wrong_s = (track.offset_ns - usual_ns - change.injected(track.arrival_ns, streams)) / NS_PER_S
    late = track.arrival_ns >= settled_from_ns(streams)
    if change.wanted is Wanted.STEP:
        late = track.arrival_ns >= step_ns_of(streams) + round(STEP_SETTLES_S * NS_PER_S)
    if not late.any():
        late = np.arange(len(wrong_s)) >= len(wrong_s) - 1
    error_s = float(np.median(wrong_s[late]))
    sigma_s = float(np.median(track.sigma_s[late]))
    extra = track.clock_steps - base.clock_steps
    passed, says = _judged(change, streams, track, wrong_s, late, extra)
    return Response(
        change.name,
        change.wanted,
        passed,
        error_s,
        sigma_s,
        track.fixes,
        extra,
        says,
        (track.arrival_ns - streams.start_ns) / NS_PER_S,
        wrong_s,
        track.sigma_s,
    )


def _judged(
    change: Change,
    streams: Streams,
    track: Track,
    wrong_s: Floats,
    late: np.ndarray[tuple[int], np.dtype[np.bool_]],
    extra: int,
) -> tuple[bool, str]:
    size = np.abs(wrong_s[late])
    sigma = track.sigma_s[late]
    if change.wanted is Wanted.REFUSE:
        wrong = float(np.mean(track.locked[late] & (size > 3.0 * sigma)))
        told = 'refused' if not track.fixes else f'believed {track.fixes} comparisons'
        if wrong:
            return False, f'{told}, and was locked on something wrong {wrong:.0%} of the time'
        return True, f'{told}, claims hold'
    middle, worst = float(np.median(size)), float(np.max(size))
    limit = np.maximum(FOLLOWED_S, 2.0 * sigma)
    outside = float(np.mean(size > limit))
    if change.wanted is Wanted.FOLLOW:
        passed = outside <= 0.05 and extra <= 0
        steps = f', {extra} false clock steps' if extra > 0 else ''
        return passed, f'followed to {middle * 1e3:.2f} ms (worst {worst * 1e3:.2f}){steps}'
    after = np.flatnonzero(track.arrival_ns >= step_ns_of(streams))[DOUBT_MESSAGES:]
    sure = track.locked & (np.abs(wrong_s) > np.maximum(STEP_FOLLOWED_S, 5.0 * track.sigma_s))
    fooled = int(np.count_nonzero(sure[after]))
    found = 'found' if extra == 1 else f'{extra} steps reported'
    passed = (
        extra == 1 and middle < max(STEP_FOLLOWED_S, 2.0 * float(np.median(sigma))) and not fooled
    )
    blind = f', locked and wrong for {fooled} messages' if fooled else ''
    return passed, f'{found}, {middle * 1e3:.2f} ms off {STEP_SETTLES_S:.0f} s later{blind}'


def consistency(streams: Streams, estimator: Estimator) -> Consistency:
    """Estimate disjoint stretches alone and compare them; a steady drift is no disagreement."""
    length_s = min(max(streams.duration_s / STRETCHES, LEAST_STRETCH_S), LONGEST_STRETCH_S)
    length_ns, count = round(length_s * NS_PER_S), int(streams.duration_s / length_s)
    bias_var = sum(given.cue_bias_s**2 for given in streams.config.inputs.values())
    rows: list[tuple[float, int, float, bool]] = []
    # Only stretches with messages: one wrong receive time makes a recording last for centuries.
    for k in np.unique((streams.arrival_ns - streams.start_ns) // length_ns).tolist():
        start_ns = streams.start_ns + k * length_ns
        track = estimator(streams.between(start_ns, start_ns + length_ns))
        if k >= count or not len(track.offset_ns):
            continue
        # A constant error of the cue is in all of them and cancels: it is no part of a difference.
        sigma_s = sqrt(max(float(track.sigma_s[-1]) ** 2 - bias_var, 1e-12))
        rows.append((k * length_s, int(track.offset_ns[-1]), sigma_s, track.fixes > 0))
    told = [row for row in rows if row[3]]
    if len(told) < LEAST_STRETCHES:
        stretches = tuple(
            Stretch(at, at + length_s, 0.0, sigma * 1e3, seen) for at, _, sigma, seen in rows
        )
        nan = float('nan')
        return Consistency(stretches, length_s, nan, nan, nan, nan, nan, nan, False, False)
    return _compared(rows, told, length_s)


def _compared(
    rows: list[tuple[float, int, float, bool]],
    told: list[tuple[float, int, float, bool]],
    length_s: float,
) -> Consistency:
    first_ns = told[0][1]
    times = np.array([row[0] for row in told]) - told[0][0]
    offsets = np.array([row[1] - first_ns for row in told]) / NS_PER_S
    sigmas = np.array([row[2] for row in told])
    design = np.stack([np.ones(len(told)), times], axis=1) / sigmas[:, None]
    normal = np.linalg.inv(design.T @ design)
    line = normal @ (design.T @ (offsets / sigmas))
    left = offsets - line[0] - line[1] * times
    leverage = np.sum((design @ normal) * design, axis=1)
    freedom = len(told) - 2
    nees = float(np.sum((left / sigmas) ** 2)) / freedom
    scaled = np.abs(left) / (sigmas * np.sqrt(np.maximum(1.0 - leverage, 1e-3)))
    stretches = tuple(
        Stretch(
            at,
            at + length_s,
            ((offset - first_ns) / NS_PER_S - line[0] - line[1] * (at - told[0][0])) * 1e3,
            sigma * 1e3,
            seen,
        )
        for at, offset, sigma, seen in rows
    )
    limit = float(chdtri(freedom, UNLIKELY)) / freedom
    return Consistency(
        stretches,
        length_s,
        nees,
        limit,
        float(np.mean(scaled <= 2.0)),
        float(np.sqrt(np.sum(left**2) / freedom)),
        float(np.sqrt(np.mean(sigmas**2))),
        float(line[1]) * 1e6,
        nees <= limit,
        True,
    )
