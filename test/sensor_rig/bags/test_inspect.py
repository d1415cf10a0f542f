"""`rig inspect`: what the times of the topics tell, and a rig file that works."""

from __future__ import annotations

import json

import numpy as np
import pytest
from rich.console import Console

from rig_common import msgs
from rig_common.cdr import with_stamp_ns
from sensor_rig.bags.inspect import CLOUD_TYPE, SCAN_TYPE, TopicTimes, facts_of, sweep_s
from sensor_rig.bags.starter import input_names, latency_of, starter_rig
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.rigfile import load_rig

START_NS = 1_700_000_000_000_000_000
IMU = msgs.imu('imu')
IMAGE = msgs.image('cam', 4, 4, 'mono8')
INFO = msgs.camera_info('cam', 4, 4, np.eye(3))


def times(
    period_s=0.1,
    count=300,
    offset_s=0.0,
    latency_s=0.02,
    jitter_s=0.004,
    stamped_by='device',
    drift_ppm=0.0,
    name='/a',
    type_name='sensor_msgs/msg/Imu',
):
    """Return the times of a stream whose stamps are written as `stamped_by` says."""
    random = np.random.default_rng(5)
    topic = TopicTimes(name, type_name, stamped_by != 'nobody')
    for k in range(count):
        capture_s = k * period_s
        arrival_s = capture_s + latency_s + random.uniform(0, jitter_s)
        stamp_s = {
            'device': capture_s * (1 - drift_ppm * 1e-6) + offset_s,
            'host': arrival_s - 0.0002,
            'zero': -START_NS / 1e9,
            'nobody': 0.0,
        }[stamped_by]
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
    assert abs(found.drift_ppm - 50.0) < 4.0 * found.drift_sigma_ppm < 20.0
    assert found.stamp_jitter_s < 1e-6 < found.arrival_jitter_s


@pytest.mark.parametrize(
    ('how', 'source'),
    [
        ({'stamped_by': 'device'}, 'device'),
        ({'stamped_by': 'device', 'offset_s': 0.037}, 'device'),
        ({'stamped_by': 'device', 'offset_s': -1000.0}, 'device'),
        ({'stamped_by': 'host'}, 'host'),
        ({'stamped_by': 'zero'}, 'none'),
        ({'stamped_by': 'nobody', 'type_name': 'std_msgs/msg/Bool'}, 'none'),
    ],
)
def test_who_writes_the_stamps(how, source):
    found = facts(**how)
    assert found.source == source
    assert np.isfinite(found.delay_s) == (source != 'none')  # nothing to count a delay from


def test_memory_is_bounded():
    topic = times(count=10)
    for k in range(30_000):
        topic.add(IMU.fill(k + 1), START_NS + k)
    assert len(topic.stamps_ns) == len(topic.arrivals_ns) == 20_000
    assert topic.count == 30_010


def test_names_are_short_and_unique():
    assert input_names(
        [
            '/front/lidar/points',
            '/cam/image_raw',
            '/cam/camera_info',
            '/imu/data',
            '/scan',
            '/2d/scan',
        ]
    ) == {
        '/front/lidar/points': 'front_lidar',
        '/cam/image_raw': 'cam_image_raw',
        '/cam/camera_info': 'cam_camera_info',
        '/imu/data': 'imu',
        '/scan': 'scan',
        '/2d/scan': 'input_2d',
    }


@pytest.fixture
def recording(tmp_path):
    """A camera with camera_info and an IMU."""
    with BagWriter(tmp_path / 'bag') as writer:
        for topic, template in (
            ('/cam/image_raw', IMAGE),
            ('/cam/camera_info', INFO),
            ('/imu/data', IMU),
        ):
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
    assert (
        main(['sync', str(recording), str(tmp_path / 'out'), '--rig', str(rig_file), '--json'])
        == 0
    )
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
        'error: cannot write /proc/r.yaml: no such file or directory\n'
    )
    assert main(['inspect', '--live', '--seconds', '0']) == 2
    assert "--seconds is '0'; it should be a number more than zero" in capsys.readouterr().err
    assert main(['inspect']) == 2
    with BagWriter(tmp_path / 'plain') as writer:
        writer.add_topic('/chatter', 'std_msgs/msg/String')
        writer.write('/chatter', 1, msgs.string_message('x'))
    assert main(['inspect', str(tmp_path / 'plain'), '--write', str(tmp_path / 'r.yaml')]) == 2
    assert 'no stamped topic' in capsys.readouterr().err


# ---- sweeps -----------------------------------------------------------------------------------


def scan_of(time_increment_s: float, scan_time_s: float) -> bytes:
    template = msgs.laser_scan(
        'lidar',
        720,
        angle_min_rad=-np.pi,
        angle_max_rad=np.pi,
        angle_increment_rad=2 * np.pi / 720,
        range_min_m=0.1,
        range_max_m=25.0,
        time_increment_s=time_increment_s,
        scan_time_s=scan_time_s,
    )
    return bytes(template.fill(START_NS, ranges=np.ones(720, np.float32)))


def cloud_of(kind: str, times: list[float], field_name: str = 'time') -> bytes:
    points = np.zeros(
        len(times), np.dtype([('x', '<f4'), ('y', '<f4'), ('z', '<f4'), (field_name, kind)])
    )
    points[field_name] = times
    return msgs.point_cloud2_message(START_NS, 'lidar', points)


@pytest.mark.parametrize(
    ('raw', 'type_name', 'sweep'),
    [
        (scan_of(0.1 / 720, 0.1), SCAN_TYPE, 0.1),
        (scan_of(0.0, 0.05), SCAN_TYPE, 0.05),
        (scan_of(0.0, 0.0), SCAN_TYPE, 0.0),
        (cloud_of('<f4', [0.0, 0.05, 0.0998]), CLOUD_TYPE, 0.0998),
        (cloud_of('<u4', [0, 99_800_000], 't'), CLOUD_TYPE, 0.0998),
        (cloud_of('<f8', [START_NS / 1e9, START_NS / 1e9 + 0.1], 'timestamp'), CLOUD_TYPE, 0.1),
        (cloud_of('<f4', [-0.0998, 0.0]), CLOUD_TYPE, 0.0),
        (b'\0\1\0\0', SCAN_TYPE, 0.0),
        (bytes(IMU.fill(START_NS)), 'sensor_msgs/msg/Imu', 0.0),
    ],
)
def test_a_sweep_is_read_from_the_message(raw, type_name, sweep):
    assert sweep_s(type_name, raw) == pytest.approx(sweep, abs=1e-6)


def scans(time_increment_s):
    topic = TopicTimes('/scan', SCAN_TYPE, True)
    raw = scan_of(time_increment_s, 0.1)
    for k in range(30):
        topic.add(with_stamp_ns(raw, START_NS + k * 100_000_000), START_NS + k * 100_000_000)
    return facts_of([topic])[0]


def test_the_sweep_is_part_of_the_latency_and_is_said():
    found = scans(0.1 / 720)
    assert found.sweep_s == pytest.approx(0.1)
    assert latency_of(found) == pytest.approx((0.13, 0.05))
    text = starter_rig([found], 'a bag')
    assert 'latency_s: 0.13' in text
    assert 'its last ray is 100 ms after its stamp' in text


def test_a_sweep_longer_than_its_period_is_not_believed():
    assert scans(1.0).sweep_s == 0.0


def test_simulated_stamps_that_begin_at_zero_are_shared_too():
    first, second = TopicTimes('/fix', 'a', True), TopicTimes('/vel', 'b', True)
    for k in range(20):
        for topic in (first, second):
            topic.add(bytes(IMU.fill(k * 100_000_000)), k * 100_000_000 + 50_000_000)
    assert [each.shares_stamps_with for each in facts_of([first, second])] == ['', '/fix']


@pytest.mark.timeout(120)
def test_what_inspect_writes_finds_the_offsets_of_the_demo(tmp_path, capsys):
    bag, rig_file, out = tmp_path / 'bag', tmp_path / 'robot.yaml', tmp_path / 'out'
    assert main(['record', str(bag), '--rig', 'demo', '--seconds', '10']) == 0
    assert main(['inspect', str(bag), '--write', str(rig_file)]) == 1, 'the demo is wrong'
    assert main(['sync', str(bag), str(out), '--rig', str(rig_file)]) == 0
    capsys.readouterr()
    sensors = json.loads((out / 'report.json').read_text(encoding='utf-8'))['sensors']
    for name, true_ms in {
        'camera_image_raw': 122.0,
        'imu': 97.0,
        'gnss': 85.0,
        'wheels': 91.5,
    }.items():
        last = sensors[name]['last']
        # Four sensors are looked at: one in six such recordings has one beyond two sigmas.
        assert abs(last['offset_ms'] - true_ms) < 3.0 * last['sigma_ms'], name
    assert sensors['imu']['rate_hz'] == pytest.approx(200.0, abs=0.1)
    assert sensors['front_lidar']['rate_hz'] == pytest.approx(10.0, abs=0.1)


# ---- the table --------------------------------------------------------------------------------


@pytest.mark.parametrize('columns', [80, 100, 140])
def test_names_and_headers_are_whole_on_every_screen(recording, capsys, monkeypatch, columns):
    monkeypatch.setattr(
        'sensor_rig.cli.support.output.console', lambda: Console(highlight=False, width=columns)
    )
    assert main(['inspect', str(recording)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns
    for whole in ('/cam/camera_info', 'CameraInfo', 'arrival', 'jitter ms'):
        assert any(whole in line for line in lines), whole
    rows = [line for line in lines if line.startswith(' /')]
    assert len(rows) == (3 if columns > 100 else 6)
