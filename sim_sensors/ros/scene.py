"""The scene for people: markers for RViz, and transforms where tf2_msgs is installed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from numpy.typing import NDArray
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, String
from visualization_msgs.msg import Marker, MarkerArray

from rig_common.ros import qos
from rig_common.ros.types import message_class
from rig_common.times import split_ns
from rig_common.topics import truth_topic
from sim_sensors.interface import AnySensor
from sim_sensors.ros.periodics import PeriodicTopic
from sim_sensors.world.scene.markers import Scene, Shape
from sim_sensors.world.scene.pose_messages import (
    DESCRIPTION_TOPIC,
    SCENE_RATE_HZ,
    TF_TYPE,
    FrameMessages,
    robot_description,
    schedule_of,
    world_frame,
)
from sim_sensors.world.world_base import WorldBase

MARKER_TYPES = {
    'plane': Marker.CUBE,
    'box': Marker.CUBE,
    'sphere': Marker.SPHERE,
    'ellipsoid': Marker.SPHERE,
    'cylinder': Marker.CYLINDER,
    'capsule': Marker.CYLINDER,
    'mesh': Marker.TRIANGLE_LIST,
}
MARKERS_TOPIC = 'world/markers'
THIN_M = 0.001
"""Thickness of a plane, m: RViz draws nothing that is flat."""


class Markers(PeriodicTopic):
    """`world/markers`: one marker per visible geom of environment 0.

    What cannot move is sent once and again when somebody new subscribes; the rest at a fixed rate
    while somebody does. What moves goes out beside the truth where that is hidden: it shows the
    pose.
    """

    def __init__(self, node: Node, world: WorldBase) -> None:
        super().__init__(schedule_of(SCENE_RATE_HZ, world))
        self._scene = Scene(world.model)
        self._frame = world_frame(world)
        self._moving = self._markers(self._scene.moving)
        self._publisher = node.create_publisher(MarkerArray, MARKERS_TOPIC, qos.latched())
        self._moving_publisher = (
            self._publisher
            if not world.config.hide_truth
            else node.create_publisher(
                MarkerArray, truth_topic('markers', hidden=True), qos.latched()
            )
        )
        self._readers = 0

    def show_newcomers(self, world: WorldBase) -> None:
        """Publish the scene if somebody new listens; for a world that stands still."""
        if self._publisher.get_subscription_count() > self._readers:
            self.publish(world)

    def publish(self, world: WorldBase) -> None:
        """Publish what somebody who listens does not have yet."""
        readers, data = self._publisher.get_subscription_count(), world.data(0)
        if readers > self._readers:
            static = self._markers(self._scene.static)
            _place(static, *self._scene.static_poses(data), world.stamp_ns)
            self._publisher.publish(MarkerArray(markers=static))
        self._readers = readers
        if self._moving and self._moving_publisher.get_subscription_count():
            _place(self._moving, *self._scene.moving_poses(data), world.stamp_ns)
            self._moving_publisher.publish(MarkerArray(markers=self._moving))

    def _markers(self, shapes: Sequence[Shape]) -> list[Marker]:
        return [_marker(self._frame, shape) for shape in shapes]


def _marker(frame_id: str, shape: Shape) -> Marker:
    """Return the marker of a shape, without its pose."""
    marker = Marker(ns='world', id=shape.geom, action=Marker.ADD, type=MARKER_TYPES[shape.kind])
    marker.header.frame_id = frame_id
    r, g, b, a = shape.rgba
    marker.color = ColorRGBA(r=r, g=g, b=b, a=a)
    x, y, z = shape.size_m
    if shape.vertices is not None and shape.faces is not None:
        corners = shape.vertices[shape.faces.ravel()].astype(float).tolist()
        marker.points = [Point(x=px, y=py, z=pz) for px, py, pz in corners]
        x = y = z = 1.0
    marker.scale.x, marker.scale.y, marker.scale.z = x, y, z or THIN_M
    return marker


def _place(
    markers: Sequence[Marker],
    positions: NDArray[np.float64],
    quats_wxyz: NDArray[np.float64],
    stamp_ns: int,
) -> None:
    """Give every marker its pose in the world and the time it belongs to."""
    sec, nanosec = split_ns(stamp_ns)
    stamp = Time(sec=sec, nanosec=nanosec)
    for marker, place, quat in zip(markers, positions.tolist(), quats_wxyz.tolist(), strict=True):
        marker.header.stamp = stamp
        position, turn = marker.pose.position, marker.pose.orientation
        position.x, position.y, position.z = place
        turn.w, turn.x, turn.y, turn.z = quat


class Transforms(PeriodicTopic):
    """/tf and /tf_static: the frames of bodies, of sensors, and those that poses are in."""

    def __init__(self, node: Node, world: WorldBase, sensors: Sequence[AnySensor]) -> None:
        """Raises RigError where tf2_msgs is not installed."""
        super().__init__(schedule_of(SCENE_RATE_HZ, world))
        message = message_class(TF_TYPE)
        self._frames = FrameMessages(world, sensors)
        for sentence in self._frames.tree.conflicts:
            node.get_logger().warning(sentence)
        self._publisher = node.create_publisher(message, '/tf', qos.sensor_out(SCENE_RATE_HZ))
        self._static = node.create_publisher(message, '/tf_static', qos.latched())
        self._static.publish(self._frames.static())
        self._begins = True

    def reset(self) -> None:
        """Begin a new episode."""
        super().reset()
        self._begins = True

    def publish(self, world: WorldBase) -> None:
        """Publish the frames that move, while somebody listens; at the start of an episode all."""
        if self._begins:
            self._begins = False
            self._frames.begin(world)
            self._static.publish(self._frames.static())
        if self._frames.can_move and self._publisher.get_subscription_count():
            self._publisher.publish(self._frames.moving(world))


def publish_description(node: Node, world: WorldBase) -> None:
    """Publish `robot_description`, once for all who come, where the model is a URDF."""
    text = robot_description(world)
    if text is not None:
        publisher = node.create_publisher(String, DESCRIPTION_TOPIC, qos.latched())
        publisher.publish(String(data=text))
