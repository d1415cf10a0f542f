"""Followers that hear the world in their own process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.node import Node

from rig_common.lockstep.handover import Handover
from rig_common.lockstep.messages import TICK_TOPIC, Ack, Tick
from rig_common.ros.executor import ros_context
from rig_common.ros.follower import Follower
from rig_common.times import NEVER_NS

pytestmark = pytest.mark.ros

S = 1_000_000_000


class Stage:
    """A follower that counts `imu`, and what the world hears of it."""

    def __init__(self, node: Node) -> None:
        self.heard: list[Ack] = []
        self.called_ns: list[int] = []
        self.handover = Handover()
        self.handover.conduct(self.heard.append)
        self.follower = Follower(node, self._on_time, serves=['imu'], handover=self.handover)
        self.follower.counted = {'imu'}

    def _on_time(self, now_ns: int) -> int:
        self.called_ns.append(now_ns)
        return now_ns + S

    def tick(self, time_s: int, round_: int = 0, **sent: int) -> None:
        self.handover.tick(
            TICK_TOPIC, Tick(time_s * S, round=round_, lockstep=True, sent=sent, run='r')
        )

    def join(self) -> None:
        """Let the node answer both rounds of a barrier."""
        self.tick(1, round_=1)
        self.tick(1, round_=2)


@pytest.fixture
def stage() -> Iterator[Stage]:
    with ros_context([]):
        node = Node('follower')
        yield Stage(node)
        node.destroy_node()


def test_a_node_asks_for_a_barrier_joins_in_it_and_answers(stage: Stage) -> None:
    stage.tick(1)
    stage.join()
    stage.tick(2)
    assert [(ack.time_ns // S, ack.serves, ack.round) for ack in stage.heard] == [
        (1, ('imu',), 0),
        (1, ('imu',), 1),
        (1, ('imu',), 2),
        (2, None, 0),
    ]
    assert stage.called_ns[-1] == 2 * S


def test_a_node_that_came_for_the_last_round_only_asks_for_another_barrier(stage: Stage) -> None:
    """It was started again: the others have answered, and do not know that it is a new one."""
    stage.tick(1, round_=2)
    stage.tick(2, imu=1)
    assert [(ack.serves, ack.round) for ack in stage.heard] == [(('imu',), 2), (('imu',), 0)]


def test_a_node_with_new_connections_needs_no_barrier_more_than_it_asks_for(stage: Stage) -> None:
    stage.tick(1, round_=1)
    stage.follower.rejoin()
    stage.tick(1, round_=2)
    stage.tick(2)
    assert stage.heard[-1].time_ns == 2 * S
    assert stage.heard[-1].serves is None


def test_it_waits_for_what_the_tick_counts(stage: Stage) -> None:
    stage.join()
    stage.tick(2, imu=2)
    stage.follower.received('imu')
    assert len(stage.heard) == 2
    stage.follower.received('imu')
    assert stage.heard[-1].time_ns == 2 * S


def test_a_barrier_said_twice_does_not_forget_what_came_in_between(stage: Stage) -> None:
    stage.join()
    stage.follower.received('imu')
    stage.tick(1, round_=2)
    stage.tick(2, imu=1)
    assert stage.heard[-1].time_ns == 2 * S


def test_a_message_of_one_that_ended_before_it_told_of_it_stands_for_no_other(
    stage: Stage,
) -> None:
    stage.join()
    stage.tick(2, imu=1)
    stage.follower.received('imu')
    stage.follower.received('imu')
    stage.tick(2, round_=3, imu=1)
    stage.tick(2, round_=4, imu=1)
    stage.tick(3, imu=2)
    assert stage.heard[-1].time_ns == 2 * S
    stage.follower.received('imu')
    assert stage.heard[-1].time_ns == 3 * S


def test_what_is_said_while_another_is_heard_waits_for_its_turn() -> None:
    handover, order = Handover(), []

    def hear(tick: Tick) -> None:
        order.append(f'begin {tick.time_ns}')
        handover.ack(Ack('a', tick.time_ns))
        order.append(f'end {tick.time_ns}')

    handover.follow(TICK_TOPIC, 'a', hear)
    handover.conduct(lambda ack: order.append(f'answer {ack.time_ns}'))
    handover.tick(TICK_TOPIC, Tick(1))
    handover.leave(TICK_TOPIC, 'a')
    handover.tick(TICK_TOPIC, Tick(2))
    assert order == ['begin 1', 'end 1', 'answer 1']


def test_one_who_leaves_is_not_waited_for(stage: Stage) -> None:
    stage.handover.tick(TICK_TOPIC, Tick(S, run='r'))
    stage.follower.leave()
    assert stage.heard[-1].wake_ns == NEVER_NS
