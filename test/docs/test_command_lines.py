"""Every command of the tutorials and of the page about CI runs as written, page by page."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.markdown import ROOT, blocks

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

SAVED = re.compile(r'Save this as `([\w.]+)`:\n\n')
COMMAND = re.compile(r'\./rig (.+?)(?: +# exit code (\d))?$')
OTHERS = ('my_rig.yaml --lockstep', 'summary.json', 'docker ')
"""Lines of the page about CI that are about files of the reader's."""


def commands(page: Path) -> Iterator[tuple[str, int]]:
    """Yield each command line of a page without `./rig`, and the exit code that the page says."""
    for block in blocks(page):
        for line in block.text.splitlines():
            found = None if block.language else COMMAND.match(line)
            if found and not any(word in line for word in OTHERS):
                yield found[1], int(found[2] or 0)


def saved_files(page: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file that the page asks to save."""
    text = page.read_text(encoding='utf-8')
    for match in SAVED.finditer(text):
        rest = text[match.end() :]
        fenced = re.match(r'```\w*\n(.*?)^```$', rest, re.S | re.M)
        indented = re.match(r'(?:    .*\n|\n)+', rest)
        body = (
            fenced[1]
            if fenced
            else re.sub('^    ', '', indented[0], flags=re.M)
            if (indented)
            else ''
        )
        yield match[1], body


def run_page(page: Path, folder: Path) -> None:
    """Run the commands of a page in `folder`, beside the shipped worlds."""
    (folder / 'worlds').symlink_to(ROOT / 'worlds')
    for name, text in saved_files(page):
        (folder / name).write_text(text)
    lines = list(commands(page))
    assert len(lines) >= 4
    environment = {**os.environ, 'MUJOCO_GL': os.environ.get('MUJOCO_GL', '')}
    for line, code in lines:
        program = f'{shlex.quote(sys.executable)} -m sensor_rig {line}'
        done = subprocess.run(
            ['/bin/sh', '-c', program],
            cwd=folder,
            env=environment,
            text=True,
            capture_output=True,
            check=False,
        )
        assert done.returncode == code, f'{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}'


def test_from_a_bag_to_a_tolerance(tmp_path: Path) -> None:
    pytest.importorskip('pyarrow', reason='the sweep needs it')
    run_page(ROOT / 'docs' / 'tutorial_bag.md', tmp_path)
    for name in ('findings.html', 'trust.html', 'repaired/report.html', 'results/tolerance.html'):
        assert (tmp_path / name).stat().st_size > 1000


def test_from_a_model_to_a_rig(tmp_path: Path) -> None:
    run_page(ROOT / 'docs' / 'tutorial_robot.md', tmp_path)
    for name in ('my_rig.png', 'rig.schema.json', 'sensors.png', 'out/metadata.yaml'):
        assert (tmp_path / name).stat().st_size > 500


def test_in_ci(tmp_path: Path) -> None:
    run_page(ROOT / 'docs' / 'ci.md', tmp_path)
    code = '\n'.join(
        block.text for block in blocks(ROOT / 'docs' / 'ci.md') if block.language == 'python'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
