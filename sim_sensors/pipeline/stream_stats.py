"""What a stream did lately, in numbers a person reads: rate, latency quantiles, lateness."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from rig_common.times import NS_PER_MS, NS_PER_S
from sim_sensors.interface import Sample

WINDOW = 1000
"""Samples that the figures look back on."""


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """Figures of one stream over its last samples."""

    published: int
    """Samples since the start of the episode."""
    rate_hz: float
    """Captures delivered per simulated second; nan before there are two."""
    latency_ms: tuple[float, float, float]
    """Arrival minus capture: median, 95th and 99th percentile."""
    late_ms: float
    """Published after the arrival time by up to this much simulated time (99th percentile)."""


class StreamStats:
    """Collects the times of published samples."""

    def __init__(self, rate_hz: float) -> None:
        """Watch a stream configured for `rate_hz`."""
        self.rate_hz = rate_hz
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.published = 0
        self._first_ns = self._last_ns = 0
        self._rows: deque[tuple[int, int]] = deque(maxlen=WINDOW)

    def add(self, sample: Sample, now_ns: int) -> None:
        """Note a sample that was published at `now_ns`."""
        if not self.published:
            self._first_ns = sample.capture_ns
        self.published += 1
        self._last_ns = max(self._last_ns, sample.capture_ns)
        self._rows.append((sample.arrival_ns - sample.capture_ns, now_ns - sample.arrival_ns))

    def figures(self, num_envs: int = 1) -> StreamFigures:
        """Return the figures; the rate is that of one environment."""
        nan = float('nan')
        if not self._rows:
            return StreamFigures(0, nan, (nan, nan, nan), nan)
        rows = np.array(self._rows)
        median, p95, p99 = np.quantile(rows[:, 0], [0.5, 0.95, 0.99]) / NS_PER_MS
        late = np.quantile(rows[:, 1], 0.99) / NS_PER_MS
        span = (self._last_ns - self._first_ns) / NS_PER_S
        rate = (self.published / num_envs - 1) / span if span else nan
        return StreamFigures(
            self.published, float(rate), (float(median), float(p95), float(p99)), float(late)
        )
