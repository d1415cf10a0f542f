"""The sync node's subscriptions: raw bytes, and as reliable as their publishers are.

Best effort takes every publisher, but on the default transports it loses most of what is larger
than a shared-memory segment (colour images of 640x480). So an input asks for reliable delivery,
and goes over to best effort when it meets a publisher that does not offer it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSPolicyKind

from rig_common.msgs import Level, Status
from rig_common.ros import qos
from rig_common.ros.diagnostics import QosMismatches
from sync_engine.config import SyncConfig

Reliability = Literal['auto', 'reliable', 'best_effort']
RELIABILITIES: tuple[Reliability, ...] = ('auto', 'reliable', 'best_effort')

BIG_TYPES = frozenset(
    {'sensor_msgs/msg/Image', 'sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/CompressedImage'}
)
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
        self._fell_back: list[str] = []
        self._to_change: list[str] = []
        self._subscriptions = {
            name: self._subscribe(name, reliability != 'best_effort') for name in config.inputs
        }

    def connected(self, sensor_id: str) -> bool:
        """Whether somebody publishes this input."""
        return bool(self._subscriptions[sensor_id].get_publisher_count())

    def adapt(self) -> None:
        """Subscribe again, as best effort, where a publisher offers no more; call it now and then.

        Not done in the event's own callback: it belongs to the subscription that goes.
        """
        while self._to_change:
            name = self._to_change.pop()
            self._node.destroy_subscription(self._subscriptions[name])
            self._subscriptions[name] = self._subscribe(name, reliable=False)
            self._fell_back.append(name)

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
                f'{self._node.get_name()}: types',
                f'published with another type: {", ".join(strangers)}',
                strangers,
            )
        if self._fell_back:
            yield Status(
                Level.OK,
                f'{self._node.get_name()}: reliability',
                f'best effort, as their publishers: {", ".join(self._fell_back)}',
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

    def _subscribe(self, sensor_id: str, reliable: bool) -> Any:
        given = self._config.inputs[sensor_id]
        rate_hz = BIG_RATE_HZ if given.type in BIG_TYPES else SMALL_RATE_HZ
        events = self._mismatches.subscription_events(given.topic)
        if self._adapts and reliable:
            events = SubscriptionEventCallbacks(
                incompatible_qos=partial(self._on_mismatch, sensor_id, events.incompatible_qos)
            )
        return self._node.create_subscription(
            self._types[sensor_id],
            given.topic,
            partial(self._on_message, sensor_id),
            qos.sensor_in(rate_hz, reliable=reliable),
            event_callbacks=events,
            raw=True,
        )

    def _on_mismatch(self, sensor_id: str, note: Callable[[Any], None] | None, event: Any) -> None:
        if event.last_policy_kind == QoSPolicyKind.RELIABILITY:
            if sensor_id not in self._to_change:
                self._to_change.append(sensor_id)
        elif note is not None:
            note(event)
