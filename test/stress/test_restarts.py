"""Nodes that are restarted after many messages: Fast DDS counts to 5000 in a reader."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Int32
from support.ros_rigs import write_rig
from support.waiting import wait_until

from rig_common.ros.executor import Spinner, ros_context
from sensor_rig.running.ros.one_process import OneProcess

pytestmark = pytest.mark.ros

COUNTS = (4_990, 5_010, 9_990, 10_010)
"""Messages on a stream before a restart: on both sides of the limit, and of twice the limit."""
RATE_HZ = 500.0
QUIET_S = 0.3
"""Long enough for the writer to say what it sent before; a message that comes earlier gets through
in any case, and so do those after it."""


@pytest.mark.parametrize('count', COUNTS)
def test_a_late_reader_in_one_process_hears_the_next_message(count: int) -> None:
    with ros_context([]) as context:
        spinner, heard = Spinner(context), []
        early, late = Node('early'), Node('late')
        writer = early.create_publisher(Int32, 'numbers', QoSProfile(depth=10))
        for number in range(count):
            writer.publish(Int32(data=number))
        reader = late.create_subscription(Int32, 'numbers', heard.append, QoSProfile(depth=10))
        spinner.add(late)
        wait_until(lambda: writer.get_subscription_count() and reader.get_publisher_count())
        try:
            spinner.turn(QUIET_S)
            writer.publish(Int32(data=-1))
            wait_until(lambda: spinner.turn() or heard, 10.0, 'the message after the reader came')
        finally:
            spinner.close()
            early.destroy_node()
            late.destroy_node()


@pytest.mark.parametrize('restart', ['restart_sync', 'restart_emulator', 'restart_world'])
def test_a_node_restarted_after_thousands_of_messages_takes_part_again(
    restart: str, tmp_path: Path
) -> None:
    rig = write_rig(
        tmp_path,
        {
            'imu': {
                'type': 'imu',
                'mount': {'body': 'plate'},
                'rate_hz': RATE_HZ,
                'truth_rate_hz': RATE_HZ,
                'delay_range_s': [0.002, 0.002],
            }
        },
        timestep_s=0.002,
        lockstep_timeout_s=20.0,
        clock_rate_hz=1.0,
        sync={'reference_sensor_id': 'imu', 'required_sensors': ['imu']},
    )
    with ros_context([]) as context:
        nodes = OneProcess(rig, Spinner(context))
        try:
            end_s = 0.0
            for before, count in pairwise((0, *COUNTS)):
                # A new world begins at time 0 again; for the others time goes on.
                end_s = (count - before) / RATE_HZ + (end_s if restart != 'restart_world' else 0)
                _drive(nodes, partial(_has_reached, nodes, end_s))
                getattr(nodes, restart)()
                nodes.spinner.turn(QUIET_S)
                _drive(nodes, partial(_has_bundles, nodes, nodes.sync.engine.bundles_made))
        finally:
            nodes.close()


def _has_reached(nodes: OneProcess, end_s: float) -> bool:
    return nodes.world.world.time_ns >= end_s * 1e9


def _has_bundles(nodes: OneProcess, before: int) -> bool:
    return nodes.sync.engine.bundles_made >= before + 5


def _drive(nodes: OneProcess, done: Callable[[], bool]) -> None:
    """Run until `done`; a node that hears nothing ends this with an error of lockstep."""
    while not done():
        nodes.spinner.wait(min(nodes.world.advance(), 0.01))
