"""Truth on its way out: read on schedule, only while somebody listens, published as bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher

from rig_common.lockstep.again import Kept
from rig_common.ros import qos
from rig_common.ros.types import message_class
from rig_common.times import NEVER_NS
from rig_common.topics import truth_topic
from sim_sensors.interface import AnySensor
from sim_sensors.interface.topics import env_prefix, truth_key
from sim_sensors.interface.truth import TruthReader
from sim_sensors.pipeline.sources import Capture
from sim_sensors.timekeeping.worker import Worker
from sim_sensors.timing.schedule import Schedule
from sim_sensors.world.snapshot import Snapshot
from sim_sensors.world.world_base import WorldBase

LISTENERS_REFRESH_NS = 10_000_000
"""Simulated time between two looks at how many subscribers a topic has."""


class TruthChannel:
    """The truth of one sensor, for all environments of the world.

    A capture may consist of parts at later times (a sweep). It is published with its last part
    and carries the time of its first.
    """

    def __init__(
        self,
        node: Node,
        sensor: AnySensor,
        schedule: Schedule,
        reader: TruthReader,
        view: WorldBase,
        *,
        hidden: bool,
        counts: Callable[[str], bool],
        kept: Kept,
        events: PublisherEventCallbacks,
    ) -> None:
        """Publish for those who listen, and those who count it in lockstep, as `counts` says.

        These may have to be sent it again: it goes into `kept`.
        """
        self.sensor = sensor
        self._counts, self._kept = counts, kept
        self._schedule = schedule
        self._reader = reader
        self._parts: list[int] = list(reader.parts_ns)
        type_name, self._template = sensor.truth_template()
        topic_type = message_class(type_name)
        self.publishers = [
            node.create_publisher(
                topic_type,
                env_prefix(env, view.num_envs) + truth_topic(sensor.name, hidden=hidden),
                qos.internal(),
                event_callbacks=events,
            )
            for env in range(view.num_envs)
        ]
        self.keys = [truth_key(sensor.name, env, view.num_envs) for env in range(view.num_envs)]
        self._base = view.time_base
        self._rows = sensor.truth_layout.zeros(view.num_envs)
        self._all = list(range(view.num_envs))
        self._listening: Sequence[int] = []
        self._counted: Sequence[int] = []
        self._listening_until_ns = -1
        self._held: list[tuple[Publisher, bytes]] = []
        self.reset()

    def reset(self) -> None:
        """Begin a new episode at time 0."""
        self._begin(self._schedule.time_of(0))
        self._listening_until_ns = -1

    def _begin(self, time_ns: int) -> None:
        self._capture = Capture(self._parts, time_ns, (), self._rows)
        self.next_ns = self._capture.due_ns

    def work(self, view: WorldBase, sent: Counter[str]) -> None:
        """Do what is due at the view's time (`next_ns`), and count what was published."""
        capture = self._capture
        if capture.part == 0:
            capture.envs = self._listeners(view.time_ns)
            capture.rows = self._rows[: len(capture.envs)]
        if capture.envs:
            self._read(capture, view)
        else:
            capture.part += 1
        if capture.is_complete:
            sent.update([self.keys[env] for env in capture.envs])
            self._begin(self._schedule.next_time(capture.time_ns))
        self.next_ns = self._capture.due_ns

    def _listeners(self, time_ns: int) -> Sequence[int]:
        """Return the environments whose truth somebody reads."""
        if time_ns >= self._listening_until_ns:
            self._listening_until_ns = time_ns + LISTENERS_REFRESH_NS
            self._counted = [env for env in self._all if self._counts(self.keys[env])]
            self._listening = [
                env
                for env in self._all
                if env in self._counted or self.publishers[env].get_subscription_count()
            ]
        return self._listening

    def _read(self, capture: Capture, view: WorldBase) -> None:
        """Read the next part of `capture`."""
        capture.read(self._reader, view)
        if capture.is_complete:
            self._held += self._messages(capture)

    def _messages(self, capture: Capture) -> Iterator[tuple[Publisher, bytes]]:
        for row, env in zip(capture.rows, capture.envs, strict=True):
            message = self._template.fill(
                self._base.stamp_ns(capture.time_ns), **self.sensor.truth_to_blocks(row)
            )
            if env in self._counted:
                self._kept.add(self.keys[env], message)
            yield self.publishers[env], message

    def release(self) -> None:
        """Publish what was read since the last call.

        A run of steps is over in a fraction of its time. Sent one after the other, its messages
        wake whoever reads them once, not at every step.
        """
        for publisher, message in self._held:
            publisher.publish(message)
        self._held.clear()

    # ---- only heavy channels have these ------------------------------------------------------

    @property
    def preparing(self) -> bool:
        """Whether the first capture is being made, for which a renderer has to be set up."""
        return False

    @property
    def limit_ns(self) -> int:
        """Time the world must not pass before this truth is out."""
        return NEVER_NS

    def wait(self, timeout_s: float) -> bool:
        """Wait for work under way; True when there is none left."""
        return True

    def close(self) -> None:
        """Stop what runs beside the world."""


class HeavyChannel(TruthChannel):
    """Truth that takes long (rendering, large scans), made by a thread from snapshots.

    The world goes on meanwhile, but not past the earliest time at which the finished sample could
    have to be delivered.
    """

    def __init__(
        self,
        node: Node,
        sensor: AnySensor,
        schedule: Schedule,
        reader: TruthReader,
        view: WorldBase,
        **options: Any,
    ) -> None:
        super().__init__(node, sensor, schedule, reader, view, **options)
        self._worker = Worker(f'truth of {sensor.name}')
        # Shared with the worker: both lists are only appended to and removed from, one call each,
        # which the interpreter does as a whole. A snapshot belongs to whoever took it out; `_rows`
        # and the reader belong to the worker. Everything else is the driving thread's.
        self._snapshots: list[Snapshot] = []
        self._under_way: list[int] = []
        self._prepared = False

    def _read(self, capture: Capture, view: WorldBase) -> None:
        """Have the worker read the next part of `capture` from a snapshot of the view."""
        if self._snapshots:
            snapshot = self._snapshots.pop()
            snapshot.take()
        else:
            snapshot = Snapshot(view)
        part = capture.part
        capture.part += 1
        last = capture.is_complete
        if part == 0:
            self._under_way.append(capture.time_ns)

        def job() -> None:
            self._reader.read(snapshot, capture.envs, part, capture.rows)
            self._prepared = True
            self._snapshots.append(snapshot)
            if last:
                for publisher, message in self._messages(capture):
                    publisher.publish(message)
                self._under_way.remove(capture.time_ns)

        self._worker.do(job)

    @property
    def preparing(self) -> bool:
        """Whether the worker sets up what it needs, which takes longer than any capture after."""
        self._worker.raise_error()
        return bool(self._under_way) and not self._prepared

    @property
    def limit_ns(self) -> int:
        """Capture plus smallest latency of the oldest capture still being computed."""
        self._worker.raise_error()
        try:
            oldest_ns = self._under_way[0]  # asked first, it could be gone when it is read
        except IndexError:
            return NEVER_NS
        # At least one step behind its last part: a sweep needs the world to move on.
        return oldest_ns + max(self.sensor.smallest_latency_ns, self._parts[-1] + 1)

    def wait(self, timeout_s: float) -> bool:
        """Wait for captures whose parts have all been handed over."""
        return self._worker.wait(timeout_s)

    def reset(self) -> None:
        """Begin a new episode; what is under way is finished first."""
        if hasattr(self, '_worker'):
            self._worker.wait(None)
            self._under_way.clear()
        super().reset()

    def close(self) -> None:
        """End the thread."""
        self._worker.close()
