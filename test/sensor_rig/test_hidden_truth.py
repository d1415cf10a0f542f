"""With `hide_truth`, no topic that a system under test would find lets it cheat."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.ros_client import Client
from support.ros_rigs import LockstepRun, write_rig

from rig_common.ros import qos
from sensor_rig.bags.recorder import topics_of
from sensor_rig.cli.main import main
from sensor_rig.inprocess import InProcessRig
from sensor_rig.nodes.building import make_sync

SENSORS: dict[str, Any] = {
    'imu': {
        'type': 'imu',
        'mount': {'body': 'rover'},
        'rate_hz': 100.0,
        'delay_range_s': [0.003, 0.003],
        'clock': {'offset_s': 0.3},
    },
    'wheels': {'type': 'wheel_odometry', 'rate_hz': 20.0, 'delay_range_s': [0.005, 0.005]},
}
SYNC = {'reference_sensor_id': 'wheels', 'required_sensors': ['wheels'], 'imu_sensor_id': 'imu'}

HARMLESS = {
    r'imu/data_raw|wheels/odom': 'what the sensors measure',
    r'synced/.*|sync/.*': 'what the sync node makes of that',
    r'rosout|clock|parameter_events': 'of ROS itself; emulators say their parameters elsewhere',
    r'diagnostics': 'health; looked into below',
    r'world/settled': 'lockstep: simulated time, and counts of messages that were sent',
    r'world/markers': 'what cannot move; looked into below',
    r'tf|tf_static': 'frames of sensors on their bodies; looked into below',
    r'cmd_vel|joint_commands|joint_trajectory|pose_commands/.*': 'commands, given from outside',
}
"""Every topic that may be seen, and why it does not tell the truth."""


def run_of(folder: Path, **world: Any) -> LockstepRun:
    rig = write_rig(
        folder, SENSORS, sync=SYNC, driver='figure_eight', model=str(world.pop('model')), **world
    )
    return LockstepRun(rig, extra=[Client, lambda: make_sync(rig)], wait_for=['sync'])


def seen_by(client: Client) -> set[str]:
    """Return the topics that ROS tools list."""
    return {
        topic.lstrip('/')
        for topic, _ in client.get_topic_names_and_types()
        if not re.search(r'(\A|/)_', topic)
    }


@pytest.fixture
def yard() -> str:
    from rig_common.paths import find_shared

    file = find_shared('worlds', 'rover_yard.xml')
    assert file is not None
    return file.read_text()


def test_every_topic_that_is_seen_is_harmless(tmp_path: Path, yard: str) -> None:
    with run_of(tmp_path, model=yard, hide_truth=True) as run:
        client = run.extra[0]
        assert isinstance(client, Client)
        from diagnostic_msgs.msg import DiagnosticArray
        from rcl_interfaces.msg import ParameterEvent
        from visualization_msgs.msg import MarkerArray

        markers = client.listen(MarkerArray, 'world/markers', qos.latched(10))
        hidden_markers = client.listen(MarkerArray, '_truth/markers', qos.latched(10))
        health = client.listen(DiagnosticArray, '/diagnostics')
        figures = client.listen(DiagnosticArray, '_truth/diagnostics')
        events = client.listen(ParameterEvent, '/parameter_events')
        run.run(0.3)
        topics = seen_by(client)
        unknown = {
            topic for topic in topics if not any(re.fullmatch(known, topic) for known in HARMLESS)
        }
        assert not unknown, f'would these let a system under test cheat? {sorted(unknown)}'
        assert {'imu/data_raw', 'sync/bundle', 'world/markers'} <= topics
        run.until(
            lambda: (
                any('emulator_0: imu' in [s.name for s in each.status] for each in figures)
                and any('emulator_0: imu' in [s.name for s in each.status] for each in health)
                and bool(markers)
                and bool(hidden_markers)
            )
        )
        assert not {
            s.name
            for each in health
            for s in each.status
            if s.name.startswith('emulator_0: ') and s.values and 'latency' in str(s.values)
        }
        moving = {marker.id for each in hidden_markers for marker in each.markers}
        assert moving
        assert not moving & {marker.id for each in markers for marker in each.markers}
        assert not [each for each in events if 'emulator' in each.node]


def test_without_hide_truth_they_are_seen(tmp_path: Path, yard: str) -> None:
    """The test above would notice: the same rig shows what it must not."""
    with run_of(tmp_path, model=yard) as run:
        run.run(0.1)
        topics = seen_by(run.extra[0])  # type: ignore[arg-type]
        unknown = {
            topic for topic in topics if not any(re.fullmatch(known, topic) for known in HARMLESS)
        }
        assert {'truth/imu', 'truth/odom', 'truth/time/imu'} <= unknown
        assert not {'world/_tick', 'world/_ack'} & topics, 'ROS tools list the machinery'


def test_a_recording_holds_no_truth(tmp_path: Path, yard: str) -> None:
    rig = write_rig(tmp_path, SENSORS, sync=SYNC, model=yard, hide_truth=True)
    names = topics_of(InProcessRig(rig))
    assert not [name for name in names if 'truth' in name or name == 'tf']
    assert {'tf_static', 'imu/data_raw', 'sync/bundle'} <= set(names)
    assert main(['record', str(tmp_path / 'bag'), '--rig', str(rig.path), '--seconds', '0.2']) == 0


def test_the_summary_still_knows(tmp_path: Path, yard: str) -> None:
    from sensor_rig.running.ros.one_process import run_in_one_process

    rig = write_rig(tmp_path, SENSORS, sync=SYNC, model=yard, hide_truth=True)
    summary = run_in_one_process(rig, 1.0)
    assert summary.sensors['imu'].latency_p50_ms == pytest.approx(3.0, abs=0.01)
    assert summary.inputs['imu'].true_offset_ms == pytest.approx(300.0, abs=1.0)
