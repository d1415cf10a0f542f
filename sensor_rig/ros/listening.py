"""Hears every topic of the live graph as bytes, whatever its type."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from rig_common.errors import RigError
from rig_common.ros.clock import steady_timer
from rig_common.ros.types import is_stamped, message_class

LOOK_PERIOD_S = 0.5
DEPTH = 500
SILENT = frozenset({'/rosout', '/parameter_events'})

OnMessage = Callable[[str, bytes, int], None]
"""Topic, bytes, arrival in ns of the host's clock."""
OnTopic = Callable[[str, str, bool], None]
"""Topic, type name, whether it is stamped."""


class Listener(Node):
    """Subscribes to every topic it finds (or to `topics`), and to those that come later.

    Hidden topics (a part of the name starts with `_`) are heard only where `topics` names them:
    a rig hides its truth there, and sends it as soon as somebody listens.
    """

    def __init__(self, on_topic: OnTopic, on_message: OnMessage,
                 topics: Collection[str] = (), name: str = 'rig_listener') -> None:
        super().__init__(name)
        self._on_topic, self._on_message = on_topic, on_message
        self._wanted = {topic if topic.startswith('/') else f'/{topic}' for topic in topics}
        self.heard: dict[str, Any] = {}
        self.skipped: dict[str, str] = {}
        """Topic -> why it cannot be heard."""
        self.look()
        steady_timer(self, LOOK_PERIOD_S, self.look)

    def look(self) -> None:
        """Subscribe to what is new in the graph."""
        for topic, types in self.get_topic_names_and_types():
            if topic in self.heard or topic in self.skipped or topic in SILENT:
                continue
            if topic not in self._wanted if self._wanted else '/_' in topic:
                continue
            publishers = self.get_publishers_info_by_topic(topic)
            if publishers:
                self._subscribe(topic, types[0], publishers)

    def _subscribe(self, topic: str, type_name: str, publishers: Collection[object]) -> None:
        try:
            kind = message_class(type_name, topic)
        except RigError as error:
            self.skipped[topic] = str(error)
            return
        self._on_topic(topic, type_name, is_stamped(kind))
        self.heard[topic] = self.create_subscription(
            kind, topic, partial(self._receive, topic), as_offered(publishers), raw=True)

    def _receive(self, topic: str, raw: bytes) -> None:
        self._on_message(topic, raw, time.time_ns())


def as_offered(publishers: Collection[Any]) -> QoSProfile:
    """Return the most that all present publishers offer."""
    profiles = [info.qos_profile for info in publishers]
    reliable = all(p.reliability == ReliabilityPolicy.RELIABLE for p in profiles)
    latched = all(p.durability == DurabilityPolicy.TRANSIENT_LOCAL for p in profiles)
    return QoSProfile(
        depth=DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE)
