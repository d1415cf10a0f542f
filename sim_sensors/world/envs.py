"""How some of the environments of a batch are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

EnvIndex: TypeAlias = int | slice | Sequence[int] | NDArray[np.intp] | NDArray[np.bool_]
"""Environments by whatever NumPy takes as an index of the first axis."""
ALL_ENVS = slice(None)
