"""check, schema and doctor as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rig_common import probing
from rig_common.paths import find_shared, share_dir
from sensor_rig.cli.main import main
from sensor_rig.cli.support import probes
from sensor_rig.cli.support.output import print_json, print_table

HEAD = '/**:\n  ros__parameters:\n'


def test_check_accepts_every_shipped_rig(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted((root / 'config').glob('*.yaml'))
    assert files
    for file in files:
        assert main(['check', str(file)]) == 0, file
        assert f'{file} is valid' in capsys.readouterr().out


def test_check_json_is_the_whole_rig(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['check', 'demo', '--json']) == 0
    rig = json.loads(capsys.readouterr().out)
    assert rig['world']['model']
    assert rig['sensors']


@pytest.mark.parametrize(
    ('body', 'words'),
    [
        ('seed: -1', ('seed', '-1')),
        ('sead: 1', ("unknown key 'sead'", "'seed'")),
        ('seed: [1, 2.0]', (':3:', 'seed', 'mixes')),
        ('world: {model: x.xml}\n    sensors: {imu: {type: imuu}}', ('sensors', 'imu')),
    ],
)
def test_check_names_the_mistake(
    tmp_path: Path, body: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(f'{HEAD}    {body}\n')
    assert main(['check', str(file)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ''
    assert shown.err.count('\n') == 1
    for word in words:
        assert word in shown.err


def test_check_of_an_absent_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['check', '/nowhere/rig.yaml']) == 2
    assert capsys.readouterr().err == (
        'error: cannot read /nowhere/rig.yaml: no such file or directory\n'
    )


@pytest.mark.parametrize('num_envs', [1, 4])
def test_check_says_when_sync_is_left_out(
    tmp_path: Path, num_envs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(
        f'{HEAD}    world: {{model: rover_yard.xml, num_envs: {num_envs}}}\n'
        '    sensors: {imu: {type: imu, mount: {body: rover}}}\n'
        '    sync: {reference_sensor_id: imu}\n'
    )
    assert main(['check', str(file)]) == 0
    shown = capsys.readouterr().out
    several = num_envs > 1
    assert ('x real time, 4 environments\n' in shown) == several
    assert ('WARNING: sync: is left out, because world.num_envs is 4 ' in shown) == several


@pytest.mark.parametrize(
    ('name', 'words'),
    [
        ('dmo', "there is no rig file 'dmo' here, and no shipped one; did you mean 'demo'?"),
        ('zzzzz.yaml', 'shipped are arm, demo, drone, everything, hand, quadruped, rover, soak'),
    ],
)
@pytest.mark.parametrize('command', ['check', 'run'])
def test_a_misspelt_rig_gets_a_hint(
    command: str, name: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, name]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ('offset_s', 'shown'), [('1000.0', '1000 s'), ('-999.5', '-999.5 s'), ('0.0125', '12.5')]
)
def test_check_shows_clocks_readably(
    tmp_path: Path, offset_s: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(
        f'{HEAD}    world: {{model: rover_yard.xml}}\n'
        f'    sensors: {{imu: {{type: imu, mount: {{body: rover}}, clock: {{offset_s: {offset_s}}}'
        '}}\n'
    )
    assert main(['check', str(file)]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith(' imu'))
    assert f' {shown} ' in row
    assert 'e+' not in row


def test_schema_is_a_schema_of_the_rig_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['schema']) == 0
    schema = json.loads(capsys.readouterr().out)
    keys = set(schema['$defs']['Rig']['properties'])
    assert {'seed', 'world', 'sensors', 'sync'} <= keys
    assert 'path' not in keys


def test_doctor_reports_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(['doctor', '--json'])
    report = json.loads(capsys.readouterr().out)
    assert code == (0 if report['healthy'] else 1)
    by_name = {finding['name']: finding for finding in report['findings']}
    assert by_name['mujoco']['state'] == 'ok'
    assert {'ROS 2', 'RMW', 'renderer egl', 'renderer osmesa', 'embreex'} <= set(by_name)
    for finding in report['findings']:
        assert finding['state'] == 'ok' or finding['advice'] or finding['name'] == 'shared memory'


def test_doctor_says_why_a_probe_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    code, line = probing.run_python('raise ValueError("no such driver")')
    assert (code, line) == (1, 'ValueError: no such driver')
    assert probing.run_python('import os; os.kill(os.getpid(), 11)')[1] == 'ended by signal 11'
    monkeypatch.setattr(probing, 'TIMEOUT_S', 0.2)
    assert probing.run_python('import time; time.sleep(60)') == (1, 'no answer within 0.2 s')


def test_doctor_notices_a_wrong_rmw(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('rclpy', reason='needs ROS 2')
    monkeypatch.setenv('RMW_IMPLEMENTATION', 'rmw_absent_cpp')
    finding = probes.middleware()
    assert finding.state == 'failed'
    assert 'rmw_absent_cpp' in finding.advice


def test_json_output_is_plain(capsys: pytest.CaptureFixture[str]) -> None:
    print_json(
        {'a': np.float32(0.5), 'b': np.array([1.0, np.nan]), 'c': Path('x'), 'd': (1, True)}
    )
    assert json.loads(capsys.readouterr().out) == {
        'a': 0.5,
        'b': [1.0, None],
        'c': 'x',
        'd': [1, True],
    }


def test_tables_are_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(('name', 'value'), [('front_lidar' * 5, 1.25), ('x', 10.0)])
    shown = capsys.readouterr().out
    assert 'front_lidar' * 5 in shown
    assert '…' not in shown


def test_shared_files_are_found_and_nothing_outside(root: Path) -> None:
    assert share_dir() == root
    assert find_shared('config', 'demo.yaml') == root / 'config' / 'demo.yaml'
    assert find_shared('config', 'absent.yaml') is None
    assert find_shared('..', '..', 'etc', 'passwd') is None
    assert find_shared('/etc/passwd') is None
