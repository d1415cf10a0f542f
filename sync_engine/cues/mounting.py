"""How a sensor is turned against the IMU: declared, estimated, or declared and contradicted.

A rotation R takes vectors from the sensor's frame to the IMU's. What is known of it is a Gaussian
of a small further turn in the IMU's frame: `information` [3, 3] (1 / rad^2) around `matrix`.

    declared        starts at a few degrees; motion may move it
    not declared    starts with nothing; the first stretches of motion find it

A cue that turns about one axis only (a planar scan) tells where this axis points in the IMU's
frame; a turn about it stays unknown and does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import degrees, pi, sqrt

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import Quaternion, skewed, wxyz_from_matrix

_UNKNOWN_SIGMA_RAD = 2.0
"""Prior of a rotation that nobody declared: anything."""
_DECLARED_SIGMA_RAD = 0.035
"""How well a mounting is usually declared: two degrees."""
KNOWN_SIGMA_RAD = 0.1
"""From here on a search may take the rotation for fixed."""
_CONTRADICTED_RAD = 0.09
_CONTRADICTED_SIGMAS = 5.0
"""A declared rotation is wrong if the estimate is further away than both (5 degrees)."""
_MOST_STEP_RAD = 0.3

Axis = tuple[float, float, float]


class MountingSource(str, Enum):
    """Where the rotation that is in use comes from."""

    DECLARED = 'declared'
    ESTIMATED = 'estimated'
    CONTRADICTED = 'contradicted'
    """Declared, but the motion says otherwise; the estimate is in use."""
    UNKNOWN = 'unknown'
    """Not declared, and too little motion so far."""
    UNUSED = 'unused'
    """Only the sizes of turns are compared, which need no rotation."""


@dataclass(frozen=True, slots=True)
class MountingStatus:
    """What is known of a sensor's rotation against the IMU."""

    source: MountingSource
    quat_wxyz: Quaternion
    """From the sensor's frame to the IMU's, as in use."""
    axis_imu: Axis | None
    """Where the axis of a yaw-only cue points in the IMU's frame; None for other cues."""
    sigma_deg: float
    """Of the rotation, or of the axis, in its worst direction."""
    observable: bool
    """Whether motion has shown it: turns about two axes (about the others, for a yaw cue)."""
    open_axis: Axis | None
    """Where all turns were about one axis: that axis in the IMU's frame. The sensor's turn about
    it is not observable, the rest of its rotation is. Else None."""
    declared_off_deg: float | None
    """Angle between the declared rotation and the estimate; None where nothing is declared."""
    contradiction: str
    """One sentence where the declared rotation is wrong, else empty."""


class Mounting:
    """The rotation of one sensor and how well it is known."""

    def __init__(self, declared: Floats | None = None) -> None:
        self.declared = declared
        self.matrix: Floats = np.eye(3) if declared is None else declared.copy()
        self.information: Floats = np.eye(3) / float(self.prior_covariance[0, 0])
        self.axes: Floats = np.zeros((0, 3))
        """The sensor's own axes about which it reports turns, [m, 3]."""
        self.shown: Floats = np.zeros((3, 3))
        """Information that came from motion alone."""

    def see(self, axes: Floats) -> None:
        """Note the sensor's axes [m, 3] that a stretch has turns about."""
        if len(axes) > len(self.axes):
            self.axes = axes

    def sigma_rad(self, information: Floats | None = None) -> float:
        """Return the sigma of the rotation in its worst direction that matters."""
        given = self.information if information is None else information
        if len(self.axes) == 1:
            across = _across(self.matrix @ self.axes[0])
            given = across @ given @ across.T
        least = float(np.linalg.eigvalsh(given)[0])
        return 1.0 / sqrt(least) if least > 1e-9 else pi

    @property
    def is_known(self) -> bool:
        """Whether a search may take the rotation for fixed."""
        return self.sigma_rad() < KNOWN_SIGMA_RAD

    @property
    def prior_covariance(self) -> Floats:
        """Covariance of the further turn before any motion [3, 3] (rad^2)."""
        sigma = _UNKNOWN_SIGMA_RAD if self.declared is None else _DECLARED_SIGMA_RAD
        return np.eye(3) * sigma**2

    def take(self, matrix: Floats, covariance: Floats) -> None:
        """Take what the filter knows: the rotation, and the covariance of a further turn."""
        self.matrix = matrix
        self.information = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
        self.shown = self.information - np.linalg.inv(self.prior_covariance)

    @property
    def open_axis(self) -> Axis | None:
        """Axis in the IMU's frame about which a turn is not known; None where all are known."""
        if len(self.axes) == 1 or not len(self.axes):
            return None
        values, vectors = np.linalg.eigh(self.shown)
        if values[0] > KNOWN_SIGMA_RAD**-2 or values[1] < KNOWN_SIGMA_RAD**-2:
            return None
        x, y, z = vectors[:, 0]
        return float(x), float(y), float(z)

    def declared_off_rad(self) -> float | None:
        """Return the angle between the declared rotation (or axis) and the one in use."""
        if self.declared is None:
            return None
        if len(self.axes) == 1:
            cosine = float((self.declared @ self.axes[0]) @ (self.matrix @ self.axes[0]))
        else:
            cosine = 0.5 * (float(np.trace(self.declared.T @ self.matrix)) - 1.0)
        return float(np.arccos(np.clip(cosine, -1.0, 1.0)))

    @property
    def is_contradicted(self) -> bool:
        """Whether motion shows another rotation than the declared one."""
        off = self.declared_off_rad()
        limit = max(_CONTRADICTED_RAD, _CONTRADICTED_SIGMAS * self.sigma_rad(self.shown))
        return off is not None and off > limit

    def status(self, sensor_id: str) -> MountingStatus:
        """Return what is known, in words and numbers."""
        off = self.declared_off_rad()
        yaw = len(self.axes) == 1
        observable = bool(len(self.axes)) and self.sigma_rad(self.shown) < KNOWN_SIGMA_RAD
        if self.declared is not None:
            wrong = self.is_contradicted
            source = MountingSource.CONTRADICTED if wrong else MountingSource.DECLARED
        else:
            source = MountingSource.ESTIMATED if observable else MountingSource.UNKNOWN
        axis = self.matrix @ self.axes[0] if yaw else None
        return MountingStatus(
            source, wxyz_from_matrix(self.matrix),
            None if axis is None else (float(axis[0]), float(axis[1]), float(axis[2])),
            degrees(self.sigma_rad()), observable, self.open_axis,
            None if off is None else degrees(off), self._contradiction(sensor_id))  # fmt: skip

    def _contradiction(self, sensor_id: str) -> str:
        off = self.declared_off_rad()
        if off is None or not self.is_contradicted:
            return ''
        what = 'an axis' if len(self.axes) == 1 else 'a rotation'
        quat = ', '.join(f'{value:.4f}' for value in wxyz_from_matrix(self.matrix))
        sigma = degrees(self.sigma_rad(self.shown))
        return (
            f'inputs.{sensor_id}.imu_quat_wxyz is wrong: the turns of {sensor_id} show '
            f'{what} that is {degrees(off):.1f} deg away from the declared one (sigma '
            f'{sigma:.1f} deg), about [{quat}], which is used instead'
        )


def turned_by(vector: Floats) -> Floats:
    """Return the rotation matrix [3, 3] of a rotation vector [3] (rad)."""
    from scipy.spatial.transform import Rotation  # loaded by then, with the filters

    return np.asarray(Rotation.from_rotvec(vector).as_matrix())


def turn_between(one: Floats, other: Floats) -> Floats:
    """Return the rotation vector [3] (rad) that takes rotation matrix `one` to `other`."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(other @ one.T).as_rotvec())


def limited(step: Floats) -> Floats:
    """Return a rotation vector cut to what one linear step may turn by."""
    size = sqrt(float(step @ step))
    return step if size <= _MOST_STEP_RAD else step * (_MOST_STEP_RAD / size)


def _across(axis: Floats) -> Floats:
    """Return two unit vectors [2, 3] across a unit `axis` [3]."""
    other = np.eye(3)[int(np.argmin(np.abs(axis)))]
    one = np.cross(axis, other)
    one /= np.linalg.norm(one)
    return np.stack([one, np.cross(axis, one)])


def best_rotations(
    axes: Floats,
    values: Floats,
    weights: Floats,
    turns: Floats,
    known: Mounting,
) -> Floats:
    """Return the rotation that fits best at each of d candidate offsets, [d, 3, 3].

    Row r says that the sensor turned by `values` [r] about its own axis `axes` [r, 3], with
    `weights` [r] (1 / rad^2), while the gyro turned by `turns` [3, r, d] (IMU frame). What is
    `known` already counts as further rows.
    """
    own = np.unique(axes, axis=0)
    if len(own) >= 3:
        # Wahba's problem: the rotation that maximises tr(R' M), by singular values (Kabsch).
        spread = 0.5 * np.trace(known.information) * np.eye(3) - known.information
        weighted = axes * (weights * values)[:, None]
        moments = np.einsum('grd,ra->dga', turns, weighted) + spread @ known.matrix
        return _nearest_rotations(moments)
    moments = np.zeros((turns.shape[2], 3, 3))
    for axis in own:
        rows = np.flatnonzero((axes == axis).all(axis=1))
        seen = turns[:, rows] * np.sqrt(weights[rows])[None, :, None]
        normal = np.einsum('grd,hrd->dgh', seen, seen)
        pull = np.einsum('grd,r->dg', seen, values[rows] * np.sqrt(weights[rows]))
        across = skewed(known.matrix @ axis)
        normal += -across @ known.information @ across
        moments += _unit_solutions(normal, pull)[:, :, None] * axis
    return _nearest_rotations(moments + 1e-3 * known.matrix)  # the last leaves no twist open


def _nearest_rotations(moments: Floats) -> Floats:
    """Return the rotations R [d, 3, 3] that maximise tr(R' M) of moments [d, 3, 3]."""
    left, _, right = np.linalg.svd(moments)
    left[:, :, 2] *= np.sign(np.linalg.det(left) * np.linalg.det(right))[:, None]
    rotations: Floats = left @ right
    return rotations


def _unit_solutions(normal: Floats, pull: Floats) -> Floats:
    """Return the unit vectors a [d, 3] that minimise a' N a - 2 a' h.

    (N + l) a = h with |a| = 1. Without the length a direction that hardly moved would be fitted
    to noise. The size of a falls with l beyond the least eigenvalue, so l is found by halving.
    """
    values, vectors = np.linalg.eigh(normal)
    along = np.einsum('dji,dj->di', vectors, pull)
    size = np.linalg.norm(pull, axis=1)
    low, high = -values[:, 0], size - values[:, 0] + 1e-12
    for _ in range(60):
        middle = 0.5 * (low + high)
        length = np.sum((along / np.maximum(values + middle[:, None], 1e-300)) ** 2, axis=1)
        too_long = length > 1.0
        low, high = np.where(too_long, middle, low), np.where(too_long, high, middle)
    found = along / np.maximum(values + high[:, None], 1e-300)
    solution = np.einsum('dij,dj->di', vectors, found)
    length = np.linalg.norm(solution, axis=1, keepdims=True)
    units: Floats = solution / np.maximum(length, 1e-300)
    return units
