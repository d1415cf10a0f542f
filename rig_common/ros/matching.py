"""Whether what is published now reaches everybody who is there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from rclpy.node import Node
from rclpy.publisher import Publisher

PATIENCE_S = 1.0
"""A reader that is still not matched after this long asks for a quality of service we do not
offer; /diagnostics says so, and nobody waits for it."""


class Matching:
    """Compares the readers that publishers are matched with to those the graph knows."""

    def __init__(self, node: Node, publishers: Iterable[Publisher],
                 wall_s: Callable[[], float] = time.monotonic) -> None:
        self._node = node
        self._publishers = list(publishers)
        self._wall_s = wall_s
        self._short_since_s: float | None = None

    def stands(self) -> bool:
        """Return whether every known reader is matched, or has had its time."""
        if all(p.get_subscription_count() >= self._node.count_subscribers(p.topic_name)
               for p in self._publishers):
            self._short_since_s = None
            return True
        now_s = self._wall_s()
        if self._short_since_s is None:
            self._short_since_s = now_s
        return now_s - self._short_since_s > PATIENCE_S
