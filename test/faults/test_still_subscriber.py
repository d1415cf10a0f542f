"""A reliable subscriber that stands still for a while, beside images that fill shared memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.node import Node
from support.processes import Processes

from rig_common import msgs
from rig_common.ros import qos
from rig_common.ros.executor import ros_context
from rig_common.ros.types import message_class

pytestmark = pytest.mark.ros

IMU_HZ, STILL_S, IMAGES = 400.0, 0.34, 10
SUBSCRIBER = """
from rclpy.node import Node
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, ros_context
from rig_common.ros.types import message_class

with ros_context([]):
    node, heard = Node('still'), []
    node.create_subscription(message_class('sensor_msgs/msg/Image'), 'image', lambda raw: None,
                             qos.sensor_in(30.0, reliable=True), raw=True)
    node.create_subscription(message_class('sensor_msgs/msg/Imu'), 'imu', heard.append,
                             qos.sensor_in(1000.0, reliable=True), raw=True)
    spinner = Spinner()
    spinner.add(node)
    spinner.run(lambda: print(f'heard {len(heard)}.', flush=True))
"""


def test_a_reliable_subscriber_misses_nothing_of_a_fast_stream(
    processes: Processes, wait_until: Callable[..., None]
) -> None:
    image, imu = msgs.image('camera', 480, 640, 'rgb8'), msgs.imu('imu')
    still = processes.python('-c', SUBSCRIBER)
    with ros_context([]):
        node = Node('sensors')
        images = node.create_publisher(
            message_class(image.type_name), 'image', qos.sensor_out(30.0)
        )
        samples = node.create_publisher(
            message_class(imu.type_name), 'imu', qos.sensor_out(IMU_HZ)
        )
        wait_until(
            lambda: images.get_subscription_count() and samples.get_subscription_count(),
            what='the subscriber',
        )
        samples.publish(imu.fill(1))
        still.wait_for_output('heard 1.')
        os.kill(still.pid, signal.SIGSTOP)
        sent = round(STILL_S * IMU_HZ)
        for k in range(sent):
            if k % (sent // IMAGES) == 0:
                images.publish(image.fill(k))
            samples.publish(imu.fill(k + 2))
        os.kill(still.pid, signal.SIGCONT)
        still.wait_for_output(f'heard {sent + 1}.')
        node.destroy_node()
