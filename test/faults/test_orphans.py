"""The parent of many processes is killed: its nodes notice and end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.processes import Processes
from support.waiting import wait_until

pytest.importorskip('rclpy', reason='rclpy is not installed')
pytestmark = pytest.mark.ros


def children_of(pid: int) -> set[int]:
    return {
        int(child)
        for task in Path(f'/proc/{pid}/task').iterdir()
        for child in (task / 'children').read_text().split()
    }


def is_alive(pid: int) -> bool:
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0] not in 'ZX'
    except OSError:
        return False


@pytest.mark.parametrize('when', ['while they are loading', 'while they run'])
def test_no_node_outlives_a_parent_that_is_killed(processes: Processes, when: str) -> None:
    run = processes.rig('run', 'soak', '--processes', '--rtf', '1', '--seconds', '3600')
    found = wait_until(lambda: len(nodes := children_of(run.pid)) == 5 and nodes, 60.0, 'nodes')
    if when == 'while they run':
        wait_until(
            lambda: all(
                Path(f'/proc/{pid}/stat').read_text() and _threads(pid) > 5 for pid in found
            ),
            60.0,
            'nodes with a middleware',
        )
    try:
        os.kill(run.pid, signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, found)), 30.0, 'the end of the nodes')
    finally:
        for pid in filter(is_alive, found):
            os.kill(pid, signal.SIGKILL)


def _threads(pid: int) -> int:
    return len(list(Path(f'/proc/{pid}/task').iterdir()))
