"""Latency models that can be fitted: parameters by maximum likelihood, and their density.

The parameters are the keys of `latency:` in a rig file, so what is fitted is what is written.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import optimize, special

from rig_common.arrays import Floats
from sensor_rig.fit.fitted import PROBABILITIES, Fitted

MODES = (2, 3, 4, 5)
"""Numbers of modes that are tried."""
SMOOTHINGS = (20, 60, 100)
"""Widths of kernels that are tried, in percent of the usual one."""
LARGE_SHAPE = 1e6
"""Of a gamma: above, its first estimate is off by less than a millionth."""
LEAST_SIGMA = 0.01
"""Of a mode, as a part of the latency's standard deviation: narrower ones are single samples."""


def fixed(x: Floats) -> Fitted:
    """Return the median alone: no distribution."""

    def density(y: Floats, v: Floats) -> Floats:
        return np.zeros(len(y))

    return Fitted(
        'fixed', ('delay_s',), np.array([max(float(np.median(x)), 0.0)]), density, (False,)
    )


def fit_uniform(x: Floats) -> Fitted:
    """Return the uniform: its ends lie a mean gap outside the samples."""
    gap = (x.max() - x.min()) / max(len(x) - 1, 1)

    def density(y: Floats, v: Floats) -> Floats:
        inside = (y >= v[0]) & (y <= v[1])
        return np.where(inside, -np.log(v[1] - v[0]), _outside(len(x), v[1] - v[0]))

    ends = np.array([max(x.min() - gap, 0.0), x.max() + gap])
    return Fitted('uniform', ('min_s', 'max_s'), ends, density, (False, False))


def fit_normal(x: Floats) -> Fitted:
    """Return the normal."""

    def density(y: Floats, v: Floats) -> Floats:
        return np.asarray(-0.5 * ((y - v[0]) / v[1]) ** 2 - np.log(v[1]) - 0.919)

    return Fitted('normal', ('mean_s', 'sigma_s'), np.array([x.mean(), x.std()]), density)


def _gamma_density(y: Floats, v: Floats) -> Floats:
    least, mean, sigma = v
    shape, scale = ((mean - least) / sigma) ** 2, sigma**2 / (mean - least)
    u = np.maximum(y - least, 1e-300)
    found = (shape - 1.0) * np.log(u / scale) - u / scale - np.log(scale) - special.gammaln(shape)
    return np.where(y > least, found, _outside(1000, sigma))


def fit_gamma(x: Floats) -> Fitted:
    """Return the gamma above a least latency, which is found with the others."""
    first, spread = float(x.min()), float(x.std())

    def shape_of(gap: float) -> tuple[float, float]:
        u = x - first + gap
        lack = max(float(np.log(u.mean()) - np.log(u).mean()), 1e-12)
        shape = (3.0 - lack + np.sqrt((lack - 3.0) ** 2 + 24.0 * lack)) / (12.0 * lack)
        # Newton's steps on log(shape) - digamma(shape) = lack. The start is exact for large ones,
        # whose polygamma scipy gets wrong or never.
        for _ in range(4 if 0.0 < shape < LARGE_SHAPE else 0):
            shape -= (np.log(shape) - special.digamma(shape) - lack) / (
                1.0 / shape - special.polygamma(1, shape)
            )
        return float(shape), float(u.mean())

    def values(gap: float) -> Floats:
        shape, mean = shape_of(gap)
        return np.array([first - gap, first - gap + mean, mean / np.sqrt(shape)])

    gap = _best_gap(
        x,
        lambda g: float(_gamma_density(x, values(g)).mean()),
        least=(float(x.mean()) - first) / len(x),
        most=min(first, 30.0 * spread),
    )
    shape, _ = shape_of(gap)
    return Fitted(
        'gamma',
        ('min_s', 'mean_s', 'sigma_s'),
        values(gap),
        _gamma_density,
        (shape > 2.5, True, True),
    )


def _lognormal_density(y: Floats, v: Floats) -> Floats:
    least, mean, sigma = v
    width = np.sqrt(np.log1p((sigma / (mean - least)) ** 2))
    middle = np.log(mean - least) - width**2 / 2.0
    log_u = np.log(np.maximum(y - least, 1e-300))
    found = -0.5 * ((log_u - middle) / width) ** 2 - np.log(width) - 0.919 - log_u
    return np.where(y > least, found, _outside(1000, sigma))


def fit_lognormal(x: Floats) -> Fitted:
    """Return the lognormal above a least latency, which is found with the others."""
    first, spread = float(x.min()), float(x.std())

    def values(gap: float) -> Floats:
        logs = np.log(x - first + gap)
        width = max(float(logs.std()), 1e-6)
        mean = float(np.exp(logs.mean() + width**2 / 2.0))
        return np.array([first - gap, first - gap + mean, mean * np.sqrt(np.expm1(width**2))])

    gap = _best_gap(
        x,
        lambda g: float(_lognormal_density(x, values(g)).mean()),
        least=max(0.005 * (float(np.median(x)) - first), 1e-4 * spread),
        most=min(first, 30.0 * spread),
    )
    return Fitted('lognormal', ('min_s', 'mean_s', 'sigma_s'), values(gap), _lognormal_density)


def _best_gap(x: Floats, likelihood: Callable[[float], float], least: float, most: float) -> float:
    """Return how far below the first sample the distribution begins, s."""
    if most <= least:
        return max(most, 1e-12)
    grid = np.geomspace(least, most, 25)
    best = int(np.argmax([likelihood(float(gap)) for gap in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = optimize.minimize_scalar(
        lambda g: -likelihood(float(np.exp(g))),
        method='bounded',
        bounds=(np.log(low), np.log(high)),
        options={'maxiter': 25},
    )
    return float(np.exp(found.x))


def _mixture_density(y: Floats, v: Floats) -> Floats:
    weights, means, sigmas = np.split(v, 3)
    logs = (
        np.log(np.maximum(weights / weights.sum(), 1e-300))
        - np.log(sigmas)
        - 0.919
        - 0.5 * ((y[:, None] - means) / sigmas) ** 2
    )
    return np.asarray(np.logaddexp.reduce(logs, axis=1))


def fit_mixture(x: Floats, modes: int) -> Fitted:
    """Return normal modes, by expectation and maximisation from two beginnings."""
    spread = float(x.std())
    floor = (LEAST_SIGMA * spread) ** 2
    best: tuple[float, Floats] | None = None
    quantiles = np.quantile(x, (np.arange(modes) + 0.5) / modes)
    for means in (quantiles, np.linspace(x.min(), x.max(), modes + 2)[1:-1]):
        values = np.concatenate(
            [np.full(modes, 1.0 / modes), means, np.full(modes, spread / modes)]
        )
        before = -np.inf
        for _ in range(400):
            weights, means, sigmas = np.split(values, 3)
            logs = np.log(weights) - np.log(sigmas) - 0.5 * ((x[:, None] - means) / sigmas) ** 2
            total = np.logaddexp.reduce(logs, axis=1)
            share = np.exp(logs - total[:, None])
            mass = share.sum(axis=0) + 1e-9
            means = (share * x[:, None]).sum(axis=0) / mass
            sigmas = np.sqrt((share * (x[:, None] - means) ** 2).sum(axis=0) / mass + floor)
            values = np.concatenate([mass / mass.sum(), means, sigmas])
            if total.mean() - before < 1e-8:
                break
            before = float(total.mean())
        if best is None or before > best[0]:
            best = (before, values)
    assert best is not None
    order = np.argsort(best[1][modes : 2 * modes])
    values = np.concatenate([part[order] for part in np.split(best[1], 3)])
    names = tuple(f'{key}.{i}' for key in ('weights', 'means_s', 'sigmas_s') for i in range(modes))
    return Fitted(f'mixture_{modes}', names, values, _mixture_density)


def fit_empirical(x: Floats, smoothing: int) -> Fitted:
    """Return quantiles of the samples, each spread by a normal kernel.

    `smoothing` is the kernel's width in percent of Silverman's, which is right for one normal.
    """
    low, high = np.quantile(x, [0.25, 0.75])
    spread = min(float(x.std()), float(high - low) / 1.34) or float(x.std())
    width = smoothing / 100.0 * 1.06 * spread * len(x) ** -0.2 + 1e-9
    grid = np.unique(np.concatenate([x - 3.0 * width, x, x + 3.0 * width]))
    cdf = special.ndtr((grid[:, None] - x[:: -(-len(x) // 1000)]) / width).mean(axis=1)
    values = np.interp(PROBABILITIES, (cdf - cdf[0]) / (cdf[-1] - cdf[0]), grid)
    values = np.maximum(values, 0.0) + np.arange(len(values)) * 1e-12  # rising where equal
    mass = np.diff(PROBABILITIES)

    def density(y: Floats, v: Floats) -> Floats:
        place = np.clip(np.searchsorted(v, y, side='right') - 1, 0, len(mass) - 1)
        inside = np.log(mass[place] / (v[place + 1] - v[place]))
        outside = _outside(len(x), v[-1] - v[0])
        return np.where((y < v[0]) | (y > v[-1]), outside, inside)

    names = tuple(f'quantiles_s.{i}' for i in range(len(values)))
    return Fitted(f'empirical_{smoothing}', names, values, density, (False,) * len(values))


def _outside(count: int, width: float) -> float:
    """Return the log density beyond the ends of a model: as if a tenth of a sample lay there."""
    return float(-np.log(10.0 * count * width))


CANDIDATES: dict[str, Callable[[Floats], Fitted]] = {
    'uniform': fit_uniform,
    'normal': fit_normal,
    'gamma': fit_gamma,
    'lognormal': fit_lognormal,
    **{f'mixture_{k}': partial(fit_mixture, modes=k) for k in MODES},
    **{f'empirical_{k}': partial(fit_empirical, smoothing=k) for k in SMOOTHINGS},
}
"""Every model that is tried, by name."""
