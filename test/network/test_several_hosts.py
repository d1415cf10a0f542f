"""One rig on two hosts: found, cut off, joined again, a host that restarts."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import pytest
from support.namespaces import Hosts
from support.processes import Process, Processes
from support.waiting import wait_until

pytestmark = [pytest.mark.ros, pytest.mark.long]

OPEN = {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'}
COUNT = """
import time
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

rclpy.init()
node, count = Node('counting'), 0
def take(message):
    global count
    count += 1
    print(count, flush=True)
node.create_subscription(DiagnosticArray, 'sync/bundle', take, 10)
rclpy.spin(node)
"""
CUT_S = 3.0
PATIENCE_S = 120.0


def part(processes: Processes, hosts: Hosts, host: int, only: str, *options: str) -> Process:
    return processes.start(*hosts.on(host), sys.executable, '-u', '-m', 'sensor_rig', 'run',
                           'soak', '--only', only, *options, **OPEN)


def bundles(counter: Process) -> int:
    lines = counter.output.split()
    return int(lines[-1]) if lines and lines[-1].isdigit() else 0


def wait_for_more(counter: Process, more: int = 5) -> float:
    """Wait for bundles; return how long it took, s."""
    before, begun = bundles(counter), time.monotonic()
    wait_until(lambda: bundles(counter) >= before + more, PATIENCE_S, f'{more} more bundles')
    return time.monotonic() - begun


@pytest.mark.parametrize('options', [['--rtf', '1'], ['--rtf', '0', '--lockstep']],
                         ids=['real time', 'lockstep'])
def test_two_hosts_survive_a_cut_and_a_restart(make_hosts: Callable[[int], Hosts],
                                               processes: Processes, options: list[str]) -> None:
    hosts = make_hosts(2)
    first = part(processes, hosts, 0, 'world,imu', *options)
    second = part(processes, hosts, 1, 'front_lidar,wheels,sync', *options)
    counter = processes.start(*hosts.on(1), sys.executable, '-u', '-c', COUNT, **OPEN)
    wait_for_more(counter)
    hosts.cut(0)
    time.sleep(CUT_S)  # the length of the cut is what is tried
    hosts.join(0)
    print(f'{options}: {wait_for_more(counter):.1f} s to 5 bundles after a cut of {CUT_S} s')
    second.interrupt()
    assert second.wait() == 0
    part(processes, hosts, 1, 'front_lidar,wheels,sync', *options)
    print(f'{options}: {wait_for_more(counter):.1f} s to 5 bundles after a restart')
    assert first.exit_code is None
    first.interrupt()
    assert first.wait() == 0
