"""The contract of a cue, and the rotation helpers they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sync_engine.cues.motion import Axis, Rotation
from sync_engine.streams.payload import CueValues

FloatArray = NDArray[np.float64]

GyroLookup = Callable[[int, FloatArray, Axis], FloatArray | None]
"""(stamp on the sensor's clock, times [n] in s after it, unit axis in the sensor's frame) -> angle
about the axis [n] (rad, from any start); None where the IMU's track does not cover them."""

Z_AXIS = ((0.0, 0.0, 1.0),)
XYZ_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class Cue(Protocol):
    """Turns consecutive inputs of one sensor into rotations in the sensor's own frame.

    Where all its turns may be too large or too small by one share, as with a focal length that is
    not known, it has an attribute `scale_sigma`: the sigma of that share (0.01 for a calibrated
    camera, 0.5 where nothing is known). Without it turns count as right.
    """

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one input; return the rotation since the last one, None where there is none.

        `gyro` helps cues that must know how the sensor moved while it measured.
        """
        ...

    def reset(self) -> None:
        """Forget the last input."""
        ...


def matrix_from_wxyz(quat: tuple[float, float, float, float]) -> FloatArray:
    """Return the rotation matrix [3, 3] of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quat
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotation_vector(start_xyzw: FloatArray, end_xyzw: FloatArray) -> FloatArray:
    """Return the body-frame rotation vector [3] (rad) from one orientation to another."""
    x1, y1, z1, w1 = start_xyzw / np.linalg.norm(start_xyzw)
    x2, y2, z2, w2 = end_xyzw / np.linalg.norm(end_xyzw)
    vector = np.array(
        [
            w1 * x2 - x1 * w2 - y1 * z2 + z1 * y2,
            w1 * y2 + x1 * z2 - y1 * w2 - z1 * x2,
            w1 * z2 - x1 * y2 + y1 * x2 - z1 * w2,
        ]
    )
    scalar = w1 * w2 + x1 * x2 + y1 * y2 + z1 * z2
    if scalar < 0.0:
        vector, scalar = -vector, -scalar
    sine = float(np.linalg.norm(vector))
    if sine < 1e-9:
        return np.asarray(2.0 * vector)
    turn: FloatArray = vector * (2.0 * np.arctan2(sine, scalar) / sine)
    return turn
