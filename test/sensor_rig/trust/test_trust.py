"""`rig trust`: claims that hold are believed, others are not."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.trust_streams import OPTICAL_WXYZ, Habits

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.msgs.decode import read_imu
from rig_common.quaternions import matrix_from_wxyz, product
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import starter_rig
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.findings.recording import inspect_recording
from sensor_rig.rigfile import load_rig
from sensor_rig.trust.replay import engine_track
from sensor_rig.trust.report import BLIND, TrustReport, verdict
from sensor_rig.trust.scoring import score
from sensor_rig.trust.streams import read_streams
from sensor_rig.trust.trust_page import trust_page

RIG = """/**:
  ros__parameters:
    sync:
      inputs:
        imu: {topic: /imu, type: sensor_msgs/msg/Imu, latency_s: 0.003, latency_sigma_s: 0.001, collect: true}
        camera: {topic: /pose, type: geometry_msgs/msg/PoseStamped, cue: CUE, latency_s: 0.03, latency_sigma_s: 0.01}
      reference_sensor_id: camera
      imu_sensor_id: imu
"""  # noqa: E501


def test_honest_claims_hold_and_the_verdict_says_what_it_cannot_see():
    found = score(Habits(0, duration_s=32.0).streams(), engine_track)
    assert found.holds, verdict(found)
    assert BLIND in verdict(found)
    assert {response.name for response in found.responses if response.wanted == 'refuse'} == {
        'motion removed',
        'gyro replaced by noise',
    }
    document = TrustReport('somewhere', (found,)).document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_clock_that_wanders_beyond_its_claims_is_not_believed():
    found = score(Habits(1, duration_s=40.0, wander_s=0.006).streams(), engine_track)
    assert not found.holds
    assert found.consistency.nees > found.consistency.nees_limit
    assert 'do not believe' in verdict(found)


def test_without_motion_there_is_nothing_to_believe():
    found = score(Habits(2, duration_s=12.0, motion_scale=0.0).streams(), engine_track)
    assert not found.holds
    assert not found.locked
    said = verdict(found)
    assert 'nothing to believe' in said or 'is not shown' in said


def test_an_estimate_that_does_not_listen_is_caught():
    """One that returns the same offset whatever the stamps say fails every response."""
    streams = Habits(0, duration_s=25.0).streams()
    base = engine_track(streams)
    found = score(streams, lambda changed: base)
    failed = {response.name for response in found.responses if not response.passed}
    assert {'stamps 37 ms ahead', 'stamps 112 ms behind', 'clock steps by 60 ms'} <= failed


def test_lost_messages_join_the_turns_around_them():
    streams = Habits(0, duration_s=6.0, loss=0.0).streams()
    third = streams.turns[2][0]
    lost = np.arange(len(streams.is_imu)) == third
    joined = streams.without(lost)
    assert len(joined.turns) == len(streams.turns) - 1
    one, two, both = streams.turns[2][1], streams.turns[3][1], joined.turns[2][1]
    assert (both.stamp_from_ns, both.stamp_to_ns) == (one.stamp_from_ns, two.stamp_to_ns)
    assert both.values_rad == pytest.approx(np.add(one.values_rad, two.values_rad))
    assert joined.stamp_ns[joined.turns[2][0]] == two.stamp_to_ns
    moved = streams.with_stamps(lambda stamps: np.full_like(stamps, 5))
    assert (moved.stamp_ns - streams.stamp_ns == np.where(streams.is_imu, 0, 5)).all()
    assert moved.turns[4][1].stamp_to_ns == streams.turns[4][1].stamp_to_ns + 5


@pytest.fixture(scope='module')
def recording(tmp_path_factory):
    """Return the folder of a recording of an IMU and of poses in a camera's frame."""
    habits = Habits(0, duration_s=30.0)
    streams, captures = habits.streams(), habits.captures_s()
    imu, pose = msgs.imu('imu'), msgs.pose_stamped('map')
    orientations = iter(_orientations(habits, captures))
    path = tmp_path_factory.mktemp('bags') / 'walk'
    with BagWriter(path, 'mcap') as bag:
        bag.add_topic('/imu', 'sensor_msgs/msg/Imu')
        bag.add_topic('/pose', 'geometry_msgs/msg/PoseStamped')
        for k, arrival_ns in enumerate(streams.arrival_ns.tolist()):
            stamp_ns = int(streams.stamp_ns[k])
            if streams.is_imu[k]:
                raw = imu.fill(
                    stamp_ns,
                    angular_velocity=streams.gyro[k],
                    linear_acceleration=(0.0, 0.0, 9.8),
                )
                bag.write('/imu', arrival_ns, raw)
            else:
                bag.write('/pose', arrival_ns, pose.fill(stamp_ns, orientation=next(orientations)))
    return path


def _orientations(habits, captures):
    """Yield the attitude (xyzw) of the camera: the gyro's rates, integrated finely."""
    step_s = 1e-3
    times = np.arange(0.0, habits.duration_s, step_s)
    rates = habits.motion().rate(times + 0.5 * step_s) @ matrix_from_wxyz(OPTICAL_WXYZ)
    attitude, at = (1.0, 0.0, 0.0, 0.0), 0
    for capture in captures:
        while times[at] + step_s <= capture:
            attitude = product(attitude, (1.0, *(0.5 * step_s * rates[at]).tolist()))
            at += 1
        rest = (1.0, *(0.5 * (capture - times[at]) * rates[at]).tolist())
        w, x, y, z = product(attitude, rest)
        size = np.sqrt(w * w + x * x + y * y + z * z)
        yield np.array([x, y, z, w]) / size


def test_a_recording_is_scored_from_the_command_line(recording, tmp_path, capsys):
    rig, page = tmp_path / 'rig.yaml', tmp_path / 'trust.html'
    rig.write_text(RIG.replace('CUE', 'odometry'))
    assert main(['trust', str(recording), '--rig', str(rig), '--json', '--html', str(page)]) == 0
    document = json.loads(capsys.readouterr().out)
    camera = document['sensors']['camera']
    assert document['version'] == 1
    assert document['holds'] is camera['holds'] is True
    assert len(camera['responses']) == 8
    assert camera['consistency']['nees'] <= camera['consistency']['nees_limit']
    text = page.read_text()
    assert 'May these offsets be believed?' in text
    assert camera['verdict'][:40] in text


def test_a_recording_needs_no_rig_file(recording, capsys):
    assert main(['trust', str(recording), '--json']) in (0, 1)
    (pose,) = json.loads(capsys.readouterr().out)['sensors'].values()
    assert pose['motion_fixes'] > 5  # although nobody said how the camera is mounted


@pytest.fixture(scope='module')
def without_imu(recording, tmp_path_factory):
    """Return the same recording with the gyro's turns as the poses of a tracker, and no IMU."""
    path = tmp_path_factory.mktemp('bags') / 'tracked'
    pose, attitude, last = msgs.pose_stamped('map'), (1.0, 0.0, 0.0, 0.0), None
    with BagReader(recording) as bag, BagWriter(path, 'mcap') as out:
        for topic in ('/pose', '/tracker'):
            out.add_topic(topic, 'geometry_msgs/msg/PoseStamped')
        for topic, arrival_ns, raw, _ in bag.messages():
            if topic == '/pose':
                out.write(topic, arrival_ns, raw)
                continue
            stamp_ns, rate = read_stamp_ns(raw), np.array(read_imu(raw)[0])
            if last is not None:
                half = 0.25e-9 * (stamp_ns - last[0]) * (rate + last[1])
                w, *xyz = product(attitude, (1.0, *half.tolist()))
                attitude = tuple((np.array([w, *xyz]) / np.linalg.norm([w, *xyz])).tolist())
            last = stamp_ns, rate
            out.write(
                '/tracker', arrival_ns, pose.fill(stamp_ns, orientation=np.roll(attitude, -1))
            )
    return path


def test_without_an_imu_another_stream_takes_its_place(without_imu, tmp_path):
    """What is found of the same motion is the same."""
    with BagReader(without_imu) as bag:
        seen = inspect_recording(bag)
        facts = seen.facts
    assert [*seen.curves] == ['/pose']
    (said,) = (each for each in seen.findings if 'offset_ms' in each.evidence)
    assert (said.topics, said.related) == (('/pose',), ('/tracker',))
    rig = tmp_path / 'rig.yaml'
    rig.write_text(starter_rig(facts, 'tracked'))
    config = load_rig(rig).sync
    assert config is not None
    (streams,) = read_streams(without_imu, config)
    assert (streams.sensor, streams.imu) == ('pose', 'tracker')
    track = engine_track(streams)
    assert track.fixes > 5
    true_ms = 1e3 * Habits(0).true_offset_s(np.array(30.0))
    for offset_ms, sigma_ms in (
        (said.evidence['offset_ms'], said.evidence['sigma_ms']),
        (1e-6 * track.offset_ns[-1], 1e3 * track.sigma_s[-1]),
    ):
        assert abs(offset_ms - true_ms) < max(2.5 * sigma_ms, 0.5)
        assert sigma_ms < 2.0


def test_one_stream_alone_has_nothing_to_be_compared_with(without_imu, tmp_path, capsys):
    alone = tmp_path / 'alone'
    with BagReader(without_imu) as bag, BagWriter(alone, 'mcap') as out:
        out.add_topic('/pose', 'geometry_msgs/msg/PoseStamped')
        for _, arrival_ns, raw, _ in bag.messages(['/pose']):
            out.write('/pose', arrival_ns, raw)
    with BagReader(alone) as bag:
        lone = inspect_recording(bag)
    assert any('an IMU' in each.missing for each in lone.coverage.unchecked)
    assert not lone.curves
    assert main(['trust', str(alone)]) == 2
    said = capsys.readouterr().err
    assert 'it needs an IMU and an input with a cue' in said and 'two such inputs' in said


def test_mistakes_are_one_sentence(recording, tmp_path, capsys):
    rig = tmp_path / 'rig.yaml'
    rig.write_text(RIG.replace('CUE', 'none'))
    for arguments, says in (
        (['trust', str(recording), '--rig', str(rig)], "beside 'imu' no other stream"),
        (['trust', str(tmp_path / 'nowhere')], 'there is no recording'),
        (
            ['trust', str(recording), '--html', str(tmp_path / 'no' / 'page.html')],
            'a folder that exists',
        ),
    ):
        assert main(arguments) == 2
        assert says in capsys.readouterr().err


def test_a_recording_too_short_to_compare_stretches_shows_nothing():
    found = score(Habits(0, duration_s=14.0).streams(), engine_track)
    assert not found.consistency.enough
    assert not found.holds and not found.refuted, verdict(found)
    assert 'is not shown' in verdict(found) and 'too few stretches' in verdict(found)
    assert 'claims not shown' in trust_page(TrustReport('somewhere', (found,)).document())
