"""What the fault tests share: drivers of a robot that can misbehave, and what the rig says."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from rclpy.client import Client
from rclpy.node import Node

from rig_common import msgs
from rig_common.cdr import Template, read_stamp_ns
from rig_common.diagnostic_fields import from_values
from rig_common.msgs import Status, read_diagnostic_array
from rig_common.ros import qos
from rig_common.ros.executor import Spinner
from rig_common.ros.types import message_class
from support.processes import Process, Processes
from support.recovery import note_recovery
from sync_engine.wire.statuses import InputFacts

MS, S = 1_000_000, 1_000_000_000
PATIENCE_S = 60.0
"""Wall time after which a run counts as broken; no assertion depends on it otherwise."""
ASK_AGAIN_S = 5.0
DIAGNOSTICS = 'diagnostic_msgs/msg/DiagnosticArray'


class Observer(Node):
    """Hears /diagnostics and the bundles, and can wait for what they should say."""

    def __init__(self, spinner: Spinner, name: str = 'observer') -> None:
        super().__init__(name)
        self._spinner = spinner
        self.statuses: dict[str, Status] = {}
        self.bundles_ns: list[int] = []
        self.every_turn: Callable[[], None] = lambda: None
        spinner.add(self)
        self.create_subscription(
            message_class(DIAGNOSTICS),
            '/diagnostics',
            self._on_diagnostics,
            qos.internal(100),
            raw=True,
        )
        self.create_subscription(
            message_class(DIAGNOSTICS), 'sync/bundle', self._on_bundle, qos.internal(100), raw=True
        )

    def _on_diagnostics(self, raw: bytes) -> None:
        for status in read_diagnostic_array(raw)[1]:
            self.statuses[status.name] = status

    def _on_bundle(self, raw: bytes) -> None:
        self.bundles_ns.append(read_stamp_ns(raw))

    # ---- waiting --------------------------------------------------------------------------------

    def until(self, condition: Callable[[], Any], what: str) -> float:
        """Let things happen until `condition`; return how long that took, s."""
        begun = time.monotonic()
        while not condition():
            assert time.monotonic() < begun + PATIENCE_S, f'{what} did not happen: {self._said()}'
            self.every_turn()
            self._spinner.turn(0.005)
        return time.monotonic() - begun

    def bundles(self, count: int = 5, what: str = '') -> float:
        """Wait for `count` more bundles; return how long they took, s, and note it."""
        self.bundles_ns.clear()
        took = self.until(lambda: len(self.bundles_ns) >= count, f'{count} bundles')
        if what:
            note_recovery(what, count, took)
        return took

    def for_a_while(self, seconds: float) -> None:
        """Let things happen for `seconds`."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, 'the end of time')

    def ask(self, client: Client, request: Any) -> Any:
        """Call a service and return its answer; ask again where none comes.

        A request that goes out before the server's side has met this client is lost.
        """
        futures = [client.call_async(request)]
        asked = time.monotonic()

        def answered() -> bool:
            nonlocal asked
            if time.monotonic() > asked + ASK_AGAIN_S:
                asked = time.monotonic()
                futures.append(client.call_async(request))
            return any(future.done() for future in futures)

        self.until(answered, f'an answer of {client.srv_name}')
        return next(future.result() for future in futures if future.done())

    def says(self, name: str, text: str) -> None:
        """Wait until the status `name` says `text`, in its message or its values."""

        def said() -> bool:
            status = self.statuses.get(name)
            return status is not None and any(
                text in part for part in (status.message, *status.values.values(), *status.values)
            )

        self.until(said, f'{name!r} to say {text!r}')

    @property
    def epoch(self) -> int:
        """Number of the sync engine's epoch, as last heard; -1 before."""
        status = self.statuses.get('sync: engine')
        return -1 if status is None else int(status.values['epoch'])

    def _said(self) -> str:
        return '; '.join(f'{s.name}: {s.message} {dict(s.values)}' for s in self.statuses.values())

    # ---- the ledger -----------------------------------------------------------------------------

    def ledgers(self, *names: str) -> dict[str, dict[str, int]]:
        """Return fresh ledgers of inputs, which must balance."""
        for name in names:
            self.statuses.pop(f'sync: {name}', None)
        self.until(
            lambda: all(f'sync: {name}' in self.statuses for name in names),
            f'diagnostics of {names}',
        )
        facts = {
            name: from_values(InputFacts, self.statuses[f'sync: {name}'].values) for name in names
        }
        found = {name: each.ledger() for name, each in facts.items()}
        for counts in found.values():
            assert counts['received'] == sum(counts.values()) - counts['received'], found
        return found

    def ledger(self, name: str) -> dict[str, int]:
        """Return a fresh ledger of one input."""
        return self.ledgers(name)[name]


SCAN = msgs.laser_scan(
    'lidar',
    16,
    angle_min_rad=0,
    angle_max_rad=1,
    angle_increment_rad=0.1,
    range_min_m=0,
    range_max_m=9,
)
IMAGE = msgs.image('cam', 8, 8, 'mono8')
STREAMS: Mapping[str, tuple[Template, float]] = {
    'lidar/scan': (SCAN, 0.1),
    'camera/image_raw': (IMAGE, 0.05),
}
SYNC: dict[str, Any] = {
    'inputs': {
        'lidar': {'topic': 'lidar/scan', 'type': SCAN.type_name, 'latency_s': 0.01, 'cue': 'none'},
        'camera': {
            'topic': 'camera/image_raw',
            'type': IMAGE.type_name,
            'latency_s': 0.01,
            'cue': 'none',
        },
    },
    'reference_sensor_id': 'lidar',
    'required_sensors': ['lidar', 'camera'],
}


class Robot(Observer):
    """Two drivers that publish on schedule, and whatever a test has them do instead."""

    def __init__(self, spinner: Spinner) -> None:
        super().__init__(spinner, 'robot')
        self.sent = dict.fromkeys(STREAMS, 0)
        self.faults: dict[str, Callable[[int], list[bytes]]] = {}
        """By topic: what is published instead of one good message with this stamp."""
        self._drivers = {
            topic: self.create_publisher(
                message_class(template.type_name), topic, qos.sensor_out()
            )
            for topic, (template, _) in STREAMS.items()
        }
        self._due = dict.fromkeys(STREAMS, time.monotonic())
        self.every_turn = self._drive

    def good(self, topic: str, stamp_ns: int) -> list[bytes]:
        return [STREAMS[topic][0].fill(stamp_ns)]

    def _drive(self) -> None:
        for topic, (_, period_s) in STREAMS.items():
            now = time.monotonic()
            if now < self._due[topic]:
                continue
            self._due[topic] = max(self._due[topic] + period_s, now - period_s)
            make = self.faults.get(topic) or partial(self.good, topic)
            for raw in make(time.time_ns() - 5 * MS):
                self._drivers[topic].publish(raw)
                self.sent[topic] += 1


def write_sync_rig(folder: Path) -> Path:
    """Write a rig file with nothing but `SYNC`."""
    file = folder / 'robot.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': {'sync': SYNC}}}))
    return file


def start_sync(processes: Processes, rig: Path) -> Process:
    return processes.python('-m', 'sensor_rig.nodes.sync', '--rig', str(rig))
