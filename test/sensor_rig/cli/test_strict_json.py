"""Every document that a command prints or writes is strict JSON: no NaN, no Infinity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from support.sweeps import small_rig, write_plan

from sensor_rig.cli.main import main
from sensor_rig.cli.support import registry

OVER_ROS = {'run', 'demo', 'soak'}
"""Print the same summary, which test_rig_runs.py checks, or need ROS."""
NOT_HERE = {'bench'}
"""Runs benchmarks for minutes."""
DEGRADED = """
/**:
  ros__parameters:
    streams:
      imu: {topics: [/imu/data_raw], delay_range_s: [0.01, 0.01]}
"""


def strict(text: str) -> Any:
    """Return the JSON in `text`, refusing what JSON does not know."""

    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f'{constant} is not JSON')

    return json.loads(text, parse_constant=refuse)


@pytest.fixture(scope='module')
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a rig, a recording of it, one that is synced, and a sweep."""
    folder = tmp_path_factory.mktemp('json')
    rig = small_rig(folder)
    (folder / 'degraded.yaml').write_text(DEGRADED)
    write_plan(folder, vary={'sensors.imu.delay_range_s': [[0.0, 0.0], [0.01, 0.01]]}, seeds=1)
    assert main(['record', str(folder / 'rec'), '--rig', str(rig), '--seconds', '3']) == 0
    return folder


CASES = {
    'assert': ('assert', 'rec', '--rig', 'rig.yaml'),
    'check': ('check', 'rig.yaml'),
    'correct': ('correct', 'rec', 'right', '--rig', 'rig.yaml'),
    'degrade': ('degrade', 'rec', 'worse', '--rig', 'degraded.yaml'),
    'doctor': ('doctor',),
    'export': ('export', '--list'),
    'fit': ('fit', 'rec'),
    'inspect': ('inspect', 'rec'),
    'mount': ('mount', 'cart.xml', '--no-picture', '--list'),
    'record': ('record', 'again', '--rig', 'rig.yaml', '--seconds', '0.5'),
    'report': ('report', 'rec', '--rig', 'rig.yaml'),
    'sweep': ('sweep', 'plan.yaml', '--out', 'swept'),
    'sync': ('sync', 'rec', 'synced', '--rig', 'rig.yaml'),
    'tolerance': ('tolerance', 'swept'),
    'trust': ('trust', 'rec'),
    'view': ('view', 'rec', '--foxglove', 'layout.json'),
}


def test_every_command_with_json_has_its_case() -> None:
    with_json = {
        command.NAME
        for command in registry.commands()
        if '--json' in registry.parser_of(command).format_help()
    }
    assert with_json - OVER_ROS - NOT_HERE <= set(CASES)


@pytest.mark.parametrize('name', CASES)
def test_what_a_command_prints(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    if name == 'tolerance':
        main([*CASES['sweep']])  # runs what is not there
    capsys.readouterr()
    assert main([*CASES[name], '--json']) in (0, 1)
    assert isinstance(strict(capsys.readouterr().out), dict)
    for file in place.rglob('*.json*'):
        for line in (
            file.read_text().splitlines() if file.suffix == '.jsonl' else [file.read_text()]
        ):
            strict(line)


def test_a_report_made_of_its_data_is_the_same(place: Path) -> None:
    """The data of a report holds nulls where the run had NaN; the page is the same."""
    assert (
        main(['sync', str(place / 'rec'), str(place / 's'), '--rig', str(place / 'rig.yaml')]) == 0
    )
    first = (place / 's' / 'report.html').read_text()
    assert main(['report', str(place / 's')]) == 0
    assert (place / 's' / 'report.html').read_text() == first
