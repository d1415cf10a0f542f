"""`rig sync`: a recording in, a synced recording and a report out."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import STORAGES, BagWriter
from sensor_rig.cli.main import main

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000
RIG = """/**:
  ros__parameters:
    sync:
      inputs:
        lidar: {topic: lidar/scan, type: sensor_msgs/msg/LaserScan, stamp_source: ptp}
        camera: {topic: /camera/image_raw, type: sensor_msgs/msg/Image, stamp_source: ptp}
        imu: {topic: imu/data_raw, type: sensor_msgs/msg/Imu, stamp_source: ptp, collect: true}
      reference_sensor_id: lidar
      required_sensors: [lidar, camera]
      imu_sensor_id: imu
"""
SCAN = msgs.laser_scan(
    'lidar',
    8,
    angle_min_rad=0,
    angle_max_rad=1,
    angle_increment_rad=0.1,
    range_min_m=0,
    range_max_m=9,
)
IMAGE = msgs.image('cam', 4, 4, 'mono8')
IMU = msgs.imu('imu')


def record(path, storage='mcap', seconds=4.0):
    """Write a lidar, a camera 4 ms off, an IMU, and a topic that is no input."""
    events = [
        (
            k * 5 * MS,
            '/imu/data_raw',
            IMU.fill(START_NS + k * 5 * MS, linear_acceleration=[0, 0, 9.8]),
        )
        for k in range(int(seconds * 200))
    ]
    events += [
        (
            k * 33 * MS + 4 * MS,
            '/camera/image_raw',
            IMAGE.fill(START_NS + k * 33 * MS + 4 * MS, data=np.full((4, 4), k % 256)),
        )
        for k in range(int(seconds * 30))
        if not 50 <= k < 80
    ]
    events += [
        (k * 100 * MS, '/lidar/scan', SCAN.fill(START_NS + k * 100 * MS))
        for k in range(int(seconds * 10))
    ]
    events.append((7, '/chatter', msgs.string_message('hello')))
    with BagWriter(path, storage) as writer:
        for topic, kind in (
            ('/imu/data_raw', IMU.type_name),
            ('/lidar/scan', SCAN.type_name),
            ('/camera/image_raw', IMAGE.type_name),
            ('/chatter', 'std_msgs/msg/String'),
        ):
            writer.add_topic(topic, kind)
        for time_ns, topic, raw in sorted(events, key=lambda event: event[0]):
            writer.write(topic, START_NS + time_ns + 3 * MS, raw)
    return path


@pytest.fixture
def rig_file(tmp_path):
    file = tmp_path / 'robot.yaml'
    file.write_text(RIG)
    return file


@pytest.mark.parametrize('storage', STORAGES)
def test_a_recording_is_synced(tmp_path, rig_file, storage, capsys):
    source = record(tmp_path / 'in', storage)
    out = tmp_path / 'out'
    code = main(
        ['sync', str(source), str(out), '--rig', str(rig_file), '--storage', storage, '--json']
    )
    assert code == 0
    summary = json.loads(capsys.readouterr().out)
    assert 28 <= summary['bundles'] <= 34  # of 40, eight of them far from any image
    for sensor in summary['sensors'].values():
        counts = sensor['counts']
        parts = [counts[key] for key in counts if key not in ('received', 'out_of_order')]
        assert counts['received'] == sum(parts)
    with BagReader(out) as bag:
        messages = list(bag.messages())
        assert '/chatter' not in bag.topics
        stamps = {
            topic: [read_stamp_ns(m.raw) for m in messages if m.topic == topic]
            for topic in ('/synced/lidar/scan', '/synced/camera/image_raw')
        }
        assert stamps['/synced/lidar/scan'] == stamps['/synced/camera/image_raw']
        assert len(stamps['/synced/lidar/scan']) == summary['bundles']
        assert bag.topics['/sync/bundle'].message_count == summary['bundles']


def test_the_report_is_one_readable_page(tmp_path, rig_file):
    out = tmp_path / 'out'
    assert main(['sync', str(record(tmp_path / 'in')), str(out), '--rig', str(rig_file)]) == 0
    page = (out / 'report.html').read_text()
    assert page.count('<svg') >= 6
    assert page.count('<svg') == page.count('</svg>')
    for word in (
        'Timeline',
        'Clock offsets',
        'Pairing error',
        'Where every message went',
        'prefers-color-scheme: dark',
        'camera',
        'unmatched',
    ):
        assert word in page
    assert 'http' not in page.replace('http-equiv', '')
    document = json.loads((out / 'report.json').read_text())
    assert (
        document['sensors']['camera']['missing'] == {}
        or document['complete'] <= (document['bundles'])
    )


def test_copy_keeps_the_messages_of_the_recording(tmp_path, rig_file):
    source, out = record(tmp_path / 'in'), tmp_path / 'out'
    assert main(['sync', str(source), str(out), '--rig', str(rig_file), '--copy']) == 0
    with BagReader(source) as before, BagReader(out) as after:
        for name, topic in before.topics.items():
            assert after.topics[name].message_count == topic.message_count
        assert [m.raw for m in before.messages()] == [m.raw for m in after.messages(before.topics)]


def test_a_copy_of_what_was_synced_already_has_one_sync_only(tmp_path, rig_file, capsys):
    once, twice = tmp_path / 'once', tmp_path / 'twice'
    source = record(tmp_path / 'in')
    assert main(['sync', str(source), str(once), '--rig', str(rig_file), '--copy']) == 0
    capsys.readouterr()
    assert main(['sync', str(once), str(twice), '--rig', str(rig_file), '--copy', '--json']) == 0
    assert '/synced/lidar/scan' in json.loads(capsys.readouterr().out)['replaced']
    with BagReader(once) as before, BagReader(twice) as after:
        counts = [
            {name: topic.message_count for name, topic in bag.topics.items()}
            for bag in (before, after)
        ]
        assert counts[0] == counts[1]
        stamps = [read_stamp_ns(m.raw) for m in after.messages(['/synced/lidar/scan'])]
        assert stamps == sorted(stamps)


def test_what_is_documented_can_be_asserted_on_the_json(tmp_path, rig_file, capsys):
    out, summary = tmp_path / 'out', tmp_path / 'sync.json'
    main(['sync', str(record(tmp_path / 'in')), str(out), '--rig', str(rig_file), '--json'])
    summary.write_text(capsys.readouterr().out)
    for run in (summary, out / 'report.json'):
        assert main(['assert', str(run), '--that', 'camera.sigma_ms >= 0', '--json']) == 0
        assert json.loads(capsys.readouterr().out)['offsets'] == 'smoothed'
    source = [str(tmp_path / 'in'), '--rig', str(rig_file)]
    assert main(['assert', *source, '--that', 'camera.sigma_ms >= 0', '--json']) == 0
    assert json.loads(capsys.readouterr().out)['offsets'] == 'live'


def test_the_same_recording_gives_the_same_bundles(tmp_path, rig_file):
    source = record(tmp_path / 'in')
    for name in ('a', 'b'):
        main(['sync', str(source), str(tmp_path / name), '--rig', str(rig_file)])
    with BagReader(tmp_path / 'a') as a, BagReader(tmp_path / 'b') as b:
        assert list(a.messages()) == list(b.messages())


def test_mistakes_are_one_sentence(tmp_path, rig_file, capsys):
    source = record(tmp_path / 'in', seconds=0.5)
    out = tmp_path / 'out'
    bad = tmp_path / 'bad.yaml'
    bad.write_text(RIG.replace('lidar/scan', 'laser/scan'))
    assert main(['sync', str(source), str(out), '--rig', str(bad)]) == 2
    assert 'has no topic laser/scan' in capsys.readouterr().err
    bad.write_text(RIG.replace('sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'))
    assert main(['sync', str(source), str(out), '--rig', str(bad)]) == 2
    assert 'is sensor_msgs/msg/Image' in capsys.readouterr().err
    assert not out.exists()
    assert main(['sync', str(tmp_path / 'no'), str(out), '--rig', str(rig_file)]) == 2
    assert capsys.readouterr().err.startswith('error: there is no recording')
    assert main(['sync', str(source), str(source), '--rig', str(rig_file)]) == 2
    assert 'exists already' in capsys.readouterr().err


def test_an_optional_input_may_be_missing(tmp_path, rig_file):
    rig_file.write_text(RIG.replace('imu/data_raw', 'imu/other'))
    out = tmp_path / 'out'
    assert main(['sync', str(record(tmp_path / 'in')), str(out), '--rig', str(rig_file)]) == 0
    with BagReader(out) as bag:
        assert '/synced/imu/other' not in bag.topics
        assert bag.topics['/sync/bundle'].message_count > 25


def test_an_empty_recording_gives_an_empty_report(tmp_path, rig_file):
    with BagWriter(tmp_path / 'in') as writer:
        for topic, kind in (
            ('/lidar/scan', SCAN.type_name),
            ('/camera/image_raw', IMAGE.type_name),
        ):
            writer.add_topic(topic, kind)
    assert main(['sync', str(tmp_path / 'in'), str(tmp_path / 'out'), '--rig', str(rig_file)]) == 0
    assert 'too few bundles' in (tmp_path / 'out' / 'report.html').read_text()
