"""Formulas over the columns of a batch: an array [n] each, or a plain number where n is 1.

Most rigs have one environment, and there a formula of numbers is several times faster than one of
arrays with one element. Written over columns it is the same formula, with the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from sim_sensors.pipeline.layout import Array

Column = Any
"""A float or an int, or an array [n] of them; 64 bits wide."""


def column(values: Array) -> Column:
    """Return `values` [n] as a column."""
    return values.item() if len(values) == 1 else values


def listed(values: Column) -> list[Any]:
    """Return a column as a list of n plain numbers."""
    found: list[Any] = values.tolist() if isinstance(values, np.ndarray) else [values]
    return found


def columns_of(rows: Array) -> Iterable[Column]:
    """Return the columns of `rows` [n, width], read only."""
    return rows[0].tolist() if len(rows) == 1 else rows.T


def write_columns(out: Array, columns: Iterable[Column]) -> None:
    """Write `columns` side by side into the rows `out` [n, width]."""
    if len(out) == 1:
        out[0] = tuple(columns)
    else:
        for place, column in enumerate(columns):
            out[:, place] = column


def truncated(x: Column) -> Column:
    """Return whole numbers, rounded towards zero."""
    return x.astype(np.int64) if isinstance(x, np.ndarray) else int(x)


def rounded(x: Column) -> Column:
    """Return the nearest whole numbers, of two the even one."""
    return np.rint(x).astype(np.int64) if isinstance(x, np.ndarray) else round(x)


def sin(x: Column) -> Column:
    """Return the sine."""
    return np.sin(x) if isinstance(x, np.ndarray) else float(np.sin(x))


def cos(x: Column) -> Column:
    """Return the cosine."""
    return np.cos(x) if isinstance(x, np.ndarray) else float(np.cos(x))


def sqrt(x: Column) -> Column:
    """Return the square root."""
    return np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x)


def sine_ratio(x: Column) -> Column:
    """Return sin(x) / x, which is 1 at 0."""
    if isinstance(x, np.ndarray):
        x = np.where(x, x, np.finfo(float).eps)
        return np.sin(x) / x
    return sin(x) / x if x else 1.0


def exp(x: Column) -> Column:
    """Return the exponential."""
    return np.exp(x) if isinstance(x, np.ndarray) else float(np.exp(x))


def larger(a: Column, b: Column) -> Column:
    """Return the larger of two columns, row by row."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.maximum(a, b)
    return max(a, b)


def chosen(condition: Column, a: Column, b: Column) -> Column:
    """Return `a` where the condition holds, else `b`, row by row."""
    return np.where(condition, a, b) if isinstance(condition, np.ndarray) else (
        a if condition else b)


def looked_up(place: Column, table: Array, listed: list[float]) -> Column:
    """Return `table` at fractional places, straight in between; its ends go on for ever.

    `listed` is the same table as a list, for a single row.
    """
    last = len(listed) - 1
    if not isinstance(place, np.ndarray):
        place = min(max(place, 0.0), float(last))
        at = min(int(place), last - 1)
        return listed[at] + (listed[at + 1] - listed[at]) * (place - at)
    place = np.clip(place, 0.0, float(last))
    index = np.minimum(place.astype(np.int64), last - 1)
    low = table[index]
    return low + (table[index + 1] - low) * (place - index)
