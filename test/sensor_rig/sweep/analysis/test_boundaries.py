"""Where runs stop being good, held against enumeration and simulation."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binomtest

from sensor_rig.measures.claims import Claim
from sensor_rig.sweep.analysis.binomial import (
    confidence_above,
    interval,
    lower_bound,
    runs_needed,
    upper_bound,
)
from sensor_rig.sweep.analysis.boundaries import FactorLevel, boundaries, is_good


@pytest.mark.parametrize(('good', 'runs'), [(0, 5), (3, 5), (5, 5), (17, 40), (1, 1)])
def test_intervals_are_clopper_and_pearsons(good: int, runs: int) -> None:
    expected = binomtest(good, runs).proportion_ci(0.95, 'exact')
    assert interval(good, runs, 0.95) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_bounds_keep_their_promise() -> None:
    """Over all outcomes of a binomial, a lower bound is too high in at most 5 % of them."""
    for probability, runs in product((0.1, 0.5, 0.83, 0.99), (3, 8, 20)):
        wrong = sum(
            comb(runs, good) * probability**good * (1 - probability) ** (runs - good)
            for good in range(runs + 1)
            if lower_bound(good, runs, 0.95) > probability
        )
        assert wrong <= 0.05 + 1e-12


def test_bounds_by_hand() -> None:
    assert lower_bound(5, 5, 0.95) == pytest.approx(0.05 ** (1 / 5))
    assert upper_bound(0, 5, 0.95) == pytest.approx(1 - 0.05 ** (1 / 5))
    assert confidence_above(5, 5, 0.5) == pytest.approx(1 - 0.5**5)
    assert runs_needed(0.9, 0.95) == 29
    assert lower_bound(29, 29, 0.95) >= 0.9 > lower_bound(28, 28, 0.95)


def line(*goods: int, runs: int = 6) -> list[FactorLevel]:
    return [FactorLevel(10.0 * index, good, runs) for index, good in enumerate(goods)]


def test_a_plain_boundary() -> None:
    (found,) = boundaries(line(6, 6, 0, 0), 0.95)
    assert (found.low, found.high, found.good_below) == (10.0, 20.0, True)
    assert found.confidence == pytest.approx(1 - 2 * 0.5**6)
    assert found.interval == (10.0, 20.0)


def test_few_seeds_count_levels_together() -> None:
    (found,) = boundaries(line(3, 3, 3, 0, 0, 0, runs=3), 0.95)
    assert found.confidence == pytest.approx(1 - 2 * 0.5**3)
    assert found.interval == (10.0, 40.0), 'two levels a side make six runs'
    (lonely,) = boundaries(line(1, 0, runs=1), 0.95)
    assert lonely.confidence == 0.0 and lonely.interval is None


def test_good_in_the_middle_has_two_boundaries() -> None:
    low, high = boundaries(line(0, 6, 6, 1), 0.9)
    assert (low.low, low.high, low.good_below) == (0.0, 10.0, False)
    assert (high.low, high.high, high.good_below) == (20.0, 30.0, True)
    assert boundaries(line(6, 6, 6), 0.9) == [] == boundaries(line(0, 0), 0.9)


def test_the_interval_holds_the_boundary_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    values = np.linspace(0.0, 1.0, 21)
    held = told = 0
    for _ in range(400):
        true = rng.uniform(0.3, 0.7)
        chance = 1.0 / (1.0 + np.exp((values - true) / 0.04))
        levels = [
            FactorLevel(float(value), int(rng.binomial(8, p)), 8)
            for value, p in zip(values, chance, strict=True)
        ]
        for found in boundaries(levels, 0.9):
            if found.interval is not None and found.good_below:
                told += 1
                held += found.interval[0] <= true <= found.interval[1]
    assert told > 300 and held / told >= 0.9


def test_what_a_good_run_is() -> None:
    claims = [Claim.parse('a.b < 2'), Claim.parse('c >= 0.5')]
    assert is_good('ok', {'a.b': 1.9, 'c': 0.5}, claims)
    assert not is_good('ok', {'a.b': 2.0, 'c': 0.5}, claims)
    assert not is_good('failed', {'a.b': 1.0, 'c': 1.0}, claims)
    assert not is_good('ok', {'a.b': 1.0}, claims), 'a measure that is missing'
