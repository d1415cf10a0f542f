"""Every broken rig file of the corpus gets exactly the sentence its first line says.

To add a case, add a file to rigs/: `# says: <the sentence>`, then the mistake. `{folder}` stands
for rigs/, `{parent}` for the folder around it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.processes import Processes

from rig_common.errors import RigError
from sensor_rig.cli.check import check_against_model
from sensor_rig.rigfile import load_rig

RIGS = Path(__file__).with_name('rigs')
BROKEN = sorted(path for path in RIGS.glob('*.yaml') if path.stem != 'good')


def expected(file: Path) -> str:
    first = file.read_text(encoding='utf-8').partition('\n')[0]
    return first.removeprefix('# says: ').replace('{folder}', str(RIGS)).replace(
        '{parent}', str(RIGS.parent))


def sentence_about(file: Path) -> str:
    with pytest.raises(RigError) as caught:
        check_against_model(load_rig(file))
    return str(caught.value)


def test_what_the_broken_files_extend_is_valid() -> None:
    check_against_model(load_rig(RIGS / 'good.yaml'))


@pytest.mark.parametrize('file', BROKEN, ids=[path.stem for path in BROKEN])
def test_a_mistake_gets_its_sentence(file: Path) -> None:
    assert sentence_about(file) == expected(file)


@pytest.mark.parametrize('name', ['wrong_body', 'mesh_is_missing', 'jitter_above_delay',
                                  'alias_bomb', 'not_yaml', 'rate_above_physics'])
def test_check_prints_the_sentence_alone_and_exits_with_2(processes: Processes, name: str) -> None:
    file = RIGS / f'{name}.yaml'
    process = processes.rig('check', str(file))
    assert process.wait() == 2
    assert process.output == f'error: {expected(file)}\n'


@pytest.mark.skipif(os.geteuid() == 0, reason='root may read every file')
def test_a_file_one_may_not_read(tmp_path: Path) -> None:
    file = tmp_path / 'secret.yaml'
    file.write_bytes((RIGS / 'good.yaml').read_bytes())
    file.chmod(0)
    assert sentence_about(file) == f'cannot read {file}: permission denied'


def test_files_that_are_none(tmp_path: Path) -> None:
    assert sentence_about(tmp_path / 'gone.yaml') == (
        f'cannot read {tmp_path / "gone.yaml"}: no such file or directory')
    assert sentence_about(tmp_path) == f'cannot read {tmp_path}: is a directory'
    binary = tmp_path / 'binary.yaml'
    binary.write_bytes(bytes(range(256)))
    assert sentence_about(binary) == f'{binary}:2: not a text file in UTF-8'
    assert sentence_about(Path('/dev/zero')) == (
        'cannot read /dev/zero: it is a pipe or a device, not a file')


def test_a_deep_file_and_a_long_one_end_quickly(tmp_path: Path) -> None:
    head = '/**:\n  ros__parameters:\n'
    deep = tmp_path / 'deep.yaml'
    deep.write_text(f'{head}    a: {"{a: " * 200}1{"}" * 200}\n')
    assert sentence_about(deep) == f'{deep}:3: maps are nested more than 32 deep'
    wide = tmp_path / 'wide.yaml'
    wide.write_text(head + ''.join(f'    key_{n}: 1\n' for n in range(40_000)))
    assert sentence_about(wide) == (
        "wide.yaml: unknown key 'key_0'; allowed are extends, links, seed, sensors, streams, "
        'sync, world')
