"""Whether what is published now reaches everybody who is there."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping

from rclpy.node import Node
from rclpy.publisher import Publisher

PATIENCE_S = 1.0
"""A reader that is still not matched after this long asks for a quality of service we do not
offer; /diagnostics says so, and nobody waits for it."""

NAMELESS = '_NODE_NAMESPACE_UNKNOWN_/_NODE_NAME_UNKNOWN_'


class Matching:
    """Compares the readers that publishers are matched with to those who should be there."""

    def __init__(
        self,
        node: Node,
        publishers: Mapping[str, Publisher],
        wall_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch `publishers`, by the names that ticks use."""
        self._node = node
        self._publishers = dict(publishers)
        self._wall_s = wall_s
        self._short_since_s: dict[str, float] = {}
        """Since when a publisher has not been matched with all its readers."""

    def stands(self, readers: Mapping[str, Collection[str]] | None = None) -> bool:
        """Return whether every known reader is matched, or has had its time.

        Nodes that `readers` names, by publisher, must be known first: the graph learns of a
        reader some time after that reader has found its publisher and says so.
        """
        if not all(
            self._knows(self._publishers[key], names)
            for key, names in (readers or {}).items()
            if key in self._publishers
        ):
            return False
        now_s = self._wall_s()
        for key, publisher in self._publishers.items():
            known = self._node.count_subscribers(publisher.topic_name)
            if publisher.get_subscription_count() < known:
                self._short_since_s.setdefault(key, now_s)
            else:
                self._short_since_s.pop(key, None)
        return all(now_s - since_s > PATIENCE_S for since_s in self._short_since_s.values())

    def _knows(self, publisher: Publisher, names: Collection[str]) -> bool:
        """Whether nodes of these names read. Readers without a name may be theirs.

        After a cut DDS finds readers again, and rmw_fastrtps does not say any more whose they are.
        """
        known = Counter(
            f'{info.node_namespace.rstrip("/")}/{info.node_name}'
            for info in self._node.get_subscriptions_info_by_topic(publisher.topic_name)
        )
        return len(set(names) - known.keys()) <= known[NAMELESS]
