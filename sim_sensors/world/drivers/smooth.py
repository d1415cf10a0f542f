"""A motion without jumps."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats


def smooth(part: Floats) -> Floats:
    """Return 0 to 1 for `part` 0 to 1, without jumps of speed and acceleration."""
    x = np.clip(part, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x**2))
