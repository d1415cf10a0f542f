"""The RViz view of every rig shows topics that exist, of the right type, with what connects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from rig_common.msgs.catalogue import CATALOGUE, known
from rig_common.msgs.decode import read_transforms
from rig_common.paths import shared_names
from rig_common.ros.executor import Spinner, ros_context
from sensor_rig.cli.main import main
from sensor_rig.rigfile import load_rig
from sensor_rig.running.ros.one_process import OneProcess
from sensor_rig.view.rviz_config import PLUGINS, view
from sim_sensors.world.scene.frames import WORLD_FRAME
from sim_sensors.world.scene.pose_messages import FrameMessages
from sim_sensors.world.world import make_world

RIGS = list(shared_names('config', '.yaml'))
QUICK = ('demo', 'everything')
STANDING = ('arm', 'hand')
"""Rigs whose base, or a sensor beside it, is fixed to the world."""
ROBOT = """
/**:
  ros__parameters:
    sync:
      reference_sensor_id: lidar
      required_sensors: [lidar, laser]
      inputs:
        lidar: {topic: /velodyne_points, type: sensor_msgs/msg/PointCloud2}
        laser: {topic: scan, type: sensor_msgs/msg/LaserScan}
"""
TYPES = {f'{PLUGINS}/{row.rviz}': row.name for row in CATALOGUE.values() if row.rviz} | {
    f'{PLUGINS}/MarkerArray': 'visualization_msgs/msg/MarkerArray',
    f'{PLUGINS}/RobotModel': 'std_msgs/msg/String',
}

_COMMON = {'Class', 'Name', 'Enabled', 'Value'}
_TOPIC = {'Topic', 'Depth', 'History Policy', 'Reliability Policy', 'Durability Policy'}
_CLOUD = {
    'Style',
    'Size (m)',
    'Alpha',
    'Decay Time',
    'Position Transformer',
    'Color Transformer',
    'Color',
}
_ARROW = {
    'Shape',
    'Color',
    'Alpha',
    'Head Length',
    'Head Radius',
    'Shaft Length',
    'Shaft Radius',
    'Axes Length',
    'Axes Radius',
}
PROPERTIES = {
    'Grid': {'Alpha', 'Cell Size', 'Plane Cell Count', 'Color', 'Reference Frame'},
    'TF': {
        'Frame Timeout',
        'Marker Scale',
        'Show Arrows',
        'Show Axes',
        'Show Names',
        'Update Interval',
        'Frames',
        'All Enabled',
    },
    'MarkerArray': {'Namespaces'} | _TOPIC,
    'RobotModel': {
        'Alpha',
        'Visual Enabled',
        'Collision Enabled',
        'Description Source',
        'Update Interval',
        'TF Prefix',
        'Description Topic',
    }
    | _TOPIC - {'Topic'},
    'LaserScan': _CLOUD | _TOPIC,
    'PointCloud2': _CLOUD | _TOPIC,
    'Temperature': _CLOUD | _TOPIC,
    'FluidPressure': _CLOUD | _TOPIC,
    'Image': {'Normalize Range', 'Min Value', 'Max Value', 'Median window'} | _TOPIC,
    'Range': {'Color', 'Alpha', 'Buffer Length'} | _TOPIC,
    'Wrench': {
        'Force Color',
        'Torque Color',
        'Force Arrow Scale',
        'Torque Arrow Scale',
        'Arrow Width',
        'Alpha',
        'History Length',
        'Accept NaN Values',
    }
    | _TOPIC,
    'TwistStamped': {
        'Linear Color',
        'Angular Color',
        'Linear Arrow Scale',
        'Angular Arrow Scale',
        'Arrow Width',
        'Alpha',
        'History Length',
    }
    | _TOPIC,
    'Pose': _ARROW | _TOPIC,
    'PointStamped': {'Color', 'Alpha', 'Radius', 'History Length'} | _TOPIC,
    'Odometry': _ARROW | _TOPIC | {'Keep', 'Angle Tolerance', 'Position Tolerance', 'Covariance'},
}
"""Names in the sources of rviz_default_plugins and rviz_common 14.3.1, by class of display."""


def displays_of(name: str, **world: Any) -> list[dict[str, Any]]:
    rig = load_rig(name)
    found: list[dict[str, Any]] = view(rig.with_world(**world) if world else rig)[
        'Visualization Manager'
    ]['Displays']
    return found


def keys_of(tree: dict[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        yield key
        if isinstance(value, dict):
            yield from keys_of(value)


@pytest.mark.parametrize('name', RIGS)
def test_rviz_knows_every_class_and_property(name: str) -> None:
    for display in displays_of(name):
        plugin, _, kind = display['Class'].partition('/')
        assert plugin == PLUGINS
        assert set(keys_of(display)) <= PROPERTIES[kind] | _COMMON, display['Name']


@pytest.mark.parametrize('name', RIGS)
def test_every_sensor_that_rviz_can_show_is_shown(name: str) -> None:
    rig = load_rig(name)
    shown = {
        display['Topic']['Value']: display for display in displays_of(name) if 'Topic' in display
    }
    for sensor, made in rig.make_sensors().items():
        for topic in made.topics():
            if known(topic.type_name).rviz:
                assert shown[f'/{topic.of(sensor)}']['Enabled']
    if rig.runs_sync and rig.sync is not None:
        for given in rig.sync.inputs.values():
            if given.member and known(given.type).rviz:
                raw, synced = shown[f'/{given.topic}'], shown[f'/synced/{given.topic}']
                assert 'Color' not in raw or raw['Color'] != synced['Color']
    assert shown['/truth/odom']['Enabled']
    assert view(rig)['Visualization Manager']['Global Options']['Fixed Frame'] == WORLD_FRAME


def test_hidden_truth_is_not_shown() -> None:
    topics = [
        display['Topic']['Value']
        for display in displays_of('demo', hide_truth=True)
        if 'Topic' in display
    ]
    assert not [topic for topic in topics if 'truth' in topic]


@pytest.mark.parametrize('name', RIGS)
def test_with_hidden_truth_the_fixed_frame_is_the_root_of_tf_static(name: str) -> None:
    rig = load_rig(name).with_world(hide_truth=True)
    sensors = list(rig.make_sensors().values())
    world = make_world(rig.simulated_world, sensors, rig.path.parent)
    placed = read_transforms(FrameMessages(world, sensors).static())
    frame = view(rig)['Visualization Manager']['Global Options']['Fixed Frame']
    if any(each.origin() is not None and each.origin().places_base for each in sensors):
        assert frame == 'odom'
        return
    assert frame in {each.frame_id for each in placed} - {each.child_frame_id for each in placed}
    assert (frame == WORLD_FRAME) == (name in STANDING)


def test_an_absolute_input_stays_where_it_is_in_a_namespace(tmp_path: Path) -> None:
    file = tmp_path / 'robot.yaml'
    file.write_text(ROBOT)
    displays = view(load_rig(file), 'r1')['Visualization Manager']['Displays']
    topics = {each['Topic']['Value'] for each in displays if 'Topic' in each}
    assert topics == {
        '/velodyne_points',
        '/r1/synced/velodyne_points',
        '/r1/scan',
        '/r1/synced/scan',
    }


@pytest.mark.parametrize(
    'name',
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in RIGS],
)
def test_displays_connect(name: str) -> None:
    rig = load_rig(name).with_world(skip_unavailable=True)
    with ros_context([]) as context:
        nodes = OneProcess(rig, Spinner(context))
        try:
            there = set(nodes.emulator.channels) & {c.sensor.name for c in nodes.world.channels}
            for display in displays_of(name):
                topic = display.get('Topic') or display.get('Description Topic')
                if topic is None:
                    continue
                path = topic['Value'].removeprefix('/').removeprefix('synced/').split('/')
                if path[0] == 'truth' and path[1] != 'odom' and path[1] not in there:
                    continue  # no renderer here
                publishers = nodes.monitor.get_publishers_info_by_topic(topic['Value'])
                assert [each.topic_type for each in publishers] == [TYPES[display['Class']]], topic
                profile = publishers[0].qos_profile
                if topic['Reliability Policy'] == 'Reliable':
                    assert profile.reliability == ReliabilityPolicy.RELIABLE
                if topic['Durability Policy'] == 'Transient Local':
                    assert profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
        finally:
            nodes.close()


def test_the_command_writes_a_view_in_a_namespace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'demo.rviz'
    assert main(['rviz', 'demo', '--namespace', 'robot_1', '--output', str(file)]) == 0
    said = capsys.readouterr()
    assert 'no display for camera/camera_info, gnss/fix, imu/data_raw' in said.err
    displays = yaml.safe_load(file.read_text())['Visualization Manager']['Displays']
    topics = [each['Topic']['Value'] for each in displays if 'Topic' in each]
    assert '/robot_1/synced/front_lidar/scan' in topics
    assert all(topic.startswith('/robot_1/') for topic in topics)
    assert main(['rviz', 'demo', '--output', str(tmp_path / 'no' / 'x.rviz')]) == 2
