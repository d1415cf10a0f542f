"""The sync node's outputs: one publisher per topic; nothing is copied without a subscriber."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.qos import QoSProfile

from rig_common.ros import qos
from rig_common.ros.diagnostics import QosMismatches
from rig_common.ros.types import message_class
from sync_engine.matching.bundle import Bundle
from sync_engine.wire.session import WireSync


def output_qos(collected: bool) -> QoSProfile:
    """Return the profile of a member's topic.

    What an input collects leaves in one burst: ten messages of history would be overwritten
    before a busy subscriber has fetched them.
    """
    return qos.internal() if collected else qos.sensor_out()


class BundlePublishers:
    """Publishes what a bundle is made of, in the thread and the moment it is handed over."""

    def __init__(
        self,
        node: Node,
        topics: Mapping[str, str],
        collected: Collection[str],
        mismatches: QosMismatches,
    ) -> None:
        """`topics` to their types; of these, `collected` carry many messages a bundle."""
        self.by_topic: dict[str, Any] = {
            topic: node.create_publisher(
                message_class(type_name),
                topic,
                output_qos(topic in collected),
                event_callbacks=mismatches.publisher_events(topic),
            )
            for topic, type_name in topics.items()
        }
        self.sent = dict.fromkeys(topics, 0)

    def wanted(self, topic: str) -> bool:
        """Whether the topic has a subscriber; without one the message is not copied."""
        return bool(self.by_topic[topic].get_subscription_count())

    def publish(self, sync: WireSync, bundle: Bundle) -> None:
        """Send the members and facts of `bundle`."""
        for topic, _, raw in sync.outputs(bundle, self.wanted):
            self.send(topic, raw)

    def send(self, topic: str, raw: bytes) -> None:
        """Send one message."""
        self.by_topic[topic].publish(raw)
        self.sent[topic] += 1
