"""Whether another host gets in: real rigs and a stranger in network namespaces of their own."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import pytest
from support.namespaces import Hosts
from support.processes import Process, Processes

pytestmark = [pytest.mark.ros, pytest.mark.long]

STRANGER = """
import json, sys, time
import rclpy
from rclpy.node import Node
from std_srvs.srv import Trigger

rclpy.init()
node = Node('stranger')
reset = node.create_client(Trigger, '/world/reset')
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end and 'world' not in node.get_node_names():
    rclpy.spin_once(node, timeout_sec=0.1)
print(json.dumps({'nodes': node.get_node_names(),
                  'reset': reset.wait_for_service(timeout_sec=1.0)}), flush=True)
"""
LOOK_S = 8.0
"""How long a stranger looks for a rig that is hidden; an open one is found within two seconds."""


def rig(processes: Processes, hosts: Hosts, **environment: str) -> Process:
    process = processes.start(
        *hosts.on(0),
        sys.executable,
        '-u',
        '-m',
        'sensor_rig',
        'run',
        'soak',
        '--rtf',
        '1',
        **environment,
    )
    ready = processes.start(
        *hosts.on(0), sys.executable, '-u', '-c', STRANGER, '60', **environment
    )
    assert ready.wait() == 0
    return process


def stranger_sees(processes: Processes, hosts: Hosts, seconds: float) -> dict[str, object]:
    # The stranger's own settings are plain ROS: no profile of ours, our host named as a peer.
    started = processes.start(
        *hosts.on(1),
        'env',
        '-u',
        'FASTDDS_DEFAULT_PROFILES_FILE',
        '-u',
        'FASTRTPS_DEFAULT_PROFILES_FILE',
        sys.executable,
        '-u',
        '-c',
        STRANGER,
        str(seconds),
        ROS_AUTOMATIC_DISCOVERY_RANGE='SUBNET',
        ROS_STATIC_PEERS=hosts.addresses[0],
    )
    assert started.wait(seconds + 60.0) == 0
    return json.loads(started.output.splitlines()[-1])


def test_another_host_gets_in_only_where_the_user_says_so(
    make_hosts: Callable[[int], Hosts], processes: Processes
) -> None:
    hosts = make_hosts(2)
    closed = rig(processes, hosts)
    assert stranger_sees(processes, hosts, LOOK_S) == {'nodes': ['stranger'], 'reset': False}
    assert 'other machines' not in closed.output
    closed.interrupt()
    assert closed.wait() == 0

    opened = rig(processes, hosts, ROS_AUTOMATIC_DISCOVERY_RANGE='SUBNET')
    begun = time.monotonic()
    seen = stranger_sees(processes, hosts, 60.0)
    assert {'world', 'emulator', 'sync'} <= set(seen['nodes']) and seen['reset']
    print(f'an open rig was found after {time.monotonic() - begun:.1f} s')
    assert 'ROS_AUTOMATIC_DISCOVERY_RANGE is SUBNET: other machines' in opened.output
