"""Recordings of others: the same verbs read them, and nothing is made up that they do not tell."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs.decode import read_camera_info, read_image, read_imu, read_pose
from sensor_rig.bags.formats.trajectory import read_poses
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main

START_NS = 1_403_636_579_763_555_584
LATE_S = 0.043
"""By how much the poses are stamped late."""


def turn(time_s: Any) -> Any:
    return 0.6 * np.sin(1.1 * time_s) + 0.2 * np.sin(3.7 * time_s + 1.0)


def turn_rate(time_s: Any) -> Any:
    return (turn(time_s + 1e-4) - turn(time_s - 1e-4)) / 2e-4


def poses(seconds: float = 40.0, step_s: float = 0.02) -> tuple[np.ndarray, np.ndarray]:
    """Return times of capture [n] (s) and rows [n, 7] of x y z and quaternion x y z w."""
    times = np.arange(0.0, seconds, step_s)
    half = turn(times) / 2.0
    rows = np.zeros((len(times), 7))
    rows[:, 0], rows[:, 5], rows[:, 6] = times, np.sin(half), np.cos(half)
    return times, rows


def stamps_ns(times: np.ndarray, late_s: float = LATE_S) -> list[int]:
    return [START_NS + round((t + late_s) * 1e9) for t in times.tolist()]


def seconds_text(stamp_ns: int) -> str:
    return f'{stamp_ns // 10**9}.{stamp_ns % 10**9:09d}'


def imu_rows(seconds: float = 40.0) -> tuple[list[int], np.ndarray]:
    rng = np.random.default_rng(2)
    times = np.arange(0.0, seconds, 0.005)
    rows = rng.normal(0.0, 1e-3, (len(times), 6))
    rows[:, 2] += turn_rate(times)
    rows[:, 5] += 9.81
    return stamps_ns(times, 0.0), rows


def write_asl(folder: Path) -> Path:
    """Write a folder as EuRoC's are."""
    times, rows = poses()
    imu_ns, values = imu_rows()
    lines = {
        'imu0': ['#timestamp [ns],w_RS_S_x [rad s^-1],w_RS_S_y [rad s^-1],w_RS_S_z [rad s^-1],'
                 'a_RS_S_x [m s^-2],a_RS_S_y [m s^-2],a_RS_S_z [m s^-2]',
                 *(f'{t},' + ','.join(f'{v:.9f}' for v in row)
                   for t, row in zip(imu_ns, values, strict=True))],
        'state_groundtruth_estimate0': [
            '#timestamp, p_RS_R_x [m], p_RS_R_y [m], p_RS_R_z [m], q_RS_w [], q_RS_x [], '
            'q_RS_y [], q_RS_z []',
            *(f'{t},{r[0]:.6f},{r[1]:.6f},{r[2]:.6f},{r[6]:.9f},{r[3]:.9f},{r[4]:.9f},{r[5]:.9f}'
              for t, r in zip(stamps_ns(times), rows, strict=True))],
        'cam0': ['#timestamp [ns],filename',
                 *(f'{t},{t}.png' for t in stamps_ns(times[:250:50], 0.0))],
    }  # fmt: skip
    about = {
        'imu0': 'sensor_type: imu\nrate_hz: 200\n',
        'state_groundtruth_estimate0': 'sensor_type: visual-inertial\n',
        'cam0': '%YAML:1.0\nsensor_type: camera\nresolution: [8, 4]\n'
        'intrinsics: [458.6, 457.3, 3.9, 2.1]\ndistortion_model: radial-tangential\n'
        'distortion_coefficients: [-0.28, 0.07, 0.0002, 0.00002]\n',
    }
    for name, text in lines.items():
        place = folder / 'mav0' / name
        place.mkdir(parents=True)
        (place / 'data.csv').write_text('\r\n'.join(text) + '\r\n')
        (place / 'sensor.yaml').write_text(about[name])
    image = pytest.importorskip('PIL.Image')
    (folder / 'mav0/cam0/data').mkdir()
    for line in lines['cam0'][1:]:
        pixels = np.arange(32, dtype=np.uint8).reshape(4, 8)
        image.fromarray(pixels).save(folder / 'mav0/cam0/data' / line.split(',')[1])
    return folder


def ulog_bytes(topics: dict[str, tuple[list[str], np.ndarray]]) -> bytes:
    """Return a log: per `name` or `name#instance` its fields (`type name`) and rows."""

    def message(kind: bytes, body: bytes) -> bytes:
        return struct.pack('<HB', len(body), kind[0]) + body

    codes = {'uint64_t': 'Q', 'float': 'f', 'uint32_t': 'I', 'double': 'd'}
    out = b'ULog\x01\x12\x35\x01' + struct.pack('<Q', 1000)
    for name in dict.fromkeys(key.split('#')[0] for key in topics):
        fields = next(f for key, (f, _) in topics.items() if key.split('#')[0] == name)
        out += message(b'F', f'{name}:{";".join(fields)};'.encode())
    for number, key in enumerate(topics):
        name, _, instance = key.partition('#')
        out += message(b'A', struct.pack('<BH', int(instance or 0), number) + name.encode())
    rows = []
    for number, (fields, values) in enumerate(topics.values()):
        form = '<H'
        for field in fields:
            kind, _, rest = field.split(' ')[0].partition('[')
            form += codes[kind] * (int(rest[:-1]) if rest else 1)
        for row in values.tolist():
            whole = [int(v) if c in 'QI' else v for c, v in zip(form[2:], row, strict=True)]
            rows.append((row[0], message(b'D', struct.pack(form, number, *whole))))
    return out + b''.join(raw for _, raw in sorted(rows, key=lambda each: each[0]))


def write_ulog(path: Path) -> Path:
    """Write a log with two IMUs, an odometry of vision, a GPS; in the autopilot's frames."""
    times, rows = poses()
    t = np.arange(0.0, 40.0, 0.005)
    dt = 5000.0
    imu = np.zeros((len(t), 10))
    imu[:, 0], imu[:, 1] = 2e6 + t * 1e6 + 3000, 2e6 + t * 1e6 + dt / 2
    imu[:, 4] = -turn_rate(t) * dt * 1e-6  # down: a turn to the left is negative
    imu[:, 7] = -9.81 * dt * 1e-6
    imu[:, 8] = imu[:, 9] = dt
    seen = np.zeros((len(times), 9))
    seen[:, 0] = 2e6 + times * 1e6 + LATE_S * 1e6 + 20_000
    seen[:, 1] = 2e6 + times * 1e6 + LATE_S * 1e6
    heading = np.pi / 2 - turn(times)  # from north over east; ours is from east over north
    seen[:, 5], seen[:, 8] = np.cos(heading / 2), np.sin(heading / 2)
    seen[:, 2] = rows[:, 0]  # north
    gps = np.array([[3e6 + k * 2e5, 47.3977419, 8.5455938, 488.5] for k in range(50)])
    path.write_bytes(ulog_bytes({
        'vehicle_imu#0': (['uint64_t timestamp', 'uint64_t timestamp_sample',
                           'float[3] delta_angle', 'float[3] delta_velocity',
                           'float delta_angle_dt', 'float delta_velocity_dt'], imu),
        'vehicle_imu#1': (['uint64_t timestamp', 'uint64_t timestamp_sample',
                           'float[3] delta_angle', 'float[3] delta_velocity',
                           'float delta_angle_dt', 'float delta_velocity_dt'], imu[::2]),
        'vehicle_visual_odometry': (['uint64_t timestamp', 'uint64_t timestamp_sample',
                                     'float[3] position', 'float[4] q'], seen),
        'sensor_gps': (['uint64_t timestamp', 'double latitude_deg', 'double longitude_deg',
                        'double altitude_msl_m'], gps),
    }))  # fmt: skip
    return path


# ---- trajectories -------------------------------------------------------------------------------


def trajectory_texts(folder: Path) -> dict[str, Path]:
    """Write one trajectory in every format."""
    times, rows = poses(4.0)
    stamps = stamps_ns(times)
    files = {}

    def write(name: str, text: list[str]) -> None:
        files[name] = folder / name
        files[name].write_text('\n'.join(text) + '\n')

    write('truth.tum', ['# time x y z qx qy qz qw', *(
        f'{seconds_text(s)} ' + ' '.join(f'{v:.9f}' for v in row)
        for s, row in zip(stamps, rows, strict=True))])  # fmt: skip
    matrices = []
    for row in rows:
        c, s = np.cos(2 * np.arctan2(row[5], row[6])), np.sin(2 * np.arctan2(row[5], row[6]))
        matrices.append([c, -s, 0, row[0], s, c, 0, row[1], 0, 0, 1, row[2]])
    write('00.txt', [' '.join(f'{v:.9e}' for v in row) for row in matrices])
    write('times.txt', [seconds_text(s) for s in stamps])
    header = 'timestamp [ns],x,y,z,qw,qx,qy,qz'
    write('truth.csv', [header, *(
        f'{s},' + ','.join(f'{v:.9f}' for v in (*row[:3], row[6], *row[3:6]))
        for s, row in zip(stamps, rows, strict=True))])  # fmt: skip
    return files


@pytest.mark.parametrize('name', ['truth.tum', '00.txt', 'truth.csv'])
def test_a_trajectory_is_the_same_in_every_format(tmp_path: Path, name: str) -> None:
    found = read_poses(trajectory_texts(tmp_path)[name])
    times, rows = poses(4.0)
    assert found.times_ns.tolist() == stamps_ns(times)  # to the nanosecond
    assert found.positions_m == pytest.approx(rows[:, :3], abs=1e-6)
    same = np.abs((found.quats_xyzw * rows[:, 3:]).sum(axis=1))
    assert same == pytest.approx(np.ones(len(rows)), abs=1e-8)


@pytest.mark.parametrize(
    ('text', 'sentence'),
    [
        ('', 'holds no poses'),
        ('1 2 3\n', 'has 3 columns'),
        ('1 2 3 4 5 6 7 8\n1 2\n', 'same columns'),
        ('1 0 0 0 0 0 0 2\n', 'norm 2'),
        ('time,x,y\n1,2,3\n', 'no column for pz'),
        (' '.join(['1'] * 12) + '\n', 'which have no times'),
    ],
)
def test_what_is_no_trajectory_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / 'poses.txt').write_text(text)
    with pytest.raises(RigError, match=sentence):
        read_poses(tmp_path / 'poses.txt')


def write_bag(path: Path) -> Path:
    """Write a recording of the IMU alone, with real receive times."""
    rng, template = np.random.default_rng(1), msgs.imu('imu')
    stamps, values = imu_rows()
    with BagWriter(path) as writer:
        writer.add_topic('/imu', 'sensor_msgs/msg/Imu')
        for stamp, row in zip(stamps, values, strict=True):
            raw = template.fill(stamp, angular_velocity=row[:3], linear_acceleration=row[3:])
            writer.write('/imu', stamp + 1_000_000 + int(rng.exponential(2e5)), raw)
    return path


def inspected(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(['inspect', *arguments, '--json']) in (0, 1)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def offset_of(found: dict[str, Any], topic: str) -> dict[str, float]:
    [finding] = [each for each in found['findings']
                 if each['code'] == 'clock_offset' and topic in each['topics']]  # fmt: skip
    evidence: dict[str, float] = finding['evidence']
    return evidence


def test_the_time_of_a_ground_truth_is_checked_beside_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times, rows = poses()
    truth = tmp_path / 'truth.tum'
    truth.write_text('\n'.join(
        f'{seconds_text(s)} ' + ' '.join(f'{v:.9f}' for v in row)
        for s, row in zip(stamps_ns(times), rows, strict=True)))  # fmt: skip
    bag = write_bag(tmp_path / 'bag')
    found = inspected(capsys, str(bag), '--trajectory', str(truth))
    evidence = offset_of(found, '/trajectory/truth')
    assert evidence['offset_ms'] == pytest.approx(LATE_S * 1e3, abs=4 * evidence['sigma_ms'] + 0.5)
    assert evidence['sigma_ms'] < 5.0
    unchecked = {code for each in found['not_checked'] if '/trajectory/truth' in each['topics']
                 for code in each['codes']}  # fmt: skip
    assert 'clock_drift' in unchecked
    told = {code for each in found['findings'] if '/trajectory/truth' in each['topics']
            for code in [each['code']]}  # fmt: skip
    assert told == {'clock_offset'}


# ---- folders and logs ---------------------------------------------------------------------------


def test_a_folder_of_euroc_is_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_asl(tmp_path / 'MH_01')
    with BagReader(folder) as bag:
        types = {name: topic.type_name.rpartition('/')[2] for name, topic in bag.topics.items()}
        assert types == {
            '/imu0/data_raw': 'Imu',
            '/cam0/image_raw': 'Image',
            '/cam0/camera_info': 'CameraInfo',
            '/state_groundtruth_estimate0/pose': 'PoseStamped',
        }
        assert not any(topic.has_arrivals for topic in bag.topics.values())
        first = next(iter(bag.messages(['/imu0/data_raw'])))
        assert read_stamp_ns(first.raw) == first.receive_ns == START_NS
        assert read_imu(first.raw)[1][2] == pytest.approx(9.81, abs=0.01)
        image = read_image(next(iter(bag.messages(['/cam0/image_raw']))).raw)
        assert image.pixels.tolist() == np.arange(32).reshape(4, 8).tolist()
        info = read_camera_info(next(iter(bag.messages(['/cam0/camera_info']))).raw)
        assert (info.width, info.height, info.k[0, 0]) == (8, 4, 458.6)
        pose = read_pose(next(iter(bag.messages(['/state_groundtruth_estimate0/pose']))).raw)
        assert pose[0] == START_NS + 43_000_000
    found = inspected(capsys, str(folder))
    evidence = offset_of(found, '/state_groundtruth_estimate0/pose')
    assert evidence['offset_ms'] == pytest.approx(LATE_S * 1e3, abs=4 * evidence['sigma_ms'] + 0.5)
    topics = {topic for each in found['not_checked'] if 'receive times' in each['missing']
              for topic in each['topics']}  # fmt: skip
    assert '/imu0/data_raw' in topics


def test_a_folder_of_euroc_is_corrected_into_a_recording(tmp_path: Path) -> None:
    folder, out = write_asl(tmp_path / 'MH_01'), tmp_path / 'right'
    assert main(['correct', str(folder), str(out), '--min-state', 'converging']) == 0
    with BagReader(out) as bag:
        topic = '/state_groundtruth_estimate0/pose'
        found = [read_stamp_ns(message.raw) for message in bag.messages([topic])]
    times, _ = poses()
    errors_ms = (np.array(found) - np.array(stamps_ns(times, 0.0))) / 1e6
    assert np.abs(errors_ms).max() < 5.0


def test_a_log_of_px4_is_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_ulog(tmp_path / 'flight.ulg')
    with BagReader(log) as bag:
        assert set(bag.topics) == {
            '/vehicle_imu_0', '/vehicle_imu_1', '/vehicle_visual_odometry', '/sensor_gps',
        }  # fmt: skip
        assert {name for name, topic in bag.topics.items() if not topic.has_arrivals} == {
            '/sensor_gps'
        }
        imu = next(iter(bag.messages(['/vehicle_imu_0'])))
        assert read_stamp_ns(imu.raw) == 2_000_000_000  # the middle of the step
        assert imu.receive_ns == 2_003_000_000
        gyro, force = read_imu(imu.raw)
        assert gyro[2] == pytest.approx(turn_rate(0.0), abs=1e-3)  # up
        assert force[2] == pytest.approx(9.81, abs=1e-3)
        seen = list(bag.messages(['/vehicle_visual_odometry']))
        stamp_ns, place, quat = read_pose(seen[50].raw)
        assert stamp_ns == 2_000_000_000 + 43_000_000 + 10**9
        assert place.tolist() == pytest.approx([0.0, 1.0, 0.0], abs=1e-5)  # a metre north
        yaw = 2.0 * np.arctan2(quat[2], quat[3])
        assert np.exp(1j * yaw) == pytest.approx(np.exp(1j * turn(1.0)), abs=1e-4)
    evidence = offset_of(inspected(capsys, str(log)), '/vehicle_visual_odometry')
    assert evidence['offset_ms'] == pytest.approx(LATE_S * 1e3, abs=4 * evidence['sigma_ms'] + 0.5)


def test_fit_and_assert_take_a_log_for_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the format tells no receive times, nothing is said of latency."""
    log = write_ulog(tmp_path / 'flight.ulg')
    assert main(['assert', str(log), '--that', 'duration_s > 10']) == 0
    capsys.readouterr()
    assert main(['fit', str(log), '--topic', '/sensor_gps']) == 0
    assert 'receive times are copies of its stamps' in capsys.readouterr().out


@pytest.mark.parametrize('content', [b'ULog\x01\x12\x35\x01', b'ULog\x01\x12\x35' + bytes(300)])
def test_a_broken_log_is_one_sentence(
    tmp_path: Path, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'flight.ulg').write_bytes(content)
    assert main(['inspect', str(tmp_path / 'flight.ulg')]) == 2
    assert capsys.readouterr().err.startswith('error: ')


def log_of_pressures(count: int = 400) -> bytes:
    rows = np.array([[1e6 + k * 1e4, 1e6 + k * 1e4 - 2e3, 1e5 + k] for k in range(count)])
    fields = ['uint64_t timestamp', 'uint64_t timestamp_sample', 'float pressure']
    return ulog_bytes({'sensor_baro': (fields, rows)})


@pytest.mark.parametrize(
    ('place', 'lost', 'sentence'),
    [
        (-10, 1, 'the file is cut there'),
        (-3000, 1, 'bytes make no sense, and it is read on behind them'),
    ],
)
def test_what_is_damaged_in_a_log_is_said(
    tmp_path: Path, place: int, lost: int, sentence: str
) -> None:
    """The last message is cut, or the size of one in the middle is wrong."""
    raw = bytearray(log_of_pressures())
    if place == -10:
        del raw[place:]
    else:
        raw[raw.rindex(b'D', 0, place) - 2] ^= 4
    (tmp_path / 'flight.ulg').write_bytes(raw)
    with BagReader(tmp_path / 'flight.ulg') as bag:
        assert len(list(bag.messages())) == 400 - lost
        assert len(bag.problems) == 1 and sentence in bag.problems[0]


def test_messages_of_no_topic_in_a_log_are_counted(tmp_path: Path) -> None:
    raw = log_of_pressures().replace(b'\x00\x00sensor_baro', b'\x07\x00sensor_baro')
    raw += log_of_pressures(20)[16:]
    (tmp_path / 'flight.ulg').write_bytes(raw)
    with BagReader(tmp_path / 'flight.ulg') as bag:
        assert len(list(bag.messages())) == 20
        assert '400 messages belong to no topic' in bag.problems[0]


@pytest.mark.parametrize(
    'formats',
    [
        ['sensor_baro:uint64_t timestamp;float[4000000000] pressure;'],
        ['sensor_baro:uint64_t timestamp;sensor_baro[9] pressure;'],
        ['sensor_baro:uint64_t timestamp;a0[999] x;']
        + [f'a{k}:a{k + 1}[999] x;' for k in range(9)]
        + ['a9:float x;'],
    ],
)
def test_a_log_whose_formats_would_fill_the_memory_is_one_sentence(
    tmp_path: Path, formats: list[str]
) -> None:
    out = b'ULog\x01\x12\x35\x01' + bytes(8)
    for kind, body in [*((b'F', each.encode()) for each in formats), (b'A', b'\0\0\0sensor_baro'),
                       (b'D', bytes(14))]:  # fmt: skip
        out += struct.pack('<HB', len(body), kind[0]) + body
    (tmp_path / 'flight.ulg').write_bytes(out)
    with pytest.raises(RigError, match='makes no sense'):
        BagReader(tmp_path / 'flight.ulg')


def test_a_hole_of_a_terabyte_in_a_log_is_not_read(tmp_path: Path) -> None:
    (tmp_path / 'flight.ulg').write_bytes(log_of_pressures(20))
    os.truncate(tmp_path / 'flight.ulg', 1 << 40)
    with BagReader(tmp_path / 'flight.ulg') as bag:
        assert len(list(bag.messages())) == 20
        assert 'nothing makes sense from there on' in bag.problems[0]


def test_lines_and_pictures_that_a_folder_lacks_are_counted(tmp_path: Path) -> None:
    folder = write_asl(tmp_path)
    table = folder / 'mav0' / 'cam0' / 'data.csv'
    names = table.read_text().splitlines()
    (table.parent / 'data' / names[-1].split(',')[1].strip()).unlink()
    broken = table.parent / 'data' / names[-2].split(',')[1].strip()
    broken.write_bytes(broken.read_bytes()[:40])
    table.write_text('\n'.join([*names, 'no line', '']))
    with BagReader(folder) as bag:
        assert '1 lines of' in bag.problems[0] and '1 of ' in bag.problems[1]
        images = list(bag.messages(['/cam0/image_raw']))
        assert len(images) == len(names) - 3
        assert 'lacks messages that it is said to hold: 1 of' in bag.problems[2]


def test_a_folder_whose_times_do_not_fit_or_of_another_sensor_is_said(tmp_path: Path) -> None:
    for name, row in (('imu0', f'{10**30},1,2,3,4,5,6'), ('radar0', '1403715529112143517,1,2')):
        (tmp_path / 'mav0' / name).mkdir(parents=True)
        columns = ','.join(f'c{k}' for k in range(row.count(',') + 1))
        (tmp_path / 'mav0' / name / 'data.csv').write_text(f'#{columns}\n{row}\n')
    with pytest.raises(RigError, match='cannot be read') as caught:
        BagReader(tmp_path)
    assert '\n' not in str(caught.value)
    (tmp_path / 'mav0' / 'imu0' / 'data.csv').unlink()
    with pytest.raises(RigError, match='3 columns, which are of no sensor that is read'):
        BagReader(tmp_path)


@pytest.mark.parametrize(
    'word', ['1403715529.112143517', '1.403715529112143517e+09', '1403715529112143517e-9']
)
def test_times_of_a_trajectory_are_exact_however_they_are_written(
    tmp_path: Path, word: str
) -> None:
    (tmp_path / 'truth.tum').write_text(f'{word} 0 0 0 0 0 0 1\n')
    assert read_poses(tmp_path / 'truth.tum').times_ns.tolist() == [1403715529112143517]


def test_a_trajectory_of_another_time_is_one_sentence(tmp_path: Path) -> None:
    """Seconds since the start of a drive, beside a recording of some day."""
    raw = msgs.imu('imu')
    with BagWriter(tmp_path / 'drive') as writer:
        writer.add_topic('/imu', raw.type_name)
        for k in range(3):
            writer.write('/imu', 10**18 + k, raw.fill(10**18 + k))
    (tmp_path / 'truth.tum').write_text('1.0 0 0 0 0 0 0 1\n2.0 0 0 0 0 0 0 1\n')
    with pytest.raises(RigError, match=r'truth\.tum has no time in common with .*drive.*2\.000 s'):
        BagReader(tmp_path / 'drive', trajectories=[tmp_path / 'truth.tum'])
