"""Which way a camera moves between two images, learned over many pairs.

One pair tells the direction of its way poorly, and what it errs by leans on the turn: a way that
is remembered too slowly lags behind a swerve, and the turn then errs in step with its change, a
time error of milliseconds. A camera on a rigid body moves by

    t = t0 + turn x lever

with a t0 that changes slowly (the vehicle drives on) and a lever arm that does not change (the
camera sits ahead of the axle). Both, beside the length of t0, are followed by a Kalman filter over
the pairs; a pair that turns otherwise than the last is then predicted without lag.
"""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import skewed

_FIRST = (0.3, 4.0)
"""Prior sigma of the direction (rad) and of the lever arm beside the way between two images."""
_WALK = (0.02, 0.05)
"""How far both change from one pair to the next."""
_FLOOR = 0.01
"""The direction is never known better than this (rad)."""
_NOISE = 0.15
"""What one pair errs by beyond its formal sigma (rad; seen in the yard)."""
_GATE = 9.0
_LEAST_INFORMATION = 1.0
"""A pair that tells less about the direction (1 / rad^2) tells nothing: the camera stood."""


class CameraWay:
    """The direction of the way, as a function of the turn."""

    def __init__(self) -> None:
        self._ahead: Floats = np.array([0.0, 0.0, 1.0])
        self._lever: Floats = np.zeros(3)
        self._p: Floats = np.diag([_FIRST[0] ** 2] * 2 + [_FIRST[1] ** 2] * 3)
        self._tangents: Floats = _tangents(self._ahead)
        """[2, 3] unit vectors across the direction ahead."""

    def step(self) -> None:
        """Go on to the next pair."""
        self._p = self._p + np.diag([_WALK[0] ** 2] * 2 + [_WALK[1] ** 2] * 3)

    def predict(self, turn: Floats) -> tuple[Floats, Floats]:
        """Return the unit direction [3] for a turn [3] (rad), and its information [3, 3]."""
        way = self._ahead + skewed(turn) @ self._lever
        way /= np.linalg.norm(way)
        return way, self._tangents.T @ self._precision(turn) @ self._tangents

    def _rows(self, turn: Floats) -> Floats:
        """Return d (direction across) / d (direction ahead across, lever), [2, 5]."""
        return np.hstack([np.eye(2), self._tangents @ skewed(turn)])

    def _precision(self, turn: Floats) -> Floats:
        rows = self._rows(turn)
        spread = rows @ self._p @ rows.T + _FLOOR**2 * np.eye(2)
        return np.asarray(np.linalg.inv(spread), dtype=np.float64)

    def learn(self, turn: Floats, way: Floats, covariance: Floats, trust: float) -> None:
        """Take the way [3] that a fit found with the prediction as its prior.

        `covariance` [3, 3] is the fit's; `trust` is how much the prior counted beside the data.
        """
        across = self._tangents
        prior = self._precision(turn) * trust
        both = np.linalg.inv(across @ covariance @ across.T)
        data = both - prior
        if float(np.linalg.eigvalsh(data)[0]) < _LEAST_INFORMATION * trust:
            return
        before, _ = self.predict(turn)
        expected = across @ before / (self._ahead @ before)
        found = across @ way / (self._ahead @ way)
        shown = np.linalg.solve(data, both @ found - prior @ expected)
        rows = self._rows(turn)
        noise = np.linalg.inv(data) * trust + _NOISE**2 * np.eye(2)
        certainty = np.linalg.inv(rows @ self._p @ rows.T + noise)
        surprise = shown - expected
        if float(surprise @ certainty @ surprise) > _GATE:
            return
        gain = self._p @ rows.T @ certainty
        move = gain @ surprise
        self._p = self._p - gain @ rows @ self._p
        self._lever = self._lever + move[2:]
        ahead = self._ahead + across.T @ move[:2]
        self._ahead = ahead / np.linalg.norm(ahead)
        self._tangents = _tangents(self._ahead, across[0])


def _tangents(axis: Floats, near: Floats | None = None) -> Floats:
    """Return two unit vectors [2, 3] across a unit `axis` [3], the first as `near` as can be."""
    wanted = np.array([1.0, 0.0, 0.0]) if near is None else near
    one = wanted - (wanted @ axis) * axis
    one /= np.linalg.norm(one)
    return np.stack([one, np.cross(axis, one)])
