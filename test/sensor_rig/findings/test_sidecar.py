"""Corrections beside a recording: applied while it is read, refused when they are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs.decode import read_cloud
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.sidecar import load_sidecar, sidecar_text
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.findings.corrections import corrections_of
from sensor_rig.findings.model import Finding, Severity

S = 10**9
START_NS = 1_700_000_000 * S
CLOUD = 'sensor_msgs/msg/PointCloud2'


def cloud(stamp_ns: int, first_s: float, last_s: float) -> bytes:
    points = np.zeros(5, np.dtype([('x', '<f4'), ('time', '<f4')]))
    points['time'] = np.linspace(first_s, last_s, 5)
    return msgs.point_cloud2_message(stamp_ns, 'lidar', points)


def read_one(tmp_path: Path, raw: bytes, type_name: str, sidecar: str) -> bytes:
    """Return the message of a recording of one, as it is read with a sidecar."""
    with BagWriter(tmp_path / 'bag') as writer:
        writer.add_topic('/sensor', type_name)
        writer.write('/sensor', START_NS, raw)
    (tmp_path / 'side.yaml').write_text(sidecar)
    with BagReader(tmp_path / 'bag', tmp_path / 'side.yaml') as bag:
        (message,) = bag.messages()
    return message.raw


@pytest.mark.parametrize(('first_s', 'last_s'), [(-0.1, 0.0), (0.0, 0.1)])
def test_a_stamp_at_the_end_becomes_one_at_the_start(
    tmp_path: Path, first_s: float, last_s: float
) -> None:
    raw = read_one(
        tmp_path,
        cloud(START_NS, first_s, last_s),
        CLOUD,
        'version: 1\ncorrections: {/sensor: {stamp_point: end}}\n',
    )
    assert read_stamp_ns(raw) == pytest.approx(START_NS - 0.1 * S, abs=1000)
    times = read_cloud(raw).points['time']
    assert times == pytest.approx(np.linspace(0.0, 0.1, 5), abs=1e-6)


def test_offset_and_drift_are_taken_off(tmp_path: Path) -> None:
    stamp_ns = START_NS + 100 * S + 12_000_000
    raw = bytes(msgs.imu('imu').fill(stamp_ns))
    out = read_one(
        tmp_path,
        raw,
        'sensor_msgs/msg/Imu',
        'corrections: {/sensor: {clock: {offset_s: 0.012, drift_ppm: 20.0}}}',
    )
    assert read_stamp_ns(out) == pytest.approx(stamp_ns - 12_000_000 - 100 * 20_000, abs=10)
    assert out[12:] == raw[12:]


def test_other_topics_and_short_messages_stay_as_they_are(tmp_path: Path) -> None:
    raw = bytes(msgs.imu('imu').fill(START_NS))
    assert (
        read_one(
            tmp_path, raw, 'sensor_msgs/msg/Imu', 'corrections: {/other: {clock: {offset_s: 1.0}}}'
        )
        == raw
    )


@pytest.mark.parametrize(
    ('text', 'sentence'),
    [
        ('version: 2\n', 'version is 2'),
        ('[]', 'should be a map'),
        ('{', 'is not YAML'),
        ('corrections: {/a: {stamp_point: late}}', 'stamp_point'),
        ('corrections: {/a: {clock: {offset: 1.0}}}', 'offset'),
    ],
)
def test_a_wrong_sidecar_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / 'side.yaml').write_text(text)
    with pytest.raises(RigError, match=sentence):
        load_sidecar(tmp_path / 'side.yaml')


def test_findings_become_corrections_that_can_be_read(tmp_path: Path) -> None:
    findings = [
        Finding('stamp_point', Severity.WRONG, ('/lidar',), 'stamped at the end of the sweep'),
        Finding('clock_offset', Severity.WRONG, ('/camera',), 'x', evidence={'offset_ms': 24.1}),
        Finding('clock_drift', Severity.WARNING, ('/camera',), 'x', evidence={'drift_ppm': 20.0}),
        Finding('clock_tai', Severity.WRONG, ('/ptp',), 'x', evidence={'nominal_s': 37.0}),
        Finding('dropped_frames', Severity.WARNING, ('/imu',), 'x', evidence={'missing': 3}),
    ]
    corrections = corrections_of(findings)
    assert set(corrections) == {'/lidar', '/camera', '/ptp'}
    (tmp_path / 'side.yaml').write_text(sidecar_text(corrections, 'a bag'))
    read = load_sidecar(tmp_path / 'side.yaml').corrections
    assert read['/lidar'].stamp_point == 'end'
    assert (read['/camera'].clock.offset_s, read['/camera'].clock.drift_ppm) == (0.0241, 20.0)
    assert read['/ptp'].clock.offset_s == 37.0


@pytest.mark.parametrize('command', ['sync', 'fit', 'trust'])
def test_every_command_that_takes_a_sidecar_reads_it(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with BagWriter(tmp_path / 'bag') as writer:
        writer.add_topic('/imu', 'sensor_msgs/msg/Imu')
        for k in range(50):
            writer.write(
                '/imu',
                START_NS + k * S // 100,
                bytes(msgs.imu('imu').fill(START_NS + k * S // 100)),
            )
    (tmp_path / 'side.yaml').write_text('version: 9')
    more = [str(tmp_path / 'out'), '--rig', 'demo'] if command == 'sync' else []
    assert (
        main([command, str(tmp_path / 'bag'), *more, '--sidecar', str(tmp_path / 'side.yaml')])
        == 2
    )
    assert 'version is 9' in capsys.readouterr().err
