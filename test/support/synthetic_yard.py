"""A yard of boxes seen by a planar LiDAR, for benchmarks and tests of the scan cue.

Walls around, boxes inside; a ray's range is exact, noise is added on top. No physics and no
simulator: the sync half can be measured without the other one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rig_common.arrays import Floats


@dataclass(frozen=True)
class Yard:
    """Line segments, [m, 2, 2] (m)."""

    segments: Floats

    @classmethod
    def of_boxes(cls, seed: int = 3, boxes: int = 14, half_m: float = 12.0) -> Yard:
        """Return a walled yard with `boxes` turned boxes, none of them near the middle."""
        rng = np.random.default_rng(seed)
        shapes = [_box(0.0, 0.0, half_m, half_m, 0.0)]
        while len(shapes) <= boxes:
            x, y = rng.uniform(-0.85 * half_m, 0.85 * half_m, 2)
            if np.hypot(x, y) > 4.5:
                width, depth = rng.uniform(0.3, 1.2, 2)
                shapes.append(_box(x, y, width, depth, rng.uniform(0.0, np.pi)))
        return cls(np.concatenate(shapes))

    def ranges(self, x: Floats, y: Floats, angle: Floats) -> Floats:
        """Return the distance (m) along each ray [n]; infinite where nothing is hit."""
        dx, dy = np.cos(angle)[:, None], np.sin(angle)[:, None]
        start, along = self.segments[:, 0], self.segments[:, 1] - self.segments[:, 0]
        ox, oy = start[None, :, 0] - x[:, None], start[None, :, 1] - y[:, None]
        cross = dx * along[None, :, 1] - dy * along[None, :, 0]
        with np.errstate(divide='ignore', invalid='ignore'):
            distance = (ox * along[None, :, 1] - oy * along[None, :, 0]) / cross
            share = (ox * dy - oy * dx) / cross
        hit = (distance > 0.0) & (share >= 0.0) & (share <= 1.0)
        nearest: Floats = np.where(hit, distance, np.inf).min(axis=1)
        return nearest


def _box(x: float, y: float, half_x: float, half_y: float, turn: float) -> Floats:
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]]) * np.array([half_x, half_y])
    cosine, sine = np.cos(turn), np.sin(turn)
    corners = corners @ np.array([[cosine, sine], [-sine, cosine]]) + np.array([x, y])
    return np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)


def sweep(
    yard: Yard,
    pose: Callable[[Floats], tuple[Floats, Floats, Floats]],
    start_s: float,
    rays: int,
    sweep_s: float,
    noise_m: float,
    rng: np.random.Generator,
) -> Floats:
    """Return one scan's ranges [rays], each ray cast from where `pose(t)` is at its own time.

    `pose` returns (x, y, yaw) of times; rays start at -pi and go round in `sweep_s`.
    """
    times = start_s + sweep_s * np.arange(rays) / rays
    x, y, yaw = pose(times)
    angle = yaw - np.pi + 2.0 * np.pi * np.arange(rays) / rays
    return yard.ranges(x, y, angle) + rng.normal(0.0, noise_m, rays)
