"""Columns: one row in plain numbers gives the same bits as many rows in arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sim_sensors.timing.arrays.columns import (
    column,
    rounded,
    truncated,
)

VALUES = np.r_[0.0, 0.5, 1.5, 2.5, 1e-12, np.random.default_rng(3).normal(0.0, 9.0, 200)]


@pytest.mark.parametrize('formula', [rounded, truncated])
def test_a_formula_of_numbers_has_the_bits_of_one_of_arrays(formula):
    alone = [formula(column(VALUES[place : place + 1])) for place in range(len(VALUES))]
    assert all(type(each) in (int, float) for each in alone)
    np.testing.assert_array_equal(alone, formula(VALUES))
