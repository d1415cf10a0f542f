"""A plan is carried out: every system, every way a run can end, and going on after an end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.places import ROOT
from support.sweeps import lines_of, rig_command, write_plan
from support.waiting import wait_until

pytest.importorskip('pyarrow', reason='pyarrow is not installed (extra sweep)')

from sensor_rig.sweep.running.table import read_table

SYSTEM = """
import os, sys, time

def run(rig, seconds, seed, gain=1.0):
    while rig.elapsed_ns < seconds * 1e9:
        rig.step()
    return {'seed': seed, 'gain': gain, 'deep': {'er': rig.elapsed_ns / 1e9}, 'none': None}

def ways(rig, way):
    print('on stdout'); print('on stderr', file=sys.stderr)
    if way == 'raises': raise ValueError('no luck')
    if way == 'exits': sys.exit(3)
    if way == 'dies': os.kill(os.getpid(), 9)
    if way == 'hangs': time.sleep(60)
    if way == 'eats': hold = bytearray(900_000_000); time.sleep(60)
    if way == 'text': return {'value': 'many'}
    return {'value': 1}

def reads(recording, synced, out):
    return {'both': float(recording.exists() and synced.exists() and out.is_dir())}
"""
PROGRAM = """
import json, sys
from pathlib import Path
bag, out, seed = sys.argv[1:]
print('a word', file=sys.stderr)
Path(out, 'result.json').write_text(json.dumps({'files': len(list(Path(bag).iterdir()))}))
sys.exit(4 if seed == '1' else 0)
"""


def swept(plan: Path, *more: str) -> tuple[dict[str, list[Any]], subprocess.CompletedProcess[str]]:
    results = plan.parent / 'results'
    done = rig_command('sweep', plan, '--out', results, *more)
    return read_table(results / 'results.parquet'), done


def test_the_engine_itself(tmp_path: Path) -> None:
    plan = write_plan(
        tmp_path,
        vary={
            'sensors.imu.clock.offset_s': {'from': -0.02, 'to': 0.02, 'count': 3},
            'sensors.body.loss.probability': [0.0, 0.5],
        },
        seeds=2,
    )
    table, done = swept(plan)
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout.startswith('12 runs: 12 ok')
    assert table['run_id'] == sorted(table['run_id']) and len(set(table['run_id'])) == 12
    assert set(table['sensors.imu.clock.offset_s']) == {-0.02, 0.0, 0.02}
    for lost, received, coverage in zip(
        table['sensors.body.loss.probability'],
        table['body.received'],
        table['coverage'],
        strict=True,
    ):
        assert (received == 20) == (lost == 0.0) and coverage == 1.0
    assert all(each == 10.0 for each in table['body.latency_ms.p50'])
    assert not {'seconds', 'host', 'ended'} & table.keys()
    assert all(line['host'] and line['seconds'] > 0 for line in lines_of(tmp_path / 'results'))
    again = rig_command('sweep', plan, '--out', tmp_path / 'results')
    assert again.returncode == 0 and len(lines_of(tmp_path / 'results')) == 12


def test_a_function_gets_the_rig(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text(SYSTEM)
    plan = write_plan(
        tmp_path,
        system={'python': 'mine:run'},
        code=['mine.py'],
        vary={'system.gain': [1.0, 2.5]},
        seeds=[3],
        measures=['*e*', 'imu.*'],
    )
    table, _ = swept(plan)
    assert table['status'] == ['ok', 'ok'] and table['seed'] == [3, 3]
    assert sorted(table['system.gain']) == [1.0, 2.5]
    assert table['deep.er'] == [1.0, 1.0] and 'gain' not in table
    assert min(table['imu.received']) > 90
    before = set(table['run_id'])
    (tmp_path / 'mine.py').write_text(SYSTEM + '\n')
    table, _ = swept(plan)
    assert not before & set(table['run_id']), 'other code, other runs'


def test_every_way_to_end(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text(SYSTEM)
    ways = ['well', 'raises', 'exits', 'dies', 'hangs', 'eats', 'text']
    plan = write_plan(
        tmp_path,
        system={'python': 'mine:ways'},
        code=['mine.py'],
        vary={'system.way': ways},
        time_limit_s=8.0,
        memory_limit_mb=800.0,
    )
    table, done = swept(plan)
    assert done.returncode == 0
    ended = dict(zip(table['system.way'], table['status'], strict=True))
    assert ended == {
        'well': 'ok',
        'raises': 'failed',
        'exits': 'failed',
        'dies': 'crashed',
        'hangs': 'timeout',
        'eats': 'memory',
        'text': 'refused',
    }
    lines = {line['id']: line for line in lines_of(tmp_path / 'results')}
    reasons = {
        way: lines[run]['reason']
        for way, run in zip(table['system.way'], table['run_id'], strict=True)
    }
    assert reasons['raises'] == 'ValueError: no luck'
    assert 'SIGKILL' in reasons['dies'] and '8 s' in reasons['hangs']
    assert "'many'" in reasons['text']
    log = (
        tmp_path
        / 'results'
        / 'logs'
        / (table['run_id'][table['system.way'].index('raises')] + '.txt')
    )
    assert 'on stderr' in log.read_text() and 'Traceback' in log.read_text()
    tries = [line for line in lines_of(tmp_path / 'results') if line['status'] == 'retried']
    assert len(tries) == 1 and tries[0]['attempt'] == 1
    listed = json.loads(
        rig_command('sweep', plan, '--out', tmp_path / 'results', '--list', '--json').stdout
    )
    assert {run['status'] for run in listed['runs']} == set(ended.values())


@pytest.mark.long
def test_what_failed_is_run_again_when_asked(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text(SYSTEM)
    plan = write_plan(
        tmp_path,
        system={'python': 'mine:ways'},
        code=['mine.py'],
        vary={'system.way': ['well', 'raises']},
    )
    for more, attempts in (((), 2), ((), 2), (('--rerun', 'failed'), 3)):
        swept(plan, '--workers', '1', *more)
        assert len(lines_of(tmp_path / 'results')) == attempts


def test_a_program_reads_a_recording(tmp_path: Path) -> None:
    (tmp_path / 'program.py').write_text(PROGRAM)
    plan = write_plan(
        tmp_path,
        seeds=2,
        code=['program.py'],
        system={'command': [sys.executable, 'program.py', '{bag}', '{out}', '{seed}']},
    )
    table, _ = swept(plan)
    by_seed = dict(
        zip(
            table['seed'],
            zip(table['status'], table['exit_code'], table['files'], strict=True),
            strict=True,
        )
    )
    assert by_seed[0][:2] == ('ok', 0) and by_seed[1][:2] == ('failed', 4)
    assert by_seed[0][2] == by_seed[1][2] >= 2
    logs = [file.read_text() for file in (tmp_path / 'results' / 'logs').iterdir()]
    assert logs == ['a word\n'] * 2
    assert not (tmp_path / 'results' / '.scratch').exists()


def test_recordings_are_degraded_and_synced(tmp_path: Path) -> None:
    (tmp_path / 'mine.py').write_text(SYSTEM)
    plan = write_plan(tmp_path / 'a')
    rig_command('record', tmp_path / 'drive', '--rig', plan.parent / 'rig.yaml', '--seconds', '1')
    rig = (plan.parent / 'rig.yaml').read_text() + (
        '    streams:\n      imu: {topics: [/imu/*], clock: {offset_s: 0.0}}\n'
    )
    plan = write_plan(
        tmp_path,
        recordings=['drive'],
        system={'python': 'mine:reads'},
        vary={'streams.imu.loss.probability': [0.0, 0.9]},
    )
    (tmp_path / 'rig.yaml').write_text(rig)
    table, done = swept(plan)
    assert done.stdout.startswith('2 runs: 2 ok'), (tmp_path / 'results/runs.jsonl').read_text()
    assert table['both'] == [1.0, 1.0] and table['recording'] == ['drive', 'drive']
    lost = dict(
        zip(table['streams.imu.loss.probability'], table['imu.lost_fraction'], strict=True)
    )
    assert lost[0.0] == 0.0 and lost[0.9] > 0.7


def begun(plan: Path, results: Path) -> subprocess.Popen[bytes]:
    """Start a sweep and wait until a run of it has ended."""
    process = subprocess.Popen(
        [
            sys.executable,
            '-m',
            'sensor_rig',
            'sweep',
            str(plan),
            '--out',
            str(results),
            '--workers',
            '2',
        ],
        env={**os.environ, 'PYTHONPATH': str(ROOT)},
        stderr=subprocess.PIPE,
    )
    wait_until(
        lambda: (results / 'runs.jsonl').exists() and lines_of_safely(results),
        timeout=100.0,
        what='the first run',
    )
    return process


def lines_of_safely(results: Path) -> int:
    return (results / 'runs.jsonl').read_text().count('\n')


@pytest.mark.parametrize(
    'how', [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_going_on_gives_the_same_table(tmp_path: Path, how: signal.Signals) -> None:
    plan = write_plan(
        tmp_path, vary={'sensors.imu.clock.offset_s': [0.0, 0.01, 0.02]}, seeds=4, seconds=2.0
    )
    whole, parts = tmp_path / 'whole', tmp_path / 'parts'
    assert rig_command('sweep', plan, '--out', whole, '--workers', '1').returncode == 0
    process = begun(plan, parts)
    process.send_signal(how)
    _, told = process.communicate(timeout=30)
    assert process.returncode == (-9 if how is signal.SIGKILL else 130), told
    there = lines_of_safely(parts)
    assert there < 12, 'it was too fast to be interrupted'
    if how is signal.SIGKILL:
        with (parts / 'runs.jsonl').open('a') as file:
            file.write('{"id": "torn')
    done = rig_command('sweep', plan, '--out', parts)
    assert done.returncode == 0
    assert len(lines_of(parts)) == 12, 'what was there was not run again'
    assert (parts / 'results.parquet').read_bytes() == (whole / 'results.parquet').read_bytes()
