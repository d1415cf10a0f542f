"""Hears every topic of the live graph as bytes, whatever its type."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from rig_common.errors import RigError
from rig_common.ros.clock import steady_timer
from rig_common.ros.types import is_stamped, message_class
from rig_common.times import NS_PER_S

LOOK_PERIOD_S = 0.5
DEPTH = 500
HOLD_NS = 5 * NS_PER_S
"""How long the first messages wait for somebody who publishes /clock (wall time)."""
SILENT_CLOCK_NS = 60 * NS_PER_S
"""How long they wait for one who is there and silent, as a world that waits for its nodes."""
HELD_BYTES = 64 << 20
"""Messages of more than this do not wait."""
SILENT = frozenset({'/rosout', '/parameter_events'})

OnMessage = Callable[[str, bytes, int], None]
"""Topic, bytes, arrival in ns: of /clock in a simulation, else of the host's clock."""


class HeardTopic(NamedTuple):
    """A topic of the graph to which somebody publishes."""

    name: str
    type_name: str
    stamped: bool
    """Whether its type has a header."""
    latched: bool
    """Whether all publishers offer it to late joiners (transient local)."""
    best_effort: bool
    """Whether a publisher offers best effort."""


OnTopic = Callable[[HeardTopic], None]


class Listener(Node):
    """Subscribes to every topic it finds (or to `topics`), and to those that come later.

    Hidden topics (a part of the name starts with `_`) are heard only where `topics` names them:
    a rig hides its truth there, and sends it as soon as somebody listens.

    Arrivals are all of one clock. Messages are held until a /clock speaks, and those then arrive
    at its first time; if none does for a while, the host's clock counts to the end.
    """

    def __init__(
        self,
        on_topic: OnTopic,
        on_message: OnMessage,
        topics: Collection[str] = (),
        name: str = 'rig_listener',
    ) -> None:
        super().__init__(name, parameter_overrides=[Parameter('use_sim_time', value=True)])
        self._on_topic, self._on_message = on_topic, on_message
        self._wanted = {topic if topic.startswith('/') else f'/{topic}' for topic in topics}
        self.heard: dict[str, Any] = {}
        self.skipped: dict[str, str] = {}
        """Topic -> why it cannot be heard."""
        self._held: list[tuple[str, bytes, int]] = []
        """Messages of which it is not known yet whose time counts, with the host's time."""
        self._held_bytes = self._held_since_ns = 0
        self._simulated: bool | None = None
        self.look()
        steady_timer(self, LOOK_PERIOD_S, self.look)

    def look(self) -> None:
        """Subscribe to what is new in the graph; do not hold messages for too long."""
        if self._held and self._held_enough():
            self.release()
        for topic, types in self.get_topic_names_and_types():
            if topic in self.heard or topic in self.skipped or topic in SILENT:
                continue
            if topic not in self._wanted if self._wanted else '/_' in topic:
                continue
            publishers = self.get_publishers_info_by_topic(topic)
            if publishers:
                self._subscribe(topic, types[0], publishers)

    def _subscribe(self, topic: str, type_name: str, publishers: Collection[Any]) -> None:
        try:
            kind = message_class(type_name, topic)
        except RigError as error:
            self.skipped[topic] = str(error)
            return
        offer = as_offered(publishers)
        self._on_topic(
            HeardTopic(
                topic,
                type_name,
                is_stamped(kind),
                offer.durability == DurabilityPolicy.TRANSIENT_LOCAL,
                offer.reliability == ReliabilityPolicy.BEST_EFFORT,
            )
        )
        self.heard[topic] = self.create_subscription(
            kind, topic, partial(self._receive, topic), offer, raw=True
        )

    def _receive(self, topic: str, raw: bytes) -> None:
        if self._simulated is None:
            if not self._held:
                self._held_since_ns = time.monotonic_ns()
            self._held.append((topic, raw, time.time_ns()))
            self._held_bytes += len(raw)
            if self._clock_ns() or self._held_bytes > HELD_BYTES:
                self.release()
            return
        self._on_message(topic, raw, self._clock_ns() if self._simulated else time.time_ns())

    def _held_enough(self) -> bool:
        limit_ns = SILENT_CLOCK_NS if self.count_publishers('/clock') else HOLD_NS
        return time.monotonic_ns() - self._held_since_ns > limit_ns

    def _clock_ns(self) -> int:
        """Return the time of /clock; 0 until its first message."""
        return int(self.get_clock().now().nanoseconds)

    def release(self) -> None:
        """Decide whose time counts, and hand on what was held for that."""
        now_ns = self._clock_ns()
        if self._simulated is None:
            self._simulated = now_ns > 0
        for topic, raw, host_ns in self._held:
            self._on_message(topic, raw, now_ns if self._simulated else host_ns)
        self._held.clear()

    @property
    def clock_came_late(self) -> bool:
        """Whether a /clock began to speak when the host's time counted already."""
        return self._simulated is False and self._clock_ns() > 0


def as_offered(publishers: Collection[Any]) -> QoSProfile:
    """Return the most that all present publishers offer."""
    profiles = [info.qos_profile for info in publishers]
    reliable = all(p.reliability == ReliabilityPolicy.RELIABLE for p in profiles)
    latched = all(p.durability == DurabilityPolicy.TRANSIENT_LOCAL for p in profiles)
    return QoSProfile(
        depth=DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )
