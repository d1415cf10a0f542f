"""Trajectories in text files as a stream of poses: TUM, KITTI with its times, CSV with a header.

None has receive times: each pose is received at its stamp.
"""

from __future__ import annotations

import csv
import re
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rig_common import msgs
from rig_common.arrays import Floats, Ints
from rig_common.errors import RigError, why
from rig_common.quaternions import wxyz_from_matrix
from sensor_rig.bags.formats.made import MadeFile, MadeStream, filled

KITTI_COLUMNS, TUM_COLUMNS = 12, 8
LATEST_S = 9e9
"""A later time does not fit into int64 as ns."""
TIME_NAMES = ('timestamp', 'time', 't', 'stamp', 'sec', 'seconds', 'nsec', 'ns')
_PART = re.compile(
    r'(?:(?P<turn>q|(?:q|orientation|rot).*[_.])|[pt]?|(?:[pt]_|pos|trans).*)(?P<axis>[wxyz])'
)
"""Names of the columns of a position (`x`, `tx`, `pos_x`, `p_RS_R_x`) and of a quaternion."""
NS_PER = ((1e17, 1.0), (1e14, 1e3), (1e11, 1e6), (0.0, 1e9))
"""From such a time on its unit is so many ns: ns, us, ms, s since 1970."""


class PoseRows(NamedTuple):
    """A trajectory: times [n] in ns, positions [n, 3] in m, quaternions [n, 4] as x y z w."""

    times_ns: Ints
    positions_m: Floats
    quats_xyzw: Floats


def trajectory_file(path: Path) -> MadeFile:
    """Return a trajectory as the topic `/trajectory/<name of the file>`."""
    poses = read_poses(path)
    name = re.sub(r'\W', '_', path.stem)
    return MadeFile(path, [pose_stream(f'/trajectory/{name}', poses, name)])


def pose_stream(topic: str, poses: PoseRows, frame_id: str) -> MadeStream:
    """Return poses as a stream of PoseStamped."""
    return filled(
        topic,
        msgs.pose_stamped(frame_id),
        poses.times_ns,
        poses.times_ns,
        position=poses.positions_m,
        orientation=poses.quats_xyzw,
    )


def read_poses(path: Path) -> PoseRows:
    """Return the poses of a file, told by what stands in it; RigError where it is none."""
    try:
        text = path.read_text(encoding='utf-8')
    except OSError as error:
        raise RigError(f'cannot read {path}: {why(error)}') from None
    except UnicodeDecodeError:
        raise RigError(f'{path} is no text, so no trajectory') from None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    data = [line for line in lines if not line.startswith(('#', '%'))]
    if not data:
        raise RigError(f'{path} holds no poses')
    if any(sign.isalpha() and sign not in 'eE' for sign in data[0]) or ',' in data[0]:
        return _csv(lines, path)
    rows = _numbers(data, path)
    if rows.shape[1] == TUM_COLUMNS:
        return _checked(PoseRows(_seconds_text([line.split()[0] for line in data]), rows[:, 1:4],
                              rows[:, 4:8]), path)  # fmt: skip
    if rows.shape[1] == KITTI_COLUMNS:
        return _kitti(rows, path)
    raise RigError(
        f'{path} has {rows.shape[1]} columns; a TUM trajectory has {TUM_COLUMNS} (time x y z qx '
        f'qy qz qw), a KITTI one {KITTI_COLUMNS}, and a CSV has a header that names its columns'
    )


def _numbers(lines: list[str], path: Path) -> Floats:
    try:
        rows = np.array([[float(word) for word in line.replace(',', ' ').split()]
                         for line in lines])  # fmt: skip
    except ValueError:
        raise RigError(f'{path} is no table of numbers with the same columns in every line') from (
            None
        )
    return rows


def _seconds_text(words: list[str]) -> Ints:
    """Return times in s as ns, exact to the last digit: a float has too few for a date."""
    for word in words:
        if not abs(float(word)) < LATEST_S:
            raise ValueError(f'{word} is no time in s')
    return np.array([int(Decimal(word).scaleb(9)) for word in words], np.int64)


def _kitti(rows: Floats, path: Path) -> PoseRows:
    beside = [path.with_name(f'{path.stem}_times.txt'), path.with_name('times.txt'),
              path.parent.parent / 'sequences' / path.stem / 'times.txt']  # fmt: skip
    times = next((each for each in beside if each.exists() and each != path), None)
    if times is None:
        raise RigError(
            f'{path} holds KITTI poses, which have no times; they should lie in '
            f'{" or ".join(each.name for each in beside[:2])} beside it'
        )
    words = times.read_text(encoding='utf-8').split()
    if len(words) != len(rows):
        raise RigError(f'{times} has {len(words)} times for the {len(rows)} poses of {path}')
    try:
        times_ns = _seconds_text(words)
    except ValueError:
        raise RigError(f'{times} is no list of times in s') from None
    matrices = rows.reshape(-1, 3, 4)
    quats = np.array([np.roll(wxyz_from_matrix(each[:, :3]), -1) for each in matrices])
    return _checked(PoseRows(times_ns, matrices[:, :, 3], quats), path)


def _csv(lines: list[str], path: Path) -> PoseRows:
    header = [word.strip().lstrip('#').strip() for word in next(csv.reader([lines[0]]))]
    rows = _numbers([line for line in lines[1:] if not line.startswith('#')], path)
    if rows.ndim != 2 or rows.shape[1] < len(header):
        raise RigError(f'{path} has {len(header)} names of columns, but other rows')
    places = _columns(header, path)
    words = [line.split(',')[places['time']].strip() for line in lines[1:] if line[0] != '#']
    unit = re.search(r'\[(\w+)\]', header[places['time']])
    position = np.stack([rows[:, places[f'p{axis}']] for axis in 'xyz'], axis=1)
    quats = np.stack([rows[:, places[f'q{axis}']] for axis in 'xyzw'], axis=1)
    return _checked(
        PoseRows(_any_times(words, unit[1] if unit else '', path), position, quats), path
    )


def _any_times(words: list[str], unit: str, path: Path) -> Ints:
    try:
        first = abs(float(words[0]))
        scale = {'ns': 1.0, 'us': 1e3, 'ms': 1e6, 's': 1e9, 'sec': 1e9}.get(unit) or next(
            scale for least, scale in NS_PER if first >= least
        )
        if scale == 1e9:
            return _seconds_text(words)
        return np.array([round(int(float(word)) * scale) if '.' in word else int(word) * int(scale)
                         for word in words], np.int64)  # fmt: skip
    except (ValueError, IndexError):
        raise RigError(f'{path} has a column of times with something else in it') from None


def _columns(header: list[str], path: Path) -> dict[str, int]:
    """Return where time, position and quaternion stand, by the names of the columns."""
    found: dict[str, int] = {}
    for place, word in enumerate(header):
        name = re.sub(r'\s*\[.*', '', word).lower()
        if name.split('_')[0] in TIME_NAMES:
            found.setdefault('time', place)
        elif part := _PART.fullmatch(name):
            found.setdefault(('q' if part['turn'] else 'p') + part['axis'], place)
    wanted = ['time', *(f'p{each}' for each in 'xyz'), *(f'q{each}' for each in 'wxyz')]
    missing = [each for each in wanted if each not in found]
    if missing:
        raise RigError(
            f'{path} has no column for {", ".join(missing)}; it has {", ".join(header)}; such '
            f'names are understood: time, x, y, z, qw, qx, qy, qz'
        )
    return found


def _checked(poses: PoseRows, path: Path) -> PoseRows:
    if not (np.isfinite(poses.positions_m).all() and np.isfinite(poses.quats_xyzw).all()):
        raise RigError(f'{path} holds poses that are no finite numbers')
    norms = np.linalg.norm(poses.quats_xyzw, axis=1)
    wrong = np.flatnonzero(np.abs(norms - 1.0) > 0.05)
    if len(wrong):
        raise RigError(
            f'pose {wrong[0] + 1} of {path} has a quaternion of norm {norms[wrong[0]]:.3g}; it '
            f'should be 1'
        )
    return poses._replace(quats_xyzw=poses.quats_xyzw / norms[:, None])
