"""Bytes in, bytes out: the engine with serialised messages at both ends, without ROS."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rig_common import msgs
from rig_common.cdr import Reader, read_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs.decode import read_cloud
from sync_engine.config import load_config
from sync_engine.wire.session import WireSync

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000
SCAN = msgs.laser_scan(
    'lidar',
    4,
    angle_min_rad=0,
    angle_max_rad=1,
    angle_increment_rad=0.3,
    range_min_m=0,
    range_max_m=9,
)
IMAGE = msgs.image('cam', 2, 2, 'mono8')
IMU = msgs.imu('imu')


def config(**changes):
    values = {
        'inputs': {
            'lidar': {
                'topic': 'lidar/scan',
                'type': 'sensor_msgs/msg/LaserScan',
                'stamp_source': 'ptp',
            },
            'camera': {
                'topic': '/camera/image_raw',
                'type': 'sensor_msgs/msg/Image',
                'stamp_source': 'ptp',
            },
            'imu': {
                'topic': 'imu/data_raw',
                'type': 'sensor_msgs/msg/Imu',
                'stamp_source': 'ptp',
                'collect': True,
            },
        },
        'reference_sensor_id': 'lidar',
        'imu_sensor_id': 'imu',
        'required_sensors': ['lidar', 'camera'],
        'estimator': 'none',
    }
    values.update(changes)
    return load_config(values)


def run(sync, seconds=1.0, camera_late_ns=4 * MS):
    """Feed 10 Hz scans, 30 Hz images that are 4 ms off, a 100 Hz IMU; return bundle, outputs."""
    events = []
    for k in range(int(seconds * 100)):
        events.append(
            (k * 10 * MS, 'imu', IMU.fill(START_NS + k * 10 * MS, linear_acceleration=[0, 0, 9.8]))
        )
    for k in range(int(seconds * 30)):
        stamp = START_NS + k * 33 * MS + camera_late_ns
        image = IMAGE.fill(stamp, data=np.full((2, 2), k))
        events.append((stamp - START_NS, 'camera', image))
    for k in range(int(seconds * 10)):
        events.append((k * 100 * MS, 'lidar', SCAN.fill(START_NS + k * 100 * MS)))
    made = []
    for time_ns, name, raw in sorted(events, key=lambda event: event[:2]):
        for bundle in sync.push(name, raw, START_NS + time_ns + 5 * MS):
            made.append((bundle, list(sync.outputs(bundle))))
        sync.run_cues()
    return made


def by_topic(outputs):
    found = {}
    for output in outputs:
        found.setdefault(output.topic, []).append(output.raw)
    return found


def test_members_leave_with_one_stamp_and_their_bytes_untouched():
    made = run(WireSync(config()))
    assert len(made) >= 8
    for bundle, outputs in made:
        topics = by_topic(outputs)
        scan, image = topics['synced/lidar/scan'][0], topics['synced/camera/image_raw'][0]
        assert read_stamp_ns(scan) == read_stamp_ns(image) == bundle.stamp_ns
        assert image[12:] == bundle.members['camera'].payload[12:]


def test_the_imu_is_collected_with_its_own_stamps():
    made = run(WireSync(config()))
    collected = [
        read_stamp_ns(raw)
        for _, outputs in made
        for raw in by_topic(outputs)['synced/imu/data_raw']
    ]
    assert collected == sorted(set(collected))
    steps = set(np.diff(collected))
    assert steps == {10 * MS}


@pytest.mark.parametrize('policy', ['bundle', 'corrected', 'raw'])
def test_what_was_collected_is_there_under_the_bundles_stamp_too(policy):
    """So that an exact TimeSynchronizer over the members and the batch gets every bundle."""
    sync = WireSync(config(stamp_policy=policy))
    for bundle, outputs in run(sync):
        (raw,) = by_topic(outputs)['synced/imu/data_raw/batch']
        cloud = read_cloud(raw)
        assert cloud.stamp_ns == bundle.stamp_ns
        assert Reader(raw).header()[1] == 'imu'
        member = bundle.members['imu']
        expected_s = [(packet.stamp_ns - member.target_ns) / 1e9 for packet in member.collected]
        assert cloud.points['time'].tolist() == expected_s
        assert max(expected_s) <= 0.0
        assert set(cloud.points['linear_acceleration_z']) == {9.8}
        assert 'orientation_w' not in cloud.points.dtype.names  # this IMU has none
    assert sync.output_topics()['synced/imu/data_raw/batch'] == 'sensor_msgs/msg/PointCloud2'


def test_a_type_that_nobody_can_read_has_a_batch_of_times():
    given = config().model_dump()['inputs']
    given['imu'] |= {'type': 'sensor_msgs/msg/Joy'}
    made = run(WireSync(config(inputs=given, imu_sensor_id='')))
    cloud = read_cloud(by_topic(made[3][1])['synced/imu/data_raw/batch'][0])
    assert cloud.points.dtype.names == ('time',)
    assert len(cloud.points) == 10


@pytest.mark.parametrize('policy', ['corrected', 'raw'])
def test_other_stamp_policies_keep_each_members_own_time(policy):
    for bundle, outputs in run(WireSync(config(stamp_policy=policy))):
        image = by_topic(outputs)['synced/camera/image_raw'][0]
        member = bundle.members['camera']
        assert read_stamp_ns(image) == (
            member.stamp_ns if policy == 'raw' else member.corrected_timestamp_ns
        )


def test_the_facts_of_a_bundle_say_everything():
    bundle, outputs = run(WireSync(config()))[3]
    stamp_ns, (head, *members) = msgs.read_diagnostic_array(by_topic(outputs)['sync/bundle'][0])
    assert stamp_ns == bundle.stamp_ns
    assert (head.message, head.values['sequence'], head.values['reference']) == (
        'complete',
        str(bundle.sequence),
        'lidar',
    )
    camera = next(status for status in members if status.name == 'camera')
    assert camera.hardware_id == '/camera/image_raw'
    member = bundle.members['camera']
    assert float(camera.values['time_delta_ms']) == pytest.approx(member.time_delta_ns / 1e6)
    assert int(camera.values['corrected_timestamp_ns']) == member.corrected_timestamp_ns
    imu = next(status for status in members if status.name == 'imu')
    assert int(imu.values['collected']) == len(bundle.members['imu'].collected)


def test_offsets_pair_the_reference_clock_with_the_sensors():
    bundle, outputs = run(WireSync(config()))[3]
    stamp_ns, frame, time_ref_ns, source = msgs.read_time_reference(
        by_topic(outputs)['sync/offset/camera'][0]
    )
    assert (frame, source) == ('lidar', 'camera')
    assert stamp_ns == bundle.members['lidar'].stamp_ns
    assert time_ref_ns - stamp_ns == bundle.members['camera'].offset_ns


def test_what_nobody_wants_is_not_made():
    sync = WireSync(config())
    run(sync)
    bundle = next(iter(run(WireSync(config()))))[0]
    assert [o.topic for o in sync.outputs(bundle, lambda topic: topic == 'sync/bundle')] == [
        'sync/bundle'
    ]
    assert list(sync.outputs(bundle, lambda topic: False)) == []


def test_every_output_topic_is_announced_with_its_type():
    sync = WireSync(config())
    announced = sync.output_topics()
    for _, outputs in run(sync):
        for output in outputs:
            assert announced[output.topic] == output.type_name


def test_bytes_that_are_no_message_are_booked_as_invalid():
    sync = WireSync(config())
    for raw in (b'', b'\0\1', b'\7\7\7\7' + bytes(30), b'\0\1\0\0' + bytes(5)):
        assert sync.push('camera', raw, START_NS) == []
    sync.push('imu', IMU.fill(START_NS)[:40], START_NS)
    counts = sync.engine.ledger['camera'].as_dict()
    assert (counts['received'], counts['invalid']) == (4, 4)
    assert sync.engine.ledger['imu'].invalid == 1
    assert sync.engine.ledger.imbalance(sync.engine.buffered()) == {}


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(['lidar', 'camera', 'imu', 'poll']),
        st.integers(0, 60),
        st.integers(-30, 250),
    ),
    max_size=150,
)


@given(EVENTS)
@example([('imu', 2, 1)] * 90 + [('lidar', 3, 1), ('camera', 1, 1)])  # more than are kept
@example([('imu', 2, 1), ('lidar', 1, 1), ('camera', 60, 250), ('poll', 60, 0), ('poll', 60, 0)])
def test_messages_that_are_kept_for_a_while_give_the_same_bundles(events):
    """Each event is (input, ms after the one before, ms that its stamp is behind)."""
    at_once, later = WireSync(config()), WireSync(config())
    found = [], []
    some_later = False
    now_ns = START_NS + 1000 * MS
    for name, passed_ms, behind_ms in events:
        now_ns += passed_ms * MS
        if name == 'poll':
            made = at_once.poll(now_ns), later.poll(now_ns)
        else:
            raw = {'lidar': SCAN, 'camera': IMAGE, 'imu': IMU}[name].fill(now_ns - behind_ms * MS)
            made = at_once.push(name, raw, now_ns), later.offer(name, raw, now_ns)
        for bundles, kept, sync in zip(made, found, (at_once, later), strict=True):
            kept += [output.raw for bundle in bundles for output in sync.outputs(bundle)]
        some_later |= len(found[0]) != len(found[1])
    found[1].extend(output.raw for bundle in later.catch_up() for output in later.outputs(bundle))
    assert found[0] == found[1]
    assert at_once.engine.ledger.as_dict() == later.engine.ledger.as_dict()
    status = later.engine.status()
    assert at_once.engine.status() == status
    assert not some_later or any(
        each.clock_steps or each.resets for each in status.sensors.values()
    )


def test_a_type_without_header_goes_by_arrival_and_leaves_as_it_came():
    values = config().model_dump()
    values['inputs']['contact'] = {
        'topic': 'contact',
        'type': 'std_msgs/msg/Bool',
        'stamp_source': 'host',
    }
    sync = WireSync(load_config(values), headerless=['contact'])
    raw = msgs.bool_message(True)
    sent = 0
    for k in range(30):
        now = START_NS + k * 100 * MS
        for name, message in (
            ('contact', raw),
            ('camera', IMAGE.fill(now)),
            ('imu', IMU.fill(now)),
            ('lidar', SCAN.fill(now)),
        ):
            for bundle in sync.push(name, message, now + 1):
                for output in sync.outputs(bundle):
                    if output.topic == 'synced/contact':
                        assert output.raw == raw
                        sent += 1
    assert sent > 20


def test_a_cue_that_cannot_read_the_type_is_refused_with_a_sentence():
    values = config().model_dump()
    values['inputs']['camera']['cue'] = 'odometry'
    with pytest.raises(RigError, match=r"inputs.camera.cue is 'odometry', which reads"):
        WireSync(load_config(values))
