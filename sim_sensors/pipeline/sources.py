"""What feeds a pipeline without ROS: truth read from the world, at once or part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rig_common.arrays import Ids
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.pipeline.alike import ClassReader
from sim_sensors.pipeline.pipeline import Pipeline
from sim_sensors.timing.arrays import Array


@dataclass(slots=True)
class Capture:
    """A capture under way.

    A sweep of 100 ms in four parts that begins at 200 ms has `parts_ns` 0, 33, 67 and 100 ms: its
    truth is read at 200, 233, 267 and 300 ms, and is complete then.
    """

    parts_ns: Sequence[int]
    """When each part is read, ns after `time_ns`."""
    time_ns: int
    """When it began; its message carries this time."""
    envs: Sequence[int]
    rows: Array
    """Truth [len(envs), width], filled part by part."""
    part: int = 0
    """The part to read next."""

    @property
    def due_ns(self) -> int:
        """When the next part is read, ns."""
        return self.time_ns + self.parts_ns[self.part]

    @property
    def is_complete(self) -> bool:
        """Whether every part was read."""
        return self.part == len(self.parts_ns)

    def read(self, reader: TruthReader, view: WorldView) -> None:
        """Read the next part."""
        reader.read(view, self.envs, self.part, self.rows)
        self.part += 1


class Source(Protocol):
    """Keeps one pipeline supplied while the world moves."""

    pipeline: Pipeline

    @property
    def next_ns(self) -> int:
        """When `advance` has something to do; it need not be called before."""

    def advance(self, now_ns: int, force_recompute: bool = False) -> None:
        """Take what is due, the world being at `now_ns`; forced, what nobody may read as well."""

    def reset(self, envs: Ids, now_ns: int) -> None:
        """Begin a new episode of `envs` at `now_ns`, the world having been reset."""


def make_source(world: WorldView, readers: Sequence[TruthReader], pipeline: Pipeline) -> Source:
    """Return the source of a pipeline, given the reader of each of its sensors.

    It is lazy for an instant, and gathers for a capture that lasts.
    """
    if tuple(readers[0].parts_ns) == (0,):
        return Instant(world, readers, pipeline)
    return Sweep(world, readers[0], pipeline)


class Instant:
    """Truth of an instant: the pipeline asks for it when it needs it."""

    def __init__(
        self, world: WorldView, readers: Sequence[TruthReader], pipeline: Pipeline
    ) -> None:
        self.pipeline = pipeline
        everyone = range(world.num_envs)
        reader, shared = readers[0], ClassReader(readers) if len(readers) > 1 else None

        def supply(lanes: Ids, out: Array) -> None:
            if shared is not None:
                shared.read(world, lanes, out)
            else:
                reader.read(
                    world, everyone if len(lanes) == len(everyone) else lanes.tolist(), 0, out
                )

        def supply_tensors(lanes: Ids, out: Array) -> None:
            rows = pipeline.sensor.truth_layout.empty(len(lanes))
            supply(np.asarray(lanes.tolist()), rows)
            out[:] = pipeline.xp.asarray(rows)

        pipeline.supplier = supply if pipeline.xp.is_numpy else supply_tensors
        self._progress = pipeline.progress

    @property
    def next_ns(self) -> int:
        """When the next truth is due."""
        return self._progress.next_ns

    def advance(self, now_ns: int, force_recompute: bool = False) -> None:
        """Let the pipeline take what it needs."""
        self.pipeline.update(now_ns, force_recompute)

    def reset(self, envs: Ids, now_ns: int) -> None:
        """Begin a new episode of `envs`; the pipeline takes their first sample now."""
        self.pipeline.reset(envs, now_ns)


class Sweep:
    """Truth that takes time: gathered over ticks, handed over with its last part."""

    def __init__(self, world: WorldView, reader: TruthReader, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self._world, self._reader = world, reader
        self._parts = [int(part) for part in reader.parts_ns]
        self._schedule = pipeline.schedule
        self._all: Ids = np.arange(world.num_envs)
        self._open: list[Capture] = []
        self._next_capture_ns = self.next_ns = self._first_ns(self._all)

    def advance(self, now_ns: int, force_recompute: bool = False) -> None:
        """Read the parts that are due and hand over the captures that are complete."""
        if now_ns >= self._next_capture_ns:
            self._start(now_ns)
        for capture in self._open:
            while not capture.is_complete and capture.due_ns <= now_ns:
                capture.read(self._reader, self._world)
            if capture.is_complete:
                self.pipeline.tick(
                    np.asarray(capture.envs, np.intp),
                    capture.time_ns,
                    self.pipeline.xp.asarray(capture.rows),
                )
        self._open = [each for each in self._open if not each.is_complete]
        self._plan()

    def _start(self, now_ns: int) -> None:
        origin_ns = self.pipeline.progress.origin_ns
        elapsed = now_ns - np.array(origin_ns.tolist())
        envs = self._all[self._schedule.indices_at(elapsed) >= 0]
        if len(envs):
            rows = self.pipeline.sensor.truth_layout.empty(len(envs))
            self._open.append(Capture(self._parts, now_ns, envs.tolist(), rows))
        self._next_capture_ns = (
            int(
                (
                    self._schedule.times_of(self._schedule.indices_before(elapsed) + 1) - elapsed
                ).min()
            )
            + now_ns
        )

    def _first_ns(self, envs: Ids) -> int:
        """Return when the first capture of the episodes of `envs` is, ns."""
        return int(self.pipeline.progress.origin_ns[envs].min()) + self._schedule.time_of(0)

    def _plan(self) -> None:
        self.next_ns = min((each.due_ns for each in self._open), default=self._next_capture_ns)
        self.next_ns = min(self.next_ns, self._next_capture_ns)

    def reset(self, envs: Ids, now_ns: int) -> None:
        """Forget what `envs` had under way and begin their new episode."""
        for capture in self._open:
            kept = ~np.isin(capture.envs, envs)
            capture.envs = [env for env, keep in zip(capture.envs, kept, strict=True) if keep]
            capture.rows = capture.rows[kept]
        self._open = [each for each in self._open if each.envs]
        self.pipeline.reset(envs, now_ns)
        self._next_capture_ns = min(self._next_capture_ns, self._first_ns(envs))
        self.advance(now_ns)
