"""Values between two captures: linear, cubic and, for orientations, along the great circle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Ints
from rig_common.errors import RigError
from sim_sensors.timing.arrays import Array, Layout, arrays_holding


class Tap(NamedTuple):
    """One neighbour of the wanted time."""

    values: Array
    """[..., width]."""
    time_ns: Ints
    """[...]."""
    known: Flags
    """False where there is no such neighbour, [...]."""


class Interpolator:
    """Blends the captures around a wanted time.

    `cubic` is a Hermite spline with finite-difference (Catmull-Rom) slopes, which are 0 where a
    neighbour is missing: the same as MuJoCo's. `slerp` turns fields whose name holds `quat` or
    `orientation` (four values each) and is linear in all others.
    """

    def __init__(self, kind: str, layout: Layout, sensor: str) -> None:
        """Check that `kind` suits what `sensor` returns."""
        if layout.dtype.kind != 'f':
            raise RigError(
                f'interpolation of {sensor!r} is {kind}, but it returns {layout.dtype} '
                'values; only zoh is allowed there'
            )
        self._kind = kind
        self._turns = [
            layout.slices[name]
            for name, shape in layout.shapes.items()
            if shape == (4,) and ('quat' in name or 'orientation' in name)
        ]
        if kind == 'slerp' and not self._turns:
            raise RigError(
                f'interpolation of {sensor!r} is slerp, but it returns no orientation; '
                'allowed are zoh, linear and cubic'
            )

    def blend(self, older: Tap, low: Tap, high: Tap, newer: Tap, time_ns: Ints) -> Array:
        """Return the values at `time_ns` between `low` and `high`; `low`'s where there is none."""
        xp = arrays_holding(low.values)
        span = xp.astype(xp.maximum(high.time_ns - low.time_ns, 1), np.float64)
        into = xp.astype(time_ns - low.time_ns, np.float64)
        part = xp.where(high.known, into / span, 0.0)[..., None]
        if self._kind == 'cubic':
            return hermite(older, low, high, newer, part)
        out = straight(low, high, part)
        if self._kind == 'slerp':
            for turn in self._turns:
                out[..., turn] = slerp(low.values[..., turn], high.values[..., turn], part)
        return out


def straight(low: Tap, high: Tap, part: Array) -> Array:
    """Return the values `part` [..., 1] of the way from `low` to `high`."""
    found: Array = low.values + part * (high.values - low.values)
    return found


def hermite(older: Tap, low: Tap, high: Tap, newer: Tap, part: Array) -> Array:
    """Return the spline's values `part` [..., 1] of the way from `low` to `high`."""
    span = _span_ns(low, high)
    slope_low = _slope(older, high)
    slope_high = _slope(low, newer)
    square = part * part
    cube = square * part
    found: Array = (
        (2 * cube - 3 * square + 1) * low.values
        + (cube - 2 * square + part) * span * slope_low
        + (3 * square - 2 * cube) * high.values
        + (cube - square) * span * slope_high
    )
    return found


def _span_ns(before: Tap, after: Tap) -> Array:
    """Return the time between two taps as a float, ns [..., 1]."""
    xp = arrays_holding(after.values)
    return xp.astype(after.time_ns - before.time_ns, np.float64)[..., None]


def _slope(before: Tap, after: Tap) -> Array:
    """Return the mean slope per ns between two taps, 0 where one is missing."""
    xp = arrays_holding(after.values)
    span = xp.maximum(_span_ns(before, after), 1.0)
    known = (before.known & after.known)[..., None]
    return xp.where(known, (after.values - before.values) / span, 0.0)


def slerp(low: Array, high: Array, part: Array) -> Array:
    """Return the rotation `part` of the way from `low` to `high` [..., 4], the shorter way."""
    xp = arrays_holding(low)
    cosine = (low * high).sum(axis=-1, keepdims=True)
    high = xp.where(cosine < 0.0, -high, high)
    angle = xp.acos(xp.minimum(xp.abs(cosine), 1.0))
    sine = xp.sin(angle)
    near = sine < 1e-9
    safe = xp.where(near, 1.0, sine)
    toward_low = xp.where(near, 1.0 - part, xp.sin((1.0 - part) * angle) / safe)
    toward_high = xp.where(near, part, xp.sin(part * angle) / safe)
    found: Array = toward_low * low + toward_high * high
    return found
