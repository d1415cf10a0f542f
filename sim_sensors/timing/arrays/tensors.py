"""Torch under the names of `Arrays`, through array-api-compat; nothing else imports torch."""

from __future__ import annotations

from functools import partial
from typing import Any

import array_api_compat.torch as compat
import numpy as np
import torch
from numpy.typing import DTypeLike

from rig_common.errors import RigError
from sim_sensors.timing.arrays.namespace import Arrays

DTYPES = {
    np.dtype(name): getattr(torch, name)
    for name in ('bool', 'uint8', 'int8', 'int16', 'int32', 'int64', 'float32', 'float64')
}
NAMES = {made: name for name, made in DTYPES.items()}


def torch_arrays(device: str, host_draws: bool | None = None) -> Arrays:
    """Return the namespace of tensors on `device`; every new one is made there."""
    try:
        place = torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise RigError(
            f'the device is {device!r}, which torch does not have here: '
            f'{str(error).splitlines()[0]}'
        ) from error
    made = {name: partial(_made, getattr(torch, name), place) for name in ('zeros', 'empty')}
    functions = {
        **vars(torch),
        **vars(compat),
        **made,
        'full': partial(_full, place),
        'arange': partial(torch.arange, device=place),
        'asarray': partial(_asarray, place),
        'astype': lambda values, dtype: values.to(_torch(dtype)),
        'copy': torch.clone,
        'indices': lambda mask: compat.nonzero(mask)[0],
        'take': _take,
        'take_along_axis': torch.take_along_dim,
        'cumulative_sum': torch.cumsum,
        'cumulative_min': lambda values, axis: torch.cummin(values, axis).values,
        'divmod': lambda values, divisor: (values // divisor, values % divisor),
        'concat': lambda parts, axis=0: torch.cat(parts, axis),
        'flip': lambda values, axis: torch.flip(values, (axis,)),
        'minimum': lambda values, other: _bounded(torch.minimum, 'max', values, other),
        'maximum': lambda values, other: _bounded(torch.maximum, 'min', values, other),
        'round_in_place': torch.Tensor.round_,
        'clip_in_place': torch.Tensor.clamp_,
        'norm': lambda rows: torch.linalg.norm(rows, dim=1, keepdim=True),
        'dtype': lambda values: NAMES[values.dtype],
    }
    on_host = place.type == 'cpu' if host_draws is None else host_draws
    return Arrays(functions, is_numpy=False, draws_on_host=on_host)


def _made(function: Any, device: Any, shape: Any, dtype: DTypeLike = np.float64) -> Any:
    return function(shape, dtype=_torch(dtype), device=device)


def _full(device: Any, shape: Any, value: Any, dtype: DTypeLike = np.float64) -> Any:
    shape = (shape,) if isinstance(shape, int) else shape
    return torch.full(shape, value, dtype=_torch(dtype), device=device)


def _asarray(device: Any, values: Any, dtype: DTypeLike | None = None) -> Any:
    wanted = None if dtype is None else _torch(dtype)
    if not isinstance(values, torch.Tensor):
        values = torch.from_numpy(np.require(np.asarray(values), requirements=('C', 'W')))
    return values.to(device, wanted)


def _take(array: Any, place: Any) -> Any:
    return torch.index_select(array, 0, place) if place.ndim == 1 else array[place]


def _bounded(function: Any, bound: str, values: Any, other: Any) -> Any:
    """Return the smaller or larger of tensors, or of a tensor and a number."""
    if isinstance(other, torch.Tensor):
        return function(values, other)
    return torch.clamp(values, **{bound: other})


def _torch(dtype: DTypeLike) -> Any:
    found = DTYPES.get(np.dtype(dtype))
    if found is None:
        raise RigError(f'torch has no {np.dtype(dtype)} that a pipeline can work with')
    return found
