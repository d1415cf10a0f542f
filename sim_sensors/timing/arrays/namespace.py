"""Where a pipeline's numbers lie: in NumPy arrays, or in torch tensors on their device.

The pipeline is written once. Operators, indexing and methods that both kinds know (`any`, `sum`,
`tolist`) are used as they are; everything else goes through one of the two namespaces here, in the
names of the array API standard where it has one. Three rules keep both the same to the bit:

- integers become floats by `astype` only: torch makes float32 of an integer times a float;
- constants of a sensor are moved once (`Movable.on`), never mixed as NumPy arrays into tensors;
- no negative steps in slices, and no `out=`: torch lacks them or means something else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, TypeVar

import numpy as np

from sim_sensors.timing.arrays.layout import Array

MovableT = TypeVar('MovableT', bound='Movable')


Function = Callable[..., Array]


class Arrays:
    """What the pipeline asks of either kind, beyond operators and indexing."""

    zeros: Function
    empty: Function
    full: Function
    """`full(shape, value, dtype)`."""
    arange: Function
    asarray: Function
    """`asarray(values, dtype)` brings numbers from the host (a list, a NumPy array)."""
    astype: Function
    copy: Function
    indices: Function
    """`indices(mask)` are the places [m] where `mask` [n] is true."""
    take: Function
    """`take(array, place)` is array[place] along the first axis, a copy."""
    take_along_axis: Function
    cumulative_sum: Function
    cumulative_min: Function
    """`(values, axis)`, as in `cumulative_sum`."""
    divmod: Callable[[Array, int], tuple[Array, Array]]
    concat: Function
    flip: Function
    stack: Function
    where: Function
    minimum: Function
    maximum: Function
    """Of an array and another or a number, in this order."""
    clip: Function
    abs: Function
    isfinite: Function
    sign: Function
    floor: Function
    round: Function
    """To the nearest whole number, halves to the even one."""
    round_in_place: Function
    clip_in_place: Function
    """`(values, low, high)`."""
    exp: Function
    expm1: Function
    pow: Function
    log: Function
    sqrt: Function
    sin: Function
    cos: Function
    acos: Function
    sinc: Function
    norm: Function
    """Lengths [n, 1] of the rows [n, width]."""
    dtype: Callable[[Array], np.dtype[Any]]
    """The type of an array as NumPy calls it."""

    def __init__(
        self, functions: Mapping[str, Any], *, is_numpy: bool, draws_on_host: bool
    ) -> None:
        """Take every function above from `functions`."""
        self.is_numpy = is_numpy
        self.draws_on_host = draws_on_host
        """Whether random numbers are NumPy's own, with its bits."""
        vars(self).update({name: functions[name] for name in Arrays.__annotations__})

    def kind(self, values: Array) -> str:
        """Return the kind of `values` as NumPy calls it: b, i, u or f."""
        return self.dtype(values).kind


NUMPY = Arrays(
    {
        **vars(np),
        'astype': np.ndarray.astype,
        'copy': np.ndarray.copy,
        'indices': np.flatnonzero,
        'take': lambda array, place: array.take(place, 0),
        'cumulative_sum': np.add.accumulate,
        'cumulative_min': np.minimum.accumulate,
        'concat': np.concatenate,
        'round': np.rint,
        'round_in_place': lambda values: np.rint(values, out=values),
        'clip_in_place': lambda values, low, high: np.minimum(
            np.maximum(values, low, out=values), high, out=values
        ),
        'acos': np.arccos,
        'pow': np.power,
        'norm': lambda rows: np.linalg.norm(rows, axis=1, keepdims=True),
        'dtype': lambda values: values.dtype,
    },
    is_numpy=True,
    draws_on_host=True,
)


class Movable:
    """Something whose constants can be moved to another device, with those of its parts."""

    def on(self: MovableT, xp: Arrays) -> MovableT:
        """Return a copy with its constants on the device of `xp`; itself for NumPy."""
        if xp.is_numpy:
            return self
        moved = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Movable):
                setattr(moved, name, value.on(xp))
            elif isinstance(value, np.ndarray) and value.dtype.names is None:  # no message's
                setattr(moved, name, xp.asarray(value))
        return moved
