"""From factors to points: which values are run together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.installing import pip_install
from sensor_rig.sweep.plan.sweep_plan import Factor, Plan, Sampling, Value

DIGITS = 12
"""Significant digits of a value that is computed, so that 0.1 + 0.2 is 0.3."""


def rounded(value: float) -> float:
    """Return a computed value without the last digits of its arithmetic."""
    return float(f'{value:.{DIGITS}g}')


def levels(factor: Factor) -> list[Value]:
    """Return the values of a factor in a grid."""
    if not factor.is_range:
        return list(factor.values)
    low, high = bounds(factor)
    if factor.step is not None:
        count = math.floor((high - low) / factor.step + 1e-9) + 1
        return [rounded(low + index * factor.step) for index in range(count)]
    count = factor.count or 2
    return [between(factor, index / (count - 1)) for index in range(count)]


def bounds(factor: Factor) -> tuple[float, float]:
    """Return the ends of a range."""
    if factor.low is None or factor.high is None:
        raise TypeError('a list has no ends')
    return factor.low, factor.high


def between(factor: Factor, unit: float) -> Value:
    """Return the value of a factor at `unit` (0 to 1) of its range, or of its list."""
    if not factor.is_range:
        return factor.values[min(int(unit * len(factor.values)), len(factor.values) - 1)]
    low, high = bounds(factor)
    if factor.scale == 'log':
        return rounded(low * (high / low) ** unit)
    return rounded(low + (high - low) * unit)


def extremes(factor: Factor) -> list[Value]:
    """Return the values that show if a factor can be set: all of a list, the ends of a range."""
    return list(factor.values) if not factor.is_range else list(bounds(factor))


def points(plan: Plan) -> Iterator[tuple[Value, ...]]:
    """Yield the values of the factors, in their order, for every point of the plan."""
    factors = list(plan.vary.values())
    if plan.sample.method == 'grid':
        yield from product(*(levels(factor) for factor in factors))
        return
    for row in units(plan.sample, len(factors)):
        yield tuple(
            between(factor, float(unit)) for factor, unit in zip(factors, row, strict=True)
        )


def units(sample: Sampling, size: int) -> Floats:
    """Return the points [n, size] of a sampled design in the unit cube."""
    rng = np.random.default_rng(sample.seed)
    if sample.method == 'random':
        return rng.random((sample.count, size))
    if sample.method == 'lhs':
        strata = rng.permuted(np.tile(np.arange(sample.count), (size, 1)), axis=1).T
        return np.asarray((strata + rng.random((sample.count, size))) / sample.count)
    if sample.method == 'sobol':
        from scipy.stats import qmc

        found = qmc.Sobol(size, scramble=True, seed=rng).random(sample.count)
        return np.asarray(found, float)
    return _salib_units(sample, size)


def problem(names: Sequence[str]) -> dict[str, object]:
    """Return SALib's description of a unit cube."""
    return {'num_vars': len(names), 'names': list(names), 'bounds': [[0.0, 1.0]] * len(names)}


def _salib_units(sample: Sampling, size: int) -> Floats:
    try:
        from SALib.sample import morris, sobol
    except ImportError:
        raise RigError(
            f'sample.method {sample.method} needs SALib: {pip_install("SALib")}'
        ) from None
    cube = problem([f'x{index}' for index in range(size)])
    if sample.method == 'saltelli':
        return np.asarray(
            sobol.sample(cube, sample.count, calc_second_order=False, seed=sample.seed), float
        )
    return np.asarray(
        morris.sample(cube, sample.count, num_levels=sample.levels, seed=sample.seed), float
    )


def numeric(values: Sequence[object]) -> bool:
    """Return whether all values are numbers, so that they have an order and a distance."""
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
