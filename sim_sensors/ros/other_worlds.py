"""Whether another world publishes in this namespace: two rigs in one domain mix their streams."""

from __future__ import annotations

import os
import time

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.errors import RigError
from rig_common.lockstep import Tick
from rig_common.ros import qos
from rig_common.ros.clock import steady_timer

LOOK_PERIOD_S = 1.0
NEW_S = 5.0
"""A world that hears of another one when it is younger than this gives way to it, s."""


class OtherWorlds:
    """Listens to the ticks of others while the graph shows any; a killed world sends none."""

    def __init__(self, node: Node, ticks: Publisher, run: str) -> None:
        """Watch the topic of `ticks`, on which this world publishes as `run`."""
        self._node, self._ticks = node, ticks
        self._mine = f'run={run}.'.encode()
        self._made_s = time.monotonic()
        self._heard: Subscription | None = None
        self.found = False
        """Whether another world has sent a tick."""
        self._look()
        steady_timer(node, LOOK_PERIOD_S, self._look)

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return (f'another world publishes here, on {self._ticks.topic_name} of ROS_DOMAIN_ID '
                f'{os.environ.get("ROS_DOMAIN_ID", "0")}; end the other rig, or give this one '
                f'another domain or namespace')

    def require_none(self) -> None:
        """Raise RigError where this world is the newer of two."""
        if self.found and time.monotonic() - self._made_s < NEW_S:
            raise RigError(self.sentence)

    def _look(self) -> None:
        young = time.monotonic() - self._made_s < NEW_S
        wanted = young or self._node.count_publishers(self._ticks.topic_name) > 1
        if wanted and self._heard is None:
            self._heard = self._node.create_subscription(
                TimeReference, self._ticks.topic_name, self._on_tick, qos.internal(), raw=True)
        elif not wanted and self._heard is not None:
            self._node.destroy_subscription(self._heard)
            self._heard = None
            self.found = False

    def _on_tick(self, buf: bytes) -> None:
        if self.found or self._mine in buf:
            return
        try:
            Tick.decode(buf)
        except CdrError:
            return
        self.found = True
