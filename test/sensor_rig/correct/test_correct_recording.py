"""`rig correct`: the same recording with right stamps, and nothing else changed."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.msgs import Transform
from rig_common.msgs.decode import read_cloud, read_transforms
from sensor_rig.bags.connections import offered
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.correct.recording import MARK

START_S = 1.7e9
SECONDS = 40.0
STEP_AT_S, STEP_S = 24.0, 0.35
DRIFT = 60e-6
RIG = """/**:
  ros__parameters:
    sync:
      inputs:
        pose: {topic: pose/odom, type: nav_msgs/msg/Odometry, latency_s: 0.05,
               latency_sigma_s: 0.04, cue: odometry, imu_quat_wxyz: [1.0, 0.0, 0.0, 0.0],
               cue_wander: 0.02}
        imu: {topic: imu/data_raw, type: sensor_msgs/msg/Imu, latency_s: 0.001,
              latency_sigma_s: 0.001, collect: true}
        camera: {topic: camera/image_raw, type: sensor_msgs/msg/Image, latency_s: 0.03,
                 latency_sigma_s: 0.001}
        usb: {topic: usb/temperature, type: sensor_msgs/msg/Temperature, stamp_source: host,
              latency_s: 0.02, latency_sigma_s: 0.001}
        lidar: {topic: lidar/points, type: sensor_msgs/msg/PointCloud2, latency_s: 0.102,
                latency_sigma_s: 0.001, stamp_point: end, capture_s: 0.1}
        vague: {topic: vague/fix, type: sensor_msgs/msg/NavSatFix, latency_s: 0.1,
                latency_sigma_s: 0.05}
      reference_sensor_id: imu_frame
"""
RIG = RIG.replace('imu_frame', 'pose').replace(
    'reference_sensor_id: pose', 'reference_sensor_id: pose\n      imu_sensor_id: imu'
)
POINTS = np.dtype([('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('time', '<f4')])
TYPES = {
    '/imu/data_raw': 'sensor_msgs/msg/Imu',
    '/pose/odom': 'nav_msgs/msg/Odometry',
    '/tf': 'tf2_msgs/msg/TFMessage',
    '/tf_static': 'tf2_msgs/msg/TFMessage',
    '/camera/image_raw': 'sensor_msgs/msg/Image',
    '/camera/camera_info': 'sensor_msgs/msg/CameraInfo',
    '/usb/temperature': 'sensor_msgs/msg/Temperature',
    '/lidar/points': 'sensor_msgs/msg/PointCloud2',
    '/vague/fix': 'sensor_msgs/msg/NavSatFix',
    '/chatter': 'std_msgs/msg/String',
}


def yaw(time_s: Any) -> Any:
    return 0.5 * np.sin(1.3 * time_s) + 0.15 * np.sin(4.1 * time_s + 1.0)


def stamp(time_s: float) -> int:
    return round((START_S + time_s) * 1e9)


def pose_clock(time_s: float) -> float:
    """Return what the clock of the pose shows: 80 ms behind, drifting, with a step."""
    return time_s - 0.08 + DRIFT * time_s + (STEP_S if time_s > STEP_AT_S else 0.0)


def record(path: Path) -> tuple[Path, dict[str, list[float]]]:
    """Write a recording; return it and the true capture times of every topic, in its order."""
    rng, step = np.random.default_rng(4), 1e-4
    events: list[tuple[float, str, bytes, float]] = []
    imu, odometry = msgs.imu('imu'), msgs.odometry('odom', 'base')
    image, info = msgs.image('cam', 2, 2, 'mono8'), msgs.camera_info('cam', 2, 2, np.eye(3))
    heat, fix = msgs.temperature('usb'), msgs.nav_sat_fix('gps')
    for t in np.arange(0.0, SECONDS, 0.01).tolist():
        rate = (yaw(t + step) - yaw(t - step)) / (2.0 * step) + rng.normal(0.0, 0.002)
        raw = imu.fill(
            stamp(t + 0.012), angular_velocity=[0, 0, rate], linear_acceleration=[0, 0, 9.8]
        )
        events.append((t + 0.001 + rng.exponential(2e-4), '/imu/data_raw', raw, t))
    for t in np.arange(0.007, SECONDS, 0.04).tolist():
        angle, told = yaw(t) + rng.normal(0.0, 3e-4), stamp(pose_clock(t))
        turn = [0.0, 0.0, np.sin(angle / 2), np.cos(angle / 2)]
        late = t + 0.05 + rng.exponential(0.002)
        events.append((late, '/pose/odom', odometry.fill(told, orientation=turn), t))
        pair = [
            Transform(told, 'odom', 'base', [0, 0, 0], turn),
            Transform(stamp(t), 'base', 'arm', [0, 0, 0], [0, 0, 0, 1]),
        ]
        events.append((late + 1e-4, '/tf', msgs.tf_message(pair), t))
    for t in np.arange(0.02, SECONDS, 0.1).tolist():
        late, told = (
            t + 0.03 + rng.exponential(0.003),
            stamp(t + 0.5 - 2e-5 * t - (0.06 if t > STEP_AT_S else 0.0)),
        )
        events.append((late - 2e-4, '/camera/camera_info', info.fill(told), t))
        events.append((late, '/camera/image_raw', image.fill(told), t))
    for t in np.arange(0.0, SECONDS, 0.05).tolist():
        late = t + 0.02 + rng.exponential(0.004)
        events.append((late, '/usb/temperature', heat.fill(stamp(late)), t))
    points = np.zeros(10, POINTS)
    points['time'] = np.linspace(-0.1, 0.0, 10)
    for t in np.arange(0.0, SECONDS, 0.2).tolist():
        raw = msgs.point_cloud2_message(stamp(t + 0.1 - 3.0), 'lidar', points)
        events.append((t + 0.102 + rng.exponential(0.001), '/lidar/points', raw, t))
    for t in np.arange(0.0, SECONDS, 0.5).tolist():
        events.append((t + 0.13, '/vague/fix', fix.fill(stamp(t + 0.02)), t))
        events.append((t + 0.13, '/chatter', msgs.string_message(f'{t}'), t))
    static = msgs.tf_message([Transform(0, 'base', 'lidar', [0, 0, 0], [0, 0, 0, 1])])
    events.append((0.0, '/tf_static', static, 0.0))
    captures: dict[str, list[float]] = defaultdict(list)
    with BagWriter(path) as writer:
        writer.note('driver', 'Ada')
        for topic, kind in TYPES.items():
            writer.add_topic(topic, kind, qos=[offered(latched='static' in topic,
                best_effort='camera' in topic, depth=7)])  # fmt: skip
        for time_s, topic, raw, t in sorted(events, key=lambda event: event[0]):
            writer.write(topic, stamp(time_s), raw)
            captures[topic].append(t)
    return path, captures


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('correct')
    (folder / 'robot.yaml').write_text(RIG)
    _, captures = record(folder / 'in')
    (folder / 'truth.json').write_text(json.dumps(captures))
    for name, more in (('out', []), ('smooth', ['--smooth-arrivals'])):
        arguments = ['correct', str(folder / 'in'), str(folder / name)]
        assert main([*arguments, '--rig', str(folder / 'robot.yaml'), *more]) == 0
    return folder


def errors_ms(folder: Path, name: str, topic: str) -> np.ndarray[Any, Any]:
    """Return stamp minus true capture, message by message."""
    captures = json.loads((folder / 'truth.json').read_text())[topic]
    with BagReader(folder / name) as bag:
        stamps = [read_stamp_ns(raw) for _, _, raw, _ in bag.messages([topic])]
    assert len(stamps) == len(captures)
    return np.array([(s - stamp(t)) / 1e6 for s, t in zip(stamps, captures, strict=True)])


@pytest.mark.parametrize(
    ('topic', 'limit_ms'),
    [('/imu/data_raw', 1.0), ('/pose/odom', 1.5), ('/camera/image_raw', 1.5)],
)
def test_every_stamp_is_its_capture(folder: Path, topic: str, limit_ms: float) -> None:
    """Drift is taken out at each moment, and a step where it happened."""
    before, after = errors_ms(folder, 'in', topic), errors_ms(folder, 'out', topic)
    assert np.abs(before).min() > 5.0
    assert np.abs(after).max() < limit_ms
    assert float(np.ptp(after)) < 0.7 * limit_ms


def test_a_cloud_is_stamped_at_its_start_and_its_points_keep_their_times(folder: Path) -> None:
    assert np.abs(errors_ms(folder, 'out', '/lidar/points')).max() < 1.5
    with BagReader(folder / 'out') as bag:
        clouds = [read_cloud(m.raw).points for m in bag.messages(['/lidar/points'])]
    for points in clouds:
        assert points['time'] == pytest.approx(np.linspace(0.0, 0.1, 10), abs=1e-6)


def test_what_carries_the_stamps_of_an_input_moves_with_it(folder: Path) -> None:
    with BagReader(folder / 'out') as bag:
        found = {
            topic: [read_stamp_ns(raw) for _, _, raw, _ in bag.messages([topic])]
            for topic in ('/camera/image_raw', '/camera/camera_info', '/pose/odom')
        }
        transforms = [read_transforms(raw) for _, _, raw, _ in bag.messages(['/tf'])]
    assert found['/camera/image_raw'] == found['/camera/camera_info']
    assert [pair[0].stamp_ns for pair in transforms] == found['/pose/odom']
    captures = json.loads((folder / 'truth.json').read_text())['/tf']
    assert [pair[1].stamp_ns for pair in transforms] == [stamp(t) for t in captures]


def test_stamps_of_a_host_lose_their_latency_and_on_request_their_jitter(folder: Path) -> None:
    before = errors_ms(folder, 'in', '/usb/temperature')
    plain = errors_ms(folder, 'out', '/usb/temperature')
    smooth = errors_ms(folder, 'smooth', '/usb/temperature')
    assert before.min() > 19.0
    assert -0.8 < plain.min() < 0.8
    assert plain.std() == pytest.approx(before.std(), rel=0.02)
    assert smooth.std() < 0.25 * before.std()
    assert np.abs(smooth).max() < 2.5


def test_nothing_else_changes(folder: Path) -> None:
    """Payload, order, receive times, profiles, definitions and notes are those of the input."""

    def facts(name: str) -> tuple[list[tuple[str, int, str]], dict[str, Any], dict[str, str]]:
        with BagReader(folder / name) as bag:
            messages = []
            for topic, receive_ns, raw, _ in bag.messages():
                body = raw[12:] if bag.topics[topic].stamped else raw
                if topic in ('/tf', '/lidar/points'):
                    body = str(len(raw)).encode()
                messages.append((topic, receive_ns, hashlib.sha256(body).hexdigest()))
            topics = {t.name: (t.type_name, t.definition, t.qos) for t in bag.topics.values()}
            note = {key: value for key, value in bag.note.items() if key != MARK}
            return messages, topics, note

    assert facts('in') == facts('out')


def test_what_is_not_known_well_enough_stays_and_is_listed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with BagReader(folder / 'in') as before, BagReader(folder / 'out') as after:
        for topic in ('/vague/fix', '/tf_static', '/chatter'):
            assert list(before.messages([topic])) == list(after.messages([topic]))
    out = folder / 'some'
    arguments = ['correct', str(folder / 'in'), str(out), '--rig', str(folder / 'robot.yaml')]
    assert main([*arguments, '--only', 'camera', '--json']) == 0
    told = json.loads(capsys.readouterr().out)
    assert [name for name, each in told['streams'].items() if each['corrected']] == ['camera']
    assert told['topics']['/camera/camera_info']['follows'] == 'camera'
    assert told['topics']['/imu/data_raw']['moved'] == 0
    assert 'converging' in told['streams']['vague']['why'] or (
        told['streams']['vague']['why'] == 'not asked for'
    )


def test_a_corrected_recording_is_known_and_a_second_run_changes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = folder / 'again'
    assert main(['correct', str(folder / 'out'), str(again), '--json']) == 0
    assert json.loads(capsys.readouterr().out)['already_corrected'] is True
    with BagReader(folder / 'out') as one, BagReader(again) as two:
        assert list(one.messages()) == list(two.messages())
        assert one.note == two.note


def test_without_the_mark_no_stream_moves_by_more_than_it_may_be_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = folder / 'out/metadata.yaml'
    marked = metadata.read_text()
    values = yaml.safe_load(marked)
    del values['rosbag2_bagfile_information']['custom_data'][MARK]
    metadata.write_text(yaml.safe_dump(values))
    rig = folder / 'second.yaml'  # what is known now: clouds are stamped at their start
    rig.write_text(RIG.replace(', stamp_point: end, capture_s: 0.1', ''))
    try:
        arguments = [str(folder / 'out'), str(folder / 'second'), '--rig', str(rig), '--json']
        assert main(['correct', *arguments]) == 0
    finally:
        metadata.write_text(marked)
    told = json.loads(capsys.readouterr().out)
    for name, each in told['streams'].items():
        moved = told['topics'][each['topic']]['moved_ms']
        if moved is not None:
            most = max(abs(moved['min']), abs(moved['max']))
            assert most < 2.0 * each['sigma_ms'], name


def test_a_stamp_on_the_clock_of_the_reference_stays(folder: Path) -> None:
    out = folder / 'reference'
    arguments = ['correct', str(folder / 'in'), str(out), '--rig', str(folder / 'robot.yaml')]
    assert main([*arguments, '--to', 'reference']) == 0
    with BagReader(folder / 'in') as before, BagReader(out) as after:
        assert list(before.messages(['/pose/odom'])) == list(after.messages(['/pose/odom']))
    captures = json.loads((folder / 'truth.json').read_text())['/imu/data_raw']
    with BagReader(out) as bag:
        stamps = [read_stamp_ns(m.raw) for m in bag.messages(['/imu/data_raw'])]
    apart = [
        (s - stamp(pose_clock(t))) / 1e6
        for s, t in zip(stamps, captures, strict=True)
        if abs(t - STEP_AT_S) > 0.2
    ]
    assert max(map(abs, apart)) < 1.5


@pytest.mark.parametrize(
    ('more', 'sentence'),
    [
        (['--only', 'camra'], 'camera'),
        (['--topics', '/camera/imge_raw'], '/camera/image_raw'),
        (['--rig', 'nowhere.yaml'], 'nowhere.yaml'),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], more: list[str], sentence: str
) -> None:
    out = folder / 'bad'
    rig = [] if '--rig' in more else ['--rig', str(folder / 'robot.yaml')]
    assert main(['correct', str(folder / 'in'), str(out), *rig, *more]) == 2
    told = capsys.readouterr().err
    assert told.startswith('error: ') and sentence in told
    assert not out.exists()


def test_a_bag_of_ros_1_comes_out_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a bag of ROS 1, with everything that is none of its stamps as it was."""
    from rosbags.rosbag1 import Reader, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    kinds, name, text = store.types, 'sensor_msgs/msg/Temperature', 'std_msgs/msg/String'
    with Writer(tmp_path / 'drive.bag') as writer:
        heat = writer.add_connection('/heat', name, typestore=store, callerid='/oven')
        note = writer.add_connection('/note', text, typestore=store, latching=1)
        writer.write(note, stamp(0.0), store.serialize_ros1(kinds[text]('hello'), text))
        for number in range(600):
            told = stamp(number * 0.05 + 0.3)
            time = kinds['builtin_interfaces/msg/Time'](told // 10**9, told % 10**9)
            header = kinds['std_msgs/msg/Header'](number, time, 'heat')
            raw = store.serialize_ros1(kinds[name](header, 20.0, 0.0), name)
            late_ns = 20_000_000 + number * 7919 % 1000 * 300
            writer.write(heat, stamp(number * 0.05) + late_ns, raw)
    rig = tmp_path / 'robot.yaml'
    rig.write_text(
        '/**:\n  ros__parameters:\n    sync:\n      inputs:\n        heat: {topic: /heat, '
        'latency_s: 0.02, latency_sigma_s: 0.001}\n      reference_sensor_id: heat\n'
    )
    drive, right = tmp_path / 'drive.bag', tmp_path / 'right.bag'
    assert main(['correct', str(drive), str(tmp_path / 'right'), '--rig', str(rig)]) == 2
    assert f'end {tmp_path / "right"} in .bag' in capsys.readouterr().err
    assert main(['correct', str(drive), str(right), '--rig', str(rig)]) == 0

    def content(path: Path) -> tuple[list[Any], list[Any]]:
        with Reader(path) as reader:
            about = [each[1:5] + tuple(each.ext) for each in reader.connections if each.msgcount]
            return about, [(c.topic, ns, bytes(raw)) for c, ns, raw in reader.messages()]

    (about, before), (new_about, after) = content(drive), content(right)
    assert about == new_about
    assert before[0] == after[0] and len(after) == 601
    assert all(
        (topic, ns, raw[:4], raw[12:]) == (old_topic, old_ns, old[:4], old[12:])
        for (topic, ns, raw), (old_topic, old_ns, old) in zip(after[1:], before[1:], strict=True)
    )
    with BagReader(right) as bag:
        found = [read_stamp_ns(message.raw) for message in bag.messages(['/heat'])]
        assert MARK in bag.note and sorted(bag.topics) == ['/heat', '/note']
    errors = [(told - stamp(k * 0.05)) / 1e6 for k, told in enumerate(found)]
    assert len(found) == 600 and max(map(abs, errors)) < 0.5
    assert main(['correct', str(right), str(tmp_path / 'again.bag'), '--rig', str(rig)]) == 0
    assert content(tmp_path / 'again.bag')[1] == after
    faults = tmp_path / 'faults.yaml'
    faults.write_text(
        '/**: {ros__parameters: {streams: {heat: {topics: [/heat], delay_range_s: [0.1, 0.1], '
        'clock: {offset_s: 1.0}, loss: {probability: 0.2}}}}}'
    )
    late = tmp_path / 'late.bag'
    assert main(['degrade', str(right), str(late), '--rig', str(faults)]) == 0
    with Reader(late) as reader:
        rows = [(c.topic, ns, bytes(raw)) for c, ns, raw in reader.messages()]
    numbers = [int.from_bytes(raw[:4], 'little') for topic, _, raw in rows if topic == '/heat']
    assert numbers == sorted(numbers) and 400 < len(numbers) < 560 and numbers[-1] > 590
    assert sum(topic == '/truth/time/heat' for topic, *_ in rows) == len(numbers)
    assert (tmp_path / 'late.fates.csv').read_text().count('\n') == 601
