"""The sync node's subscriptions: raw bytes, and as reliable as their publishers are.

Best effort takes every publisher, but on the default transports it loses most of what is larger
than a shared-memory segment (colour images of 640x480). So an input looks at what its publishers
offer before it subscribes: reliable delivery where all offer it, else best effort. It looks again
every second and where a publisher that joins later does not fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSPolicyKind, ReliabilityPolicy

from rig_common.msgs import Level, Status
from rig_common.ros import qos
from rig_common.ros.diagnostics import QosMismatches
from sync_engine.config import SyncConfig

Reliability = Literal['auto', 'reliable', 'best_effort']
RELIABILITIES: tuple[Reliability, ...] = ('auto', 'reliable', 'best_effort')

BIG_TYPES = frozenset(
    {'sensor_msgs/msg/Image', 'sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/CompressedImage'}
)
LOOK_PERIOD_S = 1.0
"""Time between two looks at what the publishers offer (wall time)."""
BIG_RATE_HZ, SMALL_RATE_HZ = 30.0, 1000.0
"""What the queue of a subscription is sized for; it holds a second."""


class Inputs:
    """One raw subscription per input of the engine."""

    def __init__(
        self,
        node: Node,
        config: SyncConfig,
        types: dict[str, Any],
        on_message: Callable[[str, bytes], None],
        reliability: Reliability,
        mismatches: QosMismatches,
    ) -> None:
        self._node = node
        self._config = config
        self._types = types
        self._on_message = on_message
        self._adapts = reliability == 'auto'
        self._mismatches = mismatches
        self._next_look_s = 0.0
        self._reliable: dict[str, bool] = {}
        """Inputs with a subscription, and whether it is reliable."""
        self._subscriptions: dict[str, Any] = {}
        if not self._adapts:
            for name in config.inputs:
                self._subscribe(name, reliability == 'reliable')

    def connected(self, sensor_id: str) -> bool:
        """Whether the subscription is matched with a publisher."""
        subscription = self._subscriptions.get(sensor_id)
        return subscription is not None and bool(subscription.get_publisher_count())

    def adapt(self) -> None:
        """Subscribe to what is published, as its publishers offer it; call it now and then."""
        if not self._adapts:
            return
        new = [name for name in self._config.inputs if name not in self._subscriptions]
        now_s = time.monotonic()
        looks = now_s >= self._next_look_s
        if looks:
            self._next_look_s = now_s + LOOK_PERIOD_S
        for name in self._config.inputs if looks else new:
            offers = self._offers(name)
            if not offers:
                continue
            reliable = ReliabilityPolicy.BEST_EFFORT not in offers
            if self._reliable.get(name) is not reliable:
                if name in self._subscriptions:
                    self._node.destroy_subscription(self._subscriptions[name])
                self._subscribe(name, reliable)

    def _offers(self, sensor_id: str) -> set[ReliabilityPolicy]:
        """Return what the publishers of an input offer; empty without any."""
        topic = self._node.resolve_topic_name(self._config.inputs[sensor_id].topic)
        if not self._node.count_publishers(topic):
            return set()
        infos = self._node.get_publishers_info_by_topic(topic)
        return {info.qos_profile.reliability for info in infos}

    def statuses(self) -> Iterator[Status]:
        """Say which inputs are best effort, and which topics carry another type than they."""
        strangers = {
            given.topic: ', '.join(types)
            for given in self._config.inputs.values()
            if (types := self._other_types(given.topic, given.type))
        }
        if strangers:
            yield Status(
                Level.ERROR,
                'types',
                f'published with another type: {", ".join(strangers)}',
                strangers,
            )
        best_effort = [name for name, reliable in self._reliable.items() if not reliable]
        if self._adapts and best_effort:
            yield Status(
                Level.OK,
                'reliability',
                f'best effort, as their publishers: {", ".join(best_effort)}',
            )

    def _other_types(self, topic: str, type_name: str) -> list[str]:
        """Return the types other than ours that publishers of `topic` have; we never hear them."""
        types = {
            info.topic_type
            for info in self._node.get_publishers_info_by_topic(
                self._node.resolve_topic_name(topic)
            )
        }
        return sorted(types - {type_name})

    def _subscribe(self, sensor_id: str, reliable: bool) -> None:
        given = self._config.inputs[sensor_id]
        rate_hz = BIG_RATE_HZ if given.type in BIG_TYPES else SMALL_RATE_HZ
        events = self._mismatches.subscription_events(given.topic)
        if self._adapts and reliable:
            events = SubscriptionEventCallbacks(
                incompatible_qos=partial(self._on_mismatch, events.incompatible_qos)
            )
        self._reliable[sensor_id] = reliable
        self._subscriptions[sensor_id] = self._node.create_subscription(
            self._types[sensor_id],
            given.topic,
            partial(self._on_message, sensor_id),
            qos.sensor_in(rate_hz, reliable=reliable),
            event_callbacks=events,
            raw=True,
        )

    def _on_mismatch(self, note: Callable[[Any], None] | None, event: Any) -> None:
        if event.last_policy_kind == QoSPolicyKind.RELIABILITY:
            self._next_look_s = 0.0  # the subscription cannot go in its own callback
        elif note is not None:
            note(event)
