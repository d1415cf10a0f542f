"""Types of arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

AnyArray: TypeAlias = NDArray[Any]
"""An array whose dtype only the message or the model at hand decides (pixels, points, columns)."""
Floats: TypeAlias = NDArray[np.float64]
Floats32: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
"""Times in ns, capture numbers, counts."""
Ints32: TypeAlias = NDArray[np.int32]
Ids: TypeAlias = NDArray[np.intp]
"""Places in other arrays."""
Flags: TypeAlias = NDArray[np.bool_]
