"""All nodes of a rig in one process, over DDS: what `rig demo` and `rig run` start."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import TypeVar

from rclpy.node import Node

from rig_common.handover import Handover
from rig_common.ros.executor import Spinner, close_node, ros_context, stop_on_signals
from rig_common.times import NEVER_NS, seconds_to_ns
from sensor_rig.nodes.building import make_emulator, make_sync, make_world
from sensor_rig.rigfile import RigConfig
from sensor_rig.ros.monitor import Monitor
from sensor_rig.running.summary import Summary
from sim_sensors.nodes.emulator import EmulatorNode
from sim_sensors.nodes.world import WorldNode
from sync_engine.nodes.sync import SyncNode

NodeFactory = Callable[[], Node]
AnyNode = TypeVar('AnyNode', bound=Node)
OnTime = Callable[[int], None]
"""Hears the simulated time of a run, ns."""
FINAL_REPORT_S = 0.2
"""Wall time for the last diagnostics to come in."""


class OneProcess:
    """World, one emulator for all sensors, sync and a monitor on one executor, in one thread."""

    def __init__(self, rig: RigConfig, spinner: Spinner, extras: Sequence[NodeFactory] = ()
                 ) -> None:
        """Make the nodes of `rig` and the extra ones; `close` them."""
        self.nodes: list[Node] = []
        self.spinner = spinner
        self._rig = rig
        self._handover = Handover()
        self.monitor = Monitor(rig, now_ns=lambda: self.world.world.time_ns)
        self.add(self.monitor)
        for make in extras:
            self.add(make())
        self.sync = self._make_sync() if rig.runs_sync else None
        if self.sync is not None:
            self.add(self.sync)
        self.emulator = self._make_emulator()
        self.add(self.emulator)
        self.world = self._make_world()
        self.add(self.world)

    def _make_sync(self) -> SyncNode:
        return make_sync(self._rig, handover=self._handover)

    def _make_emulator(self) -> EmulatorNode:
        return make_emulator(self._rig, handover=self._handover)

    def _make_world(self) -> WorldNode:
        world = make_world(self._rig, handover=self._handover)
        world.wake = self.spinner.wake
        return world

    def add(self, node: Node) -> None:
        """Let a node take part; it is destroyed with the others."""
        self.nodes.append(node)
        self.spinner.add(node)

    # ---- a node that ends and comes back --------------------------------------------------------

    def restart_sync(self) -> None:
        """End the sync node and put a new one in its place."""
        if self.sync is not None:
            self.sync = self._replace(self.sync, self._make_sync)

    def restart_emulator(self) -> None:
        """End the emulator and put a new one in its place."""
        self.emulator = self._replace(self.emulator, self._make_emulator)

    def restart_world(self) -> None:
        """End the world and put a new one in its place."""
        self.world = self._replace(self.world, self._make_world)

    def _replace(self, node: Node, make: Callable[[], AnyNode]) -> AnyNode:
        self.spinner.remove(node)
        close_node(node)
        gc.unfreeze()  # a node is full of circles; frozen at the start, it would stay for ever
        gc.collect()
        successor = make()
        self.nodes[self.nodes.index(node)] = successor
        self.spinner.add(successor)
        return successor

    # ---- running --------------------------------------------------------------------------------

    def run(self, seconds: float | None, on_time: OnTime | None = None) -> None:
        """Run for `seconds` of simulated time, or until the spinner is stopped."""
        end_ns = NEVER_NS if seconds is None else seconds_to_ns(seconds)
        self.world.loop.stop_ns = end_ns

        def advance() -> float:
            if on_time is not None:
                on_time(self.world.world.time_ns)
            if self.world.world.time_ns >= end_ns:
                self.spinner.stop()
                return 0.0
            return self.world.advance()
        self.spinner.drive(advance)

    def final_report(self) -> None:
        """Have everybody report once more, and listen."""
        for node in self.nodes:
            report = getattr(node, 'report', None)
            if callable(report):
                report()
        self.spinner.turn(FINAL_REPORT_S)

    def close(self) -> None:
        """Destroy the nodes, those who listen first."""
        self.spinner.close()
        for node in self.nodes:
            close_node(node)


def run_in_one_process(rig: RigConfig, seconds: float | None = None,
                       extras: Sequence[NodeFactory] = (),
                       on_time: OnTime | None = None) -> Summary:
    """Run a rig until its time is over or a signal comes; return the summary."""
    with ros_context([]) as context:
        spinner = Spinner(context)
        with stop_on_signals(spinner.stop):
            nodes = OneProcess(rig, spinner, extras)
            try:
                nodes.run(seconds, on_time)
                nodes.final_report()
                return nodes.monitor.summary()
            finally:
                nodes.close()
