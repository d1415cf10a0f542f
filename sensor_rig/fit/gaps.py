"""When a stream measures, and what of it is missing: period, regularity, losses in runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats, Ints
from sensor_rig.fit.statistics import Z95, Estimate, around, long_run_covariance

REGULAR = 0.25
"""Periods: intervals that vary more tell no losses."""

LONGEST_SERIES = 10_000_000
"""Messages, lost ones included, that are looked at one by one; a long gap can claim any number."""


@dataclass(frozen=True)
class GapFit:
    """Rate and losses."""

    rate_hz: Estimate
    regularity_s: float
    """Standard deviation of the interval between two stamps that follow each other, s."""
    regular: bool
    """Whether intervals are regular enough to see that one is missing."""
    runs: NDArray[np.int64]
    """Lengths of the runs of lost messages."""
    probability: Estimate
    burst_mean: Estimate
    duplicates: Estimate
    follows: NDArray[np.bool_]
    """Which messages follow the one before, with none lost in between, [n]."""


def fit_gaps(stamp_ns: Ints, receive_ns: Ints) -> GapFit:
    """Return the rate and what is missing; stamps tell it, or arrivals where those do better."""
    copies = np.concatenate([[False], np.diff(stamp_ns) == 0])
    of_stamps, of_arrivals = (_intervals(times[~copies]) for times in (stamp_ns, receive_ns))
    period_s, steps, spread = of_stamps if of_stamps[2] <= 1.5 * of_arrivals[2] else of_arrivals
    regular = spread < REGULAR * period_s
    lost = np.maximum(steps - 1, 0) if regular else np.zeros_like(steps)
    runs = lost[lost > 0]
    follows = np.zeros(len(stamp_ns), np.bool_)
    follows[np.flatnonzero(~copies)[1:]] = lost == 0
    count = len(lost) + 1
    return GapFit(
        _rate(period_s, spread, int(steps.sum(dtype=np.float64))),
        float(of_stamps[2]),
        regular,
        runs,
        _probability(lost),
        _burst(runs),
        _fraction(int(copies.sum()), len(copies)) if count else Estimate(0.0, 0.0, 1.0),
        follows,
    )


def _intervals(times_ns: Ints) -> tuple[float, NDArray[np.int64], float]:
    """Return the period (s), the periods between neighbours, and how far off these are (s)."""
    gaps_s = np.diff(times_ns) / 1e9
    gaps_s = np.where(gaps_s > 0.0, gaps_s, 0.0)
    period_s = float(np.median(gaps_s[gaps_s > 0.0])) if gaps_s.any() else 1e-9
    steps = np.ones(len(gaps_s), np.int64)
    for _ in range(5):
        steps = np.maximum(np.rint(gaps_s / period_s).astype(np.int64), 1)
        typical = gaps_s < 20.0 * period_s
        if not gaps_s[typical].any():
            break
        period_s = float(gaps_s[typical].sum() / steps[typical].sum())
    rest = gaps_s - steps * period_s
    return period_s, steps, float(rest[steps == 1].std()) if (steps == 1).any() else np.inf


def _rate(period_s: float, spread_s: float, periods: int) -> Estimate:
    """Return the rate: the ends of the recording are off by the spread of an interval."""
    sigma = spread_s / max(periods, 1)
    return around(1.0 / period_s, sigma / period_s**2)


def _probability(lost: NDArray[np.int64]) -> Estimate:
    kept, missing = len(lost) + 1, float(lost.sum(dtype=np.float64))
    total = kept + missing
    if not lost.any():
        return Estimate(0.0, 0.0, min(3.0 / total, 1.0))
    p = missing / total
    if total <= LONGEST_SERIES:
        gone: Floats = np.ones(int(total))
        gone[0] = 0.0
        gone[np.cumsum(lost + 1)] = 0.0
        variance = float(long_run_covariance(gone[:, None])[0, 0])
    else:
        # A chain of two states with these runs: 2 / (P(lose) + P(recover)) - 1.
        runs = float(np.count_nonzero(lost))
        variance = p * (1.0 - p) * (2.0 / (runs / kept + runs / missing) - 1.0)
    variance = max(variance, p * (1.0 - p))
    sigma = float(np.sqrt(variance / total)) / (p * (1.0 - p))
    logit = np.log(p / (1.0 - p))
    low, high = (1.0 / (1.0 + np.exp(-(logit + side * Z95 * sigma))) for side in (-1.0, 1.0))
    return Estimate(p, float(low), float(high))


def _burst(runs: NDArray[np.int64]) -> Estimate:
    """Return the mean length of a run: the chance to leave it, with Wilson's interval."""
    if not len(runs):
        return Estimate(1.0, 1.0, np.inf)
    leave = _fraction(len(runs), int(runs.sum(dtype=np.float64)))
    return Estimate(1.0 / leave.value, 1.0 / max(leave.high, 1e-9), 1.0 / max(leave.low, 1e-9))


def _fraction(hits: int, total: int) -> Estimate:
    """Return a fraction with Wilson's interval."""
    total = max(total, 1)
    p, z = hits / total, Z95
    middle = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * np.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return Estimate(p, float(max(middle - half, 0.0)), float(min(middle + half, 1.0)))
