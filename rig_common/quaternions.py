"""Unit quaternions (w, x, y, z), rotation matrices and rotation vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rig_common.arrays import Floats

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


def matrix_from_wxyz(quats: ArrayLike) -> Floats:
    """Return the rotation matrices [..., 3, 3] of unit quaternions [..., 4]."""
    w, x, y, z = np.moveaxis(np.asarray(quats, float), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def wxyz_from_matrix(m: Floats) -> Quaternion:
    """Return the unit quaternion, w >= 0, of the rotation nearest to a matrix [3, 3]."""
    k = np.array([
        [m[0, 0] - m[1, 1] - m[2, 2], 0.0, 0.0, 0.0],
        [m[0, 1] + m[1, 0], m[1, 1] - m[0, 0] - m[2, 2], 0.0, 0.0],
        [m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], m[2, 2] - m[0, 0] - m[1, 1], 0.0],
        [m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1], m[0, 0] + m[1, 1] + m[2, 2]],
    ])  # fmt: skip
    x, y, z, w = np.linalg.eigh(k)[1][:, -1]  # the eigenvector of the largest; lower triangle
    sign = -1.0 if w < 0.0 else 1.0
    return float(sign * w), float(sign * x), float(sign * y), float(sign * z)


def rotation_vector(start_xyzw: Floats, end_xyzw: Floats) -> Floats:
    """Return the body-frame rotation vector [3] (rad) from one orientation to another."""
    x1, y1, z1, w1 = start_xyzw / np.linalg.norm(start_xyzw)
    x2, y2, z2, w2 = end_xyzw / np.linalg.norm(end_xyzw)
    scalar, *parts = product((w1, -x1, -y1, -z1), (w2, x2, y2, z2))
    vector = np.array(parts)
    if scalar < 0.0:
        vector, scalar = -vector, -scalar
    sine = float(np.linalg.norm(vector))
    if sine < 1e-9:
        return np.asarray(2.0 * vector)
    turn: Floats = vector * (2.0 * np.arctan2(sine, scalar) / sine)
    return turn


def skewed(vector: Floats) -> Floats:
    """Return the matrix [3, 3] whose product with x is the cross product of `vector` with x."""
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
