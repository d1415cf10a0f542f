"""ROS 1 bags are read as recordings of ROS 2."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs.decode import read_imu, read_scan
from sensor_rig.bags.reader import BagReader
from sensor_rig.cli.main import main

S, MS = 10**9, 10**6
T0 = 1_600_000_000 * S


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Return a bag with an IMU, a scan, a latched text and a type that ROS 2 does not know."""
    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg('Header header\nfloat64 torque\n', 'mine/msg/Motor'))
    types: Any = store.types
    vector = types['geometry_msgs/msg/Vector3']
    path = tmp_path / 'old.bag'
    with Writer(path) as writer:
        kinds = {
            '/imu': 'sensor_msgs/msg/Imu',
            '/scan': 'sensor_msgs/msg/LaserScan',
            '/motor': 'mine/msg/Motor',
            '/name': 'std_msgs/msg/String',
        }
        connections = {
            topic: writer.add_connection(
                topic, kind, typestore=store, latching=1 if topic == '/name' else None
            )
            for topic, kind in kinds.items()
        }

        def write(topic: str, time_ns: int, message: Any) -> None:
            writer.write(connections[topic], time_ns, store.serialize_ros1(message, kinds[topic]))

        write('/name', T0, types['std_msgs/msg/String']('rover'))
        for k in range(20):
            stamp = types['builtin_interfaces/msg/Time'](*divmod(T0 + k * 10 * MS, S))
            header = types['std_msgs/msg/Header'](k, stamp, 'base')
            time_ns = T0 + k * 10 * MS + MS
            write(
                '/imu',
                time_ns,
                types['sensor_msgs/msg/Imu'](
                    header,
                    types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0),
                    np.zeros(9),
                    vector(0.1 * k, 0.0, 0.0),
                    np.zeros(9),
                    vector(0.0, 0.0, 9.8),
                    np.zeros(9),
                ),
            )
            write('/motor', time_ns, types['mine/msg/Motor'](header, 2.0 * k))
            if k % 10 == 0:
                write(
                    '/scan',
                    time_ns,
                    types['sensor_msgs/msg/LaserScan'](
                        header,
                        0.0,
                        1.0,
                        0.1,
                        0.0,
                        0.1,
                        0.1,
                        9.0,
                        np.arange(4, dtype=np.float32),
                        np.zeros(0, np.float32),
                    ),
                )
    return path


def test_messages_are_those_of_ros2(bag: Path) -> None:
    with BagReader(bag) as reader:
        assert {
            name: (each.stamped, each.latched, each.message_count)
            for name, each in reader.topics.items()
        } == {
            '/imu': (True, False, 20),
            '/motor': (True, False, 20),
            '/name': (False, True, 1),
            '/scan': (True, False, 2),
        }
        found: dict[str, list[bytes]] = {}
        for topic, _, raw, *_ in reader.messages():
            found.setdefault(topic, []).append(raw)
    assert [read_stamp_ns(raw) - T0 for raw in found['/imu']] == [k * 10 * MS for k in range(20)]
    assert read_imu(found['/imu'][3]) == (pytest.approx((0.3, 0.0, 0.0)), (0.0, 0.0, 9.8))
    assert read_scan(found['/scan'][1]).ranges.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert found['/name'][0][:12] == b'\0\1\0\0\6\0\0\0rove'


def test_it_is_degraded_into_a_recording_of_ros2(bag: Path, tmp_path: Path) -> None:
    rig = tmp_path / 'faults.yaml'
    rig.write_text(
        '/**: {ros__parameters: {streams: {all: {topics: [/imu, /motor], '
        'delay_range_s: [0.05, 0.05], clock: {offset_s: 0.5}}}}}'
    )
    arguments = [str(bag), str(tmp_path / 'out'), '--rig', str(rig), '--storage', 'mcap']
    assert main(['degrade', *arguments]) == 0
    with BagReader(tmp_path / 'out') as reader:
        assert reader.topics['/name'].latched
        assert reader.topics['/motor'].type_name == 'mine/msg/Motor'
        motor = list(reader.messages(['/motor']))
        torque = reader._recording.types.deserialize_cdr(motor[7].raw, 'mine/msg/Motor')
    assert torque.torque == 14.0
    assert (motor[7].receive_ns, read_stamp_ns(motor[7].raw)) == (
        T0 + 70 * MS + MS + 50 * MS,
        T0 + 70 * MS + 500 * MS,
    )


def test_what_is_no_bag_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / 'x.bag').write_bytes(b'#ROSBAG V2.0\nnothing')
    with pytest.raises(RigError, match=r'x\.bag is not a readable ROS 1 bag'):
        BagReader(tmp_path / 'x.bag')
