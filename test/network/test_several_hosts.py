"""One rig on two hosts: found, cut off, joined again, a host that restarts, two routes."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.namespaces import Hosts
from support.places import ROOT
from support.processes import Process, Processes
from support.recovery import note_recovery
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
DIGEST = """
import hashlib
import sys
from functools import partial
import rclpy
from rclpy.node import Node
from rig_common.ros import qos
from rig_common.ros.types import message_class

rclpy.init()
node = Node('digesting')
def take(topic, raw):
    print(topic, hashlib.md5(raw).hexdigest(), flush=True)
for topic, kind in (pair.split('=') for pair in sys.argv[1:]):
    hear = partial(take, topic)
    node.create_subscription(message_class(kind), topic, hear, qos.internal(), raw=True)
print('listens', flush=True)
rclpy.spin(node)
"""
"""Says of each message of a bundle what it is."""
MEMBERS = (
    'synced/imu/data_raw/batch=sensor_msgs/msg/PointCloud2',
    'synced/front_lidar/scan=sensor_msgs/msg/LaserScan',
    'synced/wheels/odom=nav_msgs/msg/Odometry',
)
CONFIG = ROOT / 'config'
ROUTER = ROOT / 'test' / 'support' / 'router.py'
DETOUR_MS = 5
CUT_S = 3.0
LONG_CUT_S = 25.0
"""Longer than the lease of DDS, 20 s: both hosts have forgotten each other."""
LIMIT_S = 10.0
"""Time limit of lockstep in the test that exceeds it; hosts find each other sooner."""
PATIENCE_S = 120.0


def part(
    processes: Processes, hosts: Hosts, host: int, only: str, *options: str, rig: str = 'soak'
) -> Process:
    return processes.start(
        *hosts.on(host),
        sys.executable,
        '-u',
        '-m',
        'sensor_rig',
        'run',
        rig,
        '--only',
        only,
        *options,
        **OPEN,
    )


def bundles(counter: Process) -> int:
    lines = counter.output.split()
    return int(lines[-1]) if lines and lines[-1].isdigit() else 0


def wait_for_more(counter: Process, more: int = 5, what: str = '') -> None:
    """Wait for bundles, and note how long that took after `what`."""
    before, begun = bundles(counter), time.monotonic()
    wait_until(lambda: bundles(counter) >= before + more, PATIENCE_S, f'{more} more bundles')
    if what:
        note_recovery(what, more, time.monotonic() - begun)


def end(process: Process) -> None:
    assert process.exit_code is None, process.output
    process.interrupt()
    assert process.wait() == 0


@pytest.fixture(
    params=[
        ['--rtf', '1'],
        ['--rtf', '0', '--lockstep'],
        ['--rtf', '0', '--lockstep', '--processes'],
    ],
    ids=['real time', 'lockstep', 'lockstep, a process per node'],
)
def options(request: pytest.FixtureRequest) -> list[str]:
    return list(request.param)


def test_two_hosts_survive_a_cut_and_a_restart(
    make_hosts: Callable[[int], Hosts],
    processes: Processes,
    options: list[str],
    request: pytest.FixtureRequest,
) -> None:
    hosts, way = make_hosts(2), request.node.callspec.id
    first = part(processes, hosts, 0, 'world,imu', *options)
    second = part(processes, hosts, 1, 'front_lidar,wheels,sync', *options)
    counter = processes.start(*hosts.on(1), sys.executable, '-u', '-c', COUNT, **OPEN)
    wait_for_more(counter)
    hosts.cut(0)
    time.sleep(CUT_S)  # the length of the cut is what is tried
    hosts.join(0)
    wait_for_more(counter, what=f'cut of {CUT_S:g} s between two hosts, {way}')
    end(second)
    part(processes, hosts, 1, 'front_lidar,wheels,sync', *options)
    wait_for_more(counter, what=f'host that restarts its nodes, with their start, {way}')
    end(first)


@pytest.mark.parametrize('processes_option', [[], ['--processes']], ids=['one', 'many'])
def test_a_cut_that_dds_does_not_survive_loses_nothing_in_lockstep(
    make_hosts: Callable[[int], Hosts], processes: Processes, processes_option: list[str]
) -> None:
    """Every message of every bundle is that of a run without a cut, in its order."""

    def started() -> tuple[Hosts, list[Process], Process]:
        hosts = make_hosts(2)
        listener = processes.start(
            *hosts.on(1), sys.executable, '-u', '-c', DIGEST, *MEMBERS, **OPEN
        )
        listener.wait_for_output('listens')
        options = ['--rtf', '0', '--lockstep', *processes_option]
        parts = [
            part(processes, hosts, 0, 'world,imu', *options),
            part(processes, hosts, 1, 'front_lidar,wheels,sync', *options),
        ]
        wait_for_digests(listener, 10)
        return hosts, parts, listener

    hosts, parts, listener = started()
    hosts.cut(0)
    time.sleep(LONG_CUT_S)
    before, begun = len(digests(listener)), time.monotonic()
    hosts.join(0)
    wait_for_digests(listener, before + 150)
    way = ', a process per node' if processes_option else ''
    what = f'cut of {LONG_CUT_S:g} s between two hosts, lockstep{way}'
    note_recovery(what, 10, time.monotonic() - begun)
    heard = digests(listener)
    for each in parts:
        end(each)
    _, parts, listener = started()
    wait_for_digests(listener, len(heard) + 30)
    uncut = digests(listener)
    for each in parts:
        end(each)
    for pair in MEMBERS:
        topic = pair.partition('=')[0]
        cut, whole = (
            [line for line in lines if line.partition(' ')[0] == topic] for lines in (heard, uncut)
        )
        # No listener is waited for, so either may have missed the first messages of its run.
        both = next(line for line in cut if line in whole)
        cut, whole = cut[cut.index(both) :], whole[whole.index(both) :]
        assert len(cut) >= 10 and cut[: len(whole)] == whole[: len(cut)], topic


def digests(listener: Process) -> list[str]:
    """Return the lines of a listener: topic and digest."""
    return [line for line in listener.output.splitlines() if line.startswith('synced/')]


def wait_for_digests(listener: Process, count: int) -> None:
    wait_until(lambda: len(digests(listener)) >= count, PATIENCE_S, f'{count} members of bundles')


def test_packets_that_overtake_each_other_change_nothing(
    make_hosts: Callable[[int], Hosts], processes: Processes, options: list[str]
) -> None:
    hosts = make_hosts(2)
    router = processes.start(
        *hosts.on_the_switch(),
        sys.executable,
        '-u',
        str(ROUTER),
        *hosts.without_bridge(),
        str(DETOUR_MS),
    )
    first = part(processes, hosts, 0, 'world,imu', *options)
    second = part(processes, hosts, 1, 'front_lidar,wheels,sync', *options)
    counter = processes.start(*hosts.on(1), sys.executable, '-u', '-c', COUNT, **OPEN)
    wait_for_more(counter, 20)
    assert int(router.output.split()[-1]) > 100, 'the router changed the order of too little'
    end(second)
    assert 'without an account' not in second.output
    end(first)


def test_a_cut_that_outlasts_the_time_limit_of_lockstep_names_who_is_missing(
    make_hosts: Callable[[int], Hosts], processes: Processes, tmp_path: Path
) -> None:
    rig = tmp_path / 'impatient.yaml'
    rig.write_text(f"""
/**:
  ros__parameters:
    extends: {CONFIG / 'soak.yaml'}
    world: {{lockstep_timeout_s: {LIMIT_S}}}
""")
    hosts = make_hosts(2)
    world = part(processes, hosts, 0, 'world,imu', rig=str(rig))
    part(processes, hosts, 1, 'front_lidar,wheels,sync', rig=str(rig))
    counter = processes.start(*hosts.on(1), sys.executable, '-u', '-c', COUNT, **OPEN)
    wait_for_more(counter)
    hosts.cut(0)
    assert world.wait() == 2
    said = re.search(r'lockstep: no answer from (.+) within', world.output)
    assert said is not None, world.output
    assert set(said[1].split(', ')) <= {'/emulator_front_lidar_wheels', '/sync'}
