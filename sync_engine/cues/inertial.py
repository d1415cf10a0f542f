"""Rotations of sensors that report a rate or an orientation in their own clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sensor_rig.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, FloatArray, GyroLookup, rotation_vector
from sync_engine.motion import Rotation

_RATE_SIGMA_RAD_S = 0.01
"""Noise of a rate where its message states none."""
_ORIENTATION_SIGMA_RAD = 0.001
"""Noise of an orientation difference where its message states none."""
_LONGEST_NS = NS_PER_S // 2
_LEAST_TURN_RAD = 1e-9
"""Over a longer gap the rotation in between is not known."""


class _Axes:
    """Which axes a sensor measures: those it has ever reported a turn about.

    Wheel odometry writes zeros for roll and pitch. These are no measurements, and the gyro's bumps
    would have to be explained by them.
    """

    def __init__(self) -> None:
        self._seen = np.zeros(3, dtype=bool)

    def rotation(
        self, start_ns: int, end_ns: int, turn: FloatArray, variance: FloatArray
    ) -> Rotation | None:
        """Return the turn about the measured axes."""
        self._seen |= np.abs(turn) > _LEAST_TURN_RAD
        rows = np.flatnonzero(self._seen)
        if not len(rows) or not np.isfinite(turn).all():
            return None
        return Rotation(
            start_ns,
            end_ns,
            tuple(float(turn[i]) for i in rows),
            tuple(XYZ_AXES[i] for i in rows),
            tuple(float(variance[i]) for i in rows),
        )


class RateCue:
    """`angular_velocity` [3] (rad/s, sensor frame), optional `variance` [3]; trapezoid between."""

    def __init__(self) -> None:
        self._last: tuple[int, FloatArray] | None = None
        self._axes = _Axes()

    def reset(self) -> None:
        """Forget the last input."""
        self._last = None

    def feed(
        self, stamp_ns: int, values: Mapping[str, Any], gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one rate; return the turn since the last one."""
        rate = np.asarray(values['angular_velocity'], dtype=np.float64)
        last, self._last = self._last, (stamp_ns, rate)
        if last is None or not 0 < stamp_ns - last[0] <= _LONGEST_NS:
            return None
        dt = (stamp_ns - last[0]) / NS_PER_S
        turn = 0.5 * (rate + last[1]) * dt
        stated = np.asarray(values.get('variance', np.zeros(3)), dtype=np.float64)
        variance = np.where(stated > 0.0, stated, _RATE_SIGMA_RAD_S**2) * dt**2 / 2.0
        return self._axes.rotation(last[0], stamp_ns, turn, variance)


class OdometryCue:
    """`orientation` [4] (x, y, z, w), optional `variance` [3] of a step; body-frame difference."""

    def __init__(self) -> None:
        self._last: tuple[int, FloatArray] | None = None
        self._axes = _Axes()

    def reset(self) -> None:
        """Forget the last input."""
        self._last = None

    def feed(
        self, stamp_ns: int, values: Mapping[str, Any], gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one orientation; return the turn since the last one."""
        orientation = np.asarray(values['orientation'], dtype=np.float64)
        if not 0.5 < float(orientation @ orientation) < 2.0:
            self._last = None
            return None
        last, self._last = self._last, (stamp_ns, orientation)
        if last is None or not 0 < stamp_ns - last[0] <= _LONGEST_NS:
            return None
        turn = rotation_vector(last[1], orientation)
        stated = np.asarray(values.get('variance', np.zeros(3)), dtype=np.float64)
        variance = np.where(stated > 0.0, stated, _ORIENTATION_SIGMA_RAD**2)
        return self._axes.rotation(last[0], stamp_ns, turn, variance)
