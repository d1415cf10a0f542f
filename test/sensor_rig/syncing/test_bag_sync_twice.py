"""`rig sync` looks at a recording twice, `--causal` once: who pairs right from the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig_common import msgs
from rig_common.msgs import read_time_reference
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main

START_S = 1.7e9
OFFSET_S = 0.06
"""The pose's clock is ahead; the rig file believes in a latency that is 40 ms too short."""
RIG = """/**:
  ros__parameters:
    sync:
      inputs:
        lidar: {topic: lidar/scan, type: sensor_msgs/msg/LaserScan, stamp_source: ptp}
        pose: {topic: pose/odom, type: nav_msgs/msg/Odometry, latency_s: 0.01,
               latency_sigma_s: 0.04, cue: odometry, imu_quat_wxyz: [1.0, 0.0, 0.0, 0.0]}
        imu: {topic: imu/data_raw, type: sensor_msgs/msg/Imu, stamp_source: ptp, collect: true}
      reference_sensor_id: lidar
      required_sensors: [lidar, pose]
      imu_sensor_id: imu
"""
SCAN = msgs.laser_scan(
    'lidar',
    8,
    angle_min_rad=0,
    angle_max_rad=1,
    angle_increment_rad=0.1,
    range_min_m=0,
    range_max_m=9,
)
ODOM = msgs.odometry('odom', 'base')
IMU = msgs.imu('imu')


def yaw(time_s: Any) -> Any:
    return 0.5 * np.sin(1.3 * time_s) + 0.15 * np.sin(4.1 * time_s + 1.0)


def record(path: Path, seconds: float = 15.0) -> Path:
    rng, step = np.random.default_rng(4), 1e-4
    events: list[tuple[float, str, bytes]] = []

    def stamp(time_s: float) -> int:
        return round((START_S + time_s) * 1e9)

    for t in np.arange(0.0, seconds, 0.005).tolist():
        rate = (yaw(t + step) - yaw(t - step)) / (2.0 * step) + rng.normal(0.0, 0.002)
        events.append(
            (
                t + 0.001,
                '/imu/data_raw',
                IMU.fill(
                    stamp(t),
                    angular_velocity=[0.0, 0.0, rate],
                    linear_acceleration=[0.0, 0.0, 9.8],
                ),
            )
        )
    for t in np.arange(0.007, seconds, 0.04).tolist():
        angle = yaw(t) + rng.normal(0.0, 3e-4)
        events.append(
            (
                t + 0.05 + rng.exponential(0.002),
                '/pose/odom',
                ODOM.fill(
                    stamp(t + OFFSET_S),
                    orientation=[0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)],
                ),
            )
        )
    for t in np.arange(0.0, seconds, 0.1).tolist():
        events.append((t + 0.002, '/lidar/scan', SCAN.fill(stamp(t))))
    with BagWriter(path, 'mcap') as writer:
        for topic, kind in (('/imu/data_raw', IMU), ('/lidar/scan', SCAN), ('/pose/odom', ODOM)):
            writer.add_topic(topic, kind.type_name)
        for time_s, topic, raw in sorted(events, key=lambda event: event[0]):
            writer.write(topic, stamp(time_s), raw)
    return path


def errors_ms(out: Path) -> list[float]:
    """Return how wrong the offset of every bundle was."""
    with BagReader(out) as bag:
        raws = [raw for topic, _, raw, _ in bag.messages(['/sync/offset/pose'])]
    found = []
    for raw in raws:
        reference_ns, _, pose_ns, _ = read_time_reference(raw)
        found.append((pose_ns - reference_ns) / 1e6 - OFFSET_S * 1e3)
    return found


@pytest.fixture(scope='module')
def synced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp('twice')
    (folder / 'robot.yaml').write_text(RIG)
    source = record(folder / 'in')
    for name, more in (('twice', []), ('once', ['--causal'])):
        arguments = ['sync', str(source), str(folder / name), '--rig', str(folder / 'robot.yaml')]
        assert main([*arguments, *more]) == 0
    return {name: folder / name for name in ('twice', 'once')}


def test_only_the_second_look_knows_the_start(synced: dict[str, Path]) -> None:
    once, twice = (np.abs(errors_ms(synced[name])) for name in ('once', 'twice'))
    assert len(twice) > 130
    assert once[:10].max() > 20.0
    assert twice.max() < 1.5
    assert once[-1] < 2.0


def test_the_report_shows_filtered_and_smoothed(synced: dict[str, Path]) -> None:
    documents = {
        name: json.loads((out / 'report.json').read_text()) for name, out in synced.items()
    }
    assert documents['once']['causal'] and not documents['twice']['causal']
    assert not documents['once']['sensors']['pose']['filtered']
    filtered = np.array([row[1] for row in documents['twice']['sensors']['pose']['filtered']])
    smoothed = np.array([row[1] for row in documents['twice']['sensors']['pose']['offset']])
    assert abs(filtered[0] - 60.0) > 20.0
    assert np.abs(smoothed - 60.0).max() < 1.5
    assert 'class="filtered"' in (synced['twice'] / 'report.html').read_text()
    assert 'class="filtered"' not in (synced['once'] / 'report.html').read_text()
