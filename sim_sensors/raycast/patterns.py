"""Ray directions of scanners, worked out once and shared.

Frame: x forward, y left, z up (REP 103). Azimuth turns from x towards y, elevation up from the
x-y plane. Rays stand in the order in which they are fired.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.interface.tables import read_table

ELEVATION_TABLES_DEG: dict[int, tuple[float, ...]] = {
    16: tuple(np.linspace(-15.0, 15.0, 16).tolist()),
    32: tuple(np.linspace(-30.67, 10.67, 32).tolist()),
    64: tuple(np.r_[np.linspace(-24.33, -8.83, 32), np.linspace(-8.33, 2.0, 32)].tolist()),
    128: tuple(np.linspace(-22.5, 22.5, 128).tolist()),
}
"""Elevations of common spinning scanners, lowest first, as their data sheets give them:
VLP-16 (16), HDL-32E (32), HDL-64E (64), OS1-128 (128)."""

ROSETTE_RPM = (7294.0, -4664.0)
"""Speeds of the two prisms of a Livox Mid-40, from its characterisation papers."""
ROSETTE_FRAMES = 50
"""Frames after which a rosette begins again; at 10 Hz that is 5 s."""


@dataclass(frozen=True)
class Pattern:
    """The rays of a scanner.

    A pattern that does not repeat has several frames; capture k uses frame k modulo their number.
    """

    directions: Floats
    """[frames, n, 3] unit vectors in the sensor's frame, read-only."""
    phase: Floats
    """[n] when each ray is fired, as a fraction 0..1 of the sweep; never falling."""
    ring: npt.NDArray[np.uint16]
    """[n] number of the laser, 0 is the lowest."""
    rows: int
    """Rays of a column in an organised cloud; 1 where there are no columns."""

    @property
    def count(self) -> int:
        """Rays a frame."""
        return int(self.directions.shape[1])

    @property
    def frames(self) -> int:
        """Frames before the pattern begins again."""
        return len(self.directions)


def _pattern(
    azimuth_rad: Any, elevation_rad: Any, phase: Any, ring: npt.ArrayLike, rows: int
) -> Pattern:
    """Return the pattern of angles that are [n] or [frames, n]."""
    level = np.cos(elevation_rad)
    directions = np.stack(
        [level * np.cos(azimuth_rad), level * np.sin(azimuth_rad), np.sin(elevation_rad)], axis=-1
    )
    if directions.ndim == 2:
        directions = directions[None]
    rings = np.array(ring, dtype=np.uint16)
    for array in (directions, phase, rings):
        array.flags.writeable = False
    return Pattern(directions, phase, rings, rows)


def sweep_angles_rad(
    num_rays: int, fov_deg: float, start_angle_deg: float, clockwise: bool
) -> tuple[float, float]:
    """Return (first angle, increment) of rays spread evenly over `fov_deg`.

    A full turn does not fire twice at its seam; less than a turn includes both ends.
    """
    gaps = num_rays if fov_deg >= 360.0 or num_rays == 1 else num_rays - 1
    step = np.deg2rad(fov_deg) / gaps
    return float(np.deg2rad(start_angle_deg)), float(-step if clockwise else step)


def single_plane(
    num_rays: int,
    fov_deg: float = 360.0,
    start_angle_deg: float = 0.0,
    clockwise: bool = False,
) -> Pattern:
    """Return a planar scan; the sweep lasts as long as a full turn would take for 360 degrees."""
    return multi_beam((0.0,), num_rays, fov_deg, start_angle_deg, clockwise)


@functools.lru_cache(maxsize=64)
def multi_beam(
    elevations_deg: tuple[float, ...],
    columns: int,
    fov_deg: float = 360.0,
    start_angle_deg: float = 0.0,
    clockwise: bool = True,
) -> Pattern:
    """Return a spinning stack of lasers; all lasers of a column fire at once.

    Most spinning scanners turn clockwise seen from above.
    """
    rows = len(elevations_deg)
    first, step = sweep_angles_rad(columns, fov_deg, start_angle_deg, clockwise)
    azimuth = np.repeat(first + step * np.arange(columns), rows)
    elevation = np.tile(np.deg2rad(np.array(elevations_deg)), columns)
    phase = np.repeat(np.arange(columns) * (abs(step) / (2.0 * np.pi)), rows)
    order = np.argsort(np.argsort(elevations_deg))
    return _pattern(azimuth, elevation, phase, np.tile(order, columns), rows)


@functools.lru_cache(maxsize=64)
def grid(rows: int, columns: int, hfov_deg: float, vfov_deg: float) -> Pattern:
    """Return a raster, top row first and each row from left to right, as flash scanners read."""
    azimuth = np.deg2rad(np.linspace(hfov_deg / 2.0, -hfov_deg / 2.0, columns))
    elevation = np.deg2rad(np.linspace(vfov_deg / 2.0, -vfov_deg / 2.0, rows))
    count = rows * columns
    ring = np.repeat(np.arange(rows)[::-1], columns)
    return _pattern(
        np.tile(azimuth, rows), np.repeat(elevation, columns), np.arange(count) / count, ring, 1
    )


@functools.lru_cache(maxsize=16)
def rosette(num_rays: int, fov_deg: float, rate_hz: float) -> Pattern:
    """Return the flower that two counter-turning prisms draw; it fills up over the frames.

    `fov_deg` is the full cone. Each frame goes on where the one before ended.
    """
    time_s = np.arange(ROSETTE_FRAMES * num_rays) / (num_rays * rate_hz)
    first, second = (2.0 * np.pi * rpm / 60.0 * time_s for rpm in ROSETTE_RPM)
    reach = np.deg2rad(fov_deg) / 4.0
    azimuth = reach * (np.cos(first) + np.cos(second))
    elevation = reach * (np.sin(first) + np.sin(second))
    shape = (ROSETTE_FRAMES, num_rays)
    phase = np.arange(num_rays) / num_rays
    return _pattern(azimuth.reshape(shape), elevation.reshape(shape), phase, np.zeros(num_rays), 1)


@functools.lru_cache(maxsize=16)
def from_file(path: str) -> Pattern:
    """Return the user's pattern from a CSV with a header line or an NPZ.

    Columns (or arrays): `azimuth_deg` and `elevation_deg`, or `x`, `y`, `z`; optional `time`,
    as a fraction 0..1 of the sweep and never falling, and `ring`.
    """
    columns = read_table(Path(path), f'ray pattern {path}')
    if any(not np.isfinite(column).all() for column in columns.values()):
        raise RigError(f'ray pattern {path} has a value that is not a number')
    if {'x', 'y', 'z'} <= columns.keys():
        vectors = np.stack([columns['x'], columns['y'], columns['z']], axis=-1)
        length = np.linalg.norm(vectors, axis=-1)
        if (length < 1e-9).any():
            raise RigError(f'ray pattern {path}: ray {int(length.argmin())} has no direction')
        azimuth = np.arctan2(vectors[:, 1], vectors[:, 0])
        elevation = np.arcsin(np.clip(vectors[:, 2] / length, -1.0, 1.0))
    elif {'azimuth_deg', 'elevation_deg'} <= columns.keys():
        azimuth = np.deg2rad(columns['azimuth_deg'])
        elevation = np.deg2rad(columns['elevation_deg'])
    else:
        raise RigError(
            f'ray pattern {path} has the columns {", ".join(sorted(columns))}; '
            'needed: azimuth_deg and elevation_deg, or x, y and z'
        )
    count = len(azimuth)
    phase = columns.get('time', np.arange(count) / count)
    if count == 0 or (np.diff(phase) < 0.0).any() or phase[0] < 0.0 or phase[-1] > 1.0:
        raise RigError(f'ray pattern {path}: time must rise within 0..1 and there must be rays')
    return _pattern(azimuth, elevation, phase, columns.get('ring', np.zeros(count)), 1)
