"""`rig degrade` as a user meets it: what it prints, its exit codes, what it leaves behind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.processes import Processes

from rig_common import msgs
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main

IMAGE = msgs.image('camera', 120, 160, 'rgb8')
RIG = (
    '/**: {ros__parameters: {seed: 4, streams: {camera: {topics: [/camera/image_raw], '
    'delay_range_s: [0.1, 0.1], loss: {probability: 0.3, duplicate_probability: 0.2}}}}}'
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with BagWriter(tmp_path / 'in') as writer:
        writer.add_topic('/camera/image_raw', IMAGE.type_name)
        writer.add_topic('/plain', IMAGE.type_name)
        for k in range(60):
            for topic in ('/camera/image_raw', '/plain'):
                writer.write(topic, 10**12 + k * 10**8, IMAGE.fill(10**12 + k * 10**8))
    return tmp_path / 'in'


@pytest.fixture
def rig(tmp_path: Path) -> str:
    (tmp_path / 'faults.yaml').write_text(RIG)
    return str(tmp_path / 'faults.yaml')


def test_the_document_balances(
    source: Path, rig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['degrade', str(source), str(tmp_path / 'out'), '--rig', rig, '--json']) == 0
    document = json.loads(capsys.readouterr().out)
    assert document['version'] == 1 and document['problems'] == []
    account = document['topics']['/camera/image_raw']
    assert account['lost_by_loss'] > 5 and account['duplicated'] > 3
    assert account['read'] + account['duplicated'] == (
        account['written']
        + account['lost_by_loss']
        + account['lost_by_fault']
        + account['thinned']
    )
    with BagReader(tmp_path / 'out') as bag:
        assert bag.topics['/camera/image_raw'].message_count == account['written']
        assert bag.topics['/plain'].message_count == 60
    assert document['delays']['camera']['max_s'] == pytest.approx(0.1)


def test_the_table_names_every_topic(
    source: Path, rig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['degrade', str(source), str(tmp_path / 'out'), '--rig', rig]) == 0
    told = capsys.readouterr().out
    assert '/camera/image_raw' in told and '/plain' in told and 'written: ' in told


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['IN', 'OUT'], '--rig'),
        (['--rig', 'RIG'], 'needs a recording IN and a new one OUT'),
        (['IN', '--rig', 'RIG'], 'needs a recording IN and a new one OUT'),
        (['--live', 'IN', '--rig', 'RIG'], 'has nothing to do there'),
        (['IN', 'IN', '--rig', 'RIG'], 'exists already'),
        (['nowhere', 'OUT', '--rig', 'RIG'], 'there is no recording at nowhere'),
        (['IN', 'OUT', '--rig', 'demo'], 'has no streams: section'),
    ],
)
def test_mistakes_are_one_sentence(
    source: Path,
    rig: str,
    tmp_path: Path,
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {'IN': str(source), 'OUT': str(tmp_path / 'out'), 'RIG': rig}
    assert main(['degrade', *(places.get(each, each) for each in arguments)]) == 2
    told = capsys.readouterr()
    assert sentence in told.err and told.err.count('\n') == 1 and told.out == ''
    assert not (tmp_path / 'out').exists()
    with BagReader(source) as bag:
        assert bag.message_count == 120


def test_a_recording_that_breaks_off_gives_what_was_before(
    source: Path, rig: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = source / 'in.mcap'
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert main(['degrade', str(source), str(tmp_path / 'out'), '--rig', rig, '--json']) == 1
    told = capsys.readouterr()
    document = json.loads(told.out)
    assert 'WARNING' in told.err and document['problems']
    assert 20 < document['topics']['/plain']['read'] < 60
    with BagReader(tmp_path / 'out') as bag:
        assert not bag.problems
        assert bag.topics['/plain'].message_count == document['topics']['/plain']['written']


def test_a_file_that_may_not_grow_is_one_sentence(
    source: Path, rig: str, tmp_path: Path, processes: Processes
) -> None:
    process = processes.start(
        'bash',
        '-c',
        f'ulimit -f 2000; exec "$0" -m sensor_rig degrade {source} {tmp_path / "out"} --rig {rig}',
        sys.executable,
    )
    assert process.wait() == 2
    assert 'Traceback' not in process.output
    assert 'File too large' in process.output
