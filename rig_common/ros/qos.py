"""Quality of service, decided once (REP 2003 and what our own topics need)."""

from __future__ import annotations

import math

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

MIN_DEPTH = 10
MAX_DEPTH = 2000
BUFFERED_S = 1.0
"""How long a subscriber may be away before its queue overflows."""
KEPT_S = 0.5
"""How long a reliable subscriber may stand still before it misses messages. When processes join,
Fast DDS holds others up for a third of a second (its `healthy_check_timeout_ms`)."""


def sensor_out(rate_hz: float = 0.0) -> QoSProfile:
    """Publishers of data: reliable, so that every subscriber is compatible, keep last 10 or more.

    Ten messages of a 400 Hz stream are 25 ms.
    """
    return QoSProfile(depth=_depth(rate_hz * KEPT_S), reliability=ReliabilityPolicy.RELIABLE)


def sensor_in(rate_hz: float, *, reliable: bool = False) -> QoSProfile:
    """Subscriptions to sensors: best effort takes any publisher; the depth holds a second."""
    return QoSProfile(
        depth=_depth(rate_hz * BUFFERED_S),
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
    )


def _depth(messages: float) -> int:
    return min(max(math.ceil(messages), MIN_DEPTH), MAX_DEPTH)


def internal(depth: int = 1000) -> QoSProfile:
    """Truth between our own nodes, and what they read of each other: reliable and deep."""
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)


def beat_out() -> QoSProfile:
    """Publishers of ticks and answers: reliable, and no deeper than what is repeated soon.

    A reader that joins in the same process counts all earlier messages of the writer as missing.
    Where these are more than its `max_samples` (5000 by default), Fast DDS gives it nothing until
    `depth` more were sent. Our profiles (config/fastdds) lift that limit; a small depth keeps the
    time short for those who run without them.
    """
    return QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)


def latched(depth: int = 1) -> QoSProfile:
    """What a late joiner must still see: reliable, transient local."""
    return QoSProfile(
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )


def clock() -> QoSProfile:
    """/clock as rclcpp and rclpy subscribe it: best effort, the latest only."""
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
