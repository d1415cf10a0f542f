"""A faulty plan is refused in one sentence with its line, before more than one run is made."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.sweeps import small_rig

from sensor_rig.cli.main import main

CODE = """
def controller(rig, seconds, delay=0.0):
    for _ in range(3):
        rig.step()
    if delay > 1.0:
        raise RuntimeError('diverged')
    return {'error': delay}
"""
GOOD = """rig: rig.yaml
seconds: 0.2
seeds: 2
vary:
  system.delay: [0.1, 0.2]
system: {python: 'mine:controller'}
limits: [error < 1]
"""
FAULTY = {
    'missing rig': (('rig: rig.yaml', 'rig: none.yaml'), 1, 'none.yaml'),
    'negative seconds': (('seconds: 0.2', 'seconds: -1'), 2, 'greater than'),
    'no seeds': (('seeds: 2', 'seeds: 0'), 3, 'number of seeds'),
    'unknown key': (('seeds: 2', 'sedes: 2'), 3, "did you mean 'seeds'"),
    'a value twice': (('[0.1, 0.2]', '[0.1, 0.1]'), 5, 'twice'),
    'unknown rig key': (('system.delay:', 'sensors.imu.dealy_range_s:'), 5, 'delay_range_s'),
    'unknown sensor': (('system.delay:', 'sensors.imo.rate_hz:'), 5, "did you mean 'imu'"),
    'out of range': (('system.delay:', 'sensors.imu.loss.probability:'), 5, None),
    'no colon': (('mine:controller', 'mine'), 6, 'module:function'),
    'missing module': (('mine:controller', 'nowhere:controller'), 6, 'cannot be imported'),
    'missing function': (('mine:controller', 'mine:controler'), 6, "no function 'controler'"),
    'misspelt parameter': (('system.delay:', 'system.delya:'), 5, "did you mean 'delay'"),
    'unreadable limit': (('error < 1', 'error is small'), 7, 'limits'),
    'unknown measure': (('error < 1', 'eror < 1'), 7, "did you mean 'error'"),
    'range without count': (('[0.1, 0.2]', '{from: 0.1, to: 0.2}'), 5, 'count or step'),
    'unknown factor': (('limits:', 'require: [{factor: dely, up_to: 1.0}]\nlimits:'), 7, 'dely'),
    'missing code': (('limits:', 'code: [no_file.py]\nlimits:'), 7, 'no_file.py'),
    'two systems': (("python: 'mine:", "command: [x], python: 'mine:"), 6, 'both given'),
    'unknown method': (('limits:', 'sample: {method: girds}\nlimits:'), 7, 'grid'),
}


def write(folder: Path, text: str) -> Path:
    """Write a plan and what it names."""
    small_rig(folder)
    (folder / 'mine.py').write_text(CODE)
    file = folder / 'plan.yaml'
    file.write_text(text)
    return file


@pytest.mark.parametrize('name', FAULTY)
def test_a_faulty_plan(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (old, new), line, said = FAULTY[name]
    assert old in GOOD
    text = GOOD.replace(old, new)
    if said is None:
        text, said = text.replace('[0.1, 0.2]', '[0.1, 7.0]'), 'probability'
    plan = write(tmp_path, text)
    out = tmp_path / 'out'
    assert main(['sweep', str(plan), '--out', str(out), '--workers', '1']) == 2
    (sentence,) = capsys.readouterr().err.strip().splitlines()
    assert sentence.startswith(f'error: plan.yaml:{line}: '), sentence
    assert said in sentence
    runs = out / 'runs.jsonl'
    assert not runs.exists() or runs.read_text() == '', 'a refused plan leaves no results'


def test_a_system_that_diverges_is_a_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = write(tmp_path, GOOD.replace('[0.1, 0.2]', '[5.0, 0.2]'))
    out = tmp_path / 'out'
    assert main(['sweep', str(plan), '--out', str(out), '--workers', '1']) == 0
    assert '2 failed, 2 ok' in capsys.readouterr().out


def test_too_few_seeds_for_what_is_required_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = 'require: [{factor: system.delay, up_to: 0.2, success: 0.9}]\nlimits:'
    plan = write(tmp_path, GOOD.replace('limits:', wanted))
    assert main(['sweep', str(plan), '--out', str(tmp_path / 'out'), '--list']) == 0
    assert 'shown by 29 runs, all of them good; the plan has 2' in capsys.readouterr().err
