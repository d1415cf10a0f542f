"""The summary at the end of a run: what its figures count, and from when."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from sensor_rig.cli import run
from sensor_rig.cli.main import main
from sensor_rig.cli.support.rig_runs import exit_code, print_summary
from sensor_rig.running.run_summary import InputSummary, SensorSummary, Summary


def summary(resets: int) -> Summary:
    sensor = SensorSummary(
        rate_hz=10.0,
        achieved_hz=9.9,
        latency_p50_ms=151.0,
        published=56,
        latency_p99_ms=154.0,
        lost=0,
        lost_fraction=0.0,
        capture_ms=99.8611,
    )
    ledger = {'received': 96, 'bundled': 95, 'late': 0, 'invalid': 1}
    lidar = InputSummary(
        offset_ms=0.25, sigma_ms=0.1, true_offset_ms=0.5, state='locked', ledger=ledger
    )
    return Summary(
        simulated_s=5.6,
        real_time_factor=1.0,
        slowed_s=0.0,
        resets=resets,
        sensors={'lidar': sensor},
        bundles=95,
        inputs={'lidar': lidar},
    )


def test_json_has_a_version_and_null_for_what_is_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    unknown = replace(summary(0).sensors['lidar'], achieved_hz=float('nan'))
    print_summary(replace(summary(0), sensors={'lidar': unknown}), as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document['version'] == 1
    assert document['sensors']['lidar']['achieved_hz'] is None
    assert document['inputs']['lidar']['ledger']['received'] == 96


def test_the_error_of_an_offset_has_its_sign(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(summary(0), as_json=False)
    assert '-0.250' in capsys.readouterr().out


def test_what_counts_since_a_reset_and_what_does_not_is_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_summary(summary(2), as_json=False)
    said = capsys.readouterr().out
    assert '5.60 s simulated since the last reset' in said
    assert 'sensors since the last reset' in said
    assert '95 bundles in the whole run' in said
    assert 'messages in the whole run' in said
    print_summary(summary(0), as_json=False)
    assert 'reset' not in capsys.readouterr().out.replace('a reset, a restart', '')


def test_a_sweep_and_the_reason_of_a_drop_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary(summary(0), as_json=False)
    said = capsys.readouterr().out
    assert 'which itself lasts: lidar 99.9 ms' in said
    assert 'invalid: a stamp of zero or before it' in said
    assert 'late:' not in said, 'nothing was late'


def test_check_shows_how_long_a_capture_lasts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['check', 'demo']) == 0
    lidar = next(line for line in capsys.readouterr().out.splitlines() if 'lidar2d' in line)
    assert ' 99.9 ' in lidar
    assert '40 to 60' in lidar


WAITING = """/**:
  ros__parameters:
    world: {{model: rover_yard.xml, driver: figure_eight, {waits}}}
    sensors: {{imu: {{type: imu, mount: {{body: rover}}}}}}
"""


@pytest.mark.parametrize('name', ['/controller', 'a b', '/ns/controller', '1st', 'world', ''])
def test_what_is_no_name_of_a_node_is_not_waited_for(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(WAITING.format(waits=f'wait_for: [controller, "{name}"]'))
    assert main(['check', str(file)]) == 2
    assert f'world.wait_for: {name!r} is no node to wait for' in capsys.readouterr().err
    file.write_text(WAITING.format(waits='wait_for: [controller, _own2]'))
    assert main(['check', str(file)]) == 0


@pytest.mark.parametrize(
    ('waits', 'options'),
    [('wait_for: [controller]', []), ('num_envs: 1', ['--wait-for', 'controller'])],
)
def test_waiting_for_a_node_outside_lockstep_is_refused(
    waits: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(WAITING.format(waits=waits))
    assert main(['run', *options, str(file), '--seconds', '0.1']) == 2
    assert (
        'wait_for names controller, which takes effect in lockstep only' in capsys.readouterr().err
    )


def test_several_nodes_to_wait_for_leave_the_rig_its_place() -> None:
    parser = argparse.ArgumentParser()
    run.add_arguments(parser)
    given = parser.parse_args(['--lockstep', '--wait-for', 'a,b', '--wait-for', 'c', 'demo'])
    assert (given.rig, given.wait_for) == ('demo', ['a', 'b', 'c'])


@pytest.mark.parametrize(
    ('seconds', 'code'), [(None, 0), (5.6, 0), (5.0, 0), (100.0, 130)], ids=str
)
def test_a_run_that_ends_before_its_time_was_interrupted(seconds: float | None, code: int) -> None:
    assert exit_code(summary(0), seconds) == code
