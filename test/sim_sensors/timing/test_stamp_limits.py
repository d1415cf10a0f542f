"""What leaves a run is stamped from `world.start_time_s` on; inside, everything counts from 0."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.start import START_NS

from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.times import NS_PER_S, TimeBase
from sensor_rig.cli.main import main
from sensor_rig.inprocess import open_rig
from sim_sensors.interface.config import SensorConfig
from sim_sensors.pipeline.stream_traits import schedule_of
from sim_sensors.timing.stamp_limits import require_stamps

STAMP = slice(4, 12)
"""Where a stamped message has its time."""


def refusal(**keys: Any) -> str:
    """Return why a sensor with these keys cannot be stamped from 1000 s on; empty if it can."""
    config = SensorConfig.model_validate({'type': 'pose', 'rate_hz': 10.0, **keys})
    schedule = schedule_of('s', config, 1_000_000)
    try:
        require_stamps('sensors.s', config, schedule, TimeBase(START_NS))
    except RigError as error:
        return str(error)
    return ''


def step(offset: float, at_s: float = 10.0, duration_s: float = 0.0) -> dict[str, Any]:
    return {'kind': 'clock_step', 'offset': offset, 'at_s': at_s, 'duration_s': duration_s}


@pytest.mark.parametrize(
    'keys',
    [
        {},
        {'clock': {'offset_s': -999.999}},
        {'clock': {'offset_s': -1000.0}, 'phase_s': 0.013},
        {'clock': {'offset_s': -1.5e9, 'stamp_at': 'arrival'}},
        {'clock': {'offset_s': 2.1e9}},
        {'faults': {'back': step(-1009.0)}},
        {'clock': {'offset_s': -1500.0}, 'faults': {'ahead': step(1000.0, at_s=0.0)}},
    ],
)
def test_stamps_above_zero_are_taken(keys: dict[str, Any]) -> None:
    assert refusal(**keys) == ''


@pytest.mark.parametrize(
    ('keys', 'words'),
    [
        ({'clock': {'offset_s': -1000.0}}, 'begin at 0 s'),
        ({'clock': {'offset_s': -1500.0}}, 'more than 1500, or its clock.offset_s (now -1500)'),
        ({'clock': {'offset_s': -999.9, 'stamp_jitter_s': 0.02}}, 'more than 1000.1'),
        (
            {'faults': {'back': step(-1011.0)}},
            'more than 1001, or its clock.offset_s (now 0) and the '
            'offset of its clock_step faults',
        ),
        ({'faults': {'one': step(-600.0), 'two': step(-600.0, at_s=20.0)}}, 'more than 1180'),
        (
            {'clock': {'offset_s': -1500.0}, 'faults': {'ahead': step(1000.0, 0.0, 5.0)}},
            'more than 1495',
        ),
        ({'clock': {'offset_s': 2.1e9}, 'faults': {'ahead': step(1e9)}}, 'a smaller value'),
    ],
)
def test_stamps_that_ros_does_not_know_are_refused_with_what_to_change(
    keys: dict[str, Any], words: str
) -> None:
    assert words in refusal(**keys)


def test_check_refuses_a_clock_from_before_time_and_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    text = (
        '/**:\n  ros__parameters:\n    world: {{model: rover_yard.xml{more}}}\n'
        '    sensors: {{tag: {{type: pose, mount: {{body: rover}}, rate_hz: 10.0, '
        'clock: {{offset_s: -2000.0}}}}}}\n'
    )
    file.write_text(text.format(more=''))
    assert main(['check', str(file)]) == 2
    said = capsys.readouterr().err
    assert 'sensors.tag: its stamps would begin at -1000 s' in said
    assert 'give world.start_time_s (now 1000) more than 2000' in said
    file.write_text(text.format(more=', start_time_s: 2000.001'))
    assert main(['check', str(file)]) == 0


@pytest.mark.parametrize('start_s', ['0.0', '-1.0', '3.0e9'])
def test_a_run_starts_at_a_time_that_ros_has(
    tmp_path: Path, start_s: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(
        '/**:\n  ros__parameters:\n    world: {model: rover_yard.xml, '
        f'start_time_s: {start_s}}}\n'
    )
    assert main(['check', str(file)]) == 2
    assert 'world.start_time_s' in capsys.readouterr().err


def test_the_start_time_changes_stamps_and_nothing_else() -> None:
    """Drift, scan patterns, faults, temperatures and delays count from the start of the run."""
    runs = []
    for start_s in (1000.0, 1_700_000_000.123):
        rig = open_rig('everything', sync=False, skip_unavailable=True, start_time_s=start_s)
        runs.append((rig.world.time_base.start_ns, list(rig.run(0.35))))
    (first_ns, first), (later_ns, later) = runs
    assert len(first) == len(later) > 100
    for one, other in zip(first, later, strict=True):
        assert one.topic == other.topic
        assert one.arrival_ns - first_ns == other.arrival_ns - later_ns
        assert one.stamp_ns - first_ns == other.stamp_ns - later_ns
        stamp = slice(8, 16) if one.topic.endswith('tf') else STAMP  # behind the number of them
        assert read_stamp_ns(one.data[:4] + one.data[stamp]) == one.stamp_ns > 0
        if not one.topic.endswith('/pps'):  # tells the time
            bare, shifted = bytearray(one.data), bytearray(other.data)
            bare[stamp] = shifted[stamp] = bytes(8)
            assert bare == shifted, one.topic


def test_a_rig_tells_both_times() -> None:
    rig = open_rig('demo', sync=False, messages=False, skip_unavailable=True)
    for _ in range(11):
        rig.step()
    assert (rig.time_ns, rig.elapsed_ns) == (START_NS + 10_000_000, 10_000_000)
    reading = rig.read('imu')
    assert reading.valid.all()
    assert START_NS <= reading.capture_ns[0] <= rig.time_ns
    assert not rig.read('front_lidar').valid.any()
    assert rig.read('front_lidar').stamp_ns.tolist() == [0]


def test_nothing_of_the_demo_is_invalid_to_its_sync_engine() -> None:
    rig = open_rig('demo', arrays=False, skip_unavailable=True)
    for _ in rig.run(1.0):
        pass
    assert rig.sync is not None
    counts = rig.sync.engine.ledger.as_dict()
    assert sum(each['received'] for each in counts.values()) > 100
    assert sum(each['invalid'] for each in counts.values()) == 0
    assert rig.time_ns // NS_PER_S == 1000
