"""From the sensor to the host: what is lost, when the rest arrives, and what its stamp says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from enum import Enum
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.times import seconds_to_ns
from sim_sensors.pipeline.clocks import SensorClock
from sim_sensors.pipeline.columns import Column, column, truncated
from sim_sensors.pipeline.faults import HEALTHY, Condition
from sim_sensors.pipeline.loss import LossChannel
from sim_sensors.randomness.noise import RandomStreams
from sim_sensors.randomness.streams import Captures
from sim_sensors.sensors.base import Sample
from sim_sensors.timing_config import TimingConfig

Times = NDArray[np.int64]
Rows = slice | NDArray[np.intp]


class Fate(Enum):
    """What became of a capture."""

    CAPTURED = 'captured'
    DELIVERED = 'delivered'
    LOST = 'lost on the way'
    FAULT_LOSS = 'lost in a loss_burst fault'
    DEAD = 'sensor dead'
    FLUSHED = 'on its way at a reset'


class Passage(NamedTuple):
    """How the rows of one batch of captures travel."""

    stamp_ns: Column
    arrival_ns: Column
    lost: NDArray[np.bool_] | None
    """Rows that never arrive; None when all do."""


@dataclass(slots=True)
class Capture:
    """Captures by their numbers alone, for whoever has no batch of a pipeline; see `Captures`."""

    envs: Rows
    index: Times
    time_ns: Times


class Transit:
    """Delay, jitter, loss and clock of one stream, for every environment.

    It needs no simulated sensor: `Transit(TimingConfig(...), RandomStreams(seed, name))` times a
    recorded stream, one `Captures` after another.
    """

    def __init__(self, config: TimingConfig, streams: RandomStreams,
                 duration_ns: int = 0) -> None:
        """Draw each environment's delay; it counts from the end of a capture's `duration_ns`."""
        self.counts: Counter[Fate] = Counter()
        self._streams = streams
        self._duration_ns = duration_ns
        self._loss = LossChannel(config.loss, streams)
        self.latency_ns: Times = np.zeros(len(streams.episode), np.int64)
        """Time from capture to arrival without jitter, ns [num_envs]."""
        self.take(config)

    def take(self, config: TimingConfig) -> None:
        """Take delay, jitter, clock and loss from `config`, for captures to come."""
        self.clock = SensorClock(config.clock, self._streams)
        self._loss.reconfigure(config.loss)
        low, high = config.delay_range_s
        self._low_ns, self._high_ns = seconds_to_ns(low), seconds_to_ns(high)
        self.jitter_ns = seconds_to_ns(config.jitter_s)
        self._jitter = self._streams.uniforms('jitter', 1) if self.jitter_ns else None
        self._draw_delay(slice(None))

    @property
    def most_latency_ns(self) -> int:
        """Longest time from capture to arrival without faults, ns."""
        return self._duration_ns + self._high_ns + self.jitter_ns

    @property
    def is_regular(self) -> bool:
        """True when arrival follows from the capture index alone."""
        return not (self.jitter_ns or self._loss.probability)

    def arrival_of(self, batch: Captures) -> Column:
        """Return when captures arrive where no fault makes them later, ns.

        Everything is drawn by index, so this is known before a capture is made.
        """
        arrival = column(batch.time_ns) + column(self.latency_ns[batch.envs])
        if self._jitter is not None:
            draw = column(self._jitter.at(batch.envs, batch.index)[:, 0])
            arrival = arrival + truncated(draw * self.jitter_ns)
        return arrival

    def send(self, batch: Captures, condition: Condition = HEALTHY,
             stamped: Captures | None = None) -> Passage:
        """Return stamp, arrival and loss of a batch of captures.

        `stamped` has the times that the clock reads where they are not those the delay counts
        from: a recorded message is sent on from when it was received.
        """
        arrival = self.arrival_of(batch)
        if condition.latency_ns:
            arrival = arrival + condition.latency_ns
        stamp = self.clock.stamps(stamped or batch, arrival, condition.clock_step_ns)
        return Passage(stamp, arrival, self._lost(batch, condition))

    def _lost(self, batch: Captures, condition: Condition) -> NDArray[np.bool_] | None:
        captures = len(batch.index)
        self.counts[Fate.CAPTURED] += captures
        lost = self._loss.advance(batch) if self._loss.probability else None
        if condition.dead:
            self.counts[Fate.DEAD] += captures
            return np.ones(captures, np.bool_)
        if lost is not None:
            self.counts[Fate.LOST] += int(lost.sum())
        if condition.loss:
            more = self._streams.uniform_at('loss_burst', batch.envs, batch.index, 1)[:, 0]
            more = more < condition.loss
            if lost is not None:
                more &= ~lost
            self.counts[Fate.FAULT_LOSS] += int(more.sum())
            lost = more if lost is None else lost | more
        return lost

    def reset(self, envs: Rows) -> None:
        """Draw the delays of `envs` again, for their new episode."""
        self._loss.reset(envs)
        self._draw_delay(envs)

    def _draw_delay(self, envs: Rows) -> None:
        self.latency_ns[envs] = self._duration_ns + self._low_ns
        if self._high_ns > self._low_ns:
            draw = self._streams.constant('delay', envs, 1, 'uniform')[:, 0]
            self.latency_ns[envs] += (draw * (self._high_ns - self._low_ns)).astype(np.int64)


class InFlight:
    """Samples on their way to the host, handed out in the order they arrive."""

    def __init__(self) -> None:
        """Start with nothing on the way."""
        self._heap: list[tuple[int, int, int, Sample]] = []

    def __len__(self) -> int:
        """Return how many are on their way."""
        return len(self._heap)

    def add(self, sample: Sample) -> None:
        """Send one off."""
        heappush(self._heap, (sample.arrival_ns, sample.env, sample.index, sample))

    def due(self, now_ns: int) -> list[Sample]:
        """Take out what has arrived by `now_ns`, earliest first."""
        heap = self._heap
        arrived = []
        while heap and heap[0][0] <= now_ns:
            arrived.append(heappop(heap)[3])
        return arrived

    def next_ns(self) -> int | None:
        """Return when the next one arrives, ns, or None."""
        return self._heap[0][0] if self._heap else None

    def flush(self, envs: Container[int]) -> int:
        """Drop what is on its way from `envs` and return how many that were."""
        kept = [entry for entry in self._heap if entry[1] not in envs]
        dropped = len(self._heap) - len(kept)
        self._heap = kept
        heapify(kept)
        return dropped
