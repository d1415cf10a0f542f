"""Messages made to harm, on every topic and service that a rig takes: it goes on, or recovers.

None may cost time or memory without bound. Who is on the domain can still stop a rig by asking it
to (docs/security.md).
"""

from __future__ import annotations

import struct
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import Twist
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, TimeReference
from std_srvs.srv import Trigger
from support.processes import Processes
from support.ros_rigs import write_rig

from rig_common import msgs
from rig_common.lockstep.messages import ACK_TOPIC, SETTLED_TOPIC, TICK_TOPIC, Ack, Tick
from rig_common.msgs import Level, Status
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.times import MAX_STAMP_NS
from sensor_rig.nodes.building import make_emulator, make_sync, make_world
from sensor_rig.running.ros.monitor import LARGEST_TOTAL, MOST_STATUSES, Monitor
from sim_sensors.ros import other_worlds
from sim_sensors.timekeeping.roster import MOST_MEMBERS

pytestmark = pytest.mark.ros

WAIT_FOR_WORLD = """
import rclpy
from rclpy.node import Node
from sensor_msgs.msg import TimeReference
rclpy.init()
node, heard = Node('waiting'), []
node.create_subscription(TimeReference, 'world/_tick', heard.append, 10)
while not heard:
    rclpy.spin_once(node, timeout_sec=0.1)
"""
SPEND_S = 20.0
"""Wall time within which the rig must be itself again; a busy machine needs some of it."""


class Rig:
    """World, emulator, sync and monitor over DDS in this process, and a stranger."""

    def __init__(self, folder: Path) -> None:
        self._ros = ros_context([])
        self.spinner = Spinner(self._ros.__enter__())
        rig = write_rig(
            folder,
            {
                'imu': {
                    'type': 'imu',
                    'mount': {'body': 'plate'},
                    'rate_hz': 50.0,
                    'truth_rate_hz': 50.0,
                    'random_walk': 0.01,
                    'delay_range_s': [0.01, 0.01],
                }
            },
            timestep_s=0.01,
            lockstep=False,
            real_time_factor=5.0,
            sync={'reference_sensor_id': 'imu', 'required_sensors': ['imu']},
        )
        self.stranger = Node('stranger')
        self.monitor = Monitor(rig)
        self.sync = make_sync(rig)
        self.emulator = make_emulator(rig)
        self.world = make_world(rig)
        self.world.wake = self.spinner.wake
        self.nodes = [self.stranger, self.monitor, self.sync, self.emulator, self.world]
        for node in self.nodes:
            self.spinner.add(node)

    def until(self, condition: Callable[[], bool], what: str) -> None:
        end_s = time.monotonic() + SPEND_S
        while not condition():
            assert time.monotonic() < end_s, f'{what}: not within {SPEND_S} s'
            self.spinner.wait(min(self.world.advance(), 0.01))

    def goes_on(self) -> None:
        """Drive it until there are more bundles."""
        before = self.sync.engine.bundles_made
        self.until(lambda: self.sync.engine.bundles_made >= before + 5, 'five more bundles')

    def say(self, kind: type, topic: str, *messages: object) -> None:
        """Publish as a stranger, when all who listen can hear."""
        publisher = self.stranger.create_publisher(kind, topic, qos.internal(3000))
        self.until(
            lambda: (
                publisher.get_subscription_count() >= self.stranger.count_subscribers(topic) > 0
            ),
            f'a reader of {topic}',
        )
        for message in messages:
            publisher.publish(message)
        self.until(lambda: self.spinner.turn(0.05) or True, 'a turn')
        self.stranger.destroy_publisher(publisher)

    def call(self, service: str) -> None:
        client = self.stranger.create_client(Trigger, service)
        self.until(client.service_is_ready, service)
        answer = client.call_async(Trigger.Request())
        self.until(answer.done, f'an answer of {service}')
        self.stranger.destroy_client(client)

    def close(self) -> None:
        self.spinner.close()
        for node in self.nodes:
            close_node(node)
        self._ros.__exit__(None, None, None)


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(other_worlds, 'NEW_S', 0.0)  # a running world, not one that starts
    monkeypatch.setattr(other_worlds, 'LOOK_PERIOD_S', 0.05)
    made = Rig(tmp_path)
    try:
        made.goes_on()
        yield made
    finally:
        made.close()


RUBBISH = (b'\0\1\0\0', b'\0\1\0\0' + b'\xff' * 40, bytes(1_000_000))
TICKS = {
    'a huge episode': Tick(5, episode=2**62, run='evil.0'),
    'a huge seed': Tick(5, seed=2**63, run='evil.0'),
    'the end of time': Tick(MAX_STAMP_NS, run='evil.0'),
    'before time': Tick(-(2**31) * 10**9, run='evil.0'),
    'counts that never come': Tick(5, lockstep=True, sent={'imu': 10**12}, run='evil.0'),
    'ten thousand counts': Tick(
        5, lockstep=True, sent={f's{i}': i for i in range(10_000)}, run='evil.0'
    ),
    'a barrier': Tick(5, lockstep=True, round=10**9, run='evil.0'),
}


@pytest.mark.parametrize('topic', [TICK_TOPIC, SETTLED_TOPIC])
def test_ticks_of_a_stranger(rig: Rig, topic: str) -> None:
    for what, tick in TICKS.items():
        begun = time.monotonic()
        rig.say(TimeReference, topic, tick.encode())
        rig.goes_on()
        assert time.monotonic() - begun < 2 * SPEND_S, what


def test_answers_of_a_stranger(rig: Rig) -> None:
    rig.say(
        TimeReference,
        ACK_TOPIC,
        *(Ack(f'/n{i}', 0, 10**15, serves=(f's{i}',)).encode() for i in range(2500)),
    )
    rig.goes_on()
    roster = rig.world.conductor.roster
    assert len(roster.members) + len(roster.left) <= MOST_MEMBERS
    rig.say(
        TimeReference,
        ACK_TOPIC,
        Ack('/emulator', 0, -(10**18)).encode(),
        Ack('/emulator', 0, MAX_STAMP_NS, {f't{i}': 10**15 for i in range(5000)}).encode(),
        Ack('/emulator', MAX_STAMP_NS, 0).encode(),
    )
    rig.goes_on()


def test_truth_of_a_stranger(rig: Rig) -> None:
    stamps = [0, MAX_STAMP_NS // 2, MAX_STAMP_NS]
    rig.say(Imu, 'truth/imu', *(msgs.imu('').fill(stamp) for stamp in stamps))
    rig.goes_on()
    assert rig.emulator._follower.malformed.counts == {'truth/imu': 2}


def test_commands_of_a_stranger(rig: Rig) -> None:
    joints = JointState(name=[f'j{i}' for i in range(5000)], position=[float('nan')] * 5000)
    rig.say(JointState, 'joint_commands', joints, JointState(name=['hinge'], velocity=[1e308]))
    twist = Twist()
    twist.linear.x = float('inf')
    if rig.stranger.count_subscribers('cmd_vel'):
        rig.say(Twist, 'cmd_vel', twist)
    rig.goes_on()


def test_inputs_of_a_stranger(rig: Rig) -> None:
    far = bytearray(msgs.imu('').fill(0))
    struct.pack_into('<iI', far, 4, 2**31 - 1, 2**32 - 1)
    rig.say(Imu, 'imu/data_raw', bytes(far), b'\0\1\0\0', bytes(far)[:20], bytes(5_000_000))
    rig.goes_on()
    engine = rig.sync.engine
    assert not engine.ledger.imbalance(engine.buffered())


def test_reports_of_a_stranger(rig: Rig) -> None:
    for part in range(3):
        rig.say(
            DiagnosticArray,
            '/diagnostics',
            DiagnosticArray(status=[DiagnosticStatus(name=f'{part} {i}') for i in range(5000)]),
        )
    assert len(rig.monitor.statuses) <= MOST_STATUSES
    for topic in (TICK_TOPIC, 'truth/time/imu'):
        rig.say(TimeReference, topic, *RUBBISH)
    rig.goes_on()


@pytest.mark.parametrize(
    'changed',
    [{'reference': 'nobody'}, {'window_ms': 'inf'}, {'stamp_ns': '9' * 4000}, {'sequence': 'one'}],
)
def test_bundles_of_a_stranger(rig: Rig, changed: dict[str, str]) -> None:
    heard: list[bytes] = []
    rig.stranger.create_subscription(DiagnosticArray, 'sync/bundle', heard.append, 10, raw=True)
    rig.until(lambda: bool(heard), 'a bundle')
    bundle = deserialize_message(heard[0], DiagnosticArray)
    for value in bundle.status[0].values:
        value.value = changed.get(value.key, value.value)
    rig.monitor.forget()  # the stranger's is the first it hears
    rig.say(DiagnosticArray, 'sync/bundle', bundle, DiagnosticArray(), *RUBBISH)
    rig.goes_on()


def test_services_of_a_stranger(rig: Rig) -> None:
    for service in (
        '/world/pause',
        '/world/step',
        '/world/resume',
        '/sync/reset',
        '/sync/save_offsets',
        '/sync/load_offsets',
        '/emulator/inject_fault',
        '/world/reset',
    ):
        rig.call(service)
    rig.goes_on()


def test_a_world_of_another_namespace(rig: Rig) -> None:
    def alone() -> bool:
        ticks.publish(Tick(5, run='other.0').encode())
        rig.world.report()
        return 'another world publishes here, on /other/world/_tick of ROS_DOMAIN_ID' not in (
            rig.monitor.statuses['world: time'].message
        )

    ticks = rig.stranger.create_publisher(TimeReference, '/other/world/_tick', qos.internal())
    rig.until(lambda: 'world: time' in rig.monitor.statuses, 'a report of the world')
    for _ in range(3):
        rig.goes_on()
        assert alone(), 'it has a clock of its own'
    clock = rig.stranger.create_publisher(Clock, '/clock', qos.clock())
    rig.until(lambda: not alone(), 'a report of the other world')
    rig.goes_on()
    rig.stranger.destroy_publisher(clock)
    rig.until(alone, 'a report that it has gone')


@pytest.mark.long
def test_the_second_of_two_rigs_ends_and_says_why(processes: Processes) -> None:
    first = processes.rig('run', 'soak', '--rtf', '1', '--seconds', '3600')
    stranger = processes.python('-c', WAIT_FOR_WORLD)
    assert stranger.wait() == 0
    for options in ([], ['--lockstep', '--processes']):
        second = processes.rig('run', 'soak', '--rtf', '1', *options)
        assert second.wait() == 2
        assert 'another world publishes here, on /world/_tick' in second.output
    second = processes.python(
        '-m', 'sensor_rig.nodes.world', '--rig', 'soak', '--ros-args', '-r', '__ns:=/other'
    )
    assert second.wait() == 2
    assert 'another world publishes here, on /world/_tick' in second.output
    assert first.exit_code is None
    first.interrupt()
    assert first.wait() == 130


def test_the_memory_for_reports_reaches_a_plateau(rig: Rig) -> None:
    """Six rounds of large names, large values and ever new names, as /diagnostics brings them."""
    kept = []
    tracemalloc.start()
    for part in range(6):
        for size, count in ((1_000_000, 20), (60_000, 200), (2000, 3000)):
            for i in range(count):
                name = f'sync: {part} {size} {i}'.ljust(size, 'x')
                status = Status(Level.OK, name, 'y' * 100, {'z': 'v' * 100})
                rig.monitor._on_diagnostics(msgs.diagnostic_array(0, [status]))
        kept.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert kept[0] < 2 * LARGEST_TOTAL
    assert max(kept) - kept[1] < 1 << 20, kept
    rig.goes_on()
