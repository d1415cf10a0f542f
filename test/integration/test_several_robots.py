"""Two whole rigs in two namespaces of one domain, and in two domains: nothing collides."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.context import Context
from rclpy.node import Node
from support.ros_rigs import write_rig

from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.ros.types import is_installed, message_class
from sensor_rig.nodes.building import make_emulator, make_sync, make_world
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.domain import claim_domain
from sim_sensors.world.scene.pose_messages import TF_TYPE

pytestmark = pytest.mark.ros

ROBOT = """
<mujoco>
  <worldbody>
    <body name="trunk" pos="0 0 0.5"><freejoint/><geom size="0.2"/>
      <body name="arm"><joint name="elbow"/><geom size="0.1"/></body></body>
  </worldbody>
</mujoco>
"""
SENSORS = {
    'imu': {'type': 'imu', 'mount': {'body': 'arm'}, 'rate_hz': 100.0},
    'wheels': {
        'type': 'wheel_odometry',
        'mount': {'body': 'trunk'},
        'rate_hz': 20.0,
        'frame_id': 'base_link',
        'publish_tf': True,
    },
}
SYNC = {'reference_sensor_id': 'wheels', 'required_sensors': ['wheels'], 'imu_sensor_id': 'imu'}
SHARED = {'/diagnostics', '/tf', '/tf_static', '/rosout', '/parameter_events'}
"""Topics that nodes of all namespaces publish, as everywhere in ROS."""


REPORTS = (': imu', ': time', ': quality of service')
"""How six names end that each robot has: the last is of three nodes, the first of two."""


class Listener(Node):
    """Hears what the robots of a domain share, and their synced odometry."""

    def __init__(self, robots: list[str], **options: Any) -> None:
        super().__init__('listener', **options)
        self.statuses: dict[str, set[str]] = defaultdict(set)
        """Hardware ids by name of status."""
        self.frames: dict[str, set[str]] = defaultdict(set)
        """Parents by frame."""
        self.odometry: dict[str, set[tuple[str, str]]] = {each: set() for each in robots}
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_health, 100)
        for robot in robots:
            self.create_subscription(
                Odometry, f'{robot}/synced/wheels/odom', self._taker(self.odometry[robot]), 100
            )
        if is_installed(TF_TYPE):
            for topic, profile in (('/tf', 100), ('/tf_static', qos.latched(100))):
                self.create_subscription(message_class(TF_TYPE), topic, self._on_frames, profile)

    def _on_health(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.statuses[status.name].add(status.hardware_id)

    def _on_frames(self, message: Any) -> None:
        for each in message.transforms:
            self.frames[each.child_frame_id].add(each.header.frame_id)

    @staticmethod
    def _taker(into: set[tuple[str, str]]) -> Any:
        return lambda message: into.add((message.header.frame_id, message.child_frame_id))

    @property
    def topics(self) -> set[str]:
        return {name for name, _ in self.get_topic_names_and_types()}


class Fleet:
    """Several rigs in this process, each over DDS with itself alone."""

    def __init__(self) -> None:
        self.worlds: list[Any] = []
        self._nodes: list[Node] = []
        self._spinners: dict[Context, Spinner] = {}

    def add(self, context: Context, node: Any) -> Any:
        self._spinners.setdefault(context, Spinner(context)).add(node)
        self._nodes.append(node)
        return node

    def start(self, rig: RigConfig, context: Context, **options: Any) -> None:
        for make in (make_sync, make_emulator, make_world):
            node = self.add(context, make(rig, context=context, **options))
        self.worlds.append(node)

    def until(self, condition: Any, what: str) -> None:
        end_s = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < end_s, what
            for world in self.worlds:
                world.advance()
            for spinner in self._spinners.values():
                spinner.turn(0.002)

    def close(self) -> None:
        for spinner in self._spinners.values():
            spinner.close()
        for node in self._nodes:
            close_node(node)


@pytest.fixture
def fleet() -> Iterator[tuple[Fleet, Context, Context]]:
    with ExitStack() as stack:
        here, there = stack.enter_context(ros_context([])), Context()
        there.init(domain_id=claim_domain())
        stack.callback(there.try_shutdown)
        fleet = Fleet()
        stack.callback(fleet.close)
        yield fleet, here, there


@pytest.fixture
def rig(tmp_path: Path) -> RigConfig:
    return write_rig(tmp_path, SENSORS, model=ROBOT, sync=SYNC, base_frame='base_link')


def heard_all(fleet: Fleet, listener: Listener) -> None:
    fleet.until(
        lambda: (
            all(listener.odometry.values())
            and sum(name.endswith(REPORTS) for name in listener.statuses)
            >= 6 * len(listener.odometry)
            and (not is_installed(TF_TYPE) or len(listener.frames) >= 5 * len(listener.odometry))
        ),
        f'{listener.statuses} {listener.odometry} {listener.frames}',
    )
    assert all(len(parents) == 1 for parents in listener.frames.values()), listener.frames


def test_in_two_namespaces_of_one_domain(
    fleet: tuple[Fleet, Context, Context], rig: RigConfig
) -> None:
    robots, context, _ = fleet
    names = ['/robot1', '/robot2']
    listener = robots.add(context, Listener(names, context=context))
    own_clock = ['--ros-args', '-r', '/clock:=clock']
    for name in names:
        robots.start(rig, context, namespace=name, cli_args=own_clock)
    heard_all(robots, listener)
    for name in names:
        prefix = name.lstrip('/') + '/'
        assert listener.odometry[name] == {(f'{prefix}odom', f'{prefix}base_link')}
        if is_installed(TF_TYPE):
            tree = {child: parent for child, (parent,) in listener.frames.items()}
            chain = [prefix + frame for frame in ('arm', 'base_link', 'odom', 'map', 'world')]
            assert [tree[frame] for frame in chain[:-1]] == chain[1:]
    first, second = (
        {each for each in listener.statuses if each.startswith(f'robot{k}/')} for k in (1, 2)
    )
    assert first | second == listener.statuses.keys()
    assert {each.replace('robot1', 'robot2') for each in first} == second
    assert all(
        each.lstrip('/').startswith(name.partition('/')[0])
        for name, ids in listener.statuses.items()
        for each in ids
    ), listener.statuses
    strangers = {each for each in listener.topics if not each.startswith(('/robot1/', '/robot2/'))}
    assert strangers <= SHARED


def test_in_two_domains(fleet: tuple[Fleet, Context, Context], rig: RigConfig) -> None:
    robots, here, there = fleet
    listeners = [robots.add(each, Listener([''], context=each)) for each in (here, there)]
    for context in (here, there):
        robots.start(rig, context)
    for listener in listeners:
        heard_all(robots, listener)
        assert listener.odometry[''] == {('odom', 'base_link')}
        assert listener.count_publishers('/clock') == 1
        assert listener.count_publishers('/wheels/odom') == 1
    assert here.get_domain_id() == int(os.environ['ROS_DOMAIN_ID']) != there.get_domain_id()
