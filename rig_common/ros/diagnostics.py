"""/diagnostics of a node: statuses asked for once a second, and QoS mismatches made visible."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import qos_policy_name_from_kind

from rig_common import msgs
from rig_common.msgs import Level, Status
from rig_common.ros import qos
from rig_common.ros.clock import steady_timer
from rig_common.ros.matching import Matching

QOS = 'quality of service'
PERIOD_S = 1.0
LAST_WORD_S = 0.5
"""How long a node that ends waits for readers, and until they have its last diagnostics, s."""


class Diagnostics:
    """Publishes the statuses of a node's parts on /diagnostics, on the wall's second.

    /diagnostics is one topic for all nodes of all robots. So the name of a part has the node's
    full name in front, `robot1/sync: engine`, and a hardware id the node's namespace.

    `now_ns` gives the stamp; a stopped simulation must not silence the diagnostics, so the timer
    runs on the steady clock.
    """

    def __init__(
        self,
        node: Node,
        now_ns: Callable[[], int] = time.time_ns,
        period_s: float = PERIOD_S,
        topic: str = '/diagnostics',
    ) -> None:
        self._now_ns = now_ns
        self._node_name: str = node.get_fully_qualified_name().lstrip('/')
        self._sources: list[Callable[[], Iterable[Status]]] = []
        self._publisher = node.create_publisher(DiagnosticArray, topic, qos.sensor_out())
        self._matching = Matching(node, {topic: self._publisher})
        self.qos = QosMismatches()
        self.add(self.qos.statuses)
        self._timer = steady_timer(node, period_s, self.publish)

    def add(self, source: Callable[[], Iterable[Status]]) -> None:
        """Ask `source` for its statuses every period."""
        self._sources.append(source)

    def publish(self) -> None:
        """Ask everyone now, and publish what they say if somebody listens."""
        statuses = [
            status._replace(
                name=f'{self._node_name}: {status.name}',
                hardware_id=self._hardware(status.hardware_id),
            )
            for source in self._sources
            for status in source()
        ]
        if self._publisher.get_subscription_count():
            self._publisher.publish(msgs.diagnostic_array(self._now_ns(), statuses))

    def _hardware(self, known: str) -> str:
        """Return the hardware id: an absolute name as it is, none is the node's full name."""
        if not known or known.startswith('/'):
            return known or self._node_name
        namespace, slash, _ = self._node_name.rpartition('/')
        return namespace + slash + known

    def publish_last(self) -> None:
        """Publish and wait until it was heard: what is on its way dies with its node."""
        end_s = time.monotonic() + LAST_WORD_S
        while not self._matching.stands() and time.monotonic() < end_s:
            time.sleep(0.01)
        self.publish()
        self._publisher.wait_for_all_acked(Duration(seconds=LAST_WORD_S))


class QosMismatches:
    """Counts endpoints on our topics whose quality of service is incompatible with ours."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}
        """Topic -> (endpoints met so far, name of the policy that does not fit)."""

    def subscription_events(self, topic: str) -> SubscriptionEventCallbacks:
        """Return the event callbacks for a subscription to `topic`."""
        return SubscriptionEventCallbacks(incompatible_qos=self._noter(topic))

    def publisher_events(self, topic: str) -> PublisherEventCallbacks:
        """Return the event callbacks for a publisher on `topic`."""
        return PublisherEventCallbacks(incompatible_qos=self._noter(topic))

    def statuses(self) -> list[Status]:
        """Return one status: which topics have an endpoint we cannot talk to, and why."""
        if not self._found:
            return [Status(Level.OK, QOS, 'all endpoints are compatible')]
        values = {
            topic: f'{count} incompatible, last by {policy}'
            for topic, (count, policy) in sorted(self._found.items())
        }
        sentence = f'incompatible endpoints on {", ".join(values)}'
        return [Status(Level.ERROR, QOS, sentence, values)]

    def _noter(self, topic: str) -> Callable[[object], None]:
        def note(event: Any) -> None:
            policy = qos_policy_name_from_kind(event.last_policy_kind)
            self._found[topic] = (event.total_count, policy)

        return note
