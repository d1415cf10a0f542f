"""The nodes of a rig, or those of one host, in one process: what `demo` and `run` start."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from rclpy.node import Node

from rig_common.lockstep.handover import Handover
from rig_common.ros.executor import (
    TURN_S,
    Spinner,
    close_node,
    ros_context,
    spare_the_collector,
    stop_on_signals,
)
from rig_common.times import NEVER_NS, seconds_to_ns
from sensor_rig.nodes.building import make_emulator, make_sync, make_world
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.node_plan import planned_nodes
from sensor_rig.running.ros.monitor import Monitor
from sensor_rig.running.run_summary import Summary
from sim_sensors.nodes.emulator import EmulatorNode
from sim_sensors.nodes.world import WorldNode
from sync_engine.nodes.sync import SyncNode

NodeFactory = Callable[[], Node]
FILTERS = 'filterpy.kalman'
AnyNode = TypeVar('AnyNode', bound=Node)
OnTime = Callable[[int], None]
"""Hears the simulated time of a run, ns."""
FINAL_REPORT_S = 0.2
"""Wall time for the last diagnostics to come in."""


class OneProcess:
    """World, one emulator for all sensors, sync and a monitor on one executor, in one thread."""

    def __init__(
        self,
        rig: RigConfig,
        spinner: Spinner,
        extras: Sequence[NodeFactory] = (),
        only: Sequence[str] = (),
    ) -> None:
        """Make the nodes of `rig`, or the parts that `only` names, and the extra ones.

        `close` them. Of the parts, those on other hosts take part over DDS.
        """
        planned = planned_nodes(rig, emulators='one', only=only)
        self._planned = {each.executable: each for each in planned}
        self.nodes: list[Node] = []
        self.spinner = spinner
        self._rig = rig
        has_world = 'world' in self._planned
        self._handover = Handover() if has_world else None
        self._world: WorldNode | None = None
        self._has_filters = FILTERS in sys.modules
        self.monitor = Monitor(rig, now_ns=self._now_ns if has_world else None)
        self.add(self.monitor)
        for make in extras:
            self.add(make())
        self.sync = self.add(self._make_sync()) if 'sync' in self._planned else None
        self._emulator = self.add(self._make_emulator()) if 'emulator' in self._planned else None
        if has_world:
            self._world = self.add(self._make_world())

    @property
    def world(self) -> WorldNode:
        """The world, which must be among the parts."""
        assert self._world is not None
        return self._world

    @property
    def emulator(self) -> EmulatorNode:
        """The emulator, whose sensors must be among the parts."""
        assert self._emulator is not None
        return self._emulator

    def _now_ns(self) -> int:
        return self.world.world.time_ns

    def _make_sync(self) -> SyncNode:
        return make_sync(self._rig, handover=self._handover)

    def _make_emulator(self) -> EmulatorNode:
        planned = self._planned['emulator']
        emulator = make_emulator(
            self._rig,
            planned.parameters.get('only', ()),
            name=planned.name,
            handover=self._handover,
        )
        emulator.wake = self.spinner.wake
        return emulator

    def _make_world(self) -> WorldNode:
        world = make_world(self._rig, handover=self._handover)
        world.wake = self.spinner.wake
        world.loop.held = self._was_loading
        return world

    def _was_loading(self) -> bool:
        """Return whether the sync node's filters were loaded since this was last asked.

        Its first message does that: they bring scipy, which stops this process for half a second.
        """
        if self._has_filters or FILTERS not in sys.modules:
            return False
        self._has_filters = True
        spare_the_collector()
        return True

    def add(self, node: AnyNode) -> AnyNode:
        """Let a node take part; it is destroyed with the others."""
        self.nodes.append(node)
        self.spinner.add(node)
        return node

    # ---- a node that ends and comes back --------------------------------------------------------

    def restart_sync(self) -> None:
        """End the sync node and put a new one in its place."""
        if self.sync is not None:
            self.sync = self._replace(self.sync, self._make_sync)

    def restart_emulator(self) -> None:
        """End the emulator and put a new one in its place."""
        self._emulator = self._replace(self.emulator, self._make_emulator)

    def restart_world(self) -> None:
        """End the world and put a new one in its place."""
        self._world = self._replace(self.world, self._make_world)

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
        if self._world is not None:
            self._world.loop.stop_ns = end_ns

        def advance() -> float:
            now_ns = self.monitor.now_ns
            if on_time is not None:
                on_time(now_ns)
            if now_ns >= end_ns:
                self.spinner.stop()
                return 0.0
            driven = (self._world, self._emulator)
            return min([node.advance() for node in driven if node is not None], default=TURN_S)

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


def run_in_one_process(
    rig: RigConfig,
    seconds: float | None = None,
    extras: Sequence[NodeFactory] = (),
    on_time: OnTime | None = None,
    only: Sequence[str] = (),
) -> Summary:
    """Run a rig, or the parts of it that `only` names, until its time is over or a signal comes.

    Returns the summary.
    """
    with ros_context([]) as context:
        spinner = Spinner(context)
        with stop_on_signals(spinner.stop):
            nodes = OneProcess(rig, spinner, extras, only)
            try:
                nodes.run(seconds, on_time)
                nodes.final_report()
                return nodes.monitor.summary()
            finally:
                nodes.close()
