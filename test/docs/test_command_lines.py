"""Every command of the tutorials and of the page about CI runs as written, page by page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.markdown import ROOT, blocks
from support.tutorials import renewed, run_page

LONG = [pytest.mark.long, pytest.mark.timeout(1200)]
RENEW = 'write it again: PYTHONPATH=test ./rig python test/support/tutorials.py'


def with_marks(*names: str) -> list[object]:
    return [pytest.param(name, marks=LONG) for name in names]


@pytest.mark.parametrize('name', with_marks('tutorial_bag', 'tutorial_robot'))
def test_a_tutorial_shows_what_its_commands_print(name: str, tmp_path: Path) -> None:
    if name == 'tutorial_bag':
        pytest.importorskip('pyarrow', reason='the sweep needs it')
    page = ROOT / 'docs' / f'{name}.md'
    assert page.read_text(encoding='utf-8') == run_page(page, tmp_path), RENEW


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_in_ci(tmp_path: Path) -> None:
    page = ROOT / 'docs' / 'ci.md'
    run_page(page, tmp_path, leave_out=('my_rig.yaml --lockstep', 'summary.json', 'docker '))
    code = '\n'.join(block.text for block in blocks(page) if block.language == 'python')
    done = subprocess.run(
        [sys.executable, '-c', code], cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_numbers_are_renewed_and_words_are_not() -> None:
    printed = ' imu   +9.5 ± 0.12   locked \nwrong: 12 frames lost; look at it\n'
    assert renewed('imu  -9 ± 3  locked', printed) == 'imu   +9.5 ± 0.12   locked'
    assert renewed('wrong: 3 frames lost ...', printed) == 'wrong: 12 frames lost ...'
    with pytest.raises(AssertionError, match='printed any more'):
        renewed('imu +9.5 ± 0.12 converging', printed)
