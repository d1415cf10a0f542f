"""A library that is too old, or missing, is one sentence that names the way out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import ROOT


def started(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python command with `folder` in front of the path."""
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, 'PYTHONPATH': f'{folder}:{ROOT}'},
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a folder with the face of pydantic 1.10: no `model_validator`, its version beside."""
    (tmp_path / 'pydantic').mkdir()
    (tmp_path / 'pydantic' / '__init__.py').write_text('class BaseModel: pass\n')
    (tmp_path / 'pydantic-1.10.14.dist-info').mkdir()
    (tmp_path / 'pydantic-1.10.14.dist-info' / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: pydantic\nVersion: 1.10.14\n'
    )
    return tmp_path


@pytest.mark.parametrize('name', ['sync', 'world', 'emulator', 'degrade'])
def test_an_executable_says_it_and_exits_with_2(old: Path, name: str) -> None:
    pytest.importorskip('rclpy', reason='without ROS that is what it says')
    done = started(old, str(ROOT / 'resource' / 'executables' / name), '--rig', 'demo')
    assert done.returncode == 2
    assert 'pydantic 1.10.14 is too old' in done.stderr
    assert 'rig ros-env' in done.stderr
    assert 'Traceback' not in done.stderr


@pytest.mark.parametrize(
    'module',
    ['sync_engine.config', 'sync_engine.filters', 'sim_sensors.rig', 'sensor_rig.rigfile',
     'rig_common.validation'],
)  # fmt: skip
def test_a_library_says_it_at_the_first_import(old: Path, module: str) -> None:
    done = started(old, '-c', f'import {module}')
    assert done.stderr.splitlines()[-1].startswith('rig_common.errors.RigError: pydantic 1.10.14')


def test_the_command_line_says_it(old: Path) -> None:
    done = started(old, '-m', 'sensor_rig', 'check', 'demo')
    assert done.returncode == 2
    assert 'rig ros-env' in done.stderr
    assert 'Traceback' not in done.stderr


WITH_NUMPY_1 = """
import filterpy.kalman, mujoco, numpy, rich, scipy.ndimage, scipy.optimize, scipy.signal
for name in (
    'acos acosh asin asinh atan atan2 atanh astype bitwise_count bitwise_invert concat '
    'cumulative_prod cumulative_sum isdtype matrix_transpose matvec permute_dims pow trapezoid '
    'unique_all unique_counts unique_inverse unique_values unstack vecdot vecmat'
).split():
    vars(numpy).pop(name, None)
from sensor_rig.inprocess import open_rig
rig = open_rig('demo', skip_unavailable=True)
for _ in range(500):
    rig.step()
"""


def test_no_function_is_needed_that_only_numpy_2_has() -> None:
    """Distributions of 2024 have NumPy 1.26, and ROS's messages are compiled against that."""
    done = started(ROOT, '-c', WITH_NUMPY_1)
    assert done.returncode == 0, done.stderr
