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

from sensor_rig import msgs
from sensor_rig.errors import RigError
from sensor_rig.msgs import Transform
from sensor_rig.ros import qos
from sensor_rig.ros.types import message_class
from sensor_rig.times import split_ns
from sim_sensors.markers import Scene, Shape
from sim_sensors.mounts import frame_pose
from sim_sensors.ros.periodics import WORLD_FRAME, Periodic, xyzw
from sim_sensors.schedule import Schedule
from sim_sensors.sensors.base import Sensor
from sim_sensors.world import WorldBase

MARKER_TYPES = {'plane': Marker.CUBE, 'box': Marker.CUBE, 'sphere': Marker.SPHERE,
                'ellipsoid': Marker.SPHERE, 'cylinder': Marker.CYLINDER,
                'capsule': Marker.CYLINDER, 'mesh': Marker.TRIANGLE_LIST}
THIN_M = 0.001
"""Thickness of a plane, m: RViz draws nothing that is flat."""


class Markers(Periodic):
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
            _place(static, *self._scene.static_poses(data), world.time_ns)
            self._publisher.publish(MarkerArray(markers=static))
        self._readers = readers
        if readers and self._moving:
            _place(self._moving, *self._scene.moving_poses(data), world.time_ns)
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
           quats_wxyz: NDArray[np.float64], time_ns: int) -> None:
    """Give every marker its pose in the world and the time it belongs to."""
    sec, nanosec = split_ns(max(time_ns, 0))
    stamp = Time(sec=sec, nanosec=nanosec)
    for marker, place, quat in zip(markers, positions.tolist(), quats_wxyz.tolist(), strict=True):
        marker.header.stamp = stamp
        position, turn = marker.pose.position, marker.pose.orientation
        position.x, position.y, position.z = place
        turn.w, turn.x, turn.y, turn.z = quat


class Transforms(Periodic):
    """/tf and /tf_static: bodies in the world, sensors on their bodies.

    A frame has one parent (REP 105): with `hide_truth` the moving transforms stay away, so that a
    localisation under test can own them.
    """

    def __init__(self, node: Node, world: WorldBase, schedule: Schedule,
                 sensors: Iterable[Sensor[Any]], *, hidden: bool) -> None:
        """Raises RigError where tf2_msgs is not installed."""
        super().__init__(schedule)
        message = message_class('tf2_msgs/msg/TFMessage')
        model = world.model
        self._names = [model.body(b).name for b in range(model.nbody)]
        self._bodies = [] if hidden else [
            b for b in range(1, model.nbody) if self._names[b] and model.body_parentid[b] == 0
            and model.body_weldid[b] != 0]
        self._publisher = node.create_publisher(message, '/tf', qos.sensor_out())
        self._static = node.create_publisher(message, '/tf_static', qos.latched())
        self._static.publish(msgs.tf_message(self._mounts(world, sensors)))

    def _mounts(self, world: WorldBase, sensors: Iterable[Sensor[Any]]) -> list[Transform]:
        model = world.model
        found = []
        for sensor in sensors:
            pose = frame_pose(model, sensor)
            if pose is not None and pose.body:
                found.append(Transform(0, self._names[pose.body], sensor.frame_id, pose.pos_m,
                                       xyzw(np.array(pose.quat_wxyz)).tolist()))
        return found

    def publish(self, world: WorldBase) -> None:
        """Publish the pose of every top-level body."""
        if not self._bodies or not self._publisher.get_subscription_count():
            return
        data = world.data(0)
        self._publisher.publish(msgs.tf_message(
            Transform(world.time_ns, WORLD_FRAME, self._names[b], data.xpos[b].tolist(),
                      xyzw(data.xquat[b]).tolist()) for b in self._bodies))


def transforms_available() -> bool:
    """Whether tf2_msgs is installed."""
    try:
        message_class('tf2_msgs/msg/TFMessage')
    except RigError:
        return False
    return True
