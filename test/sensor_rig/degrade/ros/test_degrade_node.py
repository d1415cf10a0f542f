"""The degrade node between a publisher and a reader, over real DDS."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs import read_time_reference
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.ros.types import message_class
from sensor_rig.nodes.building import make_degrade
from sensor_rig.rigfile import rig_from_parameters

pytestmark = pytest.mark.ros

IMU = msgs.imu('imu')
TEXT = 'std_msgs/msg/String'
TIME = 'sensor_msgs/msg/TimeReference'


class Bench:
    """A driver and a reader beside the degrade node, on one executor."""

    def __init__(self, streams: dict[str, Any], **options: Any) -> None:
        self.spinner = Spinner()
        self.degrade = make_degrade(
            rig_from_parameters({'seed': 5, 'streams': streams}), **options
        )
        self.degrade.wake = self.spinner.wake
        self.node = rclpy.create_node('robot')
        for node in (self.degrade, self.node):
            self.spinner.add(node)

    def talk(self, topic: str, type_name: str = IMU.type_name) -> Any:
        return self.node.create_publisher(message_class(type_name), topic, qos.sensor_out())

    def hear(self, topic: str, type_name: str = IMU.type_name) -> list[tuple[int, bytes]]:
        heard: list[tuple[int, bytes]] = []
        self.node.create_subscription(
            message_class(type_name),
            topic,
            lambda raw: heard.append((time.time_ns(), raw)),
            qos.sensor_in(500.0, reliable=True),
            raw=True,
        )
        return heard

    def until(self, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        end_s = time.monotonic() + timeout_s
        while not condition():
            assert time.monotonic() < end_s, 'the condition did not come true'
            self.spinner.wait(min(self.degrade.advance(), 0.02))

    def connect(self, *publishers: Any) -> None:
        """Wait until the node hears the driver and the reader hears the node."""
        self.until(
            lambda: (
                all(each.get_subscription_count() for each in publishers)
                and len(self.degrade._inputs) >= len(publishers)
                and all(
                    self.degrade._publishers_of[topic].get_subscription_count()
                    for topic in self.degrade._types
                )
            )
        )
        self.degrade._look()

    def call(self, kind: Any, name: str, request: Any) -> Any:
        client = self.node.create_client(kind, name)
        self.until(client.service_is_ready)
        future = client.call_async(request)
        self.until(future.done)
        return future.result()

    def set(self, **values: Any) -> Any:
        request = SetParameters.Request(
            parameters=[
                Parameter(key.replace('__', '.'), value=value).to_parameter_msg()
                for key, value in values.items()
            ]
        )
        return self.call(SetParameters, '/degrade/set_parameters', request).results

    def close(self) -> None:
        self.spinner.close()
        close_node(self.degrade)
        self.node.destroy_node()


@pytest.fixture
def bench() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(streams: dict[str, Any], **options: Any) -> Bench:
        made.append(Bench(streams, **options))
        return made[-1]

    with ros_context([]):
        yield make
        for each in made:
            each.close()


@pytest.mark.parametrize('ahead_s', [3600, -3600])
def test_a_host_clock_that_is_set_holds_nothing_up(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, ahead_s: int
) -> None:
    run = bench({'imu': {'topics': ['/imu'], 'delay_range_s': [0.05, 0.05]}})
    talker, heard = run.talk('/imu'), run.hear('/degraded/imu')
    run.connect(talker)
    talker.publish(IMU.fill(time.time_ns()))
    run.until(lambda: len(run.degrade.session) > 0)
    host = SimpleNamespace(**vars(time))
    host.time_ns = lambda: time.time_ns() + ahead_s * 10**9
    monkeypatch.setattr('sensor_rig.degrade.ros.degrade_node.time', host)
    talker.publish(IMU.fill(time.time_ns()))
    run.until(lambda: len(heard) == 2)


def test_messages_come_late_and_stamped_by_the_wrong_clock(bench: Any) -> None:
    live = bench(
        {
            'imu': {
                'topics': ['/imu/data'],
                'delay_range_s': [0.05, 0.05],
                'clock': {'offset_s': -0.25},
            }
        }
    )
    out, truth = live.hear('/degraded/imu/data'), live.hear('/truth/time/imu', TIME)
    driver = live.talk('/imu/data')
    live.connect(driver)
    live.until(
        lambda: (
            not live.degrade.session.unread - {'/truth/fate/imu'} or live.degrade._look() is None
        )
    )
    sent = []
    for k in range(10):
        stamp_ns = 1_700_000_000_000_000_000 + k * 10_000_000
        sent.append((time.time_ns(), stamp_ns))
        driver.publish(IMU.fill(stamp_ns, linear_acceleration=[k, 0.0, 9.8]))
        live.until(lambda k=k: live.degrade.session.accounts['/imu/data'].read > k)
    live.until(lambda: len(out) == 10 and len(truth) == 10)
    for (sent_ns, stamp_ns), (heard_ns, raw) in zip(sent, out, strict=True):
        assert heard_ns - sent_ns >= 50_000_000
        assert read_stamp_ns(raw) == stamp_ns - 250_000_000
    assert [IMU.read(raw)[1]['linear_acceleration'][0] for _, raw in out] == list(range(10))
    pairs = [read_time_reference(raw) for _, raw in truth]
    assert [(each[0], each[2]) for each in pairs] == [
        (stamp_ns, stamp_ns - 250_000_000) for _, stamp_ns in sent
    ]


def test_what_cannot_be_read_passes_as_it_is(bench: Any) -> None:
    live = bench(
        {
            'imu': {
                'topics': ['/imu/data'],
                'delay_range_s': [0.05, 0.05],
                'clock': {'offset_s': -0.25},
            }
        }
    )
    out, driver = live.hear('/degraded/imu/data'), live.talk('/imu/data')
    live.connect(driver)
    rubbish = [b'\0\1\0\0', b'\0\1\0\0' + b'\xff' * 40, bytes(1_000_000)]
    for raw in (*rubbish, IMU.fill(1_700_000_000_000_000_000)):
        driver.publish(raw)
    live.until(lambda: len(out) == 4)
    assert rubbish[0] in [raw for _, raw in out]


def test_types_without_header_pass_and_patterns_do_not_hear_the_node_itself(bench: Any) -> None:
    live = bench({'words': {'topics': ['/*'], 'delay_range_s': [0.01, 0.01]}})
    out = live.hear('/degraded/said', TEXT)
    driver = live.talk('/said', TEXT)
    live.connect(driver)
    driver.publish(msgs.string_message('hello'))
    live.until(lambda: len(out) == 1)
    assert out[0][1][:14] == msgs.string_message('hello')[:14]
    live.degrade._look()
    assert set(live.degrade._types) & {'/degraded/said', '/truth/time/words'} == set()


def test_clock_error_of_a_type_without_header_is_refused_and_said(bench: Any) -> None:
    live = bench({'words': {'topics': ['/said'], 'clock': {'offset_s': 1.0}}})
    live.talk('/said', TEXT)
    live.until(lambda: bool(live.degrade._look() or live.degrade._refused))
    assert 'has no header' in live.degrade._refused['/said']
    assert [status.level for status in live.degrade._statuses()][-1] == 2


def test_parameters_and_faults_change_a_running_stream(bench: Any) -> None:
    live = bench({'imu': {'topics': ['/imu/data']}})
    out = live.hear('/degraded/imu/data')
    driver = live.talk('/imu/data')
    live.connect(driver)

    def send(k: int) -> None:
        driver.publish(IMU.fill(1_000_000_000_000 + k * 10_000_000))
        live.until(lambda: live.degrade.session.accounts['/imu/data'].read > k)

    send(0)
    live.until(lambda: len(out) == 1)
    assert live.set(streams__imu__clock__offset_s=0.5)[0].successful
    send(1)
    live.until(lambda: len(out) == 2)
    assert read_stamp_ns(out[1][1]) == 1_000_010_000_000 + 500_000_000
    refused = live.set(streams__imu__jitter_s=0.5)[0]
    assert not refused.successful and 'jitter_s is 0.5' in refused.reason
    live.set(fault__kind='dead', fault__sensor='imu')
    answer = live.call(Trigger, '/degrade/inject_fault', Trigger.Request())
    assert answer.success
    send(2)
    account = live.degrade.session.accounts['/imu/data']
    assert (account.read, account.written, account.lost_by_fault) == (3, 2, 1)
    facts = live.degrade.facts('imu')
    assert (facts.read, facts.lost_by_fault, facts.in_flight) == (3, 1, 0)


def test_simulated_time_releases_by_clock_and_starts_anew_when_it_goes_back(bench: Any) -> None:
    live = bench(
        {'imu': {'topics': ['/imu/data'], 'delay_range_s': [0.1, 0.1]}},
        parameter_overrides=[Parameter('use_sim_time', value=True)],
    )
    out = live.hear('/degraded/imu/data')
    driver = live.talk('/imu/data')
    clock = live.node.create_publisher(message_class('rosgraph_msgs/msg/Clock'), '/clock', 10)
    live.connect(driver)
    live.until(lambda: clock.get_subscription_count() > 0)
    template = msgs.clock()

    def tick(now_ns: int) -> None:
        clock.publish(template.fill(now_ns))
        live.until(lambda: live.degrade._now_ns() == now_ns)

    tick(5_000_000_000)
    driver.publish(IMU.fill(5_000_000_000))
    live.until(lambda: len(live.degrade.session) == 1)
    tick(5_099_000_000)
    assert not out and len(live.degrade.session) == 1
    tick(5_100_000_000)
    live.until(lambda: len(out) == 1)
    driver.publish(IMU.fill(5_100_000_000))
    live.until(lambda: len(live.degrade.session) == 1)
    tick(1_000_000_000)
    assert len(live.degrade.session) == 0
    assert live.degrade.session.accounts['/imu/data'].read == 0


def test_remapping_puts_it_between_a_driver_and_a_stack(bench: Any) -> None:
    live = bench(
        {'imu': {'topics': ['/imu/data'], 'clock': {'offset_s': 1.0}}},
        cli_args=[
            '--ros-args',
            '-r',
            '/imu/data:=/driver/imu',
            '-r',
            'degraded/imu/data:=/imu/data',
        ],
    )
    out = live.hear('/imu/data')
    driver = live.talk('/driver/imu')
    live.connect(driver)
    driver.publish(IMU.fill(3_000_000_000))
    live.until(lambda: len(out) == 1)
    assert read_stamp_ns(out[0][1]) == 4_000_000_000
    live.degrade._look()
    assert list(live.degrade._inputs) == ['/driver/imu']


def test_rig_without_streams_is_a_mistake() -> None:
    with ros_context([]), pytest.raises(RigError, match='no streams'):
        make_degrade(rig_from_parameters({}))


def test_the_command_degrades_until_it_is_interrupted(
    processes: Any, tmp_path: Any, wait_until: Any
) -> None:
    rig = tmp_path / 'faults.yaml'
    rig.write_text(
        '/**: {ros__parameters: {streams: {imu: {topics: [/imu/*], clock: {offset_s: 1.0}}}}}'
    )
    process = processes.start(
        sys.executable, '-m', 'sensor_rig', 'degrade', '--live', '--rig', str(rig), '--json'
    )
    with ros_context([]):
        spinner, node = Spinner(), rclpy.create_node('robot')
        spinner.add(node)
        heard: list[bytes] = []
        kind = message_class(IMU.type_name)
        node.create_subscription(kind, '/degraded/imu/data', heard.append, 10, raw=True)
        driver = node.create_publisher(kind, '/imu/data', 10)

        def sent() -> bool:
            driver.publish(IMU.fill(5_000_000_000))
            spinner.turn(0.05)
            return bool(heard)

        wait_until(sent, 60.0, 'a degraded message')
        spinner.close()
        node.destroy_node()
    assert read_stamp_ns(heard[0]) == 6_000_000_000
    process.interrupt()
    assert process.wait() == 0
    document = json.loads(process.output[process.output.index('{') :])
    account = document['topics']['/imu/data']
    assert account['read'] == account['written'] >= len(heard)
