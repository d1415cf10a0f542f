"""Streams over the motion of real recordings, read from a folder; the truth is drawn, so known.

A folder holds one folder a recording, each with three published files:

    imu.txt      stamp (ns), angular rate [3] (rad/s), acceleration [3]; separated by commas
    frames.txt   stamp of every camera frame (ns)
    poses.txt    stamp (s), position [3], orientation (x, y, z, w); separated by blanks
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import matrix_from_wxyz, rotation_vector
from support.trust_streams import OPTICAL_WXYZ, Habits

_LONGEST_GAP_S = 0.03
"""Frames inside a longer gap of the poses are left out."""


class Recorded(NamedTuple):
    """What was recorded, in seconds after the first pose; the gyro runs beyond both ends."""

    imu_s: Floats
    rates: Floats
    """[n, 3] (rad/s)."""
    frames_s: Floats
    poses_s: Floats
    quats_xyzw: Floats


@cache
def read_recorded(folder: Path) -> Recorded:
    """Read one recording."""
    imu = np.loadtxt(folder / 'imu.txt', delimiter=',', comments='#')
    imu_ns = np.loadtxt(folder / 'imu.txt', delimiter=',', usecols=0, dtype=np.int64)
    frames_ns = np.loadtxt(folder / 'frames.txt', dtype=np.int64)
    poses = np.loadtxt(folder / 'poses.txt', comments='#')
    quats = poses[:, 4:8] * np.cumprod(_signs(poses[:, 4:8]))[:, None]
    start_ns = int(poses[0, 0] * 1e9)
    times = (imu_ns - start_ns) / 1e9
    return Recorded(
        times, imu[:, 1:4], (frames_ns - start_ns) / 1e9, poses[:, 0] - start_ns / 1e9, quats
    )


def _signs(quats: Floats) -> Floats:
    dots = np.sum(quats[1:] * quats[:-1], axis=1)
    return np.concatenate([[1.0], np.where(dots < 0.0, -1.0, 1.0)])


@dataclass(frozen=True)
class RealHabits(Habits):
    """Streams with the motion of a recording: its frames, its gyro, its orientations."""

    folder: Path = field(default_factory=Path)
    start_s: float = 0.0
    """Where in the recording the streams begin."""

    @classmethod
    def of(cls, folder: Path, start_s: float = 0.0, **changes: object) -> RealHabits:
        """Return the streams of a recording from `start_s` on to its end, or as long as asked."""
        found = cls(0, folder=folder, start_s=start_s, **changes)  # type: ignore[arg-type]
        ends_s = float(read_recorded(folder).poses_s[-1]) - start_s - 0.2
        return replace(found, duration_s=min(found.duration_s, ends_s))

    def captures_s(self) -> Floats:
        """Return when frames were captured, where poses are known, that were not lost."""
        found = read_recorded(self.folder)
        times = found.frames_s[(found.frames_s > self.start_s + 0.1)]
        times = times[times < self.start_s + self.duration_s]
        after = np.searchsorted(found.poses_s, times).clip(1, len(found.poses_s) - 1)
        known = found.poses_s[after] - found.poses_s[after - 1] < _LONGEST_GAP_S
        rng = np.random.default_rng([self.seed, self.noise_seed, 2])
        kept = known & (rng.random(len(times)) >= self.loss)
        return np.asarray(times[kept] - self.start_s)

    def turned(self, captures_s: Floats) -> Floats:
        """Return the turns between captures, in the frame of a camera [n - 1, 3] (rad)."""
        found = read_recorded(self.folder)
        quats = _at(found, captures_s + self.start_s)
        turns = [rotation_vector(one, two) for one, two in pairwise(quats)]
        return np.asarray(turns) @ matrix_from_wxyz(OPTICAL_WXYZ)

    def imu_rates(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return what the recorded gyro says."""
        found = read_recorded(self.folder)
        times = found.imu_s - self.start_s
        inside = (times >= 0.0) & (times < self.duration_s + 0.1)
        return times[inside], found.rates[inside]


def _at(found: Recorded, times_s: Floats) -> Floats:
    """Return the orientations between the poses on either side [n, 4]."""
    after = np.searchsorted(found.poses_s, times_s).clip(1, len(found.poses_s) - 1)
    span = found.poses_s[after] - found.poses_s[after - 1]
    share = ((times_s - found.poses_s[after - 1]) / span)[:, None]
    mixed = (1.0 - share) * found.quats_xyzw[after - 1] + share * found.quats_xyzw[after]
    return np.asarray(mixed / np.linalg.norm(mixed, axis=1, keepdims=True))


def recordings(folder: Path) -> list[Path]:
    """Return the recordings of a folder."""
    return sorted(path.parent for path in folder.glob('*/poses.txt'))
