"""A node's `Following` on the topics of time, or in memory where the world is in this process."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from rclpy.node import Node
from sensor_msgs.msg import TimeReference
from std_msgs.msg import UInt8MultiArray

from rig_common.cdr import CdrError
from rig_common.lockstep.again import AGAIN, Again
from rig_common.lockstep.following import Following, OnTime
from rig_common.lockstep.handover import Handover
from rig_common.lockstep.messages import ACK_TOPIC, SETTLED_TOPIC, TICK_TOPIC, Ack, Tick
from rig_common.lockstep.tick_clock import TickClock
from rig_common.malformed import Malformed
from rig_common.ros import qos


class Follower(Following):
    """A node's place in the rig's time, connected."""

    def __init__(
        self,
        node: Node,
        on_time: OnTime,
        *,
        serves: Sequence[str] = (),
        topic: str = TICK_TOPIC,
        on_episode: Callable[[Tick], None] | None = None,
        ready: Callable[[], bool] | None = None,
        deliver: Callable[[str, bytes], None] | None = None,
        handover: Handover | None = None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Follow `topic` of the rig that `node` belongs to; the rest is as in `Following`.

        With `handover` the world is in this process. `wake` is called when `advance` has something
        to do earlier than it said.
        """
        super().__init__(
            node.get_fully_qualified_name(),
            on_time,
            self._send,
            serves=serves,
            on_episode=on_episode,
            ready=ready,
            deliver=deliver,
            send_again=self._say_again,
        )
        self._node = node
        self._wake = wake
        self._again: dict[str, AgainTopic] = {}
        self.malformed = Malformed()
        """What came on the topics of time and was none."""
        self.clock = TickClock()
        self._topic = topic
        self._handover = handover
        if handover is not None:
            handover.follow(topic, self, self.hear)
            return
        prefix = rig_namespace(node)
        self._publisher = node.create_publisher(TimeReference, prefix + ACK_TOPIC, qos.beat_out())
        node.create_subscription(
            TimeReference, prefix + topic, self._on_tick, qos.internal(), raw=True
        )

    def leave(self) -> None:
        """Say that nobody needs to wait for this node any more; lockstep still misses it."""
        super().leave()
        if self._handover is not None:
            self._handover.leave(self._topic, self)

    def hear(self, tick: Tick) -> None:
        """Take a tick, as `Following` does; in lockstep, be there for messages sent again."""
        self.clock.hear(tick, time.time_ns())
        if tick.lockstep and not self._again:
            # Truth comes again where ticks do, samples where they are settled.
            for topic in {self._topic, SETTLED_TOPIC}:
                prefix = rig_namespace(self._node)
                self._again[topic] = AgainTopic(
                    self._node, prefix + topic, self.hear_again, self.malformed
                )
        super().hear(tick)
        if tick.pace:
            self._wake()

    def advance(self) -> float:
        """Do what is due by the host's clock; return for how long nothing will be, s."""
        self.pass_to(self.clock.between_ns(time.time_ns()))
        return self.clock.until_s(self.wake_ns, time.time_ns())

    def wake_at(self, wake_ns: int) -> None:
        """Ask for an earlier tick, and look at the clock earlier."""
        if wake_ns < self.wake_ns:
            super().wake_at(wake_ns)
            self._wake()

    def _say_again(self, again: Again) -> None:
        self._again[SETTLED_TOPIC if again.raw else self._topic].send(again)

    def _send(self, ack: Ack) -> None:
        if self._handover is not None:
            self._handover.ack(ack)
        else:
            self._publisher.publish(ack.encode())

    def _on_tick(self, buf: bytes) -> None:
        try:
            tick = Tick.decode(buf)
        except CdrError as error:
            self.malformed.note(self._topic, error)
            return
        self.hear(tick)


class AgainTopic:
    """Where messages of a topic's readers are asked for and sent again."""

    def __init__(
        self, node: Node, topic: str, hear: Callable[[Again], None], malformed: Malformed
    ) -> None:
        """Call `hear` with all that is said there, what this node says included."""
        self._hear, self._malformed, self._topic = hear, malformed, topic + AGAIN
        self._publisher = node.create_publisher(UInt8MultiArray, self._topic, qos.internal())
        node.create_subscription(
            UInt8MultiArray, self._topic, self._on_message, qos.internal(), raw=True
        )

    def send(self, again: Again) -> None:
        """Ask, or answer."""
        self._publisher.publish(again.encode())

    def _on_message(self, buf: bytes) -> None:
        try:
            again = Again.decode(buf)
        except CdrError as error:
            self._malformed.note(self._topic, error)
            return
        self._hear(again)


def rig_namespace(node: Node) -> str:
    """Return the namespace of the whole rig, with a slash at its end.

    A node of one environment lives in `.../env_3/`; the world's time is one level up.
    """
    namespace: str = node.get_namespace().rstrip('/') + '/'
    return re.sub(r'env_\d+/\Z', '', namespace)
