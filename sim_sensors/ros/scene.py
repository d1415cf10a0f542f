"""The scene for people: markers for RViz, and transforms where tf2_msgs is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from rig_common import msgs
from rig_common.errors import RigError
from rig_common.msgs import Transform
from rig_common.ros import qos
from rig_common.ros.types import message_class
from rig_common.times import split_ns
from sim_sensors.ros.periodics import PeriodicTopic, xyzw
from sim_sensors.sensors.base import Sensor
from sim_sensors.timekeeping.schedule import Schedule
from sim_sensors.world.frames import WORLD_FRAME, FrameTree, PlacedFrame
from sim_sensors.world.markers import Scene, Shape
from sim_sensors.world.world import WorldBase

MARKER_TYPES = {'plane': Marker.CUBE, 'box': Marker.CUBE, 'sphere': Marker.SPHERE,
                'ellipsoid': Marker.SPHERE, 'cylinder': Marker.CYLINDER,
                'capsule': Marker.CYLINDER, 'mesh': Marker.TRIANGLE_LIST}
THIN_M = 0.001
"""Thickness of a plane, m: RViz draws nothing that is flat."""


class Markers(PeriodicTopic):
    """`world/markers`: one marker per visible geom of environment 0.

    What cannot move is sent once and again when somebody new subscribes; the rest at a fixed rate
    while somebody does.
    """

    def __init__(self, node: Node, world: WorldBase, schedule: Schedule) -> None:
        super().__init__(schedule)
        self._scene = Scene(world.model)
        self._moving = [_marker(shape) for shape in self._scene.moving]
        self._publisher = node.create_publisher(MarkerArray, 'world/markers', qos.latched())
        self._readers = 0

    def publish(self, world: WorldBase) -> None:
        """Publish what somebody who listens does not have yet."""
        readers, data = self._publisher.get_subscription_count(), world.data(0)
        if readers > self._readers:
            static = [_marker(shape) for shape in self._scene.static]
            _place(static, *self._scene.static_poses(data), world.stamp_ns)
            self._publisher.publish(MarkerArray(markers=static))
        self._readers = readers
        if readers and self._moving:
            _place(self._moving, *self._scene.moving_poses(data), world.stamp_ns)
            self._publisher.publish(MarkerArray(markers=self._moving))


def _marker(shape: Shape) -> Marker:
    """Return the marker of a shape, without its pose."""
    marker = Marker(ns='world', id=shape.geom, action=Marker.ADD, type=MARKER_TYPES[shape.kind])
    marker.header.frame_id = WORLD_FRAME
    r, g, b, a = shape.rgba
    marker.color = ColorRGBA(r=r, g=g, b=b, a=a)
    x, y, z = shape.size_m
    if shape.vertices is not None and shape.faces is not None:
        corners = shape.vertices[shape.faces.ravel()].astype(float).tolist()
        marker.points = [Point(x=px, y=py, z=pz) for px, py, pz in corners]
        x = y = z = 1.0
    marker.scale.x, marker.scale.y, marker.scale.z = x, y, z or THIN_M
    return marker


def _place(markers: Sequence[Marker], positions: NDArray[np.float64],
           quats_wxyz: NDArray[np.float64], stamp_ns: int) -> None:
    """Give every marker its pose in the world and the time it belongs to."""
    sec, nanosec = split_ns(stamp_ns)
    stamp = Time(sec=sec, nanosec=nanosec)
    for marker, place, quat in zip(markers, positions.tolist(), quats_wxyz.tolist(), strict=True):
        marker.header.stamp = stamp
        position, turn = marker.pose.position, marker.pose.orientation
        position.x, position.y, position.z = place
        turn.w, turn.x, turn.y, turn.z = quat


class Transforms(PeriodicTopic):
    """/tf and /tf_static: the frames of bodies, of sensors on them, and those that poses are in.

    A frame has one parent (REP 105): with `hide_truth` what moves and the origins of poses stay
    away, so that a localisation under test can own them.
    """

    def __init__(self, node: Node, world: WorldBase, schedule: Schedule,
                 sensors: Iterable[Sensor[Any]], *, hidden: bool) -> None:
        """Raises RigError where tf2_msgs is not installed."""
        super().__init__(schedule)
        message = message_class('tf2_msgs/msg/TFMessage')
        self._hidden = hidden
        self._tree = FrameTree(world.model, sensors)
        for sentence in self._tree.conflicts:
            node.get_logger().warning(sentence)
        self._begun = False
        self._publisher = node.create_publisher(message, '/tf', qos.sensor_out())
        self._static = node.create_publisher(message, '/tf_static', qos.latched())
        self._static.publish(_tf_message(world.time_base.stamp_ns(0),
                                         self._tree.fixed(hidden=hidden)))

    def reset(self) -> None:
        """Begin a new episode: odometry counts from its start."""
        super().reset()
        self._begun = False

    def publish(self, world: WorldBase) -> None:
        """Publish the frames that move, while somebody listens."""
        data = world.data(0)
        if not self._begun:
            self._tree.begin(data)
            self._begun = True
        if not self._hidden and self._publisher.get_subscription_count():
            placed = self._tree.moving(data)
            if placed:
                self._publisher.publish(_tf_message(world.stamp_ns, placed))


def _tf_message(stamp_ns: int, placed: Iterable[PlacedFrame]) -> bytes:
    return msgs.tf_message(
        Transform(stamp_ns, each.parent, each.child, each.pos_m,
                  xyzw(np.array(each.quat_wxyz)).tolist()) for each in placed)


def transforms_available() -> bool:
    """Whether tf2_msgs is installed."""
    try:
        message_class('tf2_msgs/msg/TFMessage')
    except RigError:
        return False
    return True
