"""Named slices of one packed array: how a sensor's values lie in memory."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]
"""A NumPy array; a torch tensor in a pipeline on tensors, see `arrays`."""


class Layout:
    """Fields packed side by side in rows of one dtype.

    A stage of the pipeline works on one array `[n, width]`, one row per environment, so noise,
    delay and copies are single numpy calls whatever the sensor measures. `view` gives a field its
    name and shape back without copying.
    """

    def __init__(self, fields: Mapping[str, tuple[int, ...]], dtype: DTypeLike) -> None:
        """Lay out `fields` (name -> shape of one environment's value) in the given order."""
        self.dtype = np.dtype(dtype)
        self.shapes = dict(fields)
        self.slices: dict[str, slice] = {}
        start = 0
        for name, shape in self.shapes.items():
            stop = start + prod(shape)
            self.slices[name] = slice(start, stop)
            start = stop
        self.width = start

    def view(self, array: Array, name: str) -> Array:
        """Return field `name` of `array` `[..., width]` as a view `[..., *shape]`."""
        shape = self.shapes[name]
        part = array[..., self.slices[name]]
        return part if len(shape) == 1 else part.reshape(array.shape[:-1] + shape)

    def empty(self, rows: int, xp: Any = np) -> Array:
        """Return an uninitialised array `[rows, width]`, of NumPy or of `xp`."""
        made: Array = xp.empty((rows, self.width), self.dtype)
        return made

    def zeros(self, rows: int, xp: Any = np) -> Array:
        """Return a zeroed array `[rows, width]`, of NumPy or of `xp`."""
        made: Array = xp.zeros((rows, self.width), self.dtype)
        return made

    def pack(self, **values: Any) -> Array:
        """Return one row `[width]` from its fields, each broadcast to its shape."""
        row = np.zeros(self.width, self.dtype)
        for name, value in values.items():
            self.view(row, name)[...] = value
        return row

    def unpack(self, row: Array) -> dict[str, Array]:
        """Return the fields of `row` `[..., width]` by name, as views."""
        return {
            name: row[..., part] if len(self.shapes[name]) == 1 else self.view(row, name)
            for name, part in self.slices.items()
        }

    def __eq__(self, other: object) -> bool:
        """Two layouts are equal when their fields, order and dtype are."""
        return (
            isinstance(other, Layout)
            and self.dtype == other.dtype
            and list(self.shapes.items()) == list(other.shapes.items())
        )

    def __hash__(self) -> int:
        """Hash what `__eq__` compares."""
        return hash((self.dtype, tuple(self.shapes.items())))
