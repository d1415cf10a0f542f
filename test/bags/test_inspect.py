"""`rig inspect`: what the times of the topics tell, and a rig file that works."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sensor_rig import msgs
from sensor_rig.bags.inspect import TopicTimes, facts_of
from sensor_rig.bags.starter import input_names
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.rigfile import load_rig

START_NS = 1_700_000_000_000_000_000
IMU = msgs.imu('imu')
IMAGE = msgs.image('cam', 4, 4, 'mono8')
INFO = msgs.camera_info('cam', 4, 4, np.eye(3))


def times(period_s=0.1, count=300, offset_s=0.0, latency_s=0.02, jitter_s=0.004,
          stamped_by='device', drift_ppm=0.0, name='/a', type_name='sensor_msgs/msg/Imu'):
    """Return the times of a stream whose stamps are written as `stamped_by` says."""
    random = np.random.default_rng(5)
    topic = TopicTimes(name, type_name, stamped_by != 'nobody')
    for k in range(count):
        capture_s = k * period_s
        arrival_s = capture_s + latency_s + random.uniform(0, jitter_s)
        stamp_s = {'device': capture_s * (1 - drift_ppm * 1e-6) + offset_s,
                   'host': arrival_s - 0.0002, 'zero': -START_NS / 1e9,
                   'nobody': 0.0}[stamped_by]
        stamp_ns = 0 if stamped_by == 'zero' else START_NS + round(stamp_s * 1e9)
        topic.add(IMU.fill(stamp_ns), START_NS + round(arrival_s * 1e9))
    return topic


def facts(**how):
    return facts_of([times(**how)])[0]


def test_rates_delays_and_drift_are_measured():
    found = facts(drift_ppm=50.0, count=600)
    assert found.rate_hz == pytest.approx(10.0, rel=0.01)
    assert found.delay_s == pytest.approx(0.022 + 30 * 50e-6, abs=0.002)
    assert found.drift_ppm == pytest.approx(50.0, abs=5.0)
    assert found.stamp_jitter_s < 1e-6 < found.arrival_jitter_s


@pytest.mark.parametrize(('how', 'source'), [
    ({'stamped_by': 'device'}, 'device'),
    ({'stamped_by': 'device', 'offset_s': 0.037}, 'device'),
    ({'stamped_by': 'device', 'offset_s': -1000.0}, 'device'),
    ({'stamped_by': 'host'}, 'host'),
    ({'stamped_by': 'zero'}, 'none'),
    ({'stamped_by': 'nobody', 'type_name': 'std_msgs/msg/Bool'}, 'none'),
])
def test_who_writes_the_stamps(how, source):
    assert facts(**how).source == source


def test_memory_is_bounded():
    topic = times(count=10)
    for k in range(30_000):
        topic.add(IMU.fill(k + 1), START_NS + k)
    assert len(topic.stamps_ns) == len(topic.arrivals_ns) == 20_000
    assert topic.count == 30_010


def test_names_are_short_and_unique():
    assert input_names(['/front/lidar/points', '/cam/image_raw', '/cam/camera_info', '/imu/data',
                        '/scan', '/2d/scan']) == {
        '/front/lidar/points': 'front_lidar', '/cam/image_raw': 'cam_image_raw',
        '/cam/camera_info': 'cam_camera_info', '/imu/data': 'imu', '/scan': 'scan',
        '/2d/scan': 'input_2d'}


@pytest.fixture
def recording(tmp_path):
    """A camera with camera_info and an IMU."""
    with BagWriter(tmp_path / 'bag') as writer:
        for topic, template in (('/cam/image_raw', IMAGE), ('/cam/camera_info', INFO),
                                ('/imu/data', IMU)):
            writer.add_topic(topic, template.type_name)
        writer.add_topic('/rosout', 'std_msgs/msg/String')
        for k in range(600):
            now_ns = START_NS + k * 5_000_000
            writer.write('/imu/data', now_ns + 1_000_000, IMU.fill(now_ns))
            if k % 10 == 0:
                for topic, template in (('/cam/image_raw', IMAGE), ('/cam/camera_info', INFO)):
                    writer.write(topic, now_ns + 30_000_000, template.fill(now_ns))
    return tmp_path / 'bag'


def test_a_rig_file_is_written_that_syncs_the_recording(tmp_path, recording, capsys):
    rig_file = tmp_path / 'robot.yaml'
    assert main(['inspect', str(recording), '--write', str(rig_file)]) == 0
    assert '/cam/image_raw' in capsys.readouterr().out
    sync = load_rig(rig_file).sync
    assert sync.reference_sensor_id == 'cam_image_raw'
    assert sync.imu_sensor_id == 'imu'
    assert sync.inputs['cam_camera_info'].clock_of == 'cam_image_raw'
    assert sync.inputs['cam_image_raw'].cue == 'image'
    assert main(['sync', str(recording), str(tmp_path / 'out'), '--rig', str(rig_file),
                 '--json']) == 0
    assert json.loads(capsys.readouterr().out)['bundles'] > 50


def test_json_and_mistakes(tmp_path, recording, capsys):
    assert main(['inspect', str(recording), '--json']) == 0
    topics = {t['name']: t for t in json.loads(capsys.readouterr().out)['topics']}
    assert topics['/cam/camera_info']['shares_stamps_with'] == '/cam/image_raw'
    taken = tmp_path / 'taken.yaml'
    taken.write_text('x')
    assert main(['inspect', str(recording), '--write', str(taken)]) == 2
    assert 'exists already' in capsys.readouterr().err
    assert main(['inspect', str(recording), '--write', '/proc/r.yaml']) == 2
    assert capsys.readouterr().err == (
        'error: cannot write /proc/r.yaml: no such file or directory\n')
    assert main(['inspect', '--live', '--seconds', '0']) == 2
    assert "--seconds is '0'; it should be a number more than zero" in capsys.readouterr().err
    assert main(['inspect']) == 2
    with BagWriter(tmp_path / 'plain') as writer:
        writer.add_topic('/chatter', 'std_msgs/msg/String')
        writer.write('/chatter', 1, msgs.string_message('x'))
    assert main(['inspect', str(tmp_path / 'plain'), '--write', str(tmp_path / 'r.yaml')]) == 2
    assert 'no stamped topic' in capsys.readouterr().err
