"""A disk that fills while recording: the recording closes readable and says what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.processes import Processes

from rig_common import msgs
from rig_common.errors import RigError
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main
from sensor_rig.pictures import figures

IMAGE = msgs.image('cam', 480, 640, 'rgb8')


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of its own, 40 MiB large."""
    folder = tmp_path / 'disk'
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and subprocess.run(
            ['mount', '-t', 'tmpfs', '-o', 'size=40m', 'rig_test', str(folder)],
            check=False,
            capture_output=True,
        ).returncode
        == 0
    )
    if not mounted:
        pytest.skip('a small disk needs the right to mount one')
    yield folder
    subprocess.run(['umount', str(folder)], check=True)


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_a_full_disk_leaves_a_readable_recording(small_disk: Path, storage: str) -> None:
    path = small_disk / 'bag'
    with pytest.raises(
        RigError,
        match=r'MiB left, so recording stopped; the \d+ messages until '
        r'then are readable',
    ):
        record(path, storage)
    with BagReader(path) as reader:
        times = [message.receive_ns for message in reader.messages()]
    assert 5 < len(times) < 100
    assert times == [k * 10**7 for k in range(len(times))]


def record(path: Path, storage: Any) -> None:
    with BagWriter(path, storage) as writer:
        writer.add_topic('/camera', IMAGE.type_name)
        for k in range(100):
            writer.write('/camera', k * 10**7, IMAGE.fill(k * 10**7))


def test_a_file_that_may_not_grow_is_one_sentence(processes: Processes, tmp_path: Path) -> None:
    process = processes.start(
        'bash',
        '-c',
        f'ulimit -f 300; exec "$0" -m sensor_rig record '
        f'{tmp_path / "out"} --rig soak --seconds 60',
        sys.executable,
    )
    assert process.wait() == 2
    assert 'Traceback' not in process.output
    assert 'File too large' in process.output


@pytest.mark.parametrize('command', ['schema', 'inspect', 'inspect --json', '--help'])
def test_a_full_standard_output_is_one_sentence(tmp_path: Path, command: str) -> None:
    with BagWriter(tmp_path / 'bag') as writer:
        writer.add_topic('/camera', IMAGE.type_name)
        writer.write('/camera', 1, IMAGE.fill(1))
    words = command.split()
    if 'inspect' in words:
        words.insert(1, str(tmp_path / 'bag'))
    with open('/dev/full', 'w') as full:
        ended = subprocess.run(
            [sys.executable, '-m', 'sensor_rig', *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 2
    assert ended.stderr.strip().splitlines()[-1] == (
        'error: cannot write to the standard output: no space left on device'
    )
    assert 'Traceback' not in ended.stderr and 'Exception ignored' not in ended.stderr


def fill(file: Path) -> None:
    """Write until the disk is full."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(handle, bytes(1 << 12))
    except OSError:
        os.close(handle)


def test_a_picture_that_does_not_fit_leaves_the_old_one(small_disk: Path) -> None:
    file = small_disk / 'curve.png'
    file.write_text('old')
    fill(small_disk / 'rest')
    with figures.figure(4.0, 3.0) as sheet:
        sheet.text(0.5, 0.5, 'new')
        with pytest.raises(RigError, match=r'curve\.png: no space left on device'):
            figures.save(sheet, file)
    assert file.read_text() == 'old'
    assert sorted(each.name for each in small_disk.iterdir()) == ['curve.png', 'rest']


def test_a_height_field_larger_than_the_memory_is_one_sentence(
    processes: Processes, tmp_path: Path
) -> None:
    (tmp_path / 'model.xml').write_text("""
<mujoco><asset><hfield name="t" nrow="60000" ncol="60000" size="9 9 1 1"/></asset>
<worldbody><geom type="hfield" hfield="t"/></worldbody></mujoco>""")
    rig = tmp_path / 'rig.yaml'
    rig.write_text('/**: {ros__parameters: {world: {model: model.xml}}}')
    process = processes.start(
        'bash',
        '-c',
        f'ulimit -v 6000000; exec "$0" -m sensor_rig record {tmp_path / "out"} --rig {rig}',
        sys.executable,
    )
    assert process.wait() == 2
    assert process.output.startswith('error: ')
    assert process.output.count('\n') == 1
    assert 'needs more memory than there is' in process.output


@pytest.mark.parametrize('old', ['', 'what was there before'])
def test_a_full_disk_leaves_no_half_file(
    small_disk: Path, capsys: pytest.CaptureFixture[str], old: str
) -> None:
    file = small_disk / 'schema.json'
    if old:
        file.write_text(old)
    fill(small_disk / 'rest')
    assert main(['schema', '--output', str(file)]) == 2
    said = ' '.join(capsys.readouterr().err.split())
    assert said.endswith('schema.json: no space left on device')
    assert (file.read_text() if file.exists() else '') == old
    assert sorted(each.name for each in small_disk.iterdir()) == ['rest'] + ['schema.json'] * bool(
        old
    )
