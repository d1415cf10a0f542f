"""Rotations of sensors that report a rate or an orientation in their own clock."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import rotation_vector
from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, GyroLookup
from sync_engine.cues.motion import Rotation
from sync_engine.streams.payload import CueValues

_RATE_SIGMA_RAD_S = 0.01
"""Noise of a rate where its message states none."""
_ORIENTATION_SIGMA_RAD = 0.001
"""Noise of an orientation difference where its message states none."""
_LONGEST_NS = NS_PER_S // 2
"""Over a longer gap the rotation in between is not known."""
_LEAST_TURN_RAD = 1e-9


class _Axes:
    """Which axes a sensor measures: those it has ever reported a turn about.

    Wheel odometry writes zeros for roll and pitch. These are no measurements, and the gyro's bumps
    would have to be explained by them.
    """

    def __init__(self) -> None:
        self._seen = [False, False, False]

    def rotation(
        self, start_ns: int, end_ns: int, turn: Sequence[float], variance: Sequence[float]
    ) -> Rotation | None:
        """Return the turn [3] about the measured axes, `variance` [3] likewise.

        Plain numbers: an array of three costs more than what is done with it.
        """
        seen = self._seen
        for i in range(3):
            if abs(turn[i]) > _LEAST_TURN_RAD:
                seen[i] = True
        rows = [i for i in range(3) if seen[i]]
        if not rows or not all(map(isfinite, turn)):
            return None
        return Rotation(
            start_ns,
            end_ns,
            tuple([turn[i] for i in rows]),
            tuple([XYZ_AXES[i] for i in rows]),
            tuple([variance[i] for i in rows]),
        )


def _stated(values: CueValues, otherwise: float) -> list[float]:
    """Return `variance` [3] of a message, `otherwise` where it states none."""
    given = values.get('variance')
    if given is None:
        return [otherwise] * 3
    return [float(each) if each > 0.0 else otherwise for each in given]


class _StepCue:
    """Turns between neighbouring inputs."""

    def __init__(self) -> None:
        self._last: tuple[int, Floats] | None = None
        self._axes = _Axes()

    def reset(self) -> None:
        """Forget the last input."""
        self._last = None

    def _step(self, stamp_ns: int, value: Floats) -> tuple[int, Floats] | None:
        """Note an input; return the last one where it is not too long ago."""
        last, self._last = self._last, (stamp_ns, value)
        return last if last is not None and 0 < stamp_ns - last[0] <= _LONGEST_NS else None


class RateCue(_StepCue):
    """`angular_velocity` [3] (rad/s, sensor frame), optional `variance` [3]; trapezoid between."""

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one rate; return the turn since the last one."""
        rate = np.asarray(values['angular_velocity'], dtype=np.float64)
        last = self._step(stamp_ns, rate)
        if last is None:
            return None
        dt = (stamp_ns - last[0]) / NS_PER_S
        turn = (0.5 * dt * (rate + last[1])).tolist()
        variance = [each * dt**2 / 2.0 for each in _stated(values, _RATE_SIGMA_RAD_S**2)]
        return self._axes.rotation(last[0], stamp_ns, turn, variance)


class OdometryCue(_StepCue):
    """`orientation` [4] (x, y, z, w), optional `variance` [3] of a step; body-frame difference."""

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one orientation; return the turn since the last one."""
        orientation = np.asarray(values['orientation'], dtype=np.float64)
        if not 0.5 < float(orientation @ orientation) < 2.0:
            self._last = None
            return None
        last = self._step(stamp_ns, orientation)
        if last is None:
            return None
        turn = rotation_vector(last[1], orientation).tolist()
        variance = _stated(values, _ORIENTATION_SIGMA_RAD**2)
        return self._axes.rotation(last[0], stamp_ns, turn, variance)
