"""A latency model that was fitted: its keys for a rig file, and its parameters with intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from rig_common.arrays import Floats
from sensor_rig.fit.statistics import Z95, Estimate, around, long_run_covariance

PROBABILITIES = np.array(
    [
        0.0,
        0.002,
        0.005,
        0.01,
        0.02,
        0.035,
        *np.arange(1, 20) / 20.0,
        0.965,
        0.98,
        0.99,
        0.995,
        0.998,
        1.0,
    ]
)
"""At which an empirical model has quantiles: closer in the tails."""
NO_CURVATURE = 1e-6
"""Of the likelihood in a direction, as a part of the largest one: rounding."""
SMALL_SAMPLE = 1.15
"""Factor on standard errors: the long-run covariance of some hundred samples is too small."""


@dataclass(frozen=True)
class Fitted:
    """A model with its parameters."""

    name: str
    """`mixture_3` is a mixture of three modes."""
    names: tuple[str, ...]
    """Of the parameters: `mean_s`, `means_s.1`."""
    values: Floats
    log_density: Callable[[Floats, Floats], Floats]
    """`log_density(x, values)` of latencies [n], s."""
    regular: tuple[bool, ...] = ()
    """Which parameters have a normal error; an end of the distribution has not."""

    @property
    def model(self) -> str:
        """The `model` of a rig file."""
        return self.name.partition('_')[0]

    def keys(self) -> dict[str, Any]:
        """Return the keys of `latency:`, without correlation."""
        found: dict[str, Any] = {'model': self.model}
        if self.model == 'empirical':
            found['probabilities'] = PROBABILITIES.tolist()
        for name, value in zip(self.names, self.values.tolist(), strict=True):
            key, _, place = name.partition('.')
            if place:
                found.setdefault(key, []).append(value)
            else:
                found[key] = value
        return found

    def intervals(self, x: Floats) -> dict[str, Estimate]:
        """Return every parameter with its interval, of the latencies `x` it was fitted to.

        Correlated latencies tell less than independent ones: the sandwich estimate of the
        likelihood's curvature and the long-run covariance of its slope.
        """
        free = [i for i in range(len(self.values)) if not self.regular or self.regular[i]]
        found = {
            name: Estimate(float(value), float(value), float(value))
            for name, value in zip(self.names, self.values, strict=True)
        }
        if free:
            covariance = _sandwich(self, x, free)
            for row, place in enumerate(free):
                sigma = SMALL_SAMPLE * float(np.sqrt(max(covariance[row, row], 0.0)))
                found[self.names[place]] = self._around(place, sigma, x)
        found.update(_end_intervals(self, x))
        return found

    def _around(self, place: int, sigma: float, x: Floats) -> Estimate:
        """Return a parameter's interval; that of an end is wider on the side without samples."""
        value = float(self.values[place])
        if self.names[place] != 'min_s':
            return around(value, sigma)
        gap = max(float(x.min()) - value, 1e-12)
        stretch = float(np.exp(min(Z95 * sigma / gap, 20.0)))
        return Estimate(
            value, max(float(x.min()) - gap * stretch, 0.0), float(x.min()) - gap / stretch
        )


def _sandwich(fitted: Fitted, x: Floats, free: list[int]) -> Floats:
    steps = 1e-4 * np.maximum(np.abs(fitted.values), 1e-3 * x.std())

    def at(*moves: tuple[int, float]) -> Floats:
        values = fitted.values.copy()
        for place, factor in moves:
            values[place] += factor * steps[place]
        return fitted.log_density(x, values)

    scores = np.stack([(at((i, 1.0)) - at((i, -1.0))) / (2.0 * steps[i]) for i in free], axis=1)
    size = len(free)
    curvature = np.zeros((size, size))
    for a in range(size):
        for b in range(a, size):
            i, j = free[a], free[b]
            total = (
                at((i, 1.0), (j, 1.0))
                - at((i, 1.0), (j, -1.0))
                - at((i, -1.0), (j, 1.0))
                + at((i, -1.0), (j, -1.0))
            ).mean()
            curvature[a, b] = curvature[b, a] = -total / (4.0 * steps[i] * steps[j])
    if not np.isfinite(curvature).all():
        return np.zeros((size, size))  # latencies without any noise: a point, not an interval
    # In parts of each parameter: units are alike, and what does not count (the sum of the weights
    # of a mixture) has a curvature of 0 but for rounding, which must not be inverted.
    scale = np.array([1e4 * steps[i] for i in free])
    inverse = np.linalg.pinv(
        curvature * np.outer(scale, scale), rcond=NO_CURVATURE, hermitian=True
    ) * np.outer(scale, scale)
    # The weights of a mixture add up to 1: what one gains, the others lose by their parts.
    change = np.eye(size)
    weights = [row for row, i in enumerate(free) if fitted.names[i].startswith('weights')]
    change[np.ix_(weights, weights)] -= fitted.values[[free[row] for row in weights]][:, None]
    inverse = change @ inverse
    return np.asarray(inverse @ long_run_covariance(scores) @ inverse.T / len(x))


def _end_intervals(fitted: Fitted, x: Floats) -> dict[str, Estimate]:
    """Return the intervals of the ends of a distribution, from the samples next to them.

    n F(first sample) is exponential: between 0.025 and 3.69 in 95 of 100 cases.
    """
    n, low, high = len(x), float(x.min()), float(x.max())
    if fitted.name == 'uniform':
        lag = (high - low) / n * np.array([0.025, 3.69])
        return {
            'min_s': Estimate(float(fitted.values[0]), low - lag[1], low - lag[0]),
            'max_s': Estimate(float(fitted.values[1]), high + lag[0], high + lag[1]),
        }
    if fitted.name == 'gamma' and not fitted.regular[0]:
        least, mean, sigma = fitted.values
        shape, scale = ((mean - least) / sigma) ** 2, sigma**2 / (mean - least)
        lag = scale * (special.gamma(shape + 1.0) * np.array([0.025, 3.69]) / n) ** (1.0 / shape)
        return {'min_s': Estimate(float(least), max(low - lag[1], 0.0), low - lag[0])}
    return {}
