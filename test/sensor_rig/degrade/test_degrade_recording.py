"""Recordings made by hand, degraded: who arrives when, with which stamp, and where the rest is."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs import read_time_reference
from rig_common.msgs.decode import read_cloud
from sensor_rig.bags.reader import BagReader, Recorded
from sensor_rig.bags.writer import BagWriter, Storage
from sensor_rig.degrade.recording import FATES, DegradeResult, degrade_recording
from sensor_rig.rigfile import rig_from_parameters
from sensor_rig.rigfile.stream_topics import assign

S, MS = 10**9, 10**6
T0 = 1_700_000_000 * S
IMU = msgs.imu('imu')
IMAGE = msgs.image('camera', 4, 4, 'mono8')
INFO = 'sensor_msgs/msg/CameraInfo'
TEXT = 'std_msgs/msg/String'
Message = tuple[str, str, int, bytes]
"""Topic, type, receive time (ns), bytes."""


def imus(
    count: int,
    period_ms: float = 10.0,
    late_ms: float = 1.0,
    topic: str = '/imu/data',
    start_ns: int = T0,
) -> list[Message]:
    """Return IMU messages stamped every `period_ms` and received `late_ms` later."""
    found = []
    for k in range(count):
        stamp_ns = start_ns + round(k * period_ms * MS)
        raw = IMU.fill(stamp_ns, linear_acceleration=[float(k), 0.0, 9.8])
        found.append((topic, IMU.type_name, stamp_ns - start_ns + T0 + round(late_ms * MS), raw))
    return found


def write(folder: Path, messages: list[Message], storage: Storage = 'mcap') -> Path:
    with BagWriter(folder, storage) as writer:
        for topic, type_name, receive_ns, raw in sorted(messages, key=lambda each: each[2]):
            writer.add_topic(topic, type_name)
            writer.write(topic, receive_ns, raw)
    return folder


def degrade(
    tmp_path: Path, messages: list[Message], streams: dict[str, Any], *, seed: int = 3
) -> tuple[DegradeResult, dict[str, list[Recorded]]]:
    """Degrade messages; return the result, and what is in the new recording by topic."""
    source = write(tmp_path / 'in', messages)
    rig = rig_from_parameters({'seed': seed, 'streams': streams})
    result = degrade_recording(source, tmp_path / 'out', rig)
    return result, read(tmp_path / 'out')


def read(folder: Path) -> dict[str, list[Recorded]]:
    found: dict[str, list[Recorded]] = {}
    with BagReader(folder) as bag:
        for each in bag.messages():
            found.setdefault(each.topic, []).append(each)
    return found


def stamps(messages: list[Recorded]) -> list[int]:
    return [read_stamp_ns(each.raw) - T0 for each in messages]


def values(messages: list[Recorded]) -> list[float]:
    return [float(IMU.read(each.raw)[1]['linear_acceleration'][0]) for each in messages]


def test_delay_counts_from_the_receive_time_and_the_clock_from_the_stamp(tmp_path: Path) -> None:
    result, out = degrade(
        tmp_path,
        imus(50),
        {
            'imu': {
                'topics': ['/imu/data'],
                'delay_range_s': [0.02, 0.02],
                'clock': {'offset_s': -0.1, 'drift_ppm': 1000.0},
                'start_time_s': T0 / S,
            }
        },
    )
    received = [each.receive_ns - T0 for each in out['/imu/data']]
    assert received == [k * 10 * MS + 1 * MS + 20 * MS for k in range(50)]
    assert stamps(out['/imu/data']) == [
        k * 10 * MS - 100 * MS + k * 10 * MS // 1000 for k in range(50)
    ]
    assert result.delays['imu']['max_s'] == pytest.approx(0.02)


def test_a_message_is_published_later_by_as_much_as_it_arrives_later(tmp_path: Path) -> None:
    """What it took from its publisher to the recorder stays what it was; other topics keep it."""
    with BagWriter(tmp_path / 'in') as writer:
        for topic in ('/imu/data', '/other'):
            writer.add_topic(topic, IMU.type_name)
        for _, _, receive_ns, raw in imus(20, late_ms=3.0):
            for topic in ('/imu/data', '/other'):
                writer.write(topic, receive_ns, raw, receive_ns - MS)
    stream = {'topics': ['/imu/data'], 'delay_range_s': [0.02, 0.02], 'jitter_s': 0.005}
    rig = rig_from_parameters({'seed': 3, 'streams': {'imu': stream}})
    degrade_recording(tmp_path / 'in', tmp_path / 'out', rig)
    out = read(tmp_path / 'out')
    for topic in ('/imu/data', '/other'):
        assert [each.receive_ns - each.publish_ns for each in out[topic]] == [MS] * 20
    assert out['/imu/data'][0].publish_ns > out['/other'][0].publish_ns + 19 * MS


def test_base_stamp_takes_the_recorded_delay_away_and_keeps_the_order(tmp_path: Path) -> None:
    late = imus(40, late_ms=95.0)
    _, out = degrade(
        tmp_path,
        [*late, *imus(40, late_ms=0.0, topic='/other')],
        {
            'imu': {
                'topics': ['/imu/data'],
                'base': 'stamp',
                'capture_s': 0.002,
                'delay_range_s': [0.003, 0.003],
            }
        },
    )
    assert [each.receive_ns - T0 for each in out['/imu/data']] == [
        k * 10 * MS + 5 * MS for k in range(40)
    ]
    written = [row for row in _in_order(tmp_path / 'out') if not row[0].startswith('/truth')]
    assert [receive_ns for _, receive_ns in written] == sorted(each[1] for each in written)
    assert [topic for topic, _ in written[:4]] == ['/other', '/imu/data'] * 2


def _in_order(folder: Path) -> list[tuple[str, int]]:
    """Return what was written, in the order of writing."""
    from rosbags.rosbag2 import Reader

    with Reader(folder) as reader:
        return [(connection.topic, time_ns) for connection, time_ns, _ in reader.messages()]


def test_a_picture_and_its_info_share_their_fate_whoever_comes_first(tmp_path: Path) -> None:
    info = msgs.camera_info('camera', 4, 4, k=[1.0] * 9)
    messages: list[Message] = []
    for k in range(200):
        stamp_ns, first = T0 + k * 33 * MS, k % 2
        for place, (topic, kind, raw) in enumerate(
            (
                ('/camera/image_raw', IMAGE.type_name, IMAGE.fill(stamp_ns)),
                ('/camera/camera_info', INFO, info.fill(stamp_ns)),
            )
        ):
            messages.append((topic, kind, stamp_ns + (5 + (place ^ first)) * MS, raw))
    result, out = degrade(
        tmp_path,
        messages,
        {
            'camera': {
                'topics': ['/camera/*'],
                'delay_range_s': [0.05, 0.05],
                'jitter_s': 0.03,
                'clock': {'offset_s': 0.01, 'stamp_jitter_s': 0.002},
                'loss': {'probability': 0.2, 'burst_mean': 2.0},
                'rate_hz': 15.0,
            }
        },
    )
    pictures, infos = out['/camera/image_raw'], out['/camera/camera_info']
    assert sorted(stamps(pictures)) == sorted(stamps(infos))
    assert len(set(stamps(pictures))) == len(pictures) < 90
    accounts = result.accounts
    assert (
        accounts['/camera/image_raw'].lost_by_loss
        == accounts['/camera/camera_info'].lost_by_loss
        > 5
    )
    assert accounts['/camera/image_raw'].thinned == 101  # 99 periods of 15 Hz in 6.6 s
    assert len(out['/truth/time/camera']) == len(pictures)


def test_a_stream_may_share_only_the_clock_of_another(tmp_path: Path) -> None:
    messages = [
        *imus(100),
        *imus(100, late_ms=4.0, topic='/imu/mag'),
        *imus(100, late_ms=0.5, topic='/imu/early'),
    ]
    clock = {'offset_s': 0.2, 'stamp_jitter_s': 0.003, 'drift_ppm': 100.0}
    _, out = degrade(
        tmp_path,
        messages,
        {
            'imu': {'topics': ['/imu/data'], 'clock': clock},
            'mag': {
                'topics': ['/imu/mag', '/imu/early'],
                'clock_of': 'imu',
                'delay_range_s': [0.01, 0.01],
            },
        },
    )
    assert stamps(out['/imu/mag']) == stamps(out['/imu/data']) == stamps(out['/imu/early'])
    assert stamps(out['/imu/data']) != [k * 10 * MS + 200 * MS for k in range(100)]


def test_types_without_header_are_delayed_and_lost(tmp_path: Path) -> None:
    messages = [('/said', TEXT, T0 + k * 10 * MS, msgs.string_message(f'{k}')) for k in range(300)]
    result, out = degrade(
        tmp_path,
        messages,
        {'words': {'topics': ['said'], 'delay_range_s': [0.1, 0.1], 'loss': {'probability': 0.3}}},
    )
    account = result.accounts['/said']
    assert 50 < account.lost_by_loss < 130
    assert len(out['/said']) == 300 - account.lost_by_loss
    assert out['/said'][0].receive_ns >= T0 + 100 * MS
    lost = [read_time_reference(each.raw) for each in out['/truth/fate/words']]
    assert len(lost) == account.lost_by_loss
    assert all(
        arrival_ns - receive_ns == 100 * MS and source == 'lost'
        for receive_ns, _, arrival_ns, source in lost
    )


def test_stuck_repeats_the_last_payload_under_new_stamps(tmp_path: Path) -> None:
    _, out = degrade(
        tmp_path,
        imus(30),
        {
            'imu': {
                'topics': ['/imu/data'],
                'faults': {'jam': {'kind': 'stuck', 'at_s': 0.1, 'duration_s': 0.1}},
            }
        },
    )
    assert stamps(out['/imu/data']) == [k * 10 * MS for k in range(30)]
    # the recording starts 1 ms after the first stamp
    assert values(out['/imu/data']) == [*range(11), *[10] * 10, *range(21, 30)]


@pytest.mark.parametrize(('rate_hz', 'kept'), [(20.0, {0, 2}), (10.0, {0}), (30.0, {0, 1, 2})])
def test_rate_leaves_messages_out_evenly(tmp_path: Path, rate_hz: float, kept: set[int]) -> None:
    jitter = np.random.default_rng(1).normal(0.0, 0.5, 90)
    messages = [
        (
            '/imu/data',
            IMU.type_name,
            T0 + round(k * 1000 / 30 * MS) + 5 * MS,
            IMU.fill(
                T0 + round((k * 1000 / 30 + jitter[k] * (k > 0)) * MS),
                linear_acceleration=[float(k), 0.0, 0.0],
            ),
        )
        for k in range(90)
    ]
    result, out = degrade(
        tmp_path, messages, {'imu': {'topics': ['/imu/data'], 'rate_hz': rate_hz}}
    )
    found = values(out['/imu/data'])
    assert {int(k) % 3 for k in found} == kept
    assert result.accounts['/imu/data'].thinned == 90 - len(found)
    assert len(found) == 30 * len(kept)


def cloud(stamp_ns: int, field: str, kind: str, times: Any) -> Message:
    points = np.zeros(len(times), [('x', '<f4'), (field, kind)])
    points[field] = times
    template = msgs.point_cloud2('lidar', points.dtype, len(points))
    return (
        '/points',
        template.type_name,
        stamp_ns + 5 * MS,
        template.fill(stamp_ns, points=points),
    )


@pytest.mark.parametrize(
    ('field', 'kind', 'times', 'moved'),
    [
        ('time', '<f4', [0.0, 0.05, 0.1], [0.0, 0.05, 0.1]),
        ('t', '<u4', [0, 50_000_000], [0, 50_000_000]),
        ('timestamp', '<f8', [T0 / S, T0 / S + 0.1], [T0 / S - 0.25, T0 / S - 0.15]),
    ],
)
def test_point_times_stay_true_on_the_clock_that_wrote_them(
    tmp_path: Path, field: str, kind: str, times: list[float], moved: list[float]
) -> None:
    _, out = degrade(
        tmp_path,
        [cloud(T0, field, kind, times)],
        {'lidar': {'topics': ['/points'], 'clock': {'offset_s': -0.25}}},
    )
    read_back = read_cloud(out['/points'][0].raw)
    assert read_back.stamp_ns == T0 - 250 * MS
    assert read_back.points[field].tolist() == pytest.approx(moved, abs=1e-6)


def test_stamps_of_another_epoch_drift_from_their_own_start(tmp_path: Path) -> None:
    result, out = degrade(
        tmp_path,
        imus(100, start_ns=50 * S),
        {
            'imu': {
                'topics': ['/imu/data'],
                'clock': {'drift_ppm': 1000.0},
                'faults': {'gap': {'kind': 'dead', 'at_s': 0.5, 'duration_s': 0.1}},
            }
        },
    )
    found = [read_stamp_ns(each.raw) for each in out['/imu/data']]
    assert found == [50 * S + k * 10 * MS + k * MS // 100 for k in range(100) if not 50 <= k < 60]
    assert 'another epoch' in result.notes[0]


def test_the_truth_of_a_recording_is_carried_on(tmp_path: Path) -> None:
    messages = imus(20)
    reference = msgs.time_reference('imu', 'imu')
    for k in range(20):  # the device's clock was 70 ms ahead when it was recorded
        stamp_ns = T0 + k * 10 * MS
        messages.append(
            (
                '/truth/time/imu',
                reference.type_name,
                stamp_ns + MS // 2,
                reference.fill(stamp_ns - 70 * MS, time_ref=divmod(stamp_ns, S)),
            )
        )
    result, out = degrade(
        tmp_path, messages, {'imu': {'topics': ['/imu/data'], 'clock': {'offset_s': 0.5}}}
    )
    pairs = [read_time_reference(each.raw) for each in out['/truth/time/imu']]
    assert [(capture_ns - T0, stamp_ns - T0) for capture_ns, _, stamp_ns, _ in pairs] == [
        (k * 10 * MS - 70 * MS, k * 10 * MS + 500 * MS) for k in range(20)
    ]
    assert result.accounts['/truth/time/imu'].replaced == 20


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_the_same_input_gives_the_same_bytes(tmp_path: Path, storage: Storage) -> None:
    source = write(tmp_path / 'in', imus(200), storage)
    streams = {
        'imu': {
            'topics': ['/imu/*'],
            'delay_range_s': [0.0, 0.1],
            'clock': {'stamp_jitter_s': 0.01},
            'loss': {'probability': 0.3, 'burst_mean': 4.0},
        }
    }

    def digest(name: str, seed: int) -> str:
        rig = rig_from_parameters({'seed': seed, 'streams': streams})
        degrade_recording(source, tmp_path / name, rig, storage=storage)
        whole = b''.join(
            f'{each.topic} {each.receive_ns}'.encode() + each.raw
            for messages in read(tmp_path / name).values()
            for each in messages
        )
        return hashlib.sha256(whole + (tmp_path / name / FATES).read_bytes()).hexdigest()

    assert digest('a', 1) == digest('b', 1) != digest('c', 2)


TIMINGS = st.fixed_dictionaries(
    {
        'topics': st.just(['/imu/*']),
        'base': st.sampled_from(['arrival', 'stamp']),
        'delay_range_s': st.sampled_from([[0.0, 0.0], [0.03, 0.2], [0.2, 0.2]]),
        'loss': st.fixed_dictionaries(
            {
                'probability': st.sampled_from([0.0, 0.2, 0.9]),
                'burst_mean': st.sampled_from([1.0, 5.0]),
            }
        ),
        'rate_hz': st.sampled_from([0.0, 10.0, 50.0]),
        'faults': st.fixed_dictionaries(
            {},
            optional={
                'a': st.just({'kind': 'dead', 'at_s': 0.2, 'duration_s': 0.1}),
                'b': st.just({'kind': 'loss_burst', 'at_s': 0.1, 'scale': 0.5}),
                'c': st.just({'kind': 'slow', 'at_s': 0.0, 'duration_s': 0.4, 'offset': 0.5}),
            },
        ),
    }
)


@given(timing=TIMINGS, seed=st.integers(0, 99), late_ms=st.sampled_from([0.0, 3.0, 400.0]))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_message_has_its_place_and_arrivals_are_in_order(
    tmp_path_factory: pytest.TempPathFactory, timing: dict[str, Any], seed: int, late_ms: float
) -> None:
    folder = tmp_path_factory.mktemp('ledger')
    messages = [
        *imus(80, late_ms=late_ms),
        *imus(80, late_ms=1.0, topic='/imu/more'),
        *imus(80, topic='/plain'),
    ]
    result, out = degrade(folder, messages, {'imu': timing}, seed=seed)
    for topic, account in result.accounts.items():
        assert account.read == 80 and account.difference == 0 and account.in_flight == 0
        assert account.written == len(out.get(topic, []))
    assert stamps(out['/plain']) == [k * 10 * MS for k in range(80)]
    times = [receive_ns for _, receive_ns in _in_order(folder / 'out')]
    assert times == sorted(times)
    with (folder / 'out' / FATES).open() as file:
        fates = [row['fate'] for row in csv.DictReader(file)]
    mine = [result.accounts[topic] for topic in ('/imu/data', '/imu/more')]
    assert fates.count('delivered') == sum(each.written - each.duplicated for each in mine)
    assert fates.count('lost') == sum(each.lost_by_loss for each in mine)
    assert fates.count('fault') == sum(each.lost_by_fault for each in mine)
    assert fates.count('thinned') == sum(each.thinned for each in mine)


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({'topics': ['/imu/dat']}, "no topic /imu/dat (streams.a.topics); did you mean '/imu/data'?"),
    ({'topics': ['/cam/*']}, 'the pattern /cam/*, which no topic'),
    ({'topics': ['/said'], 'clock': {'offset_s': 1.0}}, 'streams.a has clock, but /said is'),
    ({'topics': ['/said'], 'base': 'stamp'}, 'has base: stamp, but /said'),
    (
        {'topics': ['/said'], 'faults': {'f': {'kind': 'clock_step', 'offset': 1.0}}},
        'has a clock_step fault, but /said',
    ),
    ({'topics': ['/old'], 'base': 'stamp'}, 'which is another epoch'),
    ({'topics': ['/unset'], 'clock': {'offset_s': 1.0}}, 'the stamps of /unset are zero'),
    ({'topics': ['/imu/data'], 'rate_hz': 1000.0}, 'rate_hz is 1000, but /imu/data has only'),
]


@pytest.mark.parametrize(('stream', 'sentence'), MISTAKES, ids=lambda each: str(each)[:30])
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, stream: dict[str, Any], sentence: str
) -> None:
    messages = [
        *imus(30),
        ('/said', TEXT, T0, msgs.string_message('x')),
        *imus(30, topic='/old', start_ns=5 * S),
        *[('/unset', IMU.type_name, T0 + k, IMU.fill(0)) for k in range(3)],
    ]
    with pytest.raises(RigError) as caught:
        degrade(tmp_path, messages, {'a': stream})
    assert sentence in str(caught.value)
    assert not (tmp_path / 'out').exists()


def test_relative_names_as_of_a_ros_1_bag_fit_patterns_and_names() -> None:
    rig = rig_from_parameters({'streams': {'a': {'topics': ['*']}, 'b': {'topics': ['/odom']}}})
    found = assign(['S-PTAM', 'odom', 'clock'], rig.streams, 'a bag')
    assert found == {'S-PTAM': 'a', 'odom': 'b'}


def test_two_patterns_on_one_topic_are_refused_and_a_name_goes_first(tmp_path: Path) -> None:
    streams: dict[str, Any] = {'a': {'topics': ['/imu/*']}, 'b': {'topics': ['/*/data']}}
    with pytest.raises(RigError, match=r'patterns of streams\.a and streams\.b'):
        degrade(tmp_path, imus(5), streams)
    streams['b'] = {'topics': ['/imu/data']}
    messages = [*imus(5), *imus(5, topic='/imu/more')]
    result, _ = degrade(tmp_path / 'again', messages, streams)
    assert [result.accounts[topic].stream for topic in ('/imu/data', '/imu/more')] == ['b', 'a']


def test_a_stamp_that_no_header_holds_is_said_with_what_was_written(tmp_path: Path) -> None:
    with pytest.raises(RigError, match=r'int32 seconds .* holds the \d+ messages before'):
        degrade(
            tmp_path,
            imus(20),
            {
                'imu': {
                    'topics': ['/imu/data'],
                    'faults': {'far': {'kind': 'clock_step', 'at_s': 0.1, 'offset': 2.0e9}},
                }
            },
        )
    assert stamps(read(tmp_path / 'out')['/imu/data']) == [k * 10 * MS for k in range(11)]


@pytest.mark.parametrize(
    ('keys', 'sentence'),
    [
        ({}, 'streams.a.topics is missing'),
        ({'topics': ['a b']}, "'a b' is not a topic"),
        ({'topics': ['/a'], 'mount': {'body': 'x'}}, "unknown key 'mount'"),
        ({'topics': ['/a'], 'type': 'camera'}, "type is 'camera'; noise on recorded values"),
        ({'topics': ['/a'], 'type': 'imu'}, 'rate_hz is missing'),
        ({'topics': ['/a'], 'type': 'imu', 'rate_hz': 10.0, 'phase_s': 1.0}, 'phase_s belongs to'),
        ({'topics': ['/a'], 'clock_of': 'b'}, "clock_of is 'b'; it should be a stream"),
        ({'topics': ['/a'], 'clock_of': 'b', 'clock': {'offset_s': 1.0}}, 'leave out clock'),
        (
            {'topics': ['/a'], 'faults': {'f': {'kind': 'noisy'}}},
            'which changes values; that needs',
        ),
    ],
)
def test_a_wrong_stream_is_refused_when_the_file_is_read(
    keys: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(RigError) as caught:
        rig_from_parameters({'streams': {'a': keys}})
    assert sentence in str(caught.value)


def test_a_topic_belongs_to_one_stream() -> None:
    with pytest.raises(RigError, match=r'has /a, which streams\.a has already'):
        rig_from_parameters({'streams': {'a': {'topics': ['/a']}, 'b': {'topics': ['a']}}})
