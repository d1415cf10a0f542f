"""The RViz view shows topics that exist, of the right type, with settings that connect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from rig_common.paths import share_dir
from rig_common.ros.executor import Spinner, ros_context
from sensor_rig.rigfile import load_rig
from sensor_rig.ros.one_process import OneProcess

TYPES = {
    'rviz_default_plugins/Image': 'sensor_msgs/msg/Image',
    'rviz_default_plugins/LaserScan': 'sensor_msgs/msg/LaserScan',
    'rviz_default_plugins/MarkerArray': 'visualization_msgs/msg/MarkerArray',
    'rviz_default_plugins/Odometry': 'nav_msgs/msg/Odometry',
    'rviz_default_plugins/PointCloud2': 'sensor_msgs/msg/PointCloud2',
}
VIEW = yaml.safe_load((share_dir() / 'config' / 'rviz' / 'rig.rviz').read_text())
DISPLAYS = [each for each in VIEW['Visualization Manager']['Displays'] if 'Topic' in each]


@pytest.fixture(scope='module')
def graph() -> Iterator[Node]:
    """Give a node of the demo rig, every other node of which is there."""
    with ros_context([]) as context:
        nodes = OneProcess(load_rig('demo'), Spinner(context))
        yield nodes.monitor
        nodes.close()


@pytest.mark.parametrize('display', [each for each in DISPLAYS if each['Enabled']],
                         ids=lambda display: display['Name'])
def test_a_display_connects(graph: Node, display: dict[str, Any]) -> None:
    topic = display['Topic']
    publishers = graph.get_publishers_info_by_topic(topic['Value'])
    assert [each.topic_type for each in publishers] == [TYPES[display['Class']]]
    profile = publishers[0].qos_profile
    if topic['Reliability Policy'] == 'Reliable':
        assert profile.reliability == ReliabilityPolicy.RELIABLE
    if topic['Durability Policy'] == 'Transient Local':
        assert profile.durability == DurabilityPolicy.TRANSIENT_LOCAL


def test_the_cloud_is_one_of_the_everything_rig() -> None:
    topics = {f'/{topic.of(name)}': topic.type_name
              for name, sensor in load_rig('everything').make_sensors().items()
              for topic in sensor.topics()}
    for display in DISPLAYS:
        if not display['Enabled']:
            assert topics[display['Topic']['Value']] == TYPES[display['Class']]


def test_raw_and_synced_are_both_shown() -> None:
    shown = {display['Topic']['Value'] for display in DISPLAYS}
    synced = {topic for topic in shown if topic.startswith('/synced/')}
    assert synced
    assert {topic.removeprefix('/synced') for topic in synced} <= shown


def test_the_fixed_frame_is_the_world() -> None:
    from sim_sensors.world.frames import WORLD_FRAME
    assert VIEW['Visualization Manager']['Global Options']['Fixed Frame'] == WORLD_FRAME
