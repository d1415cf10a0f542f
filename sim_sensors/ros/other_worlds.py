"""Whether another world publishes in this domain: two of them mix streams, clocks and frames."""

from __future__ import annotations

import os
import time
from functools import partial

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.errors import RigError
from rig_common.lockstep.messages import TICK_TOPIC, Tick
from rig_common.ros import qos
from rig_common.ros.clock import steady_timer
from rig_common.times import NS_PER_S
from sim_sensors.interface.topics import CLOCK_TOPIC

LOOK_PERIOD_S = 1.0
NEW_S = 20.0
"""A world that is younger than this gives way to one that began before it, s."""


class OtherWorlds:
    """Listens to the ticks of others while the graph shows any; a killed world sends none."""

    def __init__(self, node: Node, ticks: Publisher, run: str) -> None:
        """Watch the topic of `ticks`, on which this world publishes as `run`, and the clock."""
        self._node, self._ticks = node, ticks
        self._clock = node.resolve_topic_name(CLOCK_TOPIC)
        self._mine = f'run={run}.'.encode()
        self._began_ns = _began_ns(run)
        self._is_newer = False
        self._made_s = time.monotonic()
        self._heard: dict[str, Subscription] = {}
        self.found = ''
        """The topic on which another world has sent a tick."""
        self._look()
        steady_timer(node, LOOK_PERIOD_S, self._look)

    @property
    def sentence(self) -> str:
        """What is wrong, and what to do."""
        return (
            f'another world publishes here, on {self.found} of ROS_DOMAIN_ID '
            f'{os.environ.get("ROS_DOMAIN_ID", "0")}; a domain has one {self._clock}, so end '
            f'the other rig, give this one another domain, or, in a namespace, a clock of its '
            f'own (remap {CLOCK_TOPIC}:=clock)'
        )

    def require_none(self) -> None:
        """Raise RigError where this world is the newer of two."""
        if self.found and self._is_newer and time.monotonic() - self._made_s < NEW_S:
            raise RigError(self.sentence)

    def _look(self) -> None:
        wanted = self._topics()
        for topic in wanted - self._heard.keys():
            self._heard[topic] = self._node.create_subscription(
                TimeReference, topic, partial(self._on_tick, topic), qos.internal(), raw=True
            )
        for topic in self._heard.keys() - wanted:
            self._node.destroy_subscription(self._heard.pop(topic))
            if topic == self.found:
                self.found = ''

    def _topics(self) -> set[str]:
        """Return where ticks of others would be: here, and everywhere if our clock has two."""
        mine = self._ticks.topic_name
        young = time.monotonic() - self._made_s < NEW_S
        found = {mine} if young or self._node.count_publishers(mine) > 1 else set()
        if self._node.count_publishers(self._clock) > 1:
            found |= {
                name
                for name, _ in self._node.get_topic_names_and_types()
                if name.endswith(f'/{TICK_TOPIC}') and name != mine
            }
        return found

    def _on_tick(self, topic: str, buf: bytes) -> None:
        if self.found or self._mine in buf:
            return
        try:
            tick = Tick.decode(buf)
        except CdrError:
            return
        self.found = topic
        # One that began right after this one gives way itself. Clocks of hosts may differ by more.
        after_ns = _began_ns(tick.run) - self._began_ns
        self._is_newer = not 0 < after_ns < NEW_S * NS_PER_S


def _began_ns(run: str) -> int:
    """Return when a world began by its host's clock, ns since 1970; 0 where `run` does not say."""
    try:
        return int(run.partition('.')[0], 16)
    except ValueError:
        return 0
