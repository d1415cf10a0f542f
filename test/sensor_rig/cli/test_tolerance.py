"""`rig tolerance` on a results folder: page, figures, JSON, and the exit code as a gate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip('pyarrow', reason='pyarrow is not installed (extra sweep)')

from sensor_rig.cli.main import main
from sensor_rig.sweep.plan.sampling import points
from sensor_rig.sweep.plan.sweep_plan import plan_of
from sensor_rig.sweep.running.experiment import Task
from sensor_rig.sweep.running.outcome import RunOutcome, RunStatus
from sensor_rig.sweep.running.store import Store


def results(folder: Path, **keys: Any) -> Path:
    """Write the results of a sweep whose measure `e` is a + b, good below 1."""
    plan = plan_of(
        {
            'rig': 'demo',
            'limits': ['e < 1'],
            'seeds': 6,
            'vary': {'a': {'from': 0.0, 'to': 1.0, 'count': 5}, 'b': [0.0, 0.5]},
            **keys,
        }
    )
    store = Store(folder)
    store.open()
    store.keep_plan(plan, 'sums')
    tasks = []
    for index, values in enumerate(points(plan)):
        for seed in plan.seeds:
            task = Task(f'{index:03d}{seed:03d}', values, seed, -1, index)
            status = RunStatus.TIMEOUT if (index, seed) == (0, 0) else RunStatus.OK
            total = values[0] + values[1]  # type: ignore[operator]
            store.add(
                RunOutcome(
                    task.id,
                    status,
                    {} if status is not RunStatus.OK else {'e': total, 'other': seed},
                    0,
                    host='here',
                    seconds=1.0,
                ),
                'pool',
                1,
            )
            tasks.append(task)
    store.write_table(plan, tasks, [])
    store.close()
    return folder


@pytest.mark.parametrize(('up_to', 'code'), [(0.25, 0), (0.75, 1)])
def test_the_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], up_to: float, code: int
) -> None:
    folder = results(tmp_path / 'r', require=[{'factor': 'a', 'up_to': up_to, 'success': 0.5}])
    assert main(['tolerance', str(folder)]) == code
    out = capsys.readouterr().out
    assert '60 runs: 59 ok, 1 timeout' in out
    assert ('NOT MET: a up to 0.75' in out) == (code == 1)
    assert (folder / 'tolerance.html').read_text().count('<svg') == 5
    drawings = list((folder / 'figures').glob('*.svg'))
    assert len(drawings) == 5
    for each in drawings:
        assert ElementTree.parse(each).getroot().tag == '{http://www.w3.org/2000/svg}svg'


def test_the_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = results(tmp_path / 'r')
    assert main(['tolerance', str(folder), '--json', '--html', str(tmp_path / 'page.html')]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document['version'] == 1 and document['good'] == 6 * 6 - 1
    lines = {(line['factor'], line['others'].get('b')): line for line in document['boundaries']}
    (found,) = lines['a', 0.5]['boundaries']
    assert (found['low'], found['high'], found['interval']) == (0.25, 0.5, [0.25, 0.5])
    level = lines['a', 0.0]['levels'][0]
    assert (level['good'], level['runs']) == (5, 6) and level['low'] == pytest.approx(0.3588, 1e-3)
    assert (tmp_path / 'page.html').is_file()


def test_no_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['tolerance', str(tmp_path / 'none')]) == 2
    (tmp_path / 'plan.json').write_text('{}')
    assert main(['tolerance', str(tmp_path)]) == 2
    assert capsys.readouterr().err.count('error: ') == 2
