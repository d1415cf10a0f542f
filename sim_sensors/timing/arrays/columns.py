"""Formulas over the columns of a batch: an array [n] each, or a plain number where n is 1.

Most rigs have one environment, and there a formula of numbers is several times faster than one of
arrays with one element. Written over columns it is the same formula, with the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sim_sensors.timing.arrays.devices import arrays_holding
from sim_sensors.timing.arrays.layout import Array

Column = float | Array
"""A float or an int, or an array [n] of them; 64 bits wide."""
NUMBER = (int, float)


def column(values: Array) -> Column:
    """Return `values` [n] as a column."""
    return values.item() if len(values) == 1 else values


def listed(values: Column) -> list[Any]:
    """Return a column as a list of n plain numbers."""
    found: list[Any] = [values] if isinstance(values, NUMBER) else values.tolist()
    return found


def truncated(x: Column) -> Column:
    """Return whole numbers, rounded towards zero."""
    return int(x) if isinstance(x, NUMBER) else arrays_holding(x).astype(x, np.int64)


def rounded(x: Column) -> Column:
    """Return the nearest whole numbers, halves to the even one."""
    if isinstance(x, NUMBER):
        return round(x)
    xp = arrays_holding(x)
    return xp.astype(xp.round(x), np.int64)


def real(x: Column) -> Column:
    """Return whole numbers as floats, for use with numbers that are not whole."""
    return float(x) if isinstance(x, NUMBER) else arrays_holding(x).astype(x, np.float64)


def larger(a: Column, b: Column) -> Column:
    """Return the larger of two columns, row by row."""
    if isinstance(a, NUMBER):
        return max(a, b) if isinstance(b, NUMBER) else larger(b, a)
    return arrays_holding(a).maximum(a, b)


def chosen(condition: Column, a: Column, b: Column) -> Column:
    """Return `a` where the condition holds, else `b`, row by row."""
    if isinstance(condition, bool):
        return a if condition else b
    return arrays_holding(condition).where(condition, a, b)


def looked_up(place: Column, table: Array, listed: list[float]) -> Column:
    """Return `table` at fractional places, linear in between, constant beyond its ends.

    `listed` is the same table as a list, for a single row.
    """
    last = len(listed) - 1
    if isinstance(place, NUMBER):
        place = min(max(place, 0.0), float(last))
        at = min(int(place), last - 1)
        return listed[at] + (listed[at + 1] - listed[at]) * (place - at)
    xp = arrays_holding(place)
    place = xp.clip(place, 0.0, float(last))
    index = xp.minimum(xp.astype(place, np.int64), last - 1)
    low = table[index]
    found: Array = low + (table[index + 1] - low) * (place - xp.astype(index, np.float64))
    return found
