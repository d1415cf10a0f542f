"""What stamps and arrivals tell about a clock: steps, drift, wander, how it counts.

The delay of a message, receive time minus stamp, is its latency minus the clock's offset. What
changes slowly in it is taken for the clock, what changes from message to message for the latency.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from rig_common.arrays import Floats, Ints
from sensor_rig.fit.statistics import Z95, Estimate, slope_estimate

STEP_WINDOW = 15
"""Messages on either side of a step whose medians are compared."""
STEP_SPREADS = 8.0
LEAST_STEP_S = 0.005
BLOCKS, LEAST_BLOCK = 50, 20
"""Means of the delay that wander is fitted to, at most, and messages in each, at least: more than
latencies are correlated."""
DRIFT_Z = 4.0
"""Standard errors from which on a slope of the delay is taken for drift."""
SMALL_SAMPLE = 1.35
"""Factor on standard errors of logs: a few dozen blocks have no normal errors."""
SMOOTHED = 1.0 / (1.0 - 0.25 / 3.0) ** 0.5
"""What means over a quarter of a block take from the steps of a walk."""
FALL = 1.92
"""Of the log likelihood at the ends of a 95 % interval."""
PRESENT = 6.0
"""Fall of the log likelihood without a noise from which on it is taken to be there."""
ABSENT = -9.0
"""Log of a noise, against the latency's, that is as good as none."""
LOW, BOUND_STEP = -3.0, 0.2
"""Log of a noise from which on it is looked for the largest one that is as likely, and in which
steps: as coarse as such a bound is."""
COUNTER_BITS = (16, 24, 32)
WORST_WHITE_FM, WORST_WALK_FM = 1e-4, 1e-5
"""Of a clock; what wanders more is latency that hangs together over many messages."""


@dataclass(frozen=True)
class ClockJump:
    """A jump of the clock."""

    at_s: float
    """s after the first message."""
    offset_s: float


@dataclass(frozen=True)
class ClockFit:
    """A clock as far as delays tell it."""

    steps: tuple[ClockJump, ...]
    drift_ppm: Estimate
    has_drift: bool
    """Whether the drift is there beyond doubt; else it is written as 0."""
    white_fm: Estimate
    random_walk_fm: Estimate
    resolution_s: float
    counter_bits: int
    delay_s: Floats
    """Delays without steps and drift, s [n]: latency minus the offset at the first message."""


def fit_clock(receive_ns: Ints, stamp_ns: Ints) -> ClockFit:
    """Return the clock, and the delays without what it does to them."""
    resolution_s = resolution(stamp_ns)
    stamp_ns, bits = unwrapped(stamp_ns, resolution_s)
    delay_s = (receive_ns - stamp_ns) / 1e9
    time_s = (receive_ns - receive_ns[0]) / 1e9
    steps, delay_s = without_steps(time_s, delay_s)
    slope = slope_estimate(time_s, delay_s)
    halves = [
        slope_estimate(part_t, part_d)
        for part_t, part_d in zip(
            np.array_split(time_s, 2), np.array_split(delay_s, 2), strict=True
        )
    ]
    rounding = 1e-9 / max(float(time_s[-1]), 1e-9)
    sigma = (slope.high - slope.low) / (2.0 * Z95) + rounding
    has_drift = abs(slope.value) > DRIFT_Z * sigma and all(
        half.low - 4.0 * rounding <= slope.value <= half.high + 4.0 * rounding
        and half.value * slope.value > 0.0
        for half in halves
    )
    if has_drift:
        delay_s = delay_s - slope.value * time_s
    white, walk = fit_wander(time_s, delay_s)
    if white.value > WORST_WHITE_FM or walk.value > WORST_WALK_FM:
        white, walk = (Estimate(0.0, 0.0, each.high) for each in (white, walk))
    elif white.value or walk.value:
        delay_s = delay_s + wandered(time_s, delay_s, white.value, walk.value)
    return ClockFit(steps, slope.scaled(-1e6), has_drift, white, walk, resolution_s, bits, delay_s)


def resolution(stamp_ns: Ints) -> float:
    """Return the decimal step that all stamps are multiples of, s; 0 where none is told.

    Stamps that are equally far apart are multiples of much without being rounded to it.
    """
    gaps_ns = np.diff(stamp_ns)
    if len(np.unique(gaps_ns)) < 2:
        return 0.0
    for step_ns in (10**9, 10**8, 10**7, 10**6, 10**5, 10**4, 10**3, 10**2):
        if step_ns < 0.02 * np.median(gaps_ns) and not (stamp_ns % step_ns).any():
            return step_ns / 1e9
    return 0.0


def unwrapped(stamp_ns: Ints, resolution_s: float) -> tuple[Ints, int]:
    """Return the stamps as if their counter had never begun again, and its bits; 0 for none."""
    jumps = np.flatnonzero(np.diff(stamp_ns) < 0)
    count_ns = round(resolution_s * 1e9) or 1
    for bits in COUNTER_BITS:
        whole_ns = count_ns << bits
        if stamp_ns.max() >= whole_ns or not len(jumps):
            continue
        if (np.diff(stamp_ns)[jumps] < -0.5 * whole_ns).all():
            turns = np.concatenate([[0], np.cumsum(np.diff(stamp_ns) < 0)])
            return stamp_ns + turns * whole_ns, bits
    return stamp_ns, 0


def without_steps(time_s: Floats, delay_s: Floats) -> tuple[tuple[ClockJump, ...], Floats]:
    """Return the steps of the clock, and the delays without them."""
    n = len(delay_s)
    if n < 4 * STEP_WINDOW:
        return (), delay_s
    delay_s = delay_s.copy()
    steps: list[ClockJump] = []
    jumps = np.abs(np.diff(delay_s))
    spread = float(np.median(np.abs(np.diff(delay_s) - np.median(np.diff(delay_s))))) * 1.4826
    for k in np.argsort(jumps)[::-1][:20]:
        at = int(k) + 1
        before = delay_s[max(at - STEP_WINDOW, 0) : at]
        after = delay_s[at : at + STEP_WINDOW]
        if min(len(before), len(after)) < STEP_WINDOW:
            continue
        size = float(np.median(after) - np.median(before))
        width = max(spread, float(np.ptp(before)), float(np.ptp(after)))
        if abs(size) > max(LEAST_STEP_S, 3.0 * width, STEP_SPREADS * spread):
            steps.append(ClockJump(float(time_s[at]), -size))
            delay_s[at:] -= size
    return tuple(sorted(steps, key=lambda step: step.at_s)), delay_s


def _blocks(count: int) -> list[NDArray[np.intp]]:
    return np.array_split(np.arange(count), max(min(BLOCKS, count // LEAST_BLOCK), 1))


def _means(x: Floats, parts: list[NDArray[np.intp]]) -> Floats:
    """Return the mean of the first quarter of each block.

    Over the whole of it the mean of a walk would be smoother than the walk.
    """
    return np.array([float(x[part[: max(len(part) // 4, 1)]].mean()) for part in parts])


# ---- wander ----------------------------------------------------------------------------------


def fit_wander(time_s: Floats, delay_s: Floats) -> tuple[Estimate, Estimate]:
    """Return (white_fm, random_walk_fm) by maximum likelihood, with intervals.

    Means over blocks of time are the two-state clock of `ClockConfig` plus white noise, whose
    likelihood a Kalman filter gives. What is not there beyond doubt has the value 0 and the
    interval from 0 to what would have been seen.
    """
    parts = _blocks(len(delay_s))
    if len(parts) < 15:
        return Estimate(0.0, 0.0, np.inf), Estimate(0.0, 0.0, np.inf)
    y, t = -_means(delay_s, parts), _means(time_s, parts)
    step_s = float(np.median(np.diff(t)))
    if not step_s > 0.0:  # received in bursts: no time passes between blocks
        return Estimate(0.0, 0.0, np.inf), Estimate(0.0, 0.0, np.inf)
    white = float(np.std(np.diff(y)) / np.sqrt(2.0)) or 1e-9
    scale = np.array([white, white / np.sqrt(step_s), white / step_s**1.5])
    scales = scale * (1.0, SMOOTHED, 1.0)

    def cost(logs: Floats) -> float:
        return _wander_cost(y, step_s, np.exp(logs) * scale)

    found = [
        _least(cost, np.array(start), (0, 1, 2))
        for start in ((0.0, -3.0, -6.0), (-1.0, 0.0, -4.0), (-1.0, -4.0, -1.0))
    ]
    best, least = min(found, key=lambda each: each[1])
    best = np.maximum(best, ABSENT)
    none, _ = _least(cost, np.array([0.0, ABSENT, ABSENT]), (0,))
    if cost(none) - least < PRESENT:  # no wander at all is about as likely
        return (_bound(cost, best, least, 1, scales[1]), _bound(cost, best, least, 2, scales[2]))
    return (_interval(cost, best, least, 1, scales[1]), _interval(cost, best, least, 2, scales[2]))


def _least(
    cost: Callable[[Floats], float], start: Floats, free: tuple[int, ...]
) -> tuple[Floats, float]:
    """Return the place of the least cost and the cost, moving the `free` logs only."""

    def moved(values: Floats) -> Floats:
        logs = start.copy()
        logs[list(free)] = values
        return logs

    found = optimize.minimize(
        lambda values: cost(moved(values)),
        start[list(free)],
        method='Nelder-Mead',
        options={'maxiter': 90, 'xatol': 0.02, 'fatol': 0.02},
    )
    return moved(found.x), float(found.fun)


def _bound(
    cost: Callable[[Floats], float], best: Floats, least: float, place: int, scale: float
) -> Estimate:
    """Return a noise that is not seen: 0, up to where it would have been.

    The other noises are fitted anew for each size of this one: where one of them takes its part,
    it could be larger than beside the others as they are.
    """
    others = tuple(i for i in range(3) if i != place)
    below, logs = best, best
    while logs[place] < 10.0:
        logs = below.copy()
        logs[place] = max(logs[place], LOW) + BOUND_STEP
        logs, found = _least(cost, logs, others)
        if found - least > FALL:
            break
        below = logs
    return Estimate(0.0, 0.0, float(np.exp(logs[place])) * scale)


def _interval(
    cost: Callable[[Floats], float], best: Floats, least: float, place: int, scale: float
) -> Estimate:
    """Return a noise of a clock that wanders, with its interval; it may be the other noise."""
    without = best.copy()
    without[place] = ABSENT
    without, rest = _least(cost, without, tuple(i for i in range(3) if i != place))
    if rest - least < FALL or best[place] <= ABSENT + 1.0:
        _, _, high = _bound(cost, best, least, place, scale)
        value = float(np.exp(best[place])) * scale if best[place] > ABSENT + 3.0 else 0.0
        return Estimate(value, 0.0, high)
    step = 0.15
    curvature = np.zeros((3, 3))
    for a in range(3):
        for b in range(3):
            signs = ((1, 1, 1.0), (1, -1, -1.0), (-1, 1, -1.0), (-1, -1, 1.0))
            for up, side, sign in signs:
                logs = best.copy()
                logs[a] += up * step
                logs[b] += side * step
                curvature[a, b] += sign * cost(logs) / (4.0 * step * step)
    if not np.isfinite(curvature).all():
        return Estimate(float(np.exp(best[place])) * scale, 0.0, np.inf)
    used = [i for i in range(3) if best[i] > ABSENT + 1.0]
    covariance = np.linalg.pinv(curvature[np.ix_(used, used)])
    sigma = SMALL_SAMPLE * float(
        np.sqrt(max(covariance[used.index(place), used.index(place)], 0.01))
    )
    value = float(np.exp(best[place])) * scale
    return Estimate(value, value * float(np.exp(-Z95 * sigma)), value * float(np.exp(Z95 * sigma)))


def wandered(time_s: Floats, delay_s: Floats, white_fm: float, random_walk_fm: float) -> Floats:
    """Return the wander of the clock at each message, s: smoothed, so that latency is left.

    A penalised line through block means, as stiff as the two noises say.
    """
    parts = _blocks(len(delay_s))
    y, t = -_means(delay_s, parts), _means(time_s, parts)
    step_s = float(np.median(np.diff(t)))
    noise = float(np.std(np.diff(delay_s))) ** 2 / 2.0 / max(len(parts[0]) // 4, 1)
    count = len(y)
    first, second = np.diff(np.eye(count), axis=0), np.diff(np.eye(count), 2, axis=0)
    if random_walk_fm and random_walk_fm**2 * step_s**2 / 3.0 > white_fm**2:
        stiff = second.T @ second / (random_walk_fm**2 * step_s**3)
    else:
        stiff = first.T @ first / (white_fm**2 * step_s)
    smooth = np.linalg.solve(np.eye(count) + noise * stiff, y)
    return np.asarray(np.interp(time_s, t, smooth - smooth.mean()))


def _wander_cost(y: Floats, step_s: float, sigmas: Floats) -> float:
    """Return minus the log likelihood of block means under white noise and a two-state clock."""
    white, phase, rate = (float(each) ** 2 for each in sigmas)
    q00, q01, q11 = (
        phase * step_s + rate * step_s**3 / 3.0,
        rate * step_s**2 / 2.0,
        rate * step_s,
    )
    x0, x1 = float(y[0]), 0.0
    big = float(np.var(y)) * 1e4 + 1e-12
    p00, p01, p11 = white + 1e-30, 0.0, big / step_s**2
    total = 0.0
    for k, seen in enumerate(y[1:].tolist()):
        x0 += x1 * step_s
        p00 += 2.0 * step_s * p01 + step_s**2 * p11 + q00
        p01 += step_s * p11 + q01
        p11 += q11
        variance = max(p00 + white, 1e-30)
        error = seen - x0
        if k:  # the first one tells the rate
            total += error * error / variance + np.log(variance)
        gain0, gain1 = p00 / variance, p01 / variance
        x0 += gain0 * error
        x1 += gain1 * error
        p11 -= gain1 * p01
        p01 -= gain0 * p01
        p00 -= gain0 * p00
    return 0.5 * float(total)
