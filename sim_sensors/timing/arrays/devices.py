"""From a device, or from an array, to the namespace of its arrays."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from rig_common.errors import RigError
from rig_common.installing import pip_install
from sim_sensors.timing.arrays.namespace import NUMPY, Arrays


def arrays_of(device: str) -> Arrays:
    """Return the namespace of a device: '' is NumPy; 'cpu', 'cuda', 'cuda:1' are torch's."""
    return NUMPY if not device else tensors_on(device)


@lru_cache
def tensors_on(device: str, *, host_draws: bool | None = None) -> Arrays:
    """Return torch tensors on `device`.

    Random numbers are drawn by the host on the CPU, so that they are NumPy's bit for bit, and on
    the device elsewhere; `host_draws` says otherwise.
    """
    try:
        from sim_sensors.timing.arrays.tensors import torch_arrays
    except ImportError as error:
        raise RigError(
            f'tensors on {device!r} need torch and array-api-compat, and {error.name} '
            f'is not installed: {pip_install("torch", "array-api-compat")}'
        ) from error
    return torch_arrays(device, host_draws)


def arrays_holding(values: Any) -> Arrays:
    """Return the namespace that `values` belong to."""
    return NUMPY if isinstance(values, np.ndarray) else tensors_on(str(values.device))
