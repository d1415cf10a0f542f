"""Nodes of a running rig that die, stop or are told nonsense: the others go on.

One rig for all tests, in the order of the file; each test leaves it running. The killings come
last: a killed node stays on the graph until its lease ends, and takes what is meant for the next.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from sensor_msgs.msg import TimeReference
from std_srvs.srv import Trigger
from support.faults import Observer
from support.places import SMALL_RIG as RIG
from support.processes import Process, Processes

from rig_common.lockstep.messages import ACK_TOPIC, SETTLED_TOPIC, TICK_TOPIC
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.ros.types import message_class
from sensor_rig.rigfile import load_rig
from sensor_rig.running.node_plan import planned_nodes

pytestmark = [pytest.mark.ros, pytest.mark.xdist_group('nodes')]

INPUTS = ('front_lidar', 'wheels', 'imu')


class Run:
    """The processes of the rig by name, and an observer of them."""

    def __init__(self, processes: Processes, spinner: Spinner) -> None:
        self._processes = processes
        self._planned = {node.name: node for node in planned_nodes(load_rig(RIG), emulators='one')}
        self.observer = Observer(spinner)
        self.running: dict[str, Process] = {}
        for name in self._planned:
            self.start(name)

    def start(self, name: str) -> None:
        self.running[name] = self._processes.start(*self._planned[name].command())


@pytest.fixture(scope='module')
def run() -> Iterator[Run]:
    processes = Processes()
    with ros_context([]) as context:
        spinner = Spinner(context)
        run = Run(processes, spinner)
        try:
            run.observer.bundles(5, 'start of all nodes, a process each')
            yield run
            for name, process in run.running.items():
                process.interrupt()
                assert process.wait() == 0, (name, process.output)
                assert 'Traceback' not in process.output
                assert 'without an account' not in process.output
        finally:
            processes.stop_all()
            spinner.close()
            close_node(run.observer)


@pytest.fixture
def observer(run: Run) -> Iterator[Observer]:
    """Return the observer; afterwards bundles flow and every message is accounted for."""
    yield run.observer
    run.observer.bundles(3)
    run.observer.ledgers(*INPUTS)
    for name, process in run.running.items():
        assert process.exit_code is None, (name, process.output)


def test_a_reset_of_the_world_begins_a_new_epoch(observer: Observer) -> None:
    client = observer.create_client(Trigger, '/world/reset')
    observer.until(client.service_is_ready, 'the reset service')
    observer.bundles(2)
    newest_ns, epoch = max(observer.bundles_ns), observer.epoch
    assert observer.ask(client, Trigger.Request()).success
    observer.until(
        lambda: observer.bundles_ns and observer.bundles_ns[-1] < newest_ns,
        'bundles of the new episode',
    )
    observer.bundles(3, 'after a reset of the world')
    # Under load a last sample of the old episode may come late and begin one more.
    observer.until(lambda: observer.epoch > epoch, 'a new epoch in the diagnostics')


@pytest.mark.parametrize(
    ('topic', 'type_name', 'status'),
    [
        (TICK_TOPIC, 'sensor_msgs/msg/TimeReference', 'emulator: unreadable messages'),
        (SETTLED_TOPIC, 'sensor_msgs/msg/TimeReference', 'sync: unreadable messages'),
        (ACK_TOPIC, 'sensor_msgs/msg/TimeReference', 'world: unreadable messages'),
        ('truth/wheels', 'nav_msgs/msg/Odometry', 'emulator: unreadable messages'),
    ],
)
def test_nonsense_between_the_nodes_is_dropped_and_said(
    observer: Observer, topic: str, type_name: str, status: str
) -> None:
    kind = (
        load_rig(RIG).make_sensors()['wheels'].truth_template()[0]
        if topic == 'truth/wheels'
        else type_name
    )
    publisher = observer.create_publisher(message_class(kind), topic, qos.internal())
    observer.until(publisher.get_subscription_count, f'a reader of {topic}')
    for raw in (b'\0\1\0\0', b'\0\1\0\0' + b'\xff' * 60, b'\0\1\0\0' + bytes(100_000)):
        publisher.publish(raw)
    observer.says(status, topic)
    observer.destroy_publisher(publisher)


def test_a_stranger_that_answers_ticks_cannot_stop_the_world(observer: Observer) -> None:
    from rig_common.lockstep.messages import Ack

    publisher = observer.create_publisher(TimeReference, ACK_TOPIC, qos.internal())
    observer.until(publisher.get_subscription_count, 'the world')
    publisher.publish(Ack('/stranger', 0, 0, serves=()).encode())
    observer.bundles(5, 'after a node joined that never answers')
    observer.destroy_publisher(publisher)


@pytest.mark.parametrize(('name', 'reporter'), [('emulator', 'sync: engine'), ('sync', '')])
def test_a_node_stopped_for_five_seconds_goes_on(
    run: Run, observer: Observer, name: str, reporter: str
) -> None:
    os.kill(run.running[name].pid, signal.SIGSTOP)
    try:
        if reporter:
            observer.says(reporter, 'no data from')
        observer.for_a_while(5.0)
    finally:
        os.kill(run.running[name].pid, signal.SIGCONT)
    observer.bundles(3, f'after SIGSTOP of the {name} for 5 s')
    for sensor in INPUTS:
        observer.statuses.pop(f'sync: {sensor}', None)
        observer.until(lambda sensor=sensor: f'sync: {sensor}' in observer.statuses, 'a report')
        offset_ms = float(observer.statuses[f'sync: {sensor}'].values['offset to host (ms)'])
        assert abs(offset_ms) < 500.0, 'what came late says nothing about the clock'


@pytest.mark.parametrize('name', ['emulator', 'sync', 'world'])
def test_a_killed_node_is_replaced(run: Run, observer: Observer, name: str) -> None:
    run.running[name].kill()
    if name == 'emulator':
        observer.says('sync: engine', 'no data from')
    run.start(name)
    observer.bundles(5, f'after kill -9 of the {name} node, with its start')
