"""Types of arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

AnyArray: TypeAlias = NDArray[Any]
"""An array whose dtype only the message or the model at hand decides (pixels, points, columns)."""
