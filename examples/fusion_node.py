"""A fusion node fed by bundles: where the nearest obstacle is, in the odometry's frame.

It knows nothing of sensor_rig: the members of a bundle carry one identical stamp, so equal stamps
are all it has to look for (message_filters.TimeSynchronizer does the same where it is installed).

    ./rig run demo &
    ./rig python examples/fusion_node.py
"""

from __future__ import annotations

import math
from contextlib import suppress

import rclpy
from nav_msgs.msg import Odometry
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from sensor_msgs.msg import LaserScan


class Fusion(Node):
    """Puts each scan where the wheels say the robot was at that moment."""

    def __init__(self) -> None:
        """Listen to two members of the bundle."""
        super().__init__('fusion')
        self._waiting: dict[tuple[int, int], LaserScan | Odometry] = {}
        self.create_subscription(LaserScan, 'synced/front_lidar/scan', self._take, 10)
        self.create_subscription(Odometry, 'synced/wheels/odom', self._take, 10)

    def _take(self, message: LaserScan | Odometry) -> None:
        stamp = (message.header.stamp.sec, message.header.stamp.nanosec)
        other = self._waiting.pop(stamp, None)
        if other is None:
            self._waiting = {stamp: message}  # bundles come in order: older halves stay halves
        elif isinstance(message, LaserScan):
            self._fuse(message, other)
        else:
            self._fuse(other, message)

    def _fuse(self, scan: LaserScan, odometry: Odometry) -> None:
        reach, ray = min((r, i) for i, r in enumerate(scan.ranges) if scan.range_min < r)
        pose = odometry.pose.pose
        yaw = 2.0 * math.atan2(pose.orientation.z, pose.orientation.w)
        angle = yaw + scan.angle_min + ray * scan.angle_increment
        self.get_logger().info(
            f'nearest obstacle, {reach:.2f} m away, is at '
            f'({pose.position.x + reach * math.cos(angle):.2f}, '
            f'{pose.position.y + reach * math.sin(angle):.2f})'
        )


def main() -> None:
    """Run until Ctrl-C."""
    rclpy.init()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(Fusion())


if __name__ == '__main__':
    main()
