"""Trajectories and their error against the truth, by evo where it is installed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats
from rig_common.errors import RigError, why
from rig_common.installing import pip_install
from rig_common.msgs.decode import read_odometry
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import BagReader
from sensor_rig.measures.keys import Measures

APART_S = 0.02
"""Poses of two trajectories that are compared are at most so far apart in time."""
RPE_M = 1.0
"""Way over which the relative error is taken, m."""
COLUMNS = 8
"""Of TUM's format: time in s, x y z in m, quaternion xyzw."""


@dataclass(frozen=True)
class Trajectory:
    """Poses over time: times [n] in ns, poses [n, 7] as x y z m and quaternion xyzw."""

    times_ns: NDArray[np.int64]
    poses: Floats


@dataclass(frozen=True)
class TrajectoryScore:
    """An absolute trajectory error, m, and the two trajectories it is of, aligned, [n, 3] m."""

    rmse_m: float
    max_m: float
    poses: int
    found: Floats
    truth: Floats
    measures: Measures
    """`ate_m.rmse` ..., `rpe_m.rmse` ..., `poses`."""


def recorded_truth(folder: Path, topic: str) -> Trajectory:
    """Return the poses of an Odometry topic of a recording."""
    with BagReader(folder) as bag:
        if topic not in bag.topics:
            raise RigError(f'{folder} has no topic {topic}; it has {", ".join(bag.topics)}')
        read = [read_odometry(each.raw) for each in bag.messages([topic])]
    return Trajectory(
        np.array([each.stamp_ns for each in read]),
        np.array([[*each.position_m, *each.orientation_xyzw] for each in read]),
    )


def tum_rows(rows: object, what: str) -> Trajectory:
    """Return the trajectory of rows [n, 8] in TUM's order (time in s)."""
    table = np.asarray(rows, float)
    if table.ndim != 2 or table.shape[1] != COLUMNS or not np.isfinite(table).all():
        raise RigError(
            f'{what} has the shape {list(table.shape)}; it should be rows of '
            f'{COLUMNS} finite numbers: time in s, x, y, z in m, quaternion x, y, z, w'
        )
    return Trajectory(np.rint(table[:, 0] * NS_PER_S).astype(np.int64), table[:, 1:])


def tum_file(file: Path) -> Trajectory:
    """Return the trajectory in a file of TUM's format."""
    try:
        rows = [
            [float(word) for word in line.replace(',', ' ').split()]
            for line in file.read_text(encoding='utf-8').splitlines()
            if line.strip() and not line.startswith('#')
        ]
        return tum_rows(rows, file.name)
    except OSError as error:
        raise RigError(f'cannot read {file}: {why(error)}') from None
    except ValueError:
        raise RigError(
            f"{file.name} is not a trajectory in TUM's format: a line should be {COLUMNS} numbers"
        ) from None


def require_evo(what: str) -> None:
    """Say so where evo is missing."""
    from importlib.util import find_spec

    if find_spec('evo') is None:
        raise RigError(f'{what}, which needs evo: {pip_install("evo")}')


def scored(found: Trajectory, truth: Trajectory) -> TrajectoryScore:
    """Return the error of `found`, aligned with the truth by evo over its whole length."""
    require_evo('a trajectory is scored')
    from evo.core import metrics, sync
    from evo.core.trajectory import PoseTrajectory3D

    def trajectory(given: Trajectory) -> Any:
        start_ns = truth.times_ns[0]
        return PoseTrajectory3D(
            positions_xyz=given.poses[:, :3],
            orientations_quat_wxyz=given.poses[:, [6, 3, 4, 5]],
            timestamps=(given.times_ns - start_ns) / NS_PER_S,
        )

    if len(found.times_ns) < 3 or len(truth.times_ns) < 3:
        raise RigError(
            f'the trajectory has {len(found.times_ns)} poses and the truth '
            f'{len(truth.times_ns)}; to be compared they need 3'
        )
    try:
        reference, estimate = sync.associate_trajectories(
            trajectory(truth), trajectory(found), max_diff=APART_S
        )
        estimate.align(reference)
    except Exception as error:  # evo has several kinds, all of them sentences
        raise RigError(f'evo cannot align the trajectory with the truth: {error}') from None
    absolute = metrics.APE(metrics.PoseRelation.translation_part)
    absolute.process_data((reference, estimate))
    figures = absolute.get_all_statistics()
    measures = {f'ate_m.{key}': float(figures[key]) for key in ('rmse', 'mean', 'max')}
    measures |= {'poses': float(len(estimate.positions_xyz)), **_relative(reference, estimate)}
    return TrajectoryScore(
        float(figures['rmse']),
        float(figures['max']),
        len(estimate.positions_xyz),
        estimate.positions_xyz,
        reference.positions_xyz,
        measures,
    )


def _relative(reference: object, estimate: object) -> Measures:
    """Return the relative error over a metre of way; nothing where the way is shorter."""
    from evo.core import metrics

    found: Measures = {}
    for name, relation in (
        ('rpe_m', metrics.PoseRelation.translation_part),
        ('rpe_deg', metrics.PoseRelation.rotation_angle_deg),
    ):
        relative = metrics.RPE(relation, RPE_M, metrics.Unit.meters, all_pairs=False)
        try:
            relative.process_data((reference, estimate))
        except metrics.MetricsException:
            continue
        except Exception as error:
            if 'pairs' not in str(error):
                raise
            continue
        figures = relative.get_all_statistics()
        found |= {f'{name}.{key}': float(figures[key]) for key in ('rmse', 'mean', 'max')}
    return found
