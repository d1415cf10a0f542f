"""Where nothing renders: the rest of a rig runs if asked to, else one sentence says why not.

In processes of their own, because a GL library is chosen once in a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RIG = """
/**:
  ros__parameters:
    world: {{model: rover_yard.xml, skip_unavailable: {skip}}}
    sensors:
      imu: {{type: imu, mount: {{site: imu_mount}}, rate_hz: 100.0}}
      eye: {{type: camera, mount: {{body: rover}}, rate_hz: 10.0}}
      depth: {{type: depth_camera, mount: {{body: rover}}, rate_hz: 10.0, trigger: eye}}
"""
PLAIN = """
import sys
from rig_common.errors import RigError
from sensor_rig.inprocess import open_rig
try:
    rig = open_rig(sys.argv[1])
except RigError as error:
    sys.exit(f'refused: {error}')
topics = {message.topic for message in rig.run(0.2)}
print(sorted(topics))
"""


def blind(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the only GL library allowed needs a display that is not there."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in ('DISPLAY', 'WAYLAND_DISPLAY')
    }
    return subprocess.run(
        [sys.executable, *command],
        env={**environment, 'MUJOCO_GL': 'glfw'},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(params=[True, False], ids=['skipping', 'strict'])
def rig(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, bool]:
    file = tmp_path / 'rig.yaml'
    file.write_text(RIG.format(skip=str(request.param).lower()))
    return str(file), request.param


def test_without_ros(rig: tuple[str, bool]) -> None:
    file, skips = rig
    done = blind('-c', PLAIN, file)
    if skips:
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "['imu/data_raw']"
        assert done.stderr.count('running without sensor') == 2
    else:
        assert done.returncode == 1
        assert done.stderr.startswith('refused: cameras cannot work here')
        assert len(done.stderr.strip().splitlines()) == 1
        assert 'apt install' in done.stderr


def test_over_ros(rig: tuple[str, bool]) -> None:
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    file, skips = rig
    done = blind('-m', 'sensor_rig', 'run', file, '--seconds', '0.2', '--rtf', '0')
    assert 'Traceback' not in done.stderr
    if skips:
        assert done.returncode == 0, done.stderr
        assert "running without sensor 'eye': cameras cannot work here" in done.stderr
        assert "running without sensor 'depth'" in done.stderr
    else:
        assert done.returncode == 2
        lines = [line for line in done.stderr.splitlines() if 'cannot work' in line]
        assert len(lines) == 1
        assert lines[0].startswith('error: cameras cannot work here')
