"""What drivers do wrong, against one running sync node: it goes on, counts it and says so.

The tests share the process and run in the order of the file; each leaves the robot healthy.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from support.faults import IMAGE, MS, SCAN, STREAMS, Robot, S, start_sync, write_sync_rig
from support.processes import Process, Processes

from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.ros.types import message_class

pytestmark = [pytest.mark.ros, pytest.mark.xdist_group('streams')]

CAMERA, LIDAR = 'camera/image_raw', 'lidar/scan'


class Run:
    """The robot and its sync node."""

    def __init__(self, robot: Robot, processes: Processes, rig) -> None:
        self.robot, self._processes, self._rig = robot, processes, rig
        self.sync: Process = start_sync(processes, rig)

    def start_again(self) -> None:
        self.sync = start_sync(self._processes, self._rig)


@pytest.fixture(scope='module')
def run(tmp_path_factory) -> Iterator[Run]:
    processes = Processes()
    with ros_context([]) as context:
        spinner = Spinner(context)
        robot = Robot(spinner)
        try:
            run = Run(robot, processes, write_sync_rig(tmp_path_factory.mktemp('robot')))
            robot.bundles(5, 'start of the sync node')
            yield run
            assert run.sync.exit_code is None, run.sync.output
            run.sync.interrupt()
            assert run.sync.wait() == 0
            assert 'Traceback' not in run.sync.output
            assert 'without an account' not in run.sync.output
        finally:
            processes.stop_all()
            spinner.close()
            close_node(robot)


@pytest.fixture
def robot(run: Run, request: pytest.FixtureRequest) -> Iterator[Robot]:
    """Return the healthy robot; afterwards bundles flow again and every message is accounted."""
    yield run.robot
    run.robot.faults.clear()
    title = request.node.name.removeprefix('test_').replace('_', ' ')
    run.robot.bundles(5, f'good messages again after "{title}"')
    run.robot.ledgers('lidar', 'camera')


def test_a_sensor_that_dies_and_comes_back(robot: Robot) -> None:
    robot.faults[CAMERA] = lambda stamp_ns: []
    robot.says('sync: camera', 'silent')
    robot.says('sync: engine', 'no data from camera')
    assert int(robot.statuses['sync: camera'].values['received']) > 0


def test_a_dead_reference_is_an_error_that_names_it(robot: Robot) -> None:
    robot.faults[LIDAR] = lambda stamp_ns: []
    robot.says('sync: engine', 'no data from lidar')


def test_a_sensor_that_stutters(robot: Robot) -> None:
    held: list[bytes] = []

    def stutter(stamp_ns: int) -> list[bytes]:
        held.append(IMAGE.fill(stamp_ns))
        if len(held) < 6:
            return []
        burst = held[:]
        held.clear()
        return burst

    robot.faults[CAMERA] = stutter
    robot.bundles(5, 'with a stuttering camera')


def test_a_flood_of_ten_times_the_rate_is_bounded(robot: Robot) -> None:
    before = robot.ledger('camera')['received']
    robot.faults[CAMERA] = lambda stamp_ns: [IMAGE.fill(stamp_ns + k * MS) for k in range(10)]
    robot.until(lambda: robot.ledger('camera')['received'] > before + 300, 'a flood')
    robot.bundles(3, 'in a flood')
    assert robot.ledger('camera')['buffered'] <= 1000


def test_zero_stamps_are_invalid(robot: Robot) -> None:
    before = robot.ledger('camera')['invalid']
    robot.faults[CAMERA] = lambda stamp_ns: [IMAGE.fill(0), IMAGE.fill(stamp_ns)]
    robot.bundles(3, 'between zero stamps')
    assert robot.ledger('camera')['invalid'] > before


def test_stamps_of_the_future_are_invalid_one_by_one(robot: Robot) -> None:
    before = robot.ledger('camera')['invalid']
    ahead = iter(range(1, 10**6))
    robot.faults[CAMERA] = lambda stamp_ns: [
        IMAGE.fill(stamp_ns + next(ahead) * 3600 * S),
        IMAGE.fill(stamp_ns),
    ]
    robot.bundles(3, 'between stamps of the future')
    assert robot.ledger('camera')['invalid'] > before


def test_decreasing_stamps_and_duplicates_have_a_name(robot: Robot) -> None:
    before = robot.ledger('camera')
    robot.faults[CAMERA] = lambda stamp_ns: [
        IMAGE.fill(stamp_ns - k * 10 * MS) for k in (0, 0, 1, 2)
    ]
    robot.bundles(3, 'with decreasing stamps')
    robot.until(lambda: robot.ledger('camera')['duplicate'] > before['duplicate'], 'duplicates')


TRUNCATED = [b'\0\1\0\0', SCAN.fill(5 * S)[:9], b'\xde\xad\xbe\xef' * 40, b'\0\7\0\0' + bytes(60)]
"""Empty, cut in its stamp, noise, an encoding that is not plain CDR."""


def test_truncated_bytes_are_invalid(robot: Robot) -> None:
    before = robot.ledger('lidar')['invalid']
    robot.faults[LIDAR] = lambda stamp_ns: [*TRUNCATED, SCAN.fill(stamp_ns)]
    robot.bundles(3, 'between truncated messages')
    assert robot.ledger('lidar')['invalid'] >= before + 3 * len(TRUNCATED)


def test_an_oversized_message_passes_as_bytes(robot: Robot) -> None:
    robot.faults[CAMERA] = lambda stamp_ns: [IMAGE.fill(stamp_ns) + bytes(200_000)]
    robot.bundles(3, 'with oversized messages')


def test_a_clock_that_goes_back_is_a_new_epoch(robot: Robot) -> None:
    def behind(period):
        return lambda stamp_ns: [STREAMS[period][0].fill(stamp_ns - 1000 * S)]

    robot.faults.update({topic: behind(topic) for topic in STREAMS})
    before = int(robot.statuses['sync: camera'].values['clock steps'])
    robot.bundles(5, 'after all stamps went back by 1000 s')
    robot.ledger('camera')
    assert (
        int(robot.statuses['sync: engine'].values['epoch']) > 0
        or int(robot.statuses['sync: camera'].values['clock steps']) > before
    )


def test_another_type_on_a_topic_is_said(robot: Robot) -> None:
    context = Context()  # one participant cannot give a topic two types
    rclpy.init(context=context)
    stranger = Node('stranger', context=context)
    stranger.create_publisher(message_class('std_msgs/msg/String'), CAMERA, 10)
    robot.says('sync: types', 'std_msgs/msg/String')
    robot.bundles(3, 'beside another type')
    stranger.destroy_node()
    rclpy.shutdown(context=context)


def test_an_endpoint_with_other_quality_of_service_is_said(robot: Robot) -> None:
    wants_more = robot.create_subscription(
        message_class(IMAGE.type_name),
        f'synced/{CAMERA}',
        lambda message: None,
        QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL),
    )
    robot.says('sync: quality of service', f'synced/{CAMERA}')
    robot.bundles(3, 'beside an incompatible subscriber')
    robot.destroy_subscription(wants_more)


def test_a_best_effort_driver_is_heard(robot: Robot) -> None:
    publisher = robot.create_publisher(
        message_class(IMAGE.type_name),
        CAMERA,
        QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT),
    )
    robot.says('sync: reliability', 'camera')
    robot.faults[CAMERA] = lambda stamp_ns: publisher.publish(IMAGE.fill(stamp_ns)) or []
    robot.bundles(3, 'from a best-effort driver')
    robot.destroy_publisher(publisher)


def test_a_subscriber_that_never_takes_anything_holds_nobody_up(robot: Robot) -> None:
    slow = Node('slow')  # no executor serves it
    for topic, (template, _) in STREAMS.items():
        slow.create_subscription(
            message_class(template.type_name),
            f'synced/{topic}',
            lambda message: None,
            qos.sensor_out(),
        )
    robot.bundles(20, 'beside a subscriber that sleeps')
    slow.destroy_node()


def test_a_process_stopped_for_five_seconds_goes_on(robot: Robot, run: Run) -> None:
    os.kill(run.sync.pid, signal.SIGSTOP)
    try:
        robot.for_a_while(5.0)
    finally:
        os.kill(run.sync.pid, signal.SIGCONT)
    robot.bundles(3, 'after SIGSTOP of the sync node for 5 s')


def test_a_killed_sync_node_is_replaced(robot: Robot, run: Run) -> None:
    run.sync.kill()
    run.start_again()
    robot.bundles(5, 'after kill -9 of the sync node, with its start')
