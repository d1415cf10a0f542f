"""The nodes of a rig as processes of their own: `--processes`, and what launch files do too."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence

from rclpy.node import Node

from rig_common.early import PARENT_VARIABLE
from rig_common.errors import RigError
from rig_common.paramfile.events import Parameters
from rig_common.ros.executor import Spinner, close_node, ros_context, stop_on_signals
from rig_common.times import NEVER_NS, seconds_to_ns
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.node_plan import planned_nodes
from sensor_rig.running.ros.monitor import Monitor
from sensor_rig.running.run_summary import Summary

GRACE_S = 3.0
"""How long processes may take to end after they were asked to, or to be heard of at all, s."""


class Children:
    """Processes that never outlive their parent's interest in them."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, command: Sequence[str]) -> None:
        """Start a node in a session of its own: a terminal's Ctrl-C reaches the parent only.

        Its variable makes it end with this process, which may be killed (`end_with_parent`).
        """
        self._running[name] = subprocess.Popen(
            command, start_new_session=True, env={**os.environ, PARENT_VARIABLE: str(os.getpid())}
        )

    def require_alive(self) -> None:
        """Raise RigError when one has ended by itself."""
        for name, process in self._running.items():
            if process.poll() is not None:
                raise RigError(
                    f'the {name} process ended by itself with exit code '
                    f'{process.returncode}; what it said is above'
                )

    def stop(self, meanwhile: Callable[[], None], last: str = '') -> None:
        """Ask all to end, `last` after the others; `meanwhile` is called while waiting."""
        remaining = self._running.pop(last, None)
        _end(list(self._running.values()), meanwhile)
        _end([remaining] if remaining else [], meanwhile)
        self._running.clear()


def _end(processes: Sequence[subprocess.Popen[bytes]], meanwhile: Callable[[], None]) -> None:
    """Ask processes to end, give them a moment, then insist."""
    for process in processes:
        if process.poll() is None:
            process.terminate()  # silent, too, where it is still importing
    _until(lambda: all(p.poll() is not None for p in processes), meanwhile)
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def _until(condition: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
    """Call `meanwhile` until `condition`, for `GRACE_S` at most."""
    deadline = time.monotonic() + GRACE_S
    while not condition() and time.monotonic() < deadline:
        meanwhile()


def run_in_many_processes(
    rig: RigConfig,
    seconds: float | None = None,
    world_parameters: Parameters | None = None,
    extras: Sequence[Callable[[], Node]] = (),
    on_time: Callable[[int], None] | None = None,
    only: Sequence[str] = (),
) -> Summary:
    """Run a rig, or the parts of it that `only` names, until its time is over or a signal comes.

    A monitor and the extra nodes run in this process. Returns the summary.
    """
    end_ns = NEVER_NS if seconds is None else seconds_to_ns(seconds)
    children = Children()
    with ros_context([]) as context:
        spinner = Spinner(context)
        with stop_on_signals(spinner.stop):
            monitor = Monitor(rig)
            nodes = [monitor, *(make() for make in extras)]
            for node in nodes:
                spinner.add(node)

            def every_turn() -> None:
                if not spinner.stopped:
                    children.require_alive()
                now_ns = monitor.now_ns
                if on_time is not None:
                    on_time(now_ns)
                if now_ns >= end_ns:
                    spinner.stop()

            try:
                for planned in planned_nodes(
                    rig, world_parameters=world_parameters, stop_at_s=seconds or 0.0, only=only
                ):
                    children.start(planned.name, planned.command())
                spinner.run(every_turn)
                if monitor.now_ns >= end_ns:
                    _until(lambda: monitor.has_heard_all, spinner.turn)
            finally:
                # Followers that end after the world would report that it is gone.
                children.stop(spinner.turn, last='world')
            summary = monitor.summary()
            spinner.close()
            for node in nodes:
                close_node(node)
    return summary
