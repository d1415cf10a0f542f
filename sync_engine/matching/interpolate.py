"""Values between two packets.

The engine does not know message types. A shell hands it a `Codec` per sensor that turns a payload
into named arrays and back, and says for each array how it is interpolated.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Protocol

import numpy as np

from rig_common.arrays import Floats
from sync_engine.streams.payload import Payload


class Kind(str, Enum):
    """How a field is interpolated between two packets."""

    LINEAR = 'linear'
    """Element by element: rates, forces, positions, latitude within a zone."""
    SLERP_XYZW = 'slerp_xyzw'
    """Unit quaternions in ROS order, [..., 4], the short way round."""
    ANGLE_RAD = 'angle_rad'
    """Angles, the short way round (wheels, heading); the result is within (-pi, pi]."""
    NEAREST = 'nearest'
    """Taken from the nearer packet: covariances, status, names."""


class Codec(Protocol):
    """Reads and writes the fields of one message type that can be interpolated."""

    kinds: Mapping[str, Kind]
    """Field name -> how it is interpolated."""

    def decode(self, payload: Payload) -> Mapping[str, Floats]:
        """Return every field of `kinds` as an array."""
        ...

    def encode(self, payload: Payload, values: Mapping[str, Floats]) -> Payload:
        """Return a payload like `payload` with these fields; `payload` itself is kept."""
        ...


class CannotInterpolate(Exception):  # noqa: N818 - it reads as what happened
    """Two packets do not fit together (other lengths, NaN, a quaternion of length zero)."""


def slerp(start: Floats, end: Floats, fraction: float) -> Floats:
    """Return the unit quaternions [..., 4] at `fraction` of the short way from start to end."""
    norms = np.linalg.norm(start, axis=-1) * np.linalg.norm(end, axis=-1)
    if not np.all(norms > 1e-6):
        raise CannotInterpolate('a quaternion of norm zero is no orientation')
    start = start / np.linalg.norm(start, axis=-1, keepdims=True)
    end = end / np.linalg.norm(end, axis=-1, keepdims=True)
    dot = np.sum(start * end, axis=-1, keepdims=True)
    end = np.where(dot < 0.0, -end, end)
    angle = np.arccos(np.clip(np.abs(dot), 0.0, 1.0))
    small = angle < 1e-6
    sine = np.where(small, 1.0, np.sin(angle))
    first = np.where(small, 1.0 - fraction, np.sin((1.0 - fraction) * angle) / sine)
    second = np.where(small, fraction, np.sin(fraction * angle) / sine)
    mixed: Floats = first * start + second * end
    mixed /= np.linalg.norm(mixed, axis=-1, keepdims=True)
    return mixed


def _angle(start: Floats, end: Floats, fraction: float) -> Floats:
    turn = (end - start + np.pi) % (2.0 * np.pi) - np.pi
    result: Floats = np.pi - (np.pi - (start + fraction * turn)) % (2.0 * np.pi)
    return result


def interpolate_field(kind: Kind, start: Floats, end: Floats, fraction: float) -> Floats:
    """Return the field at `fraction` (0 start .. 1 end) of the way."""
    if start.shape != end.shape:
        raise CannotInterpolate(f'shapes {start.shape} and {end.shape} differ')
    if kind is Kind.NEAREST:
        return start if fraction < 0.5 else end
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        raise CannotInterpolate('a value is not finite')
    if kind is Kind.SLERP_XYZW:
        return slerp(start, end, fraction)
    if kind is Kind.ANGLE_RAD:
        return _angle(start, end, fraction)
    return start + fraction * (end - start)


def interpolate(codec: Codec, before: Payload, after: Payload, fraction: float) -> Payload:
    """Return the payload at `fraction` of the way from payload `before` to payload `after`."""
    start, end = codec.decode(before), codec.decode(after)
    values = {
        name: interpolate_field(kind, start[name], end[name], fraction)
        for name, kind in codec.kinds.items()
    }
    return codec.encode(before if fraction < 0.5 else after, values)
