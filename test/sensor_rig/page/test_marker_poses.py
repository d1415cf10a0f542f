"""Poses are read from markers as rclpy writes them, whatever else a marker holds."""

from __future__ import annotations

import pytest

pytest.importorskip('rclpy', reason='the oracle is ROS')

from geometry_msgs.msg import Point
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray, UVCoordinate

from rig_common.cdr import CdrError
from rig_common.msgs.decode import read_marker_poses


def marker(number: int, points: int, text: str) -> Marker:
    made = Marker(id=number, ns='odd', text=text, type=Marker.TRIANGLE_LIST)
    made.header.frame_id = 'world'
    made.pose.position.x, made.pose.position.z = float(number), -2.5
    made.pose.orientation.w, made.pose.orientation.y = 0.8, 0.6
    made.points = [Point(x=1.0)] * points
    made.colors = [ColorRGBA(r=1.0)] * (points // 2)
    made.uv_coordinates = [UVCoordinate(u=1.0)] * (points % 2)
    made.mesh_resource = text
    made.texture.format = text
    made.texture.data = [1, 2, 3][:points]
    return made


def test_poses_of_all_markers() -> None:
    made = [
        marker(number, points, text)
        for number, points, text in [
            (3, 0, ''),
            (7, 1, 'a'),
            (8, 2, 'abc'),
            (9, 5, 'abcde'),
            (12, 0, 'abcdef'),
        ]
    ]
    raw = serialize_message(MarkerArray(markers=made))
    poses = read_marker_poses(raw)
    assert {number: pose.tolist() for number, pose in poses.items()} == {
        each.id: [float(each.id), 0.0, -2.5, 0.0, 0.6, 0.0, 0.8] for each in made
    }
    with pytest.raises(CdrError):
        read_marker_poses(raw[:-20])
    assert read_marker_poses(serialize_message(MarkerArray())) == {}
