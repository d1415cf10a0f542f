"""A node's `Following` on the topics of time, or in memory where the world is in this process."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rclpy.node import Node
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.lockstep.following import Following, OnTime
from rig_common.lockstep.handover import Handover
from rig_common.lockstep.messages import ACK_TOPIC, TICK_TOPIC, Ack, Tick
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
        handover: Handover | None = None,
    ) -> None:
        """Follow `topic` of the rig that `node` belongs to; the rest is as in `Following`.

        With `handover` the world is in this process.
        """
        super().__init__(
            node.get_fully_qualified_name(),
            on_time,
            self._send,
            serves=serves,
            on_episode=on_episode,
            ready=ready,
        )
        self.malformed = Malformed(node.get_name())
        """What came on the topics of time and was none."""
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


def rig_namespace(node: Node) -> str:
    """Return the namespace of the whole rig, with a slash at its end.

    A node of one environment lives in `.../env_3/`; the world's time is one level up.
    """
    namespace: str = node.get_namespace().rstrip('/') + '/'
    return re.sub(r'env_\d+/\Z', '', namespace)
