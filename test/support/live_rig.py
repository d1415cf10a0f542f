"""What must be true of a running rig, whoever started it: launch, or the built-in runner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.node import Node

from rig_common.cdr import read_stamp_ns
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.ros.types import message_class
from sensor_rig.rigfile import RigConfig

PATIENCE_S = 90.0
"""Wall time after which a run counts as broken; no assertion depends on it otherwise."""


class Watcher(Node):
    """Counts the messages of every topic of a rig and keeps their stamps."""

    def __init__(self, rig: RigConfig, spinner: Spinner) -> None:
        super().__init__('watcher')
        self._spinner = spinner
        self._rig = rig
        self.stamps_ns: dict[str, list[int]] = {}
        for name, sensor in rig.make_sensors().items():
            first = sensor.topics()[0]
            self._listen(first.of(name), first.type_name)
        assert rig.sync is not None
        self.members = [
            f'synced/{given.topic}'
            for name, given in rig.sync.inputs.items()
            if name in rig.sync.required_sensors
        ]
        for name in rig.sync.required_sensors:
            given = rig.sync.inputs[name]
            self._listen(f'synced/{given.topic}', given.type)
        self._listen('sync/bundle', 'diagnostic_msgs/msg/DiagnosticArray')

    def _listen(self, topic: str, type_name: str) -> None:
        self.stamps_ns[topic] = []
        self.create_subscription(
            message_class(type_name), topic, partial(self._on, topic), qos.internal(), raw=True
        )

    def _on(self, topic: str, raw: bytes) -> None:
        self.stamps_ns[topic].append(read_stamp_ns(raw))

    # ---- assertions -----------------------------------------------------------------------------

    def assert_graph_comes_up(self, node_names: set[str]) -> None:
        """Every node of the plan is there."""
        self._until(lambda: node_names <= set(self.get_node_names()), f'nodes {node_names}')

    def assert_rates_are_right(self, count: int = 20) -> None:
        """Stamps come at the configured rate, to the sensor clock's drift and the physics step."""
        for name, sensor in self._rig.make_sensors().items():
            topic = sensor.topics()[0].of(name)
            self._until(lambda topic=topic: len(self.stamps_ns[topic]) > count, topic)
            spacing_ns = median(b - a for a, b in pairwise(self.stamps_ns[topic]))
            assert abs(spacing_ns - 1e9 / sensor.config.rate_hz) <= 1.1e6, (topic, spacing_ns)

    def assert_bundles_flow(self, count: int = 5) -> None:
        """At least `count` more bundles whose members all carry one identical stamp."""
        for stamps in self.stamps_ns.values():
            stamps.clear()

        def common() -> set[int]:
            return set.intersection(*(set(self.stamps_ns[topic]) for topic in self.members))

        self._until(lambda: len(common()) >= count, f'{count} bundles on {self.members}')
        self._until(lambda: len(self.stamps_ns['sync/bundle']) >= count, 'sync/bundle')

    def assert_returns_after(self, topic: str, kill: Callable[[], None]) -> None:
        """`topic` and the bundles flow again after `kill` has ended its publisher's process."""
        kill()
        self._spinner.turn(0.2)  # what was under way when it died
        self.stamps_ns[topic].clear()
        self._until(lambda: len(self.stamps_ns[topic]) > 3, f'{topic} to come back')
        self.assert_bundles_flow()

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f'{what} did not happen'
            self._spinner.turn(0.05)


@contextmanager
def watching(rig: RigConfig) -> Iterator[Watcher]:
    """Give a watcher of `rig` that sees everything from now on."""
    with ros_context([]) as context:
        spinner = Spinner(context)
        watcher = Watcher(rig, spinner)
        spinner.add(watcher)
        try:
            yield watcher
        finally:
            spinner.close()
            close_node(watcher)


def pid_of(*words: str) -> int:
    """Return the process whose command line holds all `words`."""
    for folder in Path('/proc').glob('[0-9]*'):
        try:
            command = (folder / 'cmdline').read_bytes().decode(errors='replace')
        except OSError:
            continue
        if all(word in command for word in words):
            return int(folder.name)
    raise AssertionError(f'no process has {words} in its command line')
