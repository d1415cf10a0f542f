"""Benchmarks apart from each other: what ends badly is reported and ends nothing else."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench import driver, machine, results
from bench.driver import Benchmark
from bench.figures import Figure
from sensor_rig.cli import bench as command
from sensor_rig.cli.main import main

FIGURE = {
    'name': 'speed',
    'value': 3.0,
    'unit': 'x',
    'target': 2.0,
    'better': 'higher',
    'kind': 'ratio',
    'spread': None,
    'note': '',
}


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the driver start a script of the test's own in place of a benchmark."""
    real = subprocess.Popen

    def use(body: str) -> None:
        script = tmp_path / 'child.py'
        script.write_text(f'import pathlib, subprocess, sys, time\nfile = sys.argv[2]\n{body}\n')

        def start(given: list[str], **options: Any) -> Any:
            assert given[1:3] == ['-m', 'bench.driver']
            return real([sys.executable, str(script), *given[3:]], **options)

        monkeypatch.setattr(driver.subprocess, 'Popen', start)

    return use


def entry(**values: Any) -> dict[str, Any]:
    return {'load': 1.0, 'seconds': 2.0, 'command': './rig bench', **values}


def with_value(value: float | None, **changes: Any) -> dict[str, Any]:
    figure = Figure.from_dict({**FIGURE, 'value': value, **changes})
    return entry(figures=[figure.to_dict()])


# ---- one benchmark ------------------------------------------------------------------------------


def test_a_benchmark_leaves_its_figures(child: Any) -> None:
    text = json.dumps({'figures': [FIGURE], 'details': {'rounds': 7}})
    child(f'pathlib.Path(file).write_text({text!r})')
    found = driver.run_apart(Benchmark('raycast', '', 60.0), quick=True, command='./rig bench')
    assert [figure.value for figure in driver.figures_of(found)] == [3.0]
    assert found['details'] == {'rounds': 7}
    assert found['command'] == './rig bench'
    assert found['seconds'] >= 0.0


def test_a_failure_is_an_entry_with_its_last_words(child: Any) -> None:
    child('raise RuntimeError("the peer fell over")')
    found = driver.run_apart(Benchmark('raycast', '', 60.0), quick=True)
    assert found['failed'] == 'exit code 1: RuntimeError: the peer fell over'
    assert driver.figures_of(found) == []


def test_what_is_missing_is_absent_and_no_failure(child: Any) -> None:
    child(f'print("it needs ROS 2")\nsys.exit({driver.ABSENT})')
    found = driver.run_apart(Benchmark('timing', '', 60.0), quick=True)
    assert found['absent'] == 'it needs ROS 2'
    assert 'failed' not in found


def test_a_hang_is_ended_with_everything_it_started(child: Any) -> None:
    child(
        'other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])\n'
        'print(other.pid, flush=True)\ntime.sleep(600)'
    )
    found = driver.run_apart(Benchmark('raycast', '', 6.0), quick=True)
    words = found['failed'].split()
    assert words[:4] == ['ended', 'after', '3', 's:']
    grandchild = int(words[4])
    limit = time.monotonic() + 10.0
    while psutil.pid_exists(grandchild) and time.monotonic() < limit:
        if psutil.Process(grandchild).status() == psutil.STATUS_ZOMBIE:
            break
        time.sleep(0.05)
    else:
        assert not psutil.pid_exists(grandchild)


def test_one_failure_does_not_end_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {'raycast': entry(failed='exit code 1: no'), 'pipeline': with_value(3.0)}
    monkeypatch.setattr(driver, 'run_apart', lambda each, quick, command: ends[each.name])
    told: list[str] = []
    chosen = [each for each in driver.BENCHMARKS if each.name in ends]
    found = driver.run_all(chosen, True, '', lambda each, _: told.append(each.name))
    assert found == ends
    assert told == ['raycast', 'pipeline']


@pytest.mark.parametrize('benchmark', driver.BENCHMARKS, ids=lambda each: each.name)
def test_every_benchmark_has_the_common_face(benchmark: driver.Benchmark) -> None:
    if benchmark.needs_ros:
        pytest.importorskip('rclpy', reason='rclpy is not installed')
    module = importlib.import_module(f'bench.{benchmark.name}')
    assert 'quick' in inspect.signature(module.run).parameters
    assert list(inspect.signature(module.headline).parameters) == ['result']


# ---- what is kept -------------------------------------------------------------------------------


def test_a_day_has_one_file_and_later_runs_add_to_it(tmp_path: Path) -> None:
    results.save(results.make({'pipeline': with_value(3.0)}, False), tmp_path)
    results.save(results.make({'raycast': with_value(4.0)}, False), tmp_path)
    results.save(results.make({'pipeline': with_value(5.0)}, False), tmp_path)
    results.save(results.make({'pipeline': with_value(1.0)}, True), tmp_path)
    found = results.newest(False, tmp_path)
    assert found is not None
    file, kept = found
    assert list(kept['benchmarks']) == ['raycast', 'pipeline'], 'in the usual order'
    assert driver.figures_of(kept['benchmarks']['pipeline'])[0].value == 5.0
    assert file.with_suffix('.md').is_file()
    assert results.newest(True, tmp_path)[0].stem.endswith('-quick')


def test_results_of_another_machine_are_not_mixed_in(tmp_path: Path) -> None:
    made = results.make({'raycast': with_value(3.0)}, False)
    results.save({**made, 'machine': {**made['machine'], 'cpu': 'another'}}, tmp_path)
    results.save(results.make({'pipeline': with_value(4.0)}, False), tmp_path)
    assert list(results.newest(False, tmp_path)[1]['benchmarks']) == ['pipeline']


def test_a_full_run_is_what_a_quick_one_is_compared_with_where_there_is_no_other(
    tmp_path: Path,
) -> None:
    assert results.newest(True, tmp_path) is None
    results.save(results.make({'pipeline': with_value(3.0)}, False), tmp_path)
    assert results.newest(True, tmp_path) is not None


def test_the_table_says_what_is_missed_failed_and_absent() -> None:
    entries = {
        'raycast': with_value(1.5),
        'pipeline': with_value(2.5, kind='absolute'),
        'growth': with_value(None, note='absent: no peer'),
        'timing': entry(absent='it needs ROS 2'),
        'sync_node': entry(failed='exit code 1: no'),
    }
    rows = results.markdown(results.make(entries, False)).splitlines()
    assert '| raycast | speed | 1.5x |  | ≥ 2 | **missed** |' in rows
    assert '| pipeline | speed | 2.5x¹ |  | ≥ 2 | met |' in rows
    assert '| growth | speed | absent: no peer |  | ≥ 2 | absent |' in rows
    assert '| timing | it needs ROS 2 | | | | absent |' in rows
    assert '| sync_node | exit code 1: no | | | | **failed** |' in rows
    assert '`./rig bench`' in rows[0]
    assert 'cores' in rows[0]


def test_the_pages_show_some_rows_and_all_that_miss(tmp_path: Path) -> None:
    figures = [
        {**FIGURE, 'name': f'figure {i}', 'value': 1.0 if i == 7 else 3.0} for i in range(9)
    ]
    figures.append({**FIGURE, 'name': results.HEADLINES[2][1], 'value': 2.5})
    page, readme = tmp_path / 'benchmarks.md', tmp_path / 'README.md'
    for file in (page, readme):
        file.write_text(f'before\n{results.BEGIN}\nold\n{results.END}\nafter\n')
    results.write_pages(results.make({'raycast': entry(figures=figures)}, False), page, readme)
    assert f'| {results.HEADLINES[2][2]} | 2.5x |' in readme.read_text()
    assert 'figure' not in readme.read_text()
    text = page.read_text()
    assert [f'figure {i} ' in text for i in range(9)] == [i < 3 or i == 7 for i in range(9)]
    assert 'old' not in text
    assert text.startswith('before\n') and text.endswith(f'{results.END}\nafter\n')


def test_comparing_names_what_got_worse() -> None:
    before = results.make(
        {'raycast': with_value(3.0), 'pipeline': with_value(3.0), 'growth': with_value(3.0)}, False
    )
    now = {
        'raycast': with_value(2.4),
        'pipeline': with_value(2.6),
        'growth': entry(failed='exit code 1: no'),
        'timing': with_value(1.0),
    }
    assert results.compare(before, now) == [
        'raycast: speed is 2.4x, was 3x (25 % worse)',
        'growth: exit code 1: no',
    ]


# ---- the command --------------------------------------------------------------------------------


@pytest.fixture
def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Let the command find these entries in place of running anything."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(driver, 'run_apart', lambda each, quick, command: found[each.name])
    monkeypatch.setattr(results, 'FOLDER', tmp_path)
    monkeypatch.setattr(results.save, '__defaults__', (tmp_path,))
    monkeypatch.setattr(results.newest, '__defaults__', (tmp_path,))
    return found


def test_the_command_runs_keeps_and_checks(
    ends: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ends['pipeline'] = with_value(3.0)
    assert main(['bench', 'pipeline']) == 0
    assert 'speed' in capsys.readouterr().out
    assert main(['bench', 'pipeline', '--check']) == 0
    assert 'Nothing got worse' in capsys.readouterr().out
    ends['pipeline'] = with_value(2.0)
    assert main(['bench', 'pipeline', '--check']) == 1
    assert 'pipeline: speed is 2x, was 3x (50 % worse)' in capsys.readouterr().out
    assert driver.figures_of(results.newest(False)[1]['benchmarks']['pipeline'])[0].value == 3.0


def test_a_failed_benchmark_is_told_and_is_the_exit_code(
    ends: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    ends.update(raycast=entry(failed='exit code 1: no'), pipeline=with_value(1.0))
    assert main(['bench', 'raycast', 'pipeline', '--json']) == 1
    document = json.loads(capsys.readouterr().out)
    assert document['benchmarks']['raycast']['failed'] == 'exit code 1: no'
    assert document['benchmarks']['pipeline']['figures'][0]['met'] is False
    ends['raycast'] = entry(absent='no peer')
    assert main(['bench', 'raycast', 'pipeline']) == 0, 'a missed target is no failure'


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['raycst'], "there is no benchmark 'raycst'; there are raycast, "),
        (['--check', '--docs'], '--check keeps nothing'),
        (['--check'], 'there are no results in '),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], words: str, ends: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['bench', *arguments]) == 2
    assert words in capsys.readouterr().err


def test_outside_a_source_tree_it_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, '__file__', str(tmp_path / 'sensor_rig' / 'cli' / 'bench.py'))
    assert main(['bench']) == 2
    assert 'is not the source tree' in capsys.readouterr().err


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['bench', '--list']) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in driver.NAMES)


def test_a_ros_package_on_the_path_is_named_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the metadata of pip, as in a ROS installation or a source tree."""
    (tmp_path / 'src' / 'a_peer').mkdir(parents=True)
    (tmp_path / 'src' / 'a_peer' / '__init__.py').touch()
    monkeypatch.syspath_prepend(tmp_path / 'src')
    assert machine._version('a-peer') == 'of unknown version'
    (tmp_path / 'package.xml').write_text('<package><version>7.1.4</version></package>')
    assert machine._version('a-peer') == '7.1.4'
    assert machine._version('no-such-peer') == 'absent'
