"""Recordings with faults as users have them: the cause first, said once, and nothing beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import field
from support.damaged_bags import make, storage_files
from support.field import IMAGE, IMU, START_NS, Robot, S, messages

from rig_common import msgs
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.findings.model import Severity

CASES: list[tuple[Callable[[Robot], None], str, str, tuple[str, ...]]] = [
    (field.milliseconds_as_nanoseconds, 'stamp_unit', '/imu/data', ('counts milliseconds',)),
    (field.microseconds_as_nanoseconds, 'stamp_unit', '/imu/data', ('counts microseconds',)),
    (field.milliseconds_since_1970, 'stamp_unit', '/imu/data', ('milliseconds since 1970',)),
    (
        field.out_of_order,
        'out_of_order',
        '/imu/data',
        ('300 of 6000', 'by up to 10.0 ms', 'none is missing'),
    ),
    (
        field.pps_lost,
        'clock_step',
        '/lidar/points',
        ('+1.000 s off from 14.9 s to 22.9 s', 'came back'),
    ),
    (field.host_step(250.0), 'host_step', '/odom', ('set ahead by 250 ms', '/lidar/points go on')),
    (field.host_step(-250.0), 'host_step', '/odom', ('set back by 250 ms',)),
    (field.host_step(-3007.0), 'host_step', '/odom', ('set back by 3.007 s',)),
    (
        field.batches_of_four,
        'arrivals_in_batches',
        '/imu/data',
        ('batches of 4', 'first waits 15.0 ms', 'late by 7.5 ms'),
    ),
    (field.batches_with_one_stamp, 'arrivals_in_batches', '/imu/data', ('carry one stamp',)),
    (field.two_publishers, 'two_sources', '/imu/data', ('two interleaved', 'one frame name')),
    (field.two_publishers_of_different_rate, 'two_sources', '/imu/data', ('200 and 63',)),
    (field.two_publishers_on_different_clocks, 'two_sources', '/imu/data', ('80.4 ms apart',)),
    (field.tai, 'clock_tai', '/imu/data', ('+36.999 s',)),
    (
        field.restart,
        'restart',
        '/lidar/points',
        ('at 22.9 s, after 3.099 s without', 'at 619.8 s and go on from 0.9 s'),
    ),
    # Faults that no report names.
    (field.seconds_as_float32, 'stamp_float', '/imu/data', ('multiples of 128.0 s',)),
    (field.power_up_seconds_as_float32, 'clock_power_up', '/imu/data', ('1 h 23 min',)),
    (
        field.local_time_with_daylight_saving,
        'clock_time_zone',
        '/lidar/points',
        ('+2 h', 'jumps by -1 h at 24.9 s: daylight saving'),
    ),
    (field.relayed_in_a_circle, 'doubled_messages', '/imu/data', ('8000 of 16000', 'two ways')),
    (field.looped_bag, 'looped', '/odom', ('back by 22.000 s',)),
    (field.paused_recorder, 'recorder_hiccup', 'all topics', ('nothing was recorded for 10.0',)),
    (field.gps_time, 'clock_gps', '/lidar/points', ('+17.894 s',)),
    (field.epoch_of_2000, 'clock_epoch', '/lidar/points', ('counts from 2000-01-01',)),
    (field.week_rollover, 'clock_epoch', '/lidar/points', ('rolled over',)),
    (field.rounded_to_10_ms, 'stamp_resolution', '/imu/data', ('rounded to 10.0 ms',)),
    (field.camera_rounded_to_10_ms, 'stamp_resolution', '/camera/image_raw', ('10.0 ms',)),
    (field.frozen_for_two_seconds, 'frozen_stamps', '/imu/data', ('400 times',)),
    (field.simulated_beside_wall_time, 'sim_time_mixed', '/lidar/points', ('in wall time',)),
    (field.cut_together, 'recorder_hiccup', 'all topics', ('for 1 h', 'two recordings')),
    (field.cut_together_and_closed_up, 'spliced', '/odom', ('by +1 h at 20.0 s',)),
    (field.queue_from_the_middle_on, 'latency_step', '/camera/image_raw', ('120 ms later',)),
    (field.single_garbage_stamps, 'stray_stamps', '/imu/data', ('3 of 8000',)),
    (
        field.tai_from_the_middle_on,
        'clock_step',
        '/lidar/points',
        ('+37.000 s at 19.9 s', 'TAI and UTC'),
    ),
    (field.played_at_half_speed, 'simulated_time', '/odom', ('at 0.5 of the pace',)),
    (field.counter_in_microseconds, 'stamp_unit', '/imu/data', ('microseconds',)),
    (field.copied_topic, 'copied_topic', '/imu/relay', ('8000 of 8000',)),
    (field.publish_clock_behind, 'publish_clock', '/imu/data', ('3.000 s behind',)),
    (field.slow_middleware, 'transport_delay', '/camera/image_raw', ('60.0 ms',)),
    (field.seconds_and_rest_swapped, 'stamp_unit', '/imu/data', ('are swapped',)),
    (field.seconds_rounded, 'stamp_unit', '/imu/data', ('1 s ahead', 'in 50.0 %')),
    (field.seconds_read_too_early, 'stamp_unit', '/imu/data', ('1 s behind', 'in 2.0 %')),
    (field.header_filled_once, 'frozen_stamps', '/lidar/points', ('400 times in a row',)),
    (field.host_slewed, 'clock_wander', '/camera/image_raw', ('clock of the host', '`chronyc')),
    (field.polled_by_usb, 'arrivals_in_batches', '/imu/data', ('are stamped then',)),
    (field.slow_publisher_beside_a_fast_one, 'two_sources', '/imu/data', ('200 and 50',)),
    (field.second_robot, 'future_stamps', '/other/odom', ('/other/lidar/points', '429.9 ms')),
    (field.one_receive_time, 'no_receive_times', 'the recording', ('11600 messages', '2025-11')),
    (field.lidar_dies, 'ends_early', '/lidar/points', ('silent after 20.', 'for 19.')),
    (field.camera_slows_down, 'rate_changes', '/camera/image_raw', ('30.0 Hz', '15.0 Hz')),
    (field.stamps_counted_up, 'clock_drift', '/imu/data', ('no crystal does',)),
    (field.recorded_in_simulated_time, 'simulated_time', '/imu/data', ('steps of 10.0 ms',)),
    (field.recorded_twice, 'doubled_messages', '/lidar/points', ('/odom', 'earlier one')),
    (
        field.camera_info_once_a_second,
        'camera_info_differs',
        '/camera/camera_info',
        ('40 camera_info for',),
    ),
    (
        field.camera_repeats_stamps,
        'repeated_stamps',
        '/camera/camera_info',
        ('39 of 1200', '/camera/image_raw'),
    ),
]
BESIDE = {'power_up_seconds_as_float32': {'stamp_float'}}
"""What else is true of a case."""


@pytest.mark.parametrize(('fault', 'code', 'topic', 'words'), CASES)
def test_the_cause_comes_first_and_nothing_false_beside_it(
    fault: Callable[[Robot], None], code: str, topic: str, words: tuple[str, ...]
) -> None:
    robot = Robot(1)
    fault(robot)
    findings = robot.findings()
    said = [each.sentence for each in findings]
    assert findings[0].code == code, said
    assert topic in findings[0].topics
    assert all(word in findings[0].sentence for word in words), said[0]
    beside = {each.code for each in findings[1:] if each.severity > Severity.INFO}
    assert beside <= BESIDE.get(fault.__name__, set()), said


@pytest.mark.parametrize('seed', range(6))
def test_a_sound_robot_has_nothing_but_its_host_stamps(seed: int) -> None:
    assert {each.code for each in Robot(seed).findings()} <= {'host_stamps'}


@pytest.mark.parametrize('seed', range(20))
def test_a_sound_robot_of_any_topics_has_nothing_wrong(seed: int) -> None:
    findings = field.mild(seed).findings()
    assert not [each.sentence for each in findings if each.severity > Severity.INFO]


def test_no_sentence_has_a_number_that_nobody_can_read() -> None:
    for fault, *_ in CASES:
        robot = Robot(2)
        fault(robot)
        for each in robot.findings():
            long = [word for word in each.sentence.split() if sum(map(str.isdigit, word)) > 9]
            assert not [word for word in long if '-' not in word], each.sentence


def write(robot: Robot, path: Path) -> str:
    with BagWriter(path) as writer:
        for name, stream in robot.streams.items():
            writer.add_topic(name, stream.type_name)
        merged = sorted(
            (
                (arrival, name, raw, publish)
                for name, stream in robot.streams.items()
                for raw, arrival, publish in messages(stream)
            ),
            key=lambda each: each[0],
        )
        for arrival, name, raw, publish in merged:
            writer.write(name, arrival, raw, publish)
    return str(path)


def short(count: int) -> Robot:
    robot = Robot(3, seconds=0.3)
    robot.streams = {'/imu/data': robot.imu}
    kept = np.arange(len(robot.imu.stamps)) < count
    robot.imu.keep(kept)
    return robot


@pytest.mark.parametrize('count', [0, 1, 60])
def test_where_nothing_could_be_checked_it_says_so_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int
) -> None:
    assert main(['inspect', write(short(count), tmp_path / 'bag')]) == 1
    out = capsys.readouterr().out
    assert 'nothing could be checked' in out
    assert 'nothing found' not in out


def test_what_was_not_checked_is_listed_with_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = Robot(4, seconds=12.0)
    bag = write(robot, tmp_path / 'bag')
    page = tmp_path / 'page.html'
    assert main(['inspect', bag, '--json', '--html', str(page)]) == 0
    gaps = json.loads(capsys.readouterr().out)['not_checked']
    reasons = {
        code: each['missing']
        for each in gaps
        for code in each['codes']
        if '/camera/image_raw' in each['topics']
    }
    assert 'turning' in reasons['clock_offset']  # its pictures show none
    assert reasons['clock_drift'] == '20 s'
    assert 'Not checked' in page.read_text()
    assert main(['inspect', bag, '--fail-on', 'unchecked']) == 1
    assert 'not checked: ' in capsys.readouterr().out
    assert main(['inspect', bag, '--quick']) == 0
    assert '--quick' in capsys.readouterr().out


def test_receive_times_that_are_copies_of_the_stamps_tell_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = Robot(5)
    for stream in robot.streams.values():
        stream.arrivals = stream.stamps
    main(['inspect', write(robot, tmp_path / 'bag'), '--quick', '--json'])
    result = json.loads(capsys.readouterr().out)
    assert not [each for each in result['findings'] if each['severity'] != 'info']
    missing = {code for each in result['not_checked'] for code in each['codes']}
    assert {'clock_drift', 'clock_tai', 'host_stamps', 'arrivals_in_batches'} <= missing


def test_lost_messages_of_a_damaged_file_come_first(tmp_path: Path) -> None:
    from sensor_rig.findings.search import search

    robot = Robot(6)
    field.paused_recorder(robot)
    findings = search(robot.records(), ['3000 messages are missing']).findings
    assert findings[0].code == 'damaged'
    assert 'recorder_hiccup' in findings[0].explains
    assert [each.code for each in findings if each.severity > Severity.INFO] == ['damaged']


@pytest.mark.parametrize('kind', ['mcap', 'mcap without checksums', 'mcap without chunks', 'db3'])
@pytest.mark.parametrize('cut', [True, False])
def test_damage_is_said_with_a_number_and_is_no_fault_of_a_sensor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, cut: bool
) -> None:
    bag = make(kind, tmp_path, 800)
    file = storage_files(bag)[0]
    data = bytearray(file.read_bytes())
    half, long = len(data) // 2, len(data) // 10
    if cut:
        del data[half:]
    else:
        data[half : half + long] = bytes(long)
    file.write_bytes(data)
    assert main(['inspect', str(bag), '--quick', '--json']) == 1
    result = json.loads(capsys.readouterr().out)
    said = [each for each in result['findings'] if each['severity'] != 'info']
    assert [each['code'] for each in said] == ['damaged'], said
    assert re.search(r'\d+ messages are left', said[0]['what']), said[0]['what']
    assert said[0]['rests_on'] == 'the file'
    gaps = [each for each in result['not_checked'] if 'damage' in each['missing']]
    assert {'dropped_frames', 'stray_stamps'} <= {code for each in gaps for code in each['codes']}


def test_a_finding_rests_on_what_its_kind_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Never on less: what is listed as not checked is not found on the same topic."""
    for count, fault in ((15, field.rounded_to_10_ms), (40, field.milliseconds_since_1970)):
        robot = short(count)
        fault(robot)
        main(['inspect', write(robot, tmp_path / str(count)), '--quick', '--json'])
        result = json.loads(capsys.readouterr().out)
        gaps = {
            (code, t) for e in result['not_checked'] for code in e['codes'] for t in e['topics']
        }
        found = {(each['code'], topic) for each in result['findings'] for topic in each['topics']}
        assert not gaps & found
        assert all(each['rests_on'] for each in result['findings'])
    main(['inspect', str(tmp_path / '40'), '--quick'])
    assert '(rests on stamps and receive times)' in ' '.join(capsys.readouterr().out.split())


def test_the_time_of_publishing_is_kept_and_splits_the_delay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    robot = Robot(9, seconds=6.0)
    field.slow_middleware(robot)
    bag = write(robot, tmp_path / 'bag')
    main(['inspect', bag, '--json', '--quick', '--write', str(tmp_path / 'rig.yaml')])
    result = json.loads(capsys.readouterr().out)
    camera = next(each for each in result['topics'] if each['name'] == '/camera/image_raw')
    assert camera['transport_s'] == pytest.approx(0.06)
    main(['inspect', bag, '--quick'])
    out = ' '.join(capsys.readouterr().out.split())
    assert 'ms pass until it is published and 60.00 ms until it is received' in out
    copy = str(tmp_path / 'copy')
    main(['sync', bag, copy, '--rig', str(tmp_path / 'rig.yaml'), '--copy'])
    with BagReader(bag) as one, BagReader(copy) as other:
        sent = [each.publish_ns for each in one.messages(['/camera/image_raw'])]
        assert sent == robot.streams['/camera/image_raw'].publishes.tolist()
        assert sent == [each.publish_ns for each in other.messages(['/camera/image_raw'])]


def test_where_nothing_is_known_stamps_are_paired_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag = write(Robot(10, seconds=12.0), tmp_path / 'bag')
    rig = tmp_path / 'rig.yaml'
    main(['inspect', bag, '--write', str(rig)])
    assert 'stamps are paired as they are' in rig.read_text()
    capsys.readouterr()
    main(['sync', bag, str(tmp_path / 'out'), '--rig', str(rig), '--json'])
    result = json.loads(capsys.readouterr().out)
    assert result['bundles'] == result['reference_frames'] == 120
    assert result['reference_frames_without_bundle'] == 0
    assert {each['offset_ms'] for each in result['sensors'].values() if 'offset_ms' in each} <= {0}
    wrong = Robot(10, seconds=12.0)
    field.tai(wrong)
    main(['inspect', write(wrong, tmp_path / 'tai'), '--write', str(tmp_path / 'tai.yaml')])
    assert 'estimator: none' not in (tmp_path / 'tai.yaml').read_text()


def test_topics_of_one_source_are_one_finding() -> None:
    robot = Robot(7)
    lidar = robot.streams['/lidar/points']
    for number in range(4):
        robot.streams[f'/driver/{number}'] = field.Stream(
            IMAGE, lidar.stamps, lidar.arrivals + 1000 * number, marks=lidar.stamps + number
        )
    field.pps_lost(robot)
    for number in range(4):
        robot.streams[f'/driver/{number}'].stamps = lidar.stamps
    steps = [each for each in robot.findings() if each.code == 'clock_step']
    assert len(steps) == 1
    assert len(steps[0].topics) == 5


def test_two_faults_on_one_topic_are_both_found() -> None:
    """A wrong unit is undone, so that the loss behind it shows."""
    robot = Robot(8)
    robot.imu.keep(robot.random.random(len(robot.imu.stamps)) > 0.05)
    field.milliseconds_as_nanoseconds(robot)
    codes = {each.code for each in robot.findings()}
    assert {'stamp_unit', 'dropped_frames'} <= codes


def test_seconds_that_are_rounded_are_seen_through_a_loop() -> None:
    robot = Robot(11)
    field.looped_with_seconds_rounded(robot)
    said = {each.code for each in robot.findings() if each.severity > Severity.INFO}
    assert said == {'looped', 'stamp_unit'}


def test_a_header_alone_is_enough(tmp_path: Path) -> None:
    """Types that nobody knows are inspected by their stamps, as long as they have some."""
    raw = bytes(msgs.imu('imu').fill(START_NS))
    with BagWriter(tmp_path / 'bag') as writer:
        writer.add_topic('/imu/data', IMU)
        for k in range(100):
            writer.write('/imu/data', START_NS + k * S // 20, raw)
    assert main(['inspect', str(tmp_path / 'bag')]) == 1


@pytest.mark.long
def test_most_of_two_faults_at_once_are_found() -> None:
    from bench.findings import pairs

    cell = pairs(150)
    assert cell.found >= 0.9 * cell.recordings
    assert cell.false_wrong // 2 <= 3
