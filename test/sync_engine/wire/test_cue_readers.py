"""The arrays that the cues want, read out of serialised messages."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common import msgs
from rig_common.cdr import CdrError, Writer
from rig_common.errors import RigError
from rig_common.msgs.decode import read_camera_info
from sync_engine.config import load_config
from sync_engine.cues.image_lens import CameraLens
from sync_engine.wire.cue_readers import Lenses, lens_of, reader_of, readers_of, types_of
from sync_engine.wire.session import WireSync


def test_a_scan():
    template = msgs.laser_scan(
        'l',
        3,
        angle_min_rad=-1,
        angle_max_rad=1,
        angle_increment_rad=1,
        range_min_m=0.5,
        range_max_m=9,
        time_increment_s=0.25,
    )
    values = reader_of('scan', template.type_name)(template.fill(1, ranges=[1, 2, 3]))
    np.testing.assert_array_equal(values['ranges'], [1, 2, 3])
    assert (
        values['angle_min'],
        values['angle_increment'],
        values['time_increment'],
        values['range_min'],
        values['range_max'],
    ) == (-1, 1, 0.25, 0.5, 9)


@pytest.mark.parametrize(
    ('kind', 'times'),
    [('<f4', [0, 0.05]), ('<u4', [0, 50_000_000]), ('<f8', [1.7e9, 1.7e9 + 0.05])],
)
def test_a_cloud_with_times_of_any_kind(kind, times):
    points = np.zeros(2, [('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('time', kind)])
    points['y'], points['time'] = [3, 4], times
    raw = msgs.point_cloud2_message(1_700_000_000_000_000_000, 'l', points)
    values = reader_of('cloud', 'sensor_msgs/msg/PointCloud2')(raw)
    np.testing.assert_array_equal(values['points'], [[0, 3, 0], [0, 4, 0]])
    np.testing.assert_allclose(values['times'], [0, 0.05], atol=1e-6)


def test_a_cloud_without_places_is_refused():
    """Found by tools/fuzz."""
    raw = msgs.point_cloud2_message(5, 'l', np.zeros(2, [('a', '<f4')]))
    with pytest.raises(CdrError, match='without x, y and z'):
        reader_of('cloud', 'sensor_msgs/msg/PointCloud2')(raw)


@pytest.mark.parametrize(
    ('encoding', 'gray'), [('mono8', 200), ('rgb8', 200), ('bgra8', 200), ('mono16', 200)]
)
def test_an_image_becomes_gray(encoding, gray):
    template = msgs.image('c', 2, 3, encoding)
    raw = template.fill(0, data=np.full(template.blocks['data'].shape, 200))
    values = reader_of('image', template.type_name)(raw)
    assert values['gray'].shape == (2, 3)
    assert (values['gray'] == gray).all()


def test_rates_and_orientations():
    odom = msgs.odometry('o', 'b').fill(0, orientation=[0, 0, 1, 0])
    np.testing.assert_array_equal(
        reader_of('odometry', 'nav_msgs/msg/Odometry')(odom)['orientation'], [0, 0, 1, 0]
    )
    pose = msgs.pose_stamped('map').fill(0, orientation=[0, 1, 0, 0])
    np.testing.assert_array_equal(
        reader_of('odometry', 'geometry_msgs/msg/PoseStamped')(pose)['orientation'], [0, 1, 0, 0]
    )
    for raw, type_name in (
        (msgs.imu('i').fill(0, angular_velocity=[1, 2, 3]), 'sensor_msgs/msg/Imu'),
        (msgs.twist_stamped('b').fill(0, angular=[1, 2, 3]), 'geometry_msgs/msg/TwistStamped'),
    ):
        np.testing.assert_array_equal(
            reader_of('rate', type_name)(raw)['angular_velocity'], [1, 2, 3]
        )
    assert 'nav_msgs/msg/Odometry' not in types_of('rate')  # a mean over its period, not a rate


def test_the_focal_length_comes_from_the_camera_info_beside_the_image():
    config = load_config(
        {
            'inputs': {
                'cam': {'topic': 'c/image', 'type': 'sensor_msgs/msg/Image', 'cue': 'image'},
                'info': {
                    'topic': 'c/camera_info',
                    'type': 'sensor_msgs/msg/CameraInfo',
                    'clock_of': 'cam',
                },
            },
            'reference_sensor_id': 'cam',
        }
    )
    lenses = Lenses(config)
    read = readers_of(config, lenses)['cam']
    raw = msgs.image('c', 2, 2, 'mono8').fill(5)
    assert read(raw) == {}  # the lens may still come
    k = [[50, 0, 1], [0, 60, 0.5], [0, 0, 1]]
    info = msgs.camera_info('c', 2, 2, k, d=[0.1, 0, 0, 0], distortion_model='equidistant')
    lenses.offer('info', info.fill(5))
    assert read(raw)['lens'] == CameraLens((50, 60), (1, 0.5), 2, 'equidistant', (0.1, 0, 0, 0))
    WireSync(config).push('info', b'\0\1\0\0' + bytes(10), 1)  # too short to be read: no matter


def test_a_camera_does_not_wait_for_ever_for_its_lens():
    config = load_config(
        {
            'inputs': {
                'cam': {'topic': 'i', 'type': 'sensor_msgs/msg/Image', 'cue': 'image'},
                'info': {'topic': 'c', 'type': 'sensor_msgs/msg/CameraInfo', 'clock_of': 'cam'},
            },
            'reference_sensor_id': 'cam',
        }
    )
    lenses = Lenses(config)
    read = readers_of(config, lenses)['cam']
    lenses.offer('info', msgs.camera_info('c', 2, 2, np.zeros((3, 3))).fill(5))  # not calibrated
    shown = [read(msgs.image('c', 2, 2, 'mono8').fill(5)) for _ in range(9)]
    assert shown[:8] == [{}] * 8
    assert set(shown[8]) == {'gray', 'mosaic'}


def test_binning_and_a_region_move_the_lens():
    k = [[400, 0, 320], [0, 400, 240], [0, 0, 1]]
    raw = bytearray(msgs.camera_info('c', 480, 640, k).fill(5))
    raw[-28:-4] = np.array([2, 2, 100, 40, 0, 0], '<u4').tobytes()  # binning, region
    lens = lens_of(read_camera_info(bytes(raw)))
    assert lens == CameraLens((200, 200), (109.75, 99.75), 0)


TF = {
    'type': 'tf2_msgs/msg/TFMessage',
    'cue': 'odometry',
    'member': False,
    'frame_id': 'map',
    'child_frame_id': 'base',
}


def tf_config(**changes):
    inputs = {'imu': {'type': 'sensor_msgs/msg/Imu'}, 'pose': TF | changes}
    return load_config({'inputs': inputs, 'reference_sensor_id': 'imu', 'imu_sensor_id': 'imu'})


def test_of_tf_the_transform_that_is_named_is_read_and_stamped():
    sync = WireSync(tf_config(), headerless=['pose'])
    turned = (0.0, 0.0, 0.6, 0.8)
    wanted = msgs.Transform(7_000_000_000, 'map', '/base', (1, 2, 3), turned)
    other = msgs.Transform(9_000_000_000, 'base', 'arm', (1, 2, 3), (0, 0, 0, 1))
    both, none = msgs.tf_message([other, wanted]), msgs.tf_message([other])
    assert sync.stamp_ns('pose', both) == 7_000_000_000
    assert sync.stamp_ns('pose', none) is None
    read = readers_of(sync.config, Lenses(sync.config))['pose']
    assert read(both)['orientation'] == pytest.approx(turned)
    sync.push('pose', both, 7_010_000_000)
    sync.push('pose', none, 7_020_000_000)
    counts = sync.engine.ledger['pose']
    assert (counts.received, counts.invalid) == (1, 0)  # a message about other frames is not ours


@pytest.mark.parametrize(
    ('changes', 'says'),
    [({'child_frame_id': ''}, 'must say which one is meant'), ({'member': True}, 'member: false')],
)
def test_an_input_of_tf_says_what_it_lacks(changes, says):
    with pytest.raises(RigError, match=says):
        tf_config(**changes)


def test_a_transform_topic_and_a_pose_with_covariance_are_cues():
    for type_name in (
        'geometry_msgs/msg/TransformStamped',
        'geometry_msgs/msg/PoseStamped',
        'geometry_msgs/msg/PoseWithCovarianceStamped',
    ):
        config = tf_config(type=type_name, member=True)
        assert set(readers_of(config, Lenses(config))) == {'pose'}
    config = tf_config(type='geometry_msgs/msg/TransformStamped', child_frame_id='', frame_id='')
    read = readers_of(config, Lenses(config))['pose']
    writer = Writer()
    writer.header(5, 'map')
    writer.string('base')
    writer.array([1.0, 2.0, 3.0, 0.0, 0.6, 0.0, 0.8], 'f8')
    assert read(writer.finish())['orientation'] == pytest.approx([0.0, 0.6, 0.0, 0.8])


def test_cue_axes_that_a_scan_does_not_have_are_refused():
    with pytest.raises(RigError, match="cue_axes 'size' does not go with cue 'scan'"):
        tf_config(type='sensor_msgs/msg/LaserScan', cue='scan', cue_axes='size')
