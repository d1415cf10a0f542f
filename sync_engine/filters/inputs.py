"""What AdaptiveTimeSynchronizer needs of ROS objects: callbacks, the time, a message's stamp.

None of this imports ROS: the objects come from the caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sync_engine.streams.payload import Payload

Input: TypeAlias = Any
"""A message_filters filter or an rclpy subscription; neither package need be installed."""
AnyNode: TypeAlias = Any
"""An rclpy node, or None."""
Stamp: TypeAlias = Any
"""rclpy's Time, a builtin_interfaces stamp, ns, or None."""
TimeGetter: TypeAlias = Callable[[Payload], Stamp]
"""Gives the stamp of a message, as `time_getter` of message_filters."""


def connect(filter_: Input, callback: Callable[..., None], queue: object, index: int) -> object:
    """Have `callback(message, queue, index)` called with every message of an input."""
    if hasattr(filter_, 'registerCallback'):
        return filter_.registerCallback(callback, queue, index)
    if not hasattr(filter_, 'callback'):
        raise RigError(
            f'input {index} is a {type(filter_).__name__}; it should be a message '
            f'filter or an rclpy subscription'
        )
    own = filter_.callback

    def both(message: Payload) -> None:
        own(message)
        callback(message, queue, index)

    filter_.callback = both
    return filter_


def node_of(fs: Sequence[Input]) -> AnyNode:
    """Return the node of the first message_filters.Subscriber among `fs`."""
    return next(
        (
            node
            for node in (vars(f).get('node') for f in fs if hasattr(f, '__dict__'))
            if node is not None
        ),
        None,
    )


def logger_of(node: AnyNode) -> Any:
    """Return the node's logger, which writes to /rosout; without a node, Python's."""
    return logging.getLogger('sync_engine.filters') if node is None else node.get_logger()


def clock_of(node: AnyNode) -> Callable[[], int]:
    """Return the host's time: of a node on simulated time, else of the machine."""
    if node is None:
        return time.time_ns
    clock = node.get_clock()

    def now_ns() -> int:
        if clock.ros_time_is_active:
            return int(clock.now().nanoseconds)
        return time.time_ns()

    return now_ns


def stamp_reader(getter: TimeGetter | None, by_arrival: bool) -> Callable[[Payload], int | None]:
    """Return what gives a message's stamp in ns, or None where its arrival counts."""
    if by_arrival:
        return lambda message: None
    if getter is None:
        return _header_stamp_ns
    return lambda message: _as_ns(getter(message))


def _header_stamp_ns(message: Payload) -> int | None:
    """Return the stamp of a message, decoded or raw; None where it has no header."""
    try:
        stamp = message.header.stamp
    except AttributeError:
        return read_stamp_ns(message) if isinstance(message, bytes) else None
    seconds = getattr(stamp, 'sec', None)
    if seconds is None:
        return _as_ns(stamp)
    return int(seconds * NS_PER_S + stamp.nanosec)


def _as_ns(stamp: Stamp) -> int | None:
    """Return ns of rclpy's Time, a message's stamp or a number; None stays None."""
    if stamp is None or isinstance(stamp, int):
        return stamp
    if hasattr(stamp, 'nanoseconds'):
        return int(stamp.nanoseconds)
    return int(stamp.sec * NS_PER_S + stamp.nanosec)
