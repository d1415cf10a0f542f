"""Small rigs over ROS in lockstep, and a recorder that takes part in it: nothing escapes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.node import Node

from rig_common.digest import StreamDigests
from rig_common.lockstep.messages import SETTLED_TOPIC, TYPE_NAME, Tick
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.ros.follower import Follower
from rig_common.ros.types import message_class
from rig_common.times import NEVER_NS
from rig_common.topics import truth_time_topic
from sensor_rig.nodes.building import make_emulator, make_world
from sensor_rig.rigfile import RigConfig, load_rig
from support.body_sensors import PLATE
from support.start import START_NS

MS = 1_000_000


class _NoAliases(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_rig(
    folder: Path,
    sensors: Mapping[str, Any],
    *,
    model: str = PLATE,
    name: str = 'rig.yaml',
    seed: int = 5,
    sync: Mapping[str, Any] | None = None,
    links: Mapping[str, Any] | None = None,
    **world: Any,
) -> RigConfig:
    """Write a rig file with its model beside it and load it."""
    (folder / 'model.xml').write_text(model)
    values: dict[str, Any] = {
        'seed': seed,
        'world': {
            'model': 'model.xml',
            'timestep_s': 0.001,
            'real_time_factor': 0.0,
            'lockstep': True,
            **world,
        },
        'sensors': {key: dict(given) for key, given in sensors.items()},
    }
    if links is not None:
        values['links'] = dict(links)
    if sync is not None:
        values['sync'] = dict(sync)
    (folder / name).write_text(yaml.dump({'/**': {'ros__parameters': values}}, Dumper=_NoAliases))
    return load_rig(folder / name)


def topics_of(rig: RigConfig) -> dict[str, str]:
    """Return every topic of the rig's sensors whose type is here, their true times among them."""
    count = rig.simulated_world.num_envs
    prefixes = [f'env_{env}/' for env in range(count)] if count > 1 else ['']
    found = {
        prefix + topic.of(name): topic.type_name
        for prefix in prefixes
        for name, sensor in rig.make_sensors().items()
        for topic in sensor.topics()
        if not topic.is_global  # the world publishes transforms, too
    }
    hidden = rig.simulated_world.hide_truth
    times = {
        prefix + truth_time_topic(name, hidden=hidden): TYPE_NAME
        for prefix in prefixes
        for name in rig.sensors
    }
    return found | times


@dataclass
class Heard:
    """What a subscriber saw of one topic in the present episode."""

    arrivals_ns: list[int] = field(default_factory=list)
    """Time since the start of the run of the tick it came with."""
    messages: list[bytes] = field(default_factory=list)


class Recorder(Node):
    """Subscribes to everything and answers ticks, so that lockstep waits for it."""

    def __init__(self, topics: Mapping[str, str], name: str = 'recorder') -> None:
        super().__init__(name)
        self.digests = StreamDigests()
        self.heard = {topic: Heard() for topic in topics}
        self._fresh: list[tuple[str, bytes]] = []
        self._inputs = [
            self.create_subscription(
                message_class(kind),
                topic,
                partial(self._on_message, topic),
                qos.internal(),
                raw=True,
            )
            for topic, kind in topics.items()
        ]
        self.episodes: list[Tick] = []
        self.follower = Follower(
            self,
            self._on_time,
            topic=SETTLED_TOPIC,
            ready=self._ready,
            on_episode=self._on_episode,
        )
        self.follower.counted = set(topics)

    def _on_episode(self, tick: Tick) -> None:
        self.episodes.append(tick)
        for heard in self.heard.values():
            heard.arrivals_ns.clear()
            heard.messages.clear()

    def _ready(self) -> bool:
        return all(each.get_publisher_count() for each in self._inputs)

    def _on_message(self, topic: str, raw: bytes) -> None:
        self._fresh.append((topic, raw))
        self.follower.received(topic)

    def _on_time(self, now_ns: int) -> int:
        for topic, raw in self._fresh:
            self.digests.add(topic, raw)
            self.heard[topic].arrivals_ns.append(now_ns - START_NS)
            self.heard[topic].messages.append(raw)
        self._fresh.clear()
        return NEVER_NS


class LockstepRun:
    """World, emulators and a recorder in one process; use it in a `with`."""

    def __init__(
        self,
        rig: RigConfig,
        groups: Sequence[Sequence[str]] = ((),),
        extra: Sequence[Callable[[], Node]] = (),
        wait_for: Sequence[str] = (),
    ) -> None:
        self._ros = ros_context([])
        self.spinner = Spinner(self._ros.__enter__())
        self.recorder = Recorder(topics_of(rig))
        self.extra = [make() for make in extra]
        self.emulators = [
            make_emulator(rig, group, name=f'emulator_{index}')
            for index, group in enumerate(groups)
        ]
        self.nodes: list[Node] = [self.recorder, *self.extra, *self.emulators]
        for node in self.nodes:
            self.spinner.add(node)
        lockstep = rig.world is not None and rig.world.lockstep
        self.rig = rig.with_world(wait_for=['recorder', *wait_for]) if lockstep else rig
        self.start_world()

    def start_world(self) -> None:
        """Make the world and drive it."""
        self.world = make_world(self.rig)
        self.world.wake = self.spinner.wake
        self.add(self.world)

    def add(self, node: Node) -> None:
        """Let a node take part."""
        self.nodes.append(node)
        self.spinner.add(node)

    def end(self, node: Node) -> None:
        """End a node, as if its process ended."""
        self.spinner.remove(node)
        self.nodes.remove(node)
        close_node(node)

    def __enter__(self) -> LockstepRun:
        return self

    def __exit__(self, *error: Any) -> None:
        self.spinner.close()
        for node in self.nodes:
            close_node(node)
        self._ros.__exit__(None, None, None)

    def until(self, condition: Callable[[], bool], limit_s: float = 60.0) -> None:
        """Drive the rig until `condition`, at most `limit_s` of wall time."""
        end = time.monotonic() + limit_s
        while not condition():
            assert time.monotonic() < end, f'not within {limit_s} s, at {self.now_s:.3f} s'
            self.spinner.wait(min(self.world.advance(), 0.01))

    @property
    def now_s(self) -> float:
        """Time since the start of the run."""
        return self.world.world.time_ns / 1e9

    def run(self, seconds: float) -> None:
        """Run until `seconds` of simulated time are past and everybody has answered."""
        self.until(lambda: self.now_s >= seconds and not self.world.conductor.blocked)
