"""Estimates with intervals, for samples that are correlated in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.timing.marginals import autoregressions

Z95 = 1.96
MOST_LAGS, FEWEST_PAIRS = 40, 50
"""Lags that are looked at, and pairs of samples that one needs."""


class Estimate(NamedTuple):
    """A figure and its 95 % interval."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Estimate:
        """Return it in another unit; a negative factor turns the interval round."""
        ends = sorted((self.low * factor, self.high * factor))
        return Estimate(self.value * factor, *ends)


def around(value: float, sigma: float) -> Estimate:
    """Return an estimate with a normal error of `sigma`."""
    return Estimate(value, value - Z95 * sigma, value + Z95 * sigma)


def autocorrelation(x: Floats, lags: int) -> Floats:
    """Return the correlation with the sample 0 .. `lags` before, [lags + 1]."""
    centred = x - x.mean()
    power = float((centred * centred).sum()) or 1.0
    return np.array(
        [
            float((centred[lag:] * centred[: len(x) - lag]).sum()) / power
            for lag in range(min(lags, len(x) - 1) + 1)
        ]
    )


def long_run_covariance(scores: Floats) -> Floats:
    """Return n times the covariance of the mean of `scores` [n, p], which may be correlated.

    Newey and West's estimate with Andrews' bandwidth for a first-order process.
    """
    n = len(scores)
    centred = scores - scores.mean(axis=0)
    total = centred.T @ centred / n
    power = np.maximum(np.diag(total), 1e-300)
    first = np.clip((centred[1:] * centred[:-1]).mean(axis=0) / power, -0.97, 0.97)
    alpha = float(np.max(4.0 * first**2 / (1.0 - first**2) ** 2))
    lags = int(min(1.1447 * (alpha * n) ** (1.0 / 3.0) + 1.0, n / 4.0))
    for lag in range(1, lags + 1):
        pair = centred[lag:].T @ centred[:-lag] / n
        total = total + (1.0 - lag / (lags + 1.0)) * (pair + pair.T)
    return np.asarray(total)


def mean_estimate(x: Floats) -> Estimate:
    """Return the mean."""
    variance = max(float(long_run_covariance(x[:, None])[0, 0]), 0.0)
    return around(float(x.mean()), float(np.sqrt(variance / len(x))))


def lag_one(x: Floats, after: NDArray[np.bool_] | None = None) -> Estimate:
    """Return the lag-1 correlation; `after` [n] says which samples follow the one before.

    The estimate is raised by the bias that the unknown mean makes, (1 + 3 r) / n. Without two
    pairs of neighbours nothing is known: 0, between -1 and 1.
    """
    z = (x - x.mean()) / (x.std() or 1.0)
    before, here = z[:-1], z[1:]
    if after is not None:
        before, here = before[after[1:]], here[after[1:]]
    if len(here) < 2:
        return Estimate(0.0, -1.0, 1.0)
    found = float((before * here).mean())
    influence = before * here - found * (before**2 + here**2) / 2.0
    variance = max(float(long_run_covariance(influence[:, None])[0, 0]), 0.0)
    found += (1.0 + 3.0 * found) / len(x)
    low, _, high = np.clip(around(found, float(np.sqrt(variance / len(influence)))), -1.0, 1.0)[
        [1, 0, 2]
    ]
    return Estimate(min(max(found, -0.999), 0.999), float(low), float(high))


def correlations(x: Floats, follows: NDArray[np.bool_], most: int) -> Floats:
    """Return the correlations at lag 0 .. `most` of pairs with none lost in between."""
    z = (x - x.mean()) / (x.std() or 1.0)
    run = np.cumsum(~follows)
    found = [1.0]
    for lag in range(1, most + 1):
        pairs = run[lag:] == run[:-lag]
        if pairs.sum() < FEWEST_PAIRS:
            break
        found.append(float((z[lag:] * z[:-lag])[pairs].mean()))
    return np.array(found)


def order_of(x: Floats, follows: NDArray[np.bool_]) -> tuple[float, ...]:
    """Return the correlations at lag 1 .. p, p being the order of the autoregression of `x`.

    The order is that of the least Bayesian information criterion: each lag has to earn the
    logarithm of the number of samples.
    """
    seen = correlations(x, follows, min(MOST_LAGS, len(x) // 10))
    count, left = len(x), 1.0
    costs = []
    for order, taps in enumerate(autoregressions(seen.tolist())):
        if order:
            left *= 1.0 - float(taps[-1]) ** 2
        costs.append(count * np.log(left) + order * np.log(count))
    return tuple(seen[1 : int(np.argmin(costs)) + 1].tolist())


def weakened(
    lags: Sequence[float], reach: tuple[float, float], check: Callable[[list[float]], object]
) -> list[float]:
    """Return correlations fading with the lag as fast as `check` needs; [] for none."""
    order = np.arange(1, len(lags) + 1)
    for fading in (0.0, *np.geomspace(0.001, 0.3, 20)) if lags else ():
        inside = np.clip(lags * (1.0 - fading) ** order, reach[0] + 1e-3, reach[1] - 1e-3)
        found = [float(f'{lag:.4f}') for lag in inside]
        try:
            check(found)
        except RigError:
            continue
        return found
    return []


def normal_scores(x: Floats) -> Floats:
    """Return unit normals in the order of the samples."""
    ranks = np.argsort(np.argsort(x, kind='stable'), kind='stable')
    return np.asarray(special.ndtri((ranks + 0.5) / len(x)))


def slope_estimate(t: Floats, x: Floats) -> Estimate:
    """Return the slope of `x` over `t`."""
    u = t - t.mean()
    power = float((u * u).mean())
    if not power:
        return Estimate(0.0, -np.inf, np.inf)
    slope = float((u * x).mean()) / power
    rest = x - x.mean() - slope * u
    variance = max(float(long_run_covariance((u * rest)[:, None])[0, 0]), 0.0)
    return around(slope, float(np.sqrt(variance / len(x))) / power)


def quantile_estimate(x: Floats, p: float) -> Estimate:
    """Return the quantile at `p`, with the interval of the order statistics around it."""
    value = float(np.quantile(x, p))
    below = (x < value).astype(float)
    variance = max(float(long_run_covariance(below[:, None])[0, 0]), p * (1.0 - p) / 2.0)
    margin = Z95 * np.sqrt(variance / len(x)) + 0.5 / len(x)
    low, high = np.quantile(x, np.clip([p - margin, p + margin], 0.0, 1.0))
    return Estimate(value, float(low), float(high))
