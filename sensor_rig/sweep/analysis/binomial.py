"""Exact binomial statements about how often runs are good (Clopper and Pearson 1934)."""

from __future__ import annotations

import math

from scipy.special import betainc, betaincinv


def lower_bound(good: int, runs: int, confidence: float) -> float:
    """Return the probability that is exceeded with `confidence`, one-sided.

    >>> round(lower_bound(29, 29, 0.95), 4)     # all of 29 good: at least 90 %
    0.9019
    """
    return 0.0 if good == 0 else float(betaincinv(good, runs - good + 1, 1.0 - confidence))


def upper_bound(good: int, runs: int, confidence: float) -> float:
    """Return the probability that is not exceeded with `confidence`, one-sided."""
    return 1.0 - lower_bound(runs - good, runs, confidence)


def interval(good: int, runs: int, confidence: float) -> tuple[float, float]:
    """Return the exact two-sided interval."""
    if not runs:
        return 0.0, 1.0
    each = 1.0 - (1.0 - confidence) / 2.0
    return lower_bound(good, runs, each), upper_bound(good, runs, each)


def confidence_above(good: int, runs: int, probability: float) -> float:
    """Return how surely the probability is above `probability`: 1 - P(so many or more | it)."""
    return (
        1.0
        if probability <= 0.0
        else (0.0 if good == 0 else 1.0 - float(betainc(good, runs - good + 1, probability)))
    )


def runs_needed(probability: float, confidence: float) -> int:
    """Return how many runs, all of them good, show `probability` with `confidence`."""
    return math.ceil(math.log(1.0 - confidence) / math.log(probability) - 1e-9)
