"""Rotations of sensors that report a rate or an orientation in their own clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sensor_rig.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, FloatArray, rotation_vector
from sync_engine.motion import Rotation

_RATE_SIGMA_RAD_S = 0.01
"""Noise of a rate where its message states none."""
_ORIENTATION_SIGMA_RAD = 0.001
"""Noise of an orientation difference where its message states none."""
_LONGEST_NS = NS_PER_S // 2
"""Over a longer gap the rotation in between is not known."""


class RateCue:
    """`angular_velocity` [3] (rad/s, sensor frame), optional `variance` [3]; trapezoid between."""

    def __init__(self) -> None:
        self._last: tuple[int, FloatArray] | None = None

    def reset(self) -> None:
        """Forget the last input."""
        self._last = None

    def feed(self, stamp_ns: int, values: Mapping[str, Any]) -> Rotation | None:
        """Take one rate; return the turn since the last one."""
        rate = np.asarray(values['angular_velocity'], dtype=np.float64)
        last, self._last = self._last, (stamp_ns, rate)
        if last is None or not 0 < stamp_ns - last[0] <= _LONGEST_NS:
            return None
        dt = (stamp_ns - last[0]) / NS_PER_S
        turn = 0.5 * (rate + last[1]) * dt
        if not np.isfinite(turn).all():
            return None
        stated = np.asarray(values.get('variance', np.zeros(3)), dtype=np.float64)
        variance = np.where(stated > 0.0, stated, _RATE_SIGMA_RAD_S**2) * dt**2 / 2.0
        return Rotation(last[0], stamp_ns, tuple(turn), XYZ_AXES, tuple(variance))


class OdometryCue:
    """`orientation` [4] (x, y, z, w), optional `variance` [3] of a step; body-frame difference."""

    def __init__(self) -> None:
        self._last: tuple[int, FloatArray] | None = None

    def reset(self) -> None:
        """Forget the last input."""
        self._last = None

    def feed(self, stamp_ns: int, values: Mapping[str, Any]) -> Rotation | None:
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
        return Rotation(last[0], stamp_ns, tuple(turn), XYZ_AXES, tuple(variance))
