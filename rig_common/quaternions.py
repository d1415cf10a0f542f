"""Unit quaternions (w, x, y, z) for the few places that turn one frame into another."""

from __future__ import annotations

Quaternion = tuple[float, float, float, float]


def product(left: Quaternion, right: Quaternion) -> Quaternion:
    """Return the rotation `right` followed by `left`."""
    a, b, c, d = left
    w, x, y, z = right
    return (
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    )


def conjugate(rotation: Quaternion) -> Quaternion:
    """Return the opposite rotation."""
    w, x, y, z = rotation
    return (w, -x, -y, -z)
