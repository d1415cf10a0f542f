"""The distribution of a latency as a table, and how far its samples can be correlated.

A latency is g(z) of a standard normal z, with g = (quantile function) o (normal distribution
function). Where z is correlated in time, so is the latency: a Gaussian copula. With g expanded in
Hermite polynomials, g = sum c_n He_n, the correlation of two latencies whose normals have the
correlation rho is sum c_n^2 rho^n / sum c_n^2 (n >= 1; Price's theorem), which rises with rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from rig_common.errors import RigError
from sim_sensors.timing.arrays import Array
from sim_sensors.timing.latency_config import LatencyConfig

Z_MAX = 5.0
"""Normals are cut to this size, which concerns one sample in three million."""
STEPS = 4096
"""Of the table over [-Z_MAX, Z_MAX]."""
TERMS = 200
"""Of the Hermite series; what is left of the variance counts as one more."""
MOST_TAPS = 256
"""Of the filter that correlates normals: two blocks of a random stream hold them."""
MOST_CUT = 0.05
"""Of the variance, lost by ending the taps."""
MOST_RHO = (MOST_TAPS - 1) / MOST_TAPS


@lru_cache(maxsize=256)
def marginal_of(config: LatencyConfig) -> Array:
    """Return the latencies at STEPS + 1 even normals from -Z_MAX to Z_MAX, s; they rise.

    Do not write.
    """
    from scipy import special

    z = np.linspace(-Z_MAX, Z_MAX, STEPS + 1)
    u = special.ndtr(z)
    match config.model:
        case 'uniform':
            return np.asarray(config.min_s + (config.max_s - config.min_s) * u)
        case 'empirical':
            at = config.probabilities or np.linspace(0.0, 1.0, len(config.quantiles_s))
            return np.asarray(np.interp(u, at, config.quantiles_s))
        case 'normal' | 'mixture':
            return _normal_modes(config, u)
        case 'gamma' | 'lognormal':
            return _skewed(config, u)
    raise ValueError(f'{config.model} has no distribution of its own')


def _normal_modes(config: LatencyConfig, u: Array) -> Array:
    """Return quantiles of normal modes, cut to [min_s, max_s]."""
    from scipy import special

    one = config.model == 'normal'
    weights = np.array((1.0,) if one else config.weights)
    means = np.array((config.mean_s,) if one else config.means_s)
    sigmas = np.array((config.sigma_s,) if one else config.sigmas_s)
    weights = weights / weights.sum()
    x = np.unique(
        np.concatenate(
            [m + s * np.linspace(-Z_MAX, Z_MAX, 2001) for m, s in zip(means, sigmas, strict=True)]
        )
    )
    low = max(config.min_s, float(x[0]))
    high = min(config.max_s or np.inf, float(x[-1]))
    x = np.unique(np.concatenate([[low], x[(x > low) & (x < high)], [high]]))
    cdf = (weights * special.ndtr((x[:, None] - means) / sigmas)).sum(axis=1)
    cdf = (cdf - cdf[0]) / (cdf[-1] - cdf[0])
    return np.asarray(np.interp(u, cdf, x))


def _skewed(config: LatencyConfig, u: Array) -> Array:
    """Return quantiles of min_s plus a gamma or a lognormal, cut at max_s."""
    from scipy import special

    mean, sigma = config.mean_s - config.min_s, config.sigma_s
    room = config.max_s - config.min_s
    if config.model == 'gamma':
        shape, scale = (mean / sigma) ** 2, sigma**2 / mean
        most = special.gammainc(shape, room / scale) if config.max_s else 1.0
        return np.asarray(config.min_s + scale * special.gammaincinv(shape, u * most))
    width = np.sqrt(np.log1p((sigma / mean) ** 2))
    middle = np.log(mean) - width**2 / 2.0
    most = special.ndtr((np.log(room) - middle) / width) if config.max_s else 1.0
    return np.asarray(config.min_s + np.exp(middle + width * special.ndtri(u * most)))


# ---- correlation -----------------------------------------------------------------------------


def _hermite_weights(table: Array) -> Array:
    """Return c_n^2 / variance of n = 1 .. TERMS and of what is left, [TERMS + 1]."""
    z = np.linspace(-Z_MAX, Z_MAX, len(table))
    density = np.exp(-z * z / 2.0)
    density /= density.sum()
    g = table - (table * density).sum()
    variance = float((g * g * density).sum())
    found = np.zeros(TERMS + 1)
    before, here = np.zeros_like(z), np.ones_like(z)
    for n in range(TERMS):  # orthonormal He_n / sqrt(n!), by their recurrence
        before, here = here, (z * here - np.sqrt(n) * before) / np.sqrt(n + 1.0)
        found[n] = (g * here * density).sum() ** 2 / variance
        if found.sum() >= 1.0:
            break
    found[-1] = max(1.0 - found.sum(), 0.0)
    return np.asarray(found / found.sum())


def _correlation(weights: Array, rho: float) -> float:
    powers = rho ** np.arange(1, TERMS + 2)
    return float((weights * powers).sum())


def reachable(table: Array) -> tuple[float, float]:
    """Return the least and the largest lag-1 correlation that a latency of `table` can have."""
    weights = _hermite_weights(table)
    return _correlation(weights, -MOST_RHO), _correlation(weights, MOST_RHO)


def latency_correlation(table: Array, rho: float) -> float:
    """Return the lag-1 correlation of a latency of `table` whose normals have `rho`."""
    return _correlation(_hermite_weights(table), min(max(rho, -MOST_RHO), MOST_RHO))


@lru_cache(maxsize=256)
def normal_lags(config: LatencyConfig) -> tuple[float, ...]:
    """Return the correlations of the normals that give the latency its own, at lag 1, 2, ..."""
    if not config.lags:
        return ()
    weights = _hermite_weights(marginal_of(config))
    return tuple(_inverted(weights, wanted) for wanted in config.lags)


def _inverted(weights: Array, wanted: float) -> float:
    low, high = -MOST_RHO, MOST_RHO
    for _ in range(60):
        middle = (low + high) / 2.0
        if _correlation(weights, middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def filter_taps(lags: Sequence[float]) -> Array:
    """Return taps h of z_k = sum h_i n_(k-i): z is a unit normal with these correlations.

    They are the impulse response of the autoregression whose first correlations are `lags`, and
    end, so that z follows from the last few normals alone.
    """
    if len(lags) < 2:
        return _geometric_taps(lags[0] if lags else 0.0)
    steps = autoregressions([1.0, *lags])
    if len(steps) <= len(lags):
        raise ValueError(
            f'correlations contradict each other from lag {len(steps)} on: no series has them'
        )
    response = np.zeros(4 * MOST_TAPS)
    response[0] = 1.0
    for i in range(1, len(response)):
        count = min(i, len(lags))
        response[i] = steps[-1][:count] @ response[i - count : i][::-1]
    power = np.cumsum(response**2) / (response**2).sum()
    if not power[MOST_TAPS - 1] > 1.0 - MOST_CUT:
        raise ValueError(
            f'correlations last for more than {MOST_TAPS} samples, which is the longest possible'
        )
    taps = response[: min(int(np.searchsorted(power, 1.0 - 1e-8)) + 1, MOST_TAPS)]
    return np.asarray(taps / np.sqrt((taps * taps).sum()))


def autoregressions(correlations: Sequence[float]) -> list[Array]:
    """Return the coefficients of every order from 0 on, given correlations from lag 0 on.

    By Levinson's recursion; it ends before the first order that no series can have.
    """
    found = [np.zeros(0)]
    rest = 1.0
    for order in range(1, len(correlations)):
        last = found[-1]
        seen = np.asarray(correlations[1:order])[::-1]
        partial = (correlations[order] - float(last @ seen)) / rest
        rest *= 1.0 - partial**2
        if not abs(partial) < 1.0 or rest < 1e-9:
            break
        found.append(np.concatenate([last - partial * last[::-1], [partial]]))
    return found


def _geometric_taps(rho: float) -> Array:
    """Return falling taps, solved for the exact lag 1 that the cut series has."""
    if not rho:
        return np.ones(1)
    ratio = abs(rho)
    count = int(min(MOST_TAPS, max(2, np.ceil(np.log(1e-4) / np.log(ratio)))))
    low, high = 0.0, 1.0
    for _ in range(60):
        ratio = (low + high) / 2.0
        squares = ratio ** (2.0 * np.arange(count))
        lag = ratio * squares[:-1].sum() / squares.sum()
        low, high = (ratio, high) if lag < abs(rho) else (low, ratio)
    taps = np.asarray((ratio if rho > 0.0 else -ratio) ** np.arange(count))
    return np.asarray(taps / np.sqrt((taps * taps).sum()))


# ---- traces ----------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _trace(file: str) -> bytes:
    from sim_sensors.timing.trace_file import read_latencies

    return read_latencies(Path(file)).tobytes()


def trace_of(config: LatencyConfig) -> Array:
    """Return the latencies of the file that a trace model names, s."""
    latencies = np.frombuffer(_trace(config.file))
    if latencies.min() < 0.0 or latencies.max() > 60.0:
        raise RigError(
            f'latency.file {config.file} has latencies from {latencies.min():g} to '
            f'{latencies.max():g} s; they must be 0 to 60 s'
        )
    return latencies


def values_of(config: LatencyConfig) -> Array:
    """Return the latencies that the model draws from, s: a table, a trace, or 0 alone."""
    if config.model == 'delay':
        return np.zeros(1)
    return trace_of(config) if config.model == 'trace' else marginal_of(config)


def quantile_of(config: LatencyConfig, at: Array) -> Array:
    """Return the quantiles of the latency at the fractions `at` (0 to 1), s."""
    from scipy import special

    if config.model in ('delay', 'trace'):
        return np.asarray(np.quantile(values_of(config), at))
    normals = np.linspace(-Z_MAX, Z_MAX, STEPS + 1)
    return np.asarray(np.interp(special.ndtri(at), normals, marginal_of(config)))


def usual_least_s(config: LatencyConfig) -> float:
    """Return the latency that nine of ten samples reach or exceed, s."""
    return float(quantile_of(config, np.array([0.1]))[0])
