"""Recordings: what is written is read back, by us and by independent readers."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import yaml
from rosbags.highlevel import AnyReader

from rig_common import msgs
from rig_common.errors import RigError
from sensor_rig.bags.connections import offered
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import STORAGES, BagWriter

IMU = msgs.imu('imu_link')
CUSTOM = (
    'std_msgs/Header header\nuint8 mode\n'
    '================================================================================\n'
    'MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n'
    '================================================================================\n'
    'MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n'
)
PROFILE = (
    '- history: 1\n  depth: 7\n  reliability: 2\n  durability: 2\n  deadline:\n    sec: 0\n'
    '    nsec: 0\n  lifespan:\n    sec: 0\n    nsec: 0\n  liveliness: 1\n'
    '  liveliness_lease_duration:\n    sec: 0\n    nsec: 0\n'
    '  avoid_ros_namespace_conventions: false\n'
)


def write_imu(path, storage='mcap', count=50, compress=False):
    with BagWriter(path, storage, compress=compress) as writer:
        writer.add_topic('/imu/data_raw', 'sensor_msgs/msg/Imu')
        writer.add_topic('/contact', 'std_msgs/msg/Bool')
        for index in range(count):
            writer.write(
                '/imu/data_raw',
                index * 10**7 + 5,
                IMU.fill(index * 10**7, angular_velocity=[index, 0, 0]),
            )
        writer.write('/contact', 3, msgs.bool_message(True))
    return path


@pytest.mark.parametrize('compress', [False, True])
@pytest.mark.parametrize('storage', STORAGES)
def test_what_is_written_is_read_back_in_order(tmp_path, storage, compress):
    path = write_imu(tmp_path / 'bag', storage, compress=compress)
    with BagReader(path) as bag:
        assert bag.message_count == 51
        assert {
            name: (topic.type_name, topic.message_count, topic.stamped)
            for name, topic in bag.topics.items()
        } == {
            '/contact': ('std_msgs/msg/Bool', 1, False),
            '/imu/data_raw': ('sensor_msgs/msg/Imu', 50, True),
        }
        messages = list(bag.messages())
        assert [m.receive_ns for m in messages] == sorted(m.receive_ns for m in messages)
        assert messages[0].topic == '/contact'
        only = list(bag.messages(['/imu/data_raw']))
        assert [m.raw for m in only] == [
            IMU.fill(k * 10**7, angular_velocity=[k, 0, 0]) for k in range(50)
        ]
        assert bag.find('imu/data_raw') is bag.topics['/imu/data_raw']


def test_rosbags_decodes_what_we_wrote(tmp_path):
    with AnyReader([write_imu(tmp_path / 'bag')]) as reader:
        connection = next(c for c in reader.connections if c.topic == '/imu/data_raw')
        *_, (_, _, raw) = reader.messages([connection])
        assert reader.deserialize(raw, connection.msgtype).angular_velocity.x == 49.0


def test_the_metadata_is_what_ros2_bag_reads(tmp_path):
    path = write_imu(tmp_path / 'bag', 'sqlite3')
    info = yaml.safe_load((path / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
    assert info['storage_identifier'] == 'sqlite3'
    assert info['message_count'] == 51
    assert info['relative_file_paths'] == ['bag.db3']
    topic = info['topics_with_message_count'][0]['topic_metadata']
    assert topic['serialization_format'] == 'cdr'
    assert topic['type_description_hash'].startswith('RIHS01_')
    rows = sqlite3.connect(path / 'bag.db3').execute(
        'SELECT name, COUNT(*) FROM messages JOIN topics ON topic_id = topics.id GROUP BY name'
    )
    assert dict(rows) == {'/contact': 1, '/imu/data_raw': 50}


def test_type_hashes_are_those_of_the_installed_messages(tmp_path):
    """`ros2 bag` compares them with its own; the packages of ROS bring theirs as JSON."""
    sensor_msgs = pytest.importorskip('sensor_msgs', reason='ROS messages are not installed')
    share = Path(sensor_msgs.__file__).parents[4] / 'share'
    if not (share / 'sensor_msgs/msg/Imu.json').exists():
        pytest.skip('the installed messages bring no hashes')
    types = (
        'sensor_msgs/msg/Imu', 'sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/LaserScan',
        'sensor_msgs/msg/Image', 'sensor_msgs/msg/CameraInfo', 'sensor_msgs/msg/NavSatFix',
        'sensor_msgs/msg/TimeReference', 'nav_msgs/msg/Odometry', 'tf2_msgs/msg/TFMessage',
        'diagnostic_msgs/msg/DiagnosticArray', 'std_msgs/msg/String',
    )  # fmt: skip
    with BagWriter(tmp_path / 'bag') as writer:
        for index, name in enumerate(types):
            writer.add_topic(f'/topic_{index}', name)
    metadata = yaml.safe_load((tmp_path / 'bag/metadata.yaml').read_text())
    compared = 0
    for each in metadata['rosbag2_bagfile_information']['topics_with_message_count']:
        about = each['topic_metadata']
        told = share / f'{about["type"]}.json'
        if told.exists():
            known = {e['type_name']: e['hash_string'] for e in json.loads(told.read_text())[
                'type_hashes']}  # fmt: skip
            assert about['type_description_hash'] == known[about['type']]
            compared += 1
    assert compared >= 8


def test_an_independent_mcap_reader_agrees(tmp_path):
    make_reader = pytest.importorskip('mcap.reader', reason='mcap is not installed').make_reader
    path = write_imu(tmp_path / 'bag')
    with (path / 'bag.mcap').open('rb') as file:
        found = [
            (channel.topic, schema.name, message.log_time, message.data)
            for schema, channel, message in make_reader(file).iter_messages()
        ]
    assert len(found) == 51
    assert found[0] == ('/contact', 'std_msgs/msg/Bool', 3, msgs.bool_message(True))


@pytest.mark.parametrize('storage', STORAGES)
def test_what_late_joiners_ask_for_is_offered_to_them(tmp_path, storage):
    """tf2 listens to /tf_static with transient local, and hears nothing that offers less."""
    with BagWriter(tmp_path / 'bag', storage) as writer:
        for topic in ('/tf_static', '/robot/tf_static', '/tf'):
            writer.add_topic(topic, 'tf2_msgs/msg/TFMessage')
        writer.add_topic('/robot_description', 'std_msgs/msg/String')
        writer.add_topic(
            '/map', 'nav_msgs/msg/OccupancyGrid', qos=[offered(latched=True, best_effort=True)]
        )
    with BagReader(tmp_path / 'bag') as bag, BagWriter(tmp_path / 'copy', storage) as writer:
        for topic in bag.topics.values():
            writer.add_topic_like(topic)
    for path in (tmp_path / 'bag', tmp_path / 'copy'):
        with BagReader(path) as bag:
            latched = {name for name, topic in bag.topics.items() if topic.latched}
            assert latched == {'/tf_static', '/robot/tf_static', '/robot_description', '/map'}
            assert [name for name, topic in bag.topics.items() if topic.best_effort] == ['/map']


def test_a_copy_keeps_the_profiles_to_the_last_field(tmp_path):
    path = write_imu(tmp_path / 'bag')
    metadata = path / 'metadata.yaml'
    values = yaml.safe_load(metadata.read_text())
    for each in values['rosbag2_bagfile_information']['topics_with_message_count']:
        each['topic_metadata']['offered_qos_profiles'] = PROFILE
    metadata.write_text(yaml.safe_dump(values))
    with BagReader(path) as bag, BagWriter(tmp_path / 'copy') as writer:
        for topic in bag.topics.values():
            writer.add_topic_like(topic)
        before = bag.topics['/imu/data_raw']
    with BagReader(tmp_path / 'copy') as bag:
        assert bag.topics['/imu/data_raw'].qos == before.qos
        assert bag.topics['/imu/data_raw'].definition == before.definition


def test_a_type_of_the_users_own_is_carried_on(tmp_path):
    digest = 'RIHS01_' + '0' * 64
    with BagWriter(tmp_path / 'own') as writer:
        with pytest.raises(RigError, match='no definition is known'):
            writer.add_topic('/mode', 'my_msgs/msg/Mode')
        writer.add_topic('/mode', 'my_msgs/msg/Mode', definition=(CUSTOM, digest))
        writer.write('/mode', 7, msgs.imu('').fill(5)[:21])
    with BagReader(tmp_path / 'own') as bag:  # a hash that does not fit is as it was recorded
        topic = bag.topics['/mode']
        assert topic.stamped
        assert topic.definition == (CUSTOM, digest)
        assert len(list(bag.messages())) == 1


@pytest.mark.parametrize('storage', STORAGES)
def test_profiles_in_the_metadata_need_not_be_those_of_the_storage(tmp_path, storage):
    """People edit them so that a bag can be played; tools that index a bag anew write others."""
    path = write_imu(tmp_path / 'bag', storage)
    metadata = path / 'metadata.yaml'
    values = yaml.safe_load(metadata.read_text())
    for each in values['rosbag2_bagfile_information']['topics_with_message_count']:
        each['topic_metadata']['offered_qos_profiles'] = PROFILE
    metadata.write_text(yaml.safe_dump(values))
    with BagReader(path) as bag:
        assert bag.topics['/imu/data_raw'].best_effort
        assert len(list(bag.messages())) == 51
        assert not bag.problems


@pytest.mark.parametrize('storage', STORAGES)
def test_a_type_that_makes_no_sense_is_unknown_and_the_rest_is_read(tmp_path, storage):
    """Service events are recorded with the text of their .srv file."""
    service = 'bool data\n---\nbool success\nstring message\n'
    with BagWriter(tmp_path / 'bag', storage) as writer:
        writer.add_topic('/imu', 'sensor_msgs/msg/Imu')
        writer.add_topic(
            '/reset/_service_event',
            'std_srvs/srv/SetBool_Event',
            definition=(service, 'RIHS01_' + '1' * 64),
        )
        for index in range(10):
            writer.write('/imu', index, IMU.fill(index))
            writer.write('/reset/_service_event', index, msgs.bool_message(True))
    with BagReader(tmp_path / 'bag') as bag:
        assert {name: topic.stamped for name, topic in bag.topics.items()} == {
            '/imu': True,
            '/reset/_service_event': False,
        }
        assert bag.topics['/reset/_service_event'].definition is not None
        assert len(list(bag.messages())) == 20
        assert not bag.problems


def test_mistakes_are_one_sentence(tmp_path):
    path = write_imu(tmp_path / 'bag')
    with pytest.raises(RigError, match='exists already'):
        BagWriter(path)
    with pytest.raises(RigError, match='no recording'):
        BagReader(tmp_path / 'nothing')
    (tmp_path / 'old.bag').write_bytes(b'#ROSBAG V2.0\n')
    with pytest.raises(RigError, match='not a readable ROS 1 bag'):
        BagReader(tmp_path / 'old.bag')
    (tmp_path / 'broken.mcap').write_bytes(b'not mcap at all, not even a little')
    with pytest.raises(RigError, match='not a readable') as caught:
        BagReader(tmp_path / 'broken.mcap')
    assert '\n' not in str(caught.value)
    (tmp_path / 'folder').mkdir()
    with pytest.raises(RigError, match=r'there is no metadata\.yaml in it') as caught:
        BagReader(tmp_path / 'folder')
    assert str(caught.value).count(str(tmp_path)) == 1
    (tmp_path / 'folder' / 'drive_0.mcap').touch()
    (tmp_path / 'folder' / 'other.mcap').touch()
    with pytest.raises(RigError, match=r'give one of its files instead, such as drive_0\.mcap'):
        BagReader(tmp_path / 'folder')


@pytest.mark.parametrize('storage', STORAGES)
def test_an_empty_recording(tmp_path, storage):
    with BagWriter(tmp_path / 'empty', storage) as writer:
        writer.add_topic('/imu', 'sensor_msgs/msg/Imu')
    with BagReader(tmp_path / 'empty') as bag:
        assert bag.message_count == 0
        assert bag.duration_s == 0
        assert list(bag.messages()) == []


def test_reading_keeps_the_memory_flat(tmp_path):
    """Ten times the messages, the same peak: only a chunk is held at a time."""
    import tracemalloc

    image = msgs.image('cam', 100, 100, 'rgb8')
    pixels = np.zeros((100, 100, 3), np.uint8)
    peaks = []
    for count in (100, 1000):
        with BagWriter(tmp_path / f'{count}') as writer:
            writer.add_topic('/cam', image.type_name)
            for index in range(count):
                writer.write('/cam', index, image.fill(index, data=pixels))
        with BagReader(tmp_path / f'{count}') as bag:
            tracemalloc.start()
            for _ in bag.messages():
                pass
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] + 2_000_000
