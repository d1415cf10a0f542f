"""Samples on their way to the host, for messages."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from heapq import heapify, heappop, heappush

from rig_common.times import NEVER_NS
from sim_sensors.interface import Batch, Sample
from sim_sensors.timing.arrays import Array, arrays_holding
from sim_sensors.timing.arrays.columns import listed
from sim_sensors.timing.transit import Passage


class InFlight:
    """Samples on their way to the host, handed out in the order they arrive."""

    def __init__(self, start_ns: int = 0) -> None:
        """Start with nothing on the way; samples get times that begin at `start_ns`."""
        self._start_ns = start_ns
        self._heap: list[tuple[int, int, int, int, Sample]] = []
        self._added = 0

    def __len__(self) -> int:
        """Return how many are on their way."""
        return len(self._heap)

    def add(self, sample: Sample) -> None:
        """Send one off."""
        self._added += 1  # a sample and its copy differ in nothing else
        arrival_ns = sample.arrival_ns - self._start_ns
        heappush(self._heap, (arrival_ns, sample.env, sample.index, self._added, sample))

    def send(
        self, envs: list[int], batch: Batch, passage: Passage, values: Array, truth: Array
    ) -> int:
        """Send off the rows of a batch (of `envs`) that arrive; return how many arrive twice."""
        copy, copies, sensor = arrays_holding(values).copy, 0, batch.noise.sensor
        start_ns = self._start_ns
        times = zip(
            envs,
            batch.index.tolist(),
            batch.time_ns.tolist(),
            listed(passage.stamp_ns),
            listed(passage.arrival_ns),
            strict=True,
        )
        for row, (env, index, capture_ns, stamp_ns, arrival_ns) in enumerate(times):
            if passage.lost is None or not passage.lost[row]:
                sample = Sample(
                    sensor,
                    env,
                    index,
                    start_ns + capture_ns,
                    start_ns + stamp_ns,
                    start_ns + arrival_ns,
                    copy(values[row]),
                    copy(truth[row]),
                    start_ns,
                )
                self.add(sample)
                if passage.twice is not None and passage.twice[row]:
                    self.add(replace(sample))
                    copies += 1
        return copies

    def due(self, now_ns: int) -> list[Sample]:
        """Take out what has arrived by `now_ns`, earliest first."""
        heap = self._heap
        arrived = []
        while heap and heap[0][0] <= now_ns:
            arrived.append(heappop(heap)[4])
        return arrived

    def next_ns(self) -> int:
        """Return when the next one arrives, ns; `NEVER_NS` with nothing on the way."""
        return self._heap[0][0] if self._heap else NEVER_NS

    def flush(self, envs: Container[int]) -> int:
        """Drop what is on its way from `envs` and return how many samples that was."""
        kept = [entry for entry in self._heap if entry[1] not in envs]
        dropped = len(self._heap) - len(kept)
        self._heap = kept
        heapify(kept)
        return dropped
