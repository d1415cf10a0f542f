"""The ways to install that the documents tell, at full size: a wheel by pip, the Dockerfile."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sensor_rig import __version__

pytestmark = pytest.mark.timeout(1800)


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command with a plain environment; it must succeed."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if key == 'HOME' or key.startswith('PIP_') or key == 'PATH'
    }
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=kept, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


def copied(root: Path, target: Path) -> Path:
    """Return a copy of the tree without what is not in git."""
    shutil.copytree(
        root,
        target,
        ignore=shutil.ignore_patterns(
            '.*', '__pycache__', 'build', 'dist', 'install', 'log', 'runs', 'site', '*.egg-info'
        ),
    )
    return target


@pytest.mark.long
def test_pip_installs_the_wheel_and_the_demo_runs(root: Path, tmp_path: Path) -> None:
    source = copied(root, tmp_path / 'source')
    python = getattr(sys, '_base_executable', sys.executable)
    run(python, '-m', 'venv', tmp_path / 'rig_env', cwd=tmp_path)
    pip = tmp_path / 'rig_env' / 'bin' / 'pip'
    run(pip, 'wheel', '-q', '--no-deps', '--wheel-dir', tmp_path / 'dist', '.', cwd=source)
    shutil.rmtree(source)
    wheel = tmp_path / 'dist' / f'sensor_rig-{__version__}-py3-none-any.whl'
    run(pip, 'install', '-q', f'{wheel}[wheels]', cwd=tmp_path)
    (tmp_path / 'empty').mkdir()
    told = run(
        tmp_path / 'rig_env' / 'bin' / 'sensor-rig',
        'demo',
        '--seconds',
        '0.5',
        '--rtf',
        '0',
        '--headless',
        '--json',
        cwd=tmp_path / 'empty',
    )
    assert json.loads(told)['simulated_s'] >= 0.5


def test_the_documents_name_the_wheel_that_is_built(root: Path) -> None:
    page = (root / 'docs' / 'getting_started.md').read_text()
    assert f'sensor_rig-{__version__}-py3-none-any.whl[wheels]' in page


def instructions(root: Path) -> list[tuple[str, str]]:
    """Return (instruction, argument) of the Dockerfile."""
    text = re.sub(r'\\\n\s*', '', (root / 'Dockerfile').read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith('#')]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


def test_the_dockerfile_takes_debian_and_copies_what_is_there(root: Path) -> None:
    found = instructions(root)
    assert found[0][0] == 'FROM' and found[0][1].startswith('debian:')
    assert {name for name, _ in found} == {'FROM', 'RUN', 'WORKDIR', 'COPY', 'ENTRYPOINT', 'CMD'}
    for name, argument in found:
        if name == 'COPY':
            for source in argument.split()[:-1]:
                assert (root / source).exists(), source
    assert found[-2] == ('ENTRYPOINT', '["/sensor_rig/rig"]')


@pytest.mark.long
def test_the_steps_of_the_dockerfile_work_without_an_engine(root: Path, tmp_path: Path) -> None:
    """COPY and RUN in a folder in place of the image; apt is left out, as it needs a root."""
    source, image = copied(root, tmp_path / 'source'), tmp_path / 'image'
    image.mkdir()
    for name, argument in instructions(root):
        if name == 'COPY':
            *sources, target = argument.split()
            for each in sources:
                if (source / each).is_dir():
                    shutil.copytree(source / each, image / target, dirs_exist_ok=True)
                else:
                    shutil.copy(source / each, image / target)
        elif name == 'RUN' and 'apt-get' not in argument:
            run('/bin/sh', '-c', argument, cwd=image)
    assert 'usage: ' in run(image / 'rig', '--help', cwd=tmp_path)
