"""The contract of a cue, and the rotation helpers they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rig_common.arrays import Floats
from sync_engine.cues.motion import Axis, Rotation
from sync_engine.streams.payload import CueValues

GyroLookup = Callable[[int, Floats, Axis], Floats | None]
"""(stamp on the sensor's clock, times [n] in s after it, unit axis in the sensor's frame) -> angle
about the axis [n] (rad, from any start); None where the IMU's track does not cover them."""

Z_AXIS = ((0.0, 0.0, 1.0),)
XYZ_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class Cue(Protocol):
    """Turns consecutive inputs of one sensor into rotations in the sensor's own frame.

    Where all its turns may be too large or too small by one share, as with a focal length that is
    not known, they say so (`Rotation.scale_sigmas`).
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
