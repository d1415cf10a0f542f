"""Columns: one row in plain numbers gives the same bits as many rows in arrays."""

from __future__ import annotations

import numpy as np
import pytest

from sim_sensors.timing.arrays.columns import (
    column,
    columns_of,
    cos,
    listed,
    rounded,
    sin,
    sine_ratio,
    sqrt,
    truncated,
    write_columns,
)

VALUES = np.r_[0.0, 0.5, 1.5, 2.5, 1e-12, np.random.default_rng(3).normal(0.0, 9.0, 200)]


@pytest.mark.parametrize(
    'formula', [sin, cos, sine_ratio, rounded, truncated, lambda x: sqrt(abs(x))]
)
def test_a_formula_of_numbers_has_the_bits_of_one_of_arrays(formula):
    alone = [formula(column(VALUES[place : place + 1])) for place in range(len(VALUES))]
    assert all(type(each) in (int, float) for each in alone)
    np.testing.assert_array_equal(alone, formula(VALUES))


@pytest.mark.parametrize('rows', [1, 4])
def test_columns_are_written_as_they_were_read(rows):
    given = np.arange(3.0 * rows).reshape(rows, 3)
    out = np.zeros_like(given)
    write_columns(out, columns_of(given))
    np.testing.assert_array_equal(out, given)
    assert listed(column(given[:, 0])) == given[:, 0].tolist()
