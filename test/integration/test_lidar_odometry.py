"""Wrong clocks spoil an odometry that nobody here wrote, and sync gives back what they took."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT

EXAMPLE = ROOT / 'examples' / 'lidar_odometry.py'


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments],
        text=True,
        capture_output=True,
        timeout=900,
        check=False,
    )


@pytest.mark.long
def test_clean_degraded_synced_corrected(tmp_path: Path) -> None:
    pytest.importorskip('rko_lio', reason='rko-lio is not installed (extra odometry)')
    pytest.importorskip('evo', reason='evo is not installed (extra odometry)')
    page = tmp_path / 'page.html'
    done = run('--seconds', '40', '--out', str(page))
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith('{'))
    found = json.loads(line)
    ate_m, rpe_m, after_m = (found[key] for key in ('ate_m', 'rpe_m', 'ate_after_shift_m'))
    assert ate_m['clean'] < 0.03
    assert ate_m['degraded'] > 0.08
    assert ate_m['synced'] < ate_m['clean'] + 0.005
    for errors in (ate_m, rpe_m, after_m):
        assert errors['corrected'] < 1.15 * errors['clean']
    text = page.read_text()
    assert text.count('<svg') == 2 and 'http' not in text
    for way in ('clean', 'degraded', 'synced', 'corrected'):
        assert f'<td>{way}</td>' in text


def test_it_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / 'evo.py').write_text("raise ImportError('no', name='evo')")
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)],
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
        env={'PYTHONPATH': f'{tmp_path}:{ROOT}'},
    )
    assert (done.returncode, done.stdout) == (2, '')
    assert done.stderr == (
        f'error: this example needs evo: {sys.executable} -m pip install rko-lio evo\n'
    )
