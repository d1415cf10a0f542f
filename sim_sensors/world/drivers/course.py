"""The course of the figure-eight driver: where to go, and how fast its bends allow."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from math import pi

import numpy as np

from rig_common.arrays import Floats

SPACING_M = 0.02
SLALOMS = 9
AMPLITUDE_M = 0.22
LOOK_AHEAD_M = 0.4
BRAKE_M = 0.5
"""How far ahead of a bend its speed must be reached."""
SPEED_M_S = 1.4
MAX_LATERAL_M_S2 = 1.7
MAX_BEND_RAD_S = 0.85 * 1.5
"""Yaw rate in the tightest bends: what a driver may ask for, less what keeping on course needs."""
BACK, FORTH = 10, 30
"""Points before and from the last known one on among which the nearest is looked for."""


@dataclass(frozen=True, slots=True)
class Course:
    """A closed course with a point every `SPACING_M`, in plain numbers for `drivers`."""

    x: array[float]
    """From `BACK` points before the start: x[i:i + BACK + FORTH] lie around point i."""
    y: array[float]
    limit_m_s: list[float]
    """Speed at every point."""
    ahead: list[list[float]]
    """What to steer for at every point, (x m, y m)."""

    def nearest(self, around: int, x: float, y: float) -> int:
        """Return the point nearest to (x, y) among those around point `around`."""
        window = slice(around, around + BACK + FORTH)
        square = [
            (a - x) * (a - x) + (b - y) * (b - y)
            for a, b in zip(self.x[window], self.y[window], strict=True)
        ]
        return (around - BACK + square.index(min(square))) % len(self.limit_m_s)


def lay_out(half_length_m: float, half_width_m: float) -> Course:
    """Return a figure eight of this size with a slalom on top."""
    points, curvature = _eight(half_length_m, half_width_m)
    limit = np.minimum(np.sqrt(MAX_LATERAL_M_S2 / curvature), MAX_BEND_RAD_S / curvature)
    limit = np.minimum(SPEED_M_S, limit)
    limit = np.minimum(limit, np.roll(limit, -round(BRAKE_M / SPACING_M)))
    ahead = np.roll(points, -round(LOOK_AHEAD_M / SPACING_M), 0)
    x, y = np.r_[points[-BACK:], points, points[:FORTH]].T.tolist()
    return Course(array('d', x), array('d', y), limit.tolist(), ahead.tolist())


def _eight(half_length_m: float, half_width_m: float) -> tuple[Floats, Floats]:
    """Return points [n, 2] every `SPACING_M` and the curvature there [n], 1/m."""
    s = np.linspace(0.0, 2 * np.pi, 20_000, endpoint=False)
    eight = np.stack([half_length_m * np.sin(s), half_width_m * np.sin(2 * s)], 1)
    tangent = np.stack([half_length_m * np.cos(s), 2 * half_width_m * np.cos(2 * s)], 1)
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], 1)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(eight, axis=0), axis=1))]
    wave = np.sin(2 * np.pi * SLALOMS * length / length[-1])
    curve = eight + AMPLITUDE_M * wave[:, None] * normal
    length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))]
    even = np.arange(0.0, length[-1], SPACING_M)
    points = np.stack([np.interp(even, length, curve[:, i]) for i in range(2)], 1)
    step = np.roll(points, -1, 0) - points
    turn = np.diff(np.arctan2(step[:, 1], step[:, 0]), append=0.0)
    bend = (turn + pi) % (2 * pi) - pi
    curvature = (
        np.convolve(np.abs(np.r_[bend[-8:], bend, bend[:8]]), np.ones(17) / 17, 'valid')
        / SPACING_M
    )
    return points, np.maximum(curvature, 1e-3)
