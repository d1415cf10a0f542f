"""A node ends when it is told to: once for two signals, while it loads, and when it hangs."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from support.places import SMALL_RIG
from support.processes import Process, Processes

pytestmark = pytest.mark.ros

NODES = ('world', 'emulator', 'sync')
HANGING = """
import ctypes
import sys
from rclpy.node import Node
from rig_common import watchdog
from rig_common.errors import RigError
from rig_common.ros import executor

watchdog.Watchdog.__init__.__defaults__ = (0.5,)
executor.REPEAT_S = 0.0


class Hanging(Node):
    def __init__(self):
        super().__init__('hanging')
        self.timer = self.create_timer(0.01, self.on_timer)

    def on_timer(self):
        if 'mistake' in sys.argv:
            raise RigError('a mistake of the user')
        print('running', flush=True)

    def close(self):
        print('closing', flush=True)
        if 'in_c' in sys.argv:
            ctypes.PyDLL(None).pause()  # never returns, and keeps the interpreter's lock
        if 'in_python' in sys.argv:
            watchdog.time.sleep(600.0)


code = executor.run_node(Hanging)
print('closed', flush=True)
if 'at_exit' in sys.argv:
    ctypes.PyDLL(None).pause()
sys.exit(code)
"""
SENTENCE = 'hanging did not end by itself within 0.5 s: it is ended now'


def hanging(processes: Processes, *how: str) -> Process:
    return processes.python('-c', HANGING, *how)


@pytest.mark.parametrize(
    ('where', 'number'), [('in_c', signal.SIGINT), ('at_exit', signal.SIGTERM)]
)
def test_a_node_that_hangs_is_ended_with_its_exit_code(
    processes: Processes, where: str, number: signal.Signals
) -> None:
    process = hanging(processes, where)
    process.wait_for_output('running')
    os.kill(process.pid, number)
    assert process.wait() == 0
    assert SENTENCE in process.output


@pytest.mark.parametrize('where', ['in_c', 'at_exit'])
def test_a_mistake_keeps_its_exit_code_in_a_node_that_hangs(
    processes: Processes, where: str
) -> None:
    process = hanging(processes, where, 'mistake')
    assert process.wait() == 2
    assert 'error: a mistake of the user' in process.output
    assert SENTENCE in process.output


def test_a_node_that_ends_is_left_alone(processes: Processes) -> None:
    process = hanging(processes)
    process.wait_for_output('running')
    process.interrupt()
    assert process.wait() == 0
    assert 'closed' in process.output
    assert SENTENCE not in process.output


def test_a_later_interrupt_does_not_wait(processes: Processes) -> None:
    process = hanging(processes, 'in_python')
    process.wait_for_output('running')
    process.interrupt()
    process.wait_for_output('closing')
    process.interrupt()
    assert process.wait() == 128 + signal.SIGINT
    assert SENTENCE not in process.output


@pytest.mark.parametrize('name', NODES)
def test_two_interrupts_at_once_are_one(processes: Processes, name: str) -> None:
    """`ros2 launch` without a terminal: the group gets SIGINT, and each node one from launch."""
    process = processes.python(
        '-m',
        f'sensor_rig.nodes.{name}',
        '--rig',
        str(SMALL_RIG),
        '--ros-args',
        '--log-level',
        'rcl:=debug',
    )
    process.wait_for_output('Initializing subscription')  # the factory is at work, or done
    process.interrupt()
    process.interrupt()
    assert process.wait() == 0
    assert 'Traceback' not in process.output


@pytest.mark.parametrize(
    ('name', 'number'),
    [('world', signal.SIGINT), ('sync', signal.SIGINT), ('emulator', signal.SIGTERM)],
)
def test_a_signal_while_a_node_is_importing_is_no_failure(
    processes: Processes, name: str, number: signal.Signals
) -> None:
    process = processes.start(
        sys.executable,
        '-X',
        'importtime',
        '-m',
        f'sensor_rig.nodes.{name}',
        '--rig',
        str(SMALL_RIG),
    )
    process.wait_for_output('| sensor_rig.nodes\n')  # its first import; rclpy comes much later
    os.kill(process.pid, number)
    assert process.wait() == 0
    assert 'Traceback' not in process.output
