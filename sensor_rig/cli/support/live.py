"""Listening to the live graph from a command: ROS, signals, a time limit, a progress line."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from rig_common.errors import RigError
from sensor_rig.cli.support.progress import note, progress
from sensor_rig.cli.support.registry import program_name

if TYPE_CHECKING:
    from sensor_rig.bags.ros.listening import OnTopic


def require_ros(otherwise: str = '') -> None:
    """Raise RigError where ROS 2 is missing, with what can be done `otherwise`."""
    try:
        importlib.import_module('rclpy')
    except ImportError:
        raise RigError(
            f'ROS 2 is not importable here; see "{program_name()} doctor"{otherwise}'
        ) from None


def listen(
    seconds: float | None,
    on_topic: OnTopic,
    on_message: Callable[[str, bytes, int], None],
    *,
    topics: Collection[str] = (),
    what: str,
) -> None:
    """Hear the graph for `seconds`, or until Ctrl-C, and say which topics could not be heard."""
    require_ros()
    from rig_common.ros.executor import Spinner, close_node, ros_context, stop_on_signals
    from sensor_rig.bags.ros.listening import Listener

    with ros_context([]) as context:
        listener = Listener(on_topic, on_message, topics)
        spinner = Spinner(context)
        spinner.add(listener)
        begun = last = time.monotonic()
        with stop_on_signals(spinner.stop), progress(what, seconds or 0.0) as advance:
            while not spinner.stopped and (seconds is None or last - begun < seconds):
                spinner.turn()
                now = time.monotonic()
                advance(now - last)
                last = now
        spinner.close()
        listener.release()
        skipped, late = dict(listener.skipped), listener.clock_came_late
        close_node(listener)
    for topic, why in skipped.items():
        note(f'not heard: {topic}: {why}')
    if late:
        note(
            'WARNING: /clock began to speak after other topics had, so arrivals are times of the '
            'host, not of the simulation; start again while it runs'
        )
