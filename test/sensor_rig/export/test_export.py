"""Known offsets, exported, and put into the formula of each tool: both stamps must agree."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from rig_common import msgs
from rig_common.msgs.decode import Intrinsics
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.export.knowledge import ImuNoise, Knowledge, KnownSensor
from sensor_rig.export.learning import knowledge_of
from sensor_rig.export.tools import TOOLS
from sensor_rig.rigfile import load_rig

CAPTURE_S = 1000.0
AHEAD_S = {'imu': 0.012, 'left': -0.037, 'right': -0.036, 'lidar': -0.085, 'gps': 0.122,
           'rear': -0.05, 'baro': 0.055}  # fmt: skip
TYPES = {'imu': 'Imu', 'left': 'Image', 'right': 'Image', 'lidar': 'PointCloud2',
         'rear': 'PointCloud2', 'gps': 'NavSatFix', 'baro': 'FluidPressure'}  # fmt: skip
QUAT = (0.5, -0.5, 0.5, -0.5)
"""An optical frame against a forward-looking one, or its inverse."""


CAMERA = np.array([[400.0, 0, 320], [0, 401, 240], [0, 0, 1]])
INTRINSICS = Intrinsics(
    0, 480, 640, CAMERA, 'plumb_bob', np.array([0.1, -0.2, 0.01, 0.02, 0.0]), (1, 1), (0, 0)
)


def known(**changes: Any) -> Knowledge:
    """Return a rig of which everything is known."""
    sensors = {
        name: KnownSensor(
            name, f'/{name}', f'sensor_msgs/msg/{kind}', 200.0 if name == 'imu' else 10.0,
            AHEAD_S[name], 0.0004, 'locked', 0.0, quat_wxyz=QUAT, quat_sigma_deg=0.3,
            position_m=(0.1, -0.2, 0.3), latency_s=0.05, jitter_s=0.002, phase_s=0.0,
            intrinsics=INTRINSICS,
        )
        for name, kind in TYPES.items()
    }  # fmt: skip
    for name, change in changes.items():
        sensors[name] = replace(sensors[name], **change)
    noise = ImuNoise(1.7e-4, 2e-3, 1.9e-5, 3e-3, 'as told')
    return Knowledge('a test', 60.0, sensors, 'lidar', 'imu', noise)


def stamp(name: str) -> float:
    """Return what a sensor stamps a capture that all make at once."""
    return CAPTURE_S + AHEAD_S[name]


def parsed(text: str) -> Any:
    """Return a YAML file; OpenCV's dialect without its tags."""
    return yaml.safe_load(re.sub(r'%YAML:1.0|!!opencv-matrix', '', text))


def written(tool: str, rig: Knowledge | None = None) -> dict[str, str]:
    return TOOLS[tool].write(rig or known())


@pytest.mark.parametrize(('tool', 'file'), [
    ('kalibr', 'camchain-imucam.yaml'), ('openvins', 'kalibr_imucam_chain.yaml')])  # fmt: skip
def test_kalibr_and_openvins(tool: str, file: str) -> None:
    chain = parsed(written(tool)[file])
    for index, name in enumerate(('left', 'right')):
        shift_s = chain[f'cam{index}']['timeshift_cam_imu']
        assert stamp(name) + shift_s == pytest.approx(stamp('imu'))  # t_imu = t_cam + shift
        assert chain[f'cam{index}']['rostopic'] == f'/{name}'
        assert chain[f'cam{index}']['intrinsics'] == [400.0, 401.0, 320.0, 240.0]
    key = 'T_cam_imu' if tool == 'kalibr' else 'T_imu_cam'
    pose = np.array(chain['cam0'][key])
    to_imu = np.linalg.inv(pose) if tool == 'kalibr' else pose
    assert to_imu[:3, 3] == pytest.approx([0.1, -0.2, 0.3])  # of the camera in the IMU's frame
    assert to_imu[:3, :3] == pytest.approx(known().sensors['left'].rotation())


def test_vins() -> None:
    settings = parsed(written('vins')['vins.yaml'])
    assert stamp('left') + settings['td'] == pytest.approx(stamp('imu'))  # image + td = IMU clock
    assert settings['acc_n'] == pytest.approx(2e-3 * 200.0**0.5)  # of single samples
    assert settings['body_T_cam0']['data'][3] == pytest.approx(0.1)


def test_fast_lio_and_li_init() -> None:
    common = parsed(written('fast_lio')['fast_lio.yaml'])['common']
    moved_imu_s = stamp('imu') - common['time_offset_lidar_to_imu']  # as its IMU callback does
    assert moved_imu_s == pytest.approx(stamp('lidar'))
    lag_s = parsed(written('li_init')['li_init.yaml'])['time_lag_imu_to_lidar']
    assert stamp('imu') - lag_s == pytest.approx(stamp('lidar'))
    mapping = parsed(written('fast_lio')['fast_lio.yaml'])['mapping']
    assert mapping['extrinsic_T'] == [0.1, -0.2, 0.3]


def test_px4() -> None:
    rows = [line.split('\t') for line in written('px4')['px4.params'].splitlines()
            if not line.startswith('#')]  # fmt: skip
    values_ms = {row[2]: float(row[3]) for row in rows}
    assert set(values_ms) == {'EKF2_GPS_DELAY', 'EKF2_BARO_DELAY'}
    for name, key in (('gps', 'EKF2_GPS_DELAY'), ('baro', 'EKF2_BARO_DELAY')):
        assert stamp(name) - values_ms[key] / 1e3 == pytest.approx(stamp('imu'))
    early = written('px4', known(gps={'ahead_s': -0.2}))['px4.params']
    assert re.search(r'# EKF2_GPS_DELAY: GAP: -212\.000 ms is outside', early)


def test_message_filters() -> None:
    text = written('message_filters')['queue_offset.py']
    values = {node.targets[0].id: ast.literal_eval(node.value)  # type: ignore[attr-defined]
              for node in ast.parse(text).body}  # fmt: skip
    moved = [
        round(stamp(topic.strip('/')) * 1e9) - offset_ns
        for topic, offset_ns in zip(values['topics'], values['queue_offset'], strict=True)
    ]
    assert np.ptp(moved) <= 1


@pytest.mark.parametrize('tool', ['orb_slam3', 'lio_sam', 'robot_localization'])
def test_a_tool_without_offsets_gets_the_advice_and_the_rest(tool: str) -> None:
    (text,) = written(tool).values()
    assert 'rig correct' in text
    settings = parsed(text)
    if tool == 'orb_slam3':
        assert settings['IMU.NoiseAcc'] == 2e-3
        assert settings['IMU.T_b_c1']['data'][7] == pytest.approx(-0.2)
    elif tool == 'lio_sam':
        found = settings['/**']['ros__parameters']
        rotation = np.array(found['extrinsicRot']).reshape(3, 3)
        assert rotation == pytest.approx(known().sensors['lidar'].rotation().T)
        assert found['imuGyrNoise'] == 1.7e-4
        assert '+97.000 ms' in text
    else:
        assert settings['ekf_filter_node']['ros__parameters']['history_length'] >= 0.1


@pytest.mark.parametrize('tool', [name for name in TOOLS if name != 'message_filters'])
def test_what_is_not_known_is_a_marked_gap_and_never_a_zero(tool: str) -> None:
    nothing = {'position_m': None, 'quat_wxyz': None, 'intrinsics': None, 'ahead_s': np.nan,
               'state': 'unobservable', 'phase_s': np.nan, 'jitter_s': np.nan}  # fmt: skip
    rig = known(**{name: nothing for name in TYPES if name != 'imu'})
    files = written(tool, replace(rig, noise=ImuNoise()))
    for text in files.values():
        assert 'nan' not in text.lower()
        lines = [line for line in text.splitlines() if not line.strip().startswith('#')]
        for line in lines:
            assert not re.search(
                r'^\s*(td|timeshift|offset|extrinsic|T_b_c1|T_cam)\w*:\s*[-\[\d]', line
            )
    assert tool == 'robot_localization' or any('GAP' in text for text in files.values())


@pytest.mark.parametrize('tool', [name for name in TOOLS if name != 'autoware'])
def test_drift_and_steps_are_told_where_a_constant_cannot_carry_them(tool: str) -> None:
    rig = known(left={'drift_ppm': 40.0}, lidar={'drift_ppm': 40.0, 'steps': 2},
                gps={'drift_ppm': 40.0})  # fmt: skip
    text = '\n'.join(written(tool, rig).values())
    if tool != 'robot_localization':
        assert '2.40 ms over these 60 s' in text
    assert 'rig correct' in text or tool == 'robot_localization'


LIDAR_S = {'lidar': (0.0, -0.085), 'rear': (0.045, 0.010)}
"""Phase of the captures and offset of the clock."""


def record(path: Path) -> Path:
    """Write two LiDARs that take turns, a GNSS, an IMU, whose latencies are known well."""
    rng = np.random.default_rng(3)
    points = np.zeros(4, [('x', '<f4'), ('y', '<f4'), ('z', '<f4')])
    imu, fix = msgs.imu('imu'), msgs.nav_sat_fix('gps')
    events = []
    for t in np.arange(0.0, 20.0, 0.01).tolist():
        raw = imu.fill(
            round((1e9 + t + 0.012) * 1e9),
            angular_velocity=rng.normal(0.0, 0.02, 3),
            linear_acceleration=rng.normal(0.0, 0.1, 3) + np.array([0.0, 0.0, 9.8]),
        )
        events.append((t + 0.001 + rng.exponential(1e-4), '/imu', raw))
    for name, (phase_s, ahead_s) in LIDAR_S.items():
        for t in (np.arange(0.0, 20.0, 0.1) + phase_s).tolist():
            raw = msgs.point_cloud2_message(
                round((1e9 + t + ahead_s + rng.uniform(-1e-3, 1e-3)) * 1e9), name, points
            )
            events.append((t + 0.11 + rng.exponential(0.001), f'/{name}', raw))
    for t in np.arange(0.0, 20.0, 0.2).tolist():
        raw = fix.fill(round((1e9 + t + 0.132) * 1e9))
        events.append((t + 0.2 + rng.exponential(0.001), '/gps', raw))
    with BagWriter(path) as writer:
        for name in ('imu', 'lidar', 'rear', 'gps'):
            writer.add_topic(f'/{name}', f'sensor_msgs/msg/{TYPES[name]}')
        writer.add_topic('/tf_static', 'tf2_msgs/msg/TFMessage')
        half = 0.5**0.5
        writer.write(
            '/tf_static',
            10**18,
            msgs.tf_message(
                [
                    msgs.Transform(0, 'base', 'imu', (0.1, 0.0, 0.2), (0.0, 0.0, half, half)),
                    msgs.Transform(0, 'base', 'mast', (0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)),
                    msgs.Transform(0, 'mast', 'rear', (-0.4, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)),
                ]
            ),
        )
        for t, topic, raw in sorted(events, key=lambda event: event[0]):
            writer.write(topic, round((1e9 + t) * 1e9), raw)
    return path


RIG = """/**:
  ros__parameters:
    sync:
      inputs:
        imu: {topic: /imu, latency_s: 0.001, latency_sigma_s: 0.0002, collect: true}
        lidar: {topic: /lidar, latency_s: 0.11, latency_sigma_s: 0.0005}
        rear: {topic: /rear, latency_s: 0.11, latency_sigma_s: 0.0005}
        gps: {topic: /gps, latency_s: 0.2, latency_sigma_s: 0.0005}
      reference_sensor_id: lidar
      imu_sensor_id: imu
"""


@pytest.fixture(scope='module')
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('export')
    (folder / 'robot.yaml').write_text(RIG)
    (folder / 'where.yaml').write_text('lidar: [0.0, 0.0, 0.4]\n')
    record(folder / 'drive')
    more = ['--rig', str(folder / 'robot.yaml'), '--extrinsics', str(folder / 'where.yaml')]
    tools = ['autoware', 'px4', 'fast_lio', 'message_filters']
    code = main(
        ['export', str(folder / 'drive'), '--to', *tools, '--out', str(folder / 'out'), *more]
    )
    assert code == 0
    return folder


def test_offsets_of_a_recording_end_in_the_files(exported: Path) -> None:
    common = parsed((exported / 'out/fast_lio/fast_lio.yaml').read_text())['common']
    assert common['time_offset_lidar_to_imu'] == pytest.approx(0.097, abs=1.5e-3)
    row = (exported / 'out/px4/px4.params').read_text().splitlines()[-1].split('\t')
    assert (row[2], float(row[3])) == ('EKF2_GPS_DELAY', pytest.approx(120.0, abs=1.5))


def test_clouds_that_belong_together_match_in_autoware(exported: Path) -> None:
    found = parsed((exported / 'out/autoware/autoware.yaml').read_text())['/**']['ros__parameters']
    matching = found['matching_strategy']
    assert found['input_topics'] == ['/lidar', '/rear']
    moved = [
        phase_s + ahead_s - offset_s
        for (phase_s, ahead_s), offset_s in zip(
            LIDAR_S.values(), matching['lidar_timestamp_offsets'], strict=True
        )
    ]
    assert min(matching['lidar_timestamp_offsets']) == 0.0
    apart_s = abs(moved[0] - moved[1])
    assert apart_s < sum(matching['lidar_timestamp_noise_window'])
    assert all(0.0005 < each < 0.003 for each in matching['lidar_timestamp_noise_window'])


def test_positions_come_from_tf_static_where_it_connects_the_frames(exported: Path) -> None:
    """In the frame of the IMU, which is turned to the left; a GNSS in another tree has none."""
    known = knowledge_of(
        exported / 'drive', load_rig(exported / 'robot.yaml').sync, None, lambda n: None
    )
    assert known.sensors['rear'].position_m == pytest.approx((0.0, 0.5, 0.8))
    assert known.sensors['rear'].position_source == '/tf_static'
    assert known.sensors['gps'].position_m is known.sensors['imu'].position_m is None


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['--to', 'kalibre'], 'kalibr'),
        (['--to', 'kalibr'], 'has no camera among its inputs'),
        (['--to', 'fast_lio', '--extrinsics', 'where.yaml'], 'no input'),
    ],
)
def test_mistakes_are_one_sentence(
    exported: Path,
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path('where.yaml').write_text('lidr: [0, 0, 0]\n')
    more = ['--rig', str(exported / 'robot.yaml')]
    assert main(['export', str(exported / 'drive'), *arguments, *more]) == 2
    told = capsys.readouterr().err
    assert told.startswith('error: ') and sentence in told
