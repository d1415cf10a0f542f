"""What wrong clocks do to an odometry, and what sync gives back, on your recording or on ours.

    ./rig python examples/lidar_odometry.py                              # simulates its own rig
    ./rig python examples/lidar_odometry.py drive/ --rig mine.yaml --lidar /points --imu /imu/data

The recording is taken as it is (clean), degraded as `streams:` of the rig file say, and the
degraded one is put right by its `sync:`, as bundles of a live run (synced) and by `rig correct`
(corrected). Each of the four goes through rko-lio, a LiDAR-inertial odometry that nobody here
wrote; evo aligns the trajectories with the truth (`--truth`, an Odometry) and gives the absolute
trajectory error, the relative one over a metre, and the absolute one after all poses were moved
by their best constant time. Without a truth the clean run stands for it.
Needs two packages that nothing else needs: ./rig python -m pip install rko-lio evo
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.installing import pip_install
from rig_common.msgs.decode import read_cloud, read_imu
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.recorder import record_rig
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.support.progress import note, progress
from sensor_rig.correct.recording import correct_recording
from sensor_rig.degrade.recording import degrade_recording
from sensor_rig.drawing import html_page as page
from sensor_rig.drawing.plots import Plot, legend
from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import RigConfig, load_rig
from sensor_rig.sweep.running.trajectory_error import (
    Trajectory,
    TrajectoryScore,
    recorded_truth,
    scored,
)
from sensor_rig.syncing.bag_sync import BagSync
from sync_engine.wire.restamp import point_times_s

RIG = Path(__file__).with_name('lidar_odometry.yaml')
MEANING = {
    'clean': 'the recording as it is',
    'degraded': 'clocks and delays of streams:',
    'synced': 'the degraded one, put right by sync: as a live run does',
    'corrected': 'the degraded one, put right by rig correct',
}


# ---- the three recordings -----------------------------------------------------------------------


def recorded(rig: RigConfig, folder: Path, seconds: float) -> Path:
    """Simulate the rig with true timing and record it."""
    simulated = InProcessRig(rig, arrays=False, sync=False)
    with BagWriter(folder) as writer, progress('recording', seconds) as advance:
        record_rig(simulated, writer, seconds, advance)
    return folder


def synced(source: Path, folder: Path, rig: RigConfig) -> Path:
    """Put a recording right with the rig's sync engine."""
    if rig.sync is None:
        raise RigError(f'{rig.path} has no sync: section, so nothing puts the recording right')
    with BagReader(source) as bag, BagWriter(folder) as writer:
        job = BagSync(bag, writer, rig.sync, 'odometry')
        with progress('syncing', bag.message_count) as advance:
            job.run(advance)
    return folder


# ---- odometry and its error ---------------------------------------------------------------------


def odometry(
    folder: Path, lidar: str, imu: str, imu_pose: NDArray[np.float64], max_range_m: float
) -> Trajectory:
    """Run rko-lio over a recording; `imu_pose` [4, 4] is the IMU in the LiDAR's frame."""
    from rko_lio.config import LIOConfig
    from rko_lio.lio import LIO

    lio = LIO(LIOConfig(max_range=max_range_m, min_range=0.3, voxel_size=0.5))
    rates: list[tuple[int, tuple[float, ...], tuple[float, ...]]] = []
    scans: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    with BagReader(folder) as bag:
        for topic in (lidar, imu):
            if topic not in bag.topics:
                raise RigError(f'{folder} has no topic {topic}; it has {", ".join(bag.topics)}')
        for topic, _, raw, _ in bag.messages([lidar, imu]):
            if topic == imu:
                turn, force = read_imu(raw)
                rates.append((read_stamp_ns(raw), force, turn))
            else:
                scans.append(points_of(raw))
            while scans and rates and rates[-1][0] > scans[0][0].max():
                times_ns, points = scans.pop(0)
                while rates and rates[0][0] < times_ns.max():
                    time_ns, force, turn = rates.pop(0)
                    lio.add_imu_measurement(np.array(force), np.array(turn), time_ns, imu_pose)
                lio.register_scan(points, times_ns, np.eye(4))
    times_ns, poses = lio.poses_with_timestamps()
    return Trajectory(np.asarray(times_ns, np.int64), np.asarray(poses, float))


def points_of(raw: bytes) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return times [n] in ns and points [n, 3] in m of a cloud, without those that are none."""
    cloud = read_cloud(raw)
    since_s = point_times_s(cloud)
    if since_s is None:
        raise RigError('the points of the cloud have no times, which rko-lio needs')
    points = np.stack([cloud.points[axis] for axis in 'xyz'], axis=1).astype(float)
    good = np.isfinite(points).all(axis=1)
    times_ns = cloud.stamp_ns + np.rint(since_s[good] * 1e9).astype(np.int64)
    return times_ns, points[good]


# ---- what people see ----------------------------------------------------------------------------


def html(scores: dict[str, TrajectoryScore], title: str, against: str) -> str:
    """Return the page: table, trajectories from above, error over the way."""
    worst = max(each.rmse_m for each in scores.values())
    tiles = [
        (f'{each.rmse_m * 100:.1f} cm', way, 'bad' if each.rmse_m == worst else 'good')
        for way, each in scores.items()
    ]
    rows = [
        (way, MEANING[way], f'{each.rmse_m * 100:.2f}', f'{each.max_m * 100:.2f}', each.poses)
        for way, each in scores.items()
    ]
    return page.page(
        title,
        f'rko-lio on one drive; error against {against}',
        [
            page.tiles(tiles),
            page.section(
                'Absolute trajectory error',
                page.table(('timing', 'what it is', 'rmse, cm', 'largest, cm', 'poses'), rows),
            ),
            page.section(
                'Seen from above',
                legend(list(scores)),
                page.figure(_above(scores), 'Aligned trajectories; dashed: the truth. Axes in m.'),
            ),
            page.section(
                'Error over the drive',
                legend(list(scores)),
                page.figure(_over_time(scores), 'Distance from the truth, cm, pose by pose.'),
            ),
        ],
    )


def _above(scores: dict[str, TrajectoryScore]) -> str:
    every = np.concatenate([each.truth for each in scores.values()])
    (x0, y0), (x1, y1) = every[:, :2].min(0) - 0.5, every[:, :2].max(0) + 0.5
    plot = Plot(
        (x0, x1),
        (y0, y1),
        xlabel='x, m',
        ylabel='y, m',
        height=38.0 + 10.0 + (860.0 - 78.0) * (y1 - y0) / (x1 - x0),
    )
    for series, each in enumerate(scores.values()):
        plot.line(each.found[:, 0].tolist(), each.found[:, 1].tolist(), series)
    first = next(iter(scores.values())).truth
    plot.polyline([(x, y) for x, y, _ in first.tolist()], 'truth')
    return plot.svg('trajectories from above')


def _over_time(scores: dict[str, TrajectoryScore]) -> str:
    errors = {
        way: np.linalg.norm(each.found - each.truth, axis=1) * 100.0
        for way, each in scores.items()
    }
    most = max(float(each.max()) for each in errors.values())
    count = max(len(each) for each in errors.values())
    plot = Plot((0.0, count), (0.0, most * 1.05), xlabel='pose', ylabel='error, cm')
    for series, each in enumerate(errors.values()):
        plot.line(list(range(len(each))), each.tolist(), series)
    return plot.svg('error over the drive')


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('recording', nargs='?', type=Path, help='your recording; else a simulated')
    parser.add_argument('--rig', type=Path, default=RIG, help='rig file with streams: and sync:')
    parser.add_argument('--lidar', default='/lidar/points', help='PointCloud2 with point times')
    parser.add_argument('--imu', default='/imu/data_raw', help='Imu')
    parser.add_argument('--truth', default='', help='Odometry with the true poses of the LiDAR')
    parser.add_argument(
        '--imu-pose',
        nargs=7,
        type=float,
        default=[0.0] * 6 + [1.0],
        metavar=('X', 'Y', 'Z', 'QX', 'QY', 'QZ', 'QW'),
        help="the IMU in the LiDAR's frame, m and quaternion (the same place)",
    )
    parser.add_argument(
        '--max-range',
        type=float,
        default=30.0,
        metavar='M',
        help='farthest points that are used, m (30)',
    )
    parser.add_argument('--seconds', type=float, default=40.0, help='length of a simulated drive')
    parser.add_argument('--out', type=Path, default=Path('lidar_odometry.html'))
    return parser.parse_args()


class Compared(NamedTuple):
    """One way: its score, the shift of its times that fits best, and the error after it."""

    score: TrajectoryScore
    shift_s: float
    shifted_rmse_m: float


def compare(args: argparse.Namespace, folder: Path) -> tuple[dict[str, Compared], str]:
    """Return the score of each way, and what they were scored against."""
    from rko_lio.util import quat_xyzw_xyz_to_transform

    rig = load_rig(args.rig)
    clean = args.recording or recorded(rig, folder / 'clean', args.seconds)
    truth_topic = args.truth or ('' if args.recording else '/body/odom')
    degrade_recording(clean, folder / 'degraded', rig, storage='mcap')
    places = {
        'clean': (clean, ''),
        'degraded': (folder / 'degraded', ''),
        'synced': (synced(folder / 'degraded', folder / 'synced', rig), '/synced'),
        'corrected': (folder / 'corrected', ''),
    }
    correct_recording(folder / 'degraded', folder / 'corrected', rig.sync)
    x, y, z, *quaternion = args.imu_pose
    imu_pose = quat_xyzw_xyz_to_transform(np.array([*quaternion, x, y, z]))
    found = {
        way: odometry(place, prefix + args.lidar, prefix + args.imu, imu_pose, args.max_range)
        for way, (place, prefix) in places.items()
    }
    truth = recorded_truth(clean, truth_topic) if truth_topic else found['clean']
    return {way: _compared(each, truth) for way, each in found.items()}, (
        truth_topic or 'the clean run, as there is no truth'
    )


def best_shift_s(found: Trajectory, truth: Trajectory) -> float:
    """Return by how much the times of `found` must move to lie best on the truth, s.

    A constant error of all times costs a trajectory nothing but this.
    """
    true_s = (truth.times_ns - truth.times_ns[0]) / NS_PER_S
    times_s = (found.times_ns - truth.times_ns[0]) / NS_PER_S

    def error_m(shift_s: float) -> float:
        moved = times_s + shift_s
        inside = (moved >= true_s[0]) & (moved <= true_s[-1])
        if inside.sum() < 3:
            return float('inf')
        where = np.stack(
            [np.interp(moved[inside], true_s, truth.poses[:, axis]) for axis in range(3)], axis=1
        )
        mine = found.poses[inside, :3]
        a, b = mine - mine.mean(axis=0), where - where.mean(axis=0)
        u, _, vt = np.linalg.svd(a.T @ b)
        flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
        return float(np.sqrt(((a @ u @ flip @ vt - b) ** 2).sum(axis=1).mean()))

    best_s = 0.0
    for step_s in (0.01, 0.001, 0.0001):
        tried = best_s + step_s * np.arange(-20, 21)
        best_s = float(tried[np.argmin([error_m(shift_s) for shift_s in tried.tolist()])])
    return best_s


def shifted(found: Trajectory, shift_s: float) -> Trajectory:
    """Return a trajectory whose times are moved."""
    return Trajectory(found.times_ns + round(shift_s * NS_PER_S), found.poses)


def _compared(found: Trajectory, truth: Trajectory) -> Compared:
    shift_s = best_shift_s(found, truth)
    return Compared(scored(found, truth), shift_s, scored(shifted(found, shift_s), truth).rmse_m)


def sweep_run(recording: Path, synced: Path, source: Path) -> dict[str, float]:
    """Return the errors of one run of `lidar_odometry_sweep.yaml`, raw and synced, in m."""
    truth = recorded_truth(source, '/body/odom')
    places = {'raw': (recording, ''), 'synced': (synced, '/synced')}
    return {
        f'{way}.ate_m': scored(
            odometry(place, f'{prefix}/lidar/points', f'{prefix}/imu/data_raw', np.eye(4), 30.0),
            truth,
        ).rmse_m
        for way, (place, prefix) in places.items()
    }


def main() -> int:
    """Compare the three and write the page."""
    args = arguments()
    try:
        import evo  # noqa: F401
        import rko_lio  # noqa: F401
    except ImportError as error:
        note(f'error: this example needs {error.name}: {pip_install("rko-lio", "evo")}')
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix='lidar_odometry_') as folder:
            compared, against = compare(args, Path(folder))
    except RigError as error:
        note(f'error: {error}')
        return RigError.EXIT_CODE
    name = args.recording.name if args.recording else 'the simulated rover'
    scores = {way: each.score for way, each in compared.items()}
    args.out.write_text(html(scores, f'LiDAR odometry on {name}', against), encoding='utf-8')
    for way, each in compared.items():
        score = each.score
        print(
            f'{way:9} ATE {score.rmse_m * 100:6.2f} cm (largest {score.max_m * 100:.2f}), after '
            f'{each.shift_s * 1e3:+6.1f} ms {each.shifted_rmse_m * 100:5.2f} cm, RPE over 1 m '
            f'{score.measures["rpe_m.rmse"] * 100:.2f} cm, {score.poses} poses'
        )
    print(
        json.dumps(
            {
                'version': 1,
                'page': str(args.out),
                'ate_m': {way: each.rmse_m for way, each in scores.items()},
                'rpe_m': {way: each.measures['rpe_m.rmse'] for way, each in scores.items()},
                'shift_s': {way: each.shift_s for way, each in compared.items()},
                'ate_after_shift_m': {way: each.shifted_rmse_m for way, each in compared.items()},
            }
        )
    )
    return 0


if __name__ == '__main__':
    sys.exit(main())
