"""Serialised messages in the engine's hands: interpolated and restamped without ROS."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common import msgs
from rig_common.msgs import decode
from sync_engine.matching.interpolate import CannotInterpolate, interpolate
from sync_engine.wire.codecs import CODECS, codec_of

HALF_TURN_Z = [0.0, 0.0, np.sin(np.pi / 4), np.cos(np.pi / 4)]

TEMPLATES = {
    'sensor_msgs/msg/Imu': msgs.imu('imu', orientation=True),
    'sensor_msgs/msg/MagneticField': msgs.magnetic_field('imu'),
    'sensor_msgs/msg/FluidPressure': msgs.fluid_pressure('b'),
    'sensor_msgs/msg/Temperature': msgs.temperature('b'),
    'sensor_msgs/msg/NavSatFix': msgs.nav_sat_fix('gnss'),
    'sensor_msgs/msg/JointState': msgs.joint_state(['l', 'r'], effort=True),
    'sensor_msgs/msg/Range': msgs.range_reading(
        's', radiation_type=0, field_of_view_rad=1, min_range_m=0, max_range_m=9
    ),
    'geometry_msgs/msg/TwistStamped': msgs.twist_stamped('b'),
    'geometry_msgs/msg/WrenchStamped': msgs.wrench_stamped('b'),
    'geometry_msgs/msg/Vector3Stamped': msgs.vector3_stamped('b'),
    'geometry_msgs/msg/PointStamped': msgs.point_stamped('b'),
    'geometry_msgs/msg/PoseStamped': msgs.pose_stamped('b'),
    'nav_msgs/msg/Odometry': msgs.odometry('odom', 'base'),
}
KEPT = {'orientation', 'status', 'variance', 'position_covariance_type'}


@pytest.mark.parametrize('type_name', TEMPLATES)
def test_every_field_but_the_kept_ones_lies_in_the_middle(type_name):
    template = TEMPLATES[type_name]
    moving = {
        name: block
        for name, block in template.blocks.items()
        if name not in KEPT and not name.endswith('covariance')
    }
    first = {name: np.full(block.shape, 1.0) for name, block in moving.items()}
    second = {name: np.full(block.shape, 2.0) for name, block in moving.items()}
    codec = codec_of(type_name)
    middle = interpolate(codec, template.fill(0, **first), template.fill(4, **second), 0.25)
    _, blocks = template.read(middle)
    for name in moving:
        np.testing.assert_allclose(blocks[name], 1.25)


def test_an_orientation_turns_and_covariances_stay():
    template = TEMPLATES['nav_msgs/msg/Odometry']
    first = template.fill(0, pose_covariance=np.full(36, 3.0))
    second = template.fill(9, orientation=HALF_TURN_Z, pose_covariance=np.full(36, 5.0))
    _, blocks = template.read(interpolate(codec_of(template.type_name), first, second, 0.5))
    np.testing.assert_allclose(blocks['orientation'], [0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)])
    assert set(blocks['pose_covariance']) == {5.0}


def test_an_imu_without_orientation_is_interpolated_all_the_same():
    template = msgs.imu('imu')
    zeros = {'orientation': np.zeros(4)}
    middle = interpolate(
        codec_of(template.type_name),
        template.fill(0, **zeros),
        template.fill(1, **zeros, angular_velocity=[2, 4, 6]),
        0.5,
    )
    assert decode.read_imu(middle)[0] == (1, 2, 3)
    _, blocks = template.read(middle)
    assert not blocks['orientation'].any()


def test_longitudes_go_the_short_way():
    template = TEMPLATES['sensor_msgs/msg/NavSatFix']
    middle = interpolate(
        codec_of(template.type_name),
        template.fill(0, position=[10, 179, 0]),
        template.fill(0, position=[10, -179.5, 0]),
        0.5,
    )
    np.testing.assert_allclose(template.read(middle)[1]['position'], [10, 179.75, 0])


@pytest.mark.parametrize(
    ('first', 'second'),
    [
        (msgs.joint_state(['a', 'b']).fill(0), msgs.joint_state(['b', 'a']).fill(0)),
        (msgs.joint_state(['a']).fill(0), msgs.joint_state(['a', 'b']).fill(0)),
        (msgs.joint_state(['a']).fill(0), msgs.joint_state(['a']).fill(0)[:-9]),
        (msgs.joint_state(['a']).fill(0), msgs.joint_state(['a']).fill(0, position=[np.nan])),
    ],
)
def test_messages_that_do_not_fit_have_no_middle(first, second):
    with pytest.raises(CannotInterpolate):
        interpolate(CODECS['sensor_msgs/msg/JointState'], first, second, 0.5)


def test_a_fix_and_no_fix_have_no_middle():
    template = TEMPLATES['sensor_msgs/msg/NavSatFix']
    with pytest.raises(CannotInterpolate, match='status'):
        interpolate(
            codec_of(template.type_name),
            template.fill(0, status=0),
            template.fill(0, status=-1),
            0.5,
        )


def test_what_cannot_be_interpolated_has_no_codec():
    assert codec_of('sensor_msgs/msg/Image') is None
