"""Series of unknown length in a fixed amount of memory."""

from __future__ import annotations

import math
from typing import Any

CAPACITY = 600


class Decimated:
    """Rows spread evenly over a run: when it is full, every second one goes."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._stride = 1
        self._seen = 0
        self.rows: list[tuple[float, ...]] = []

    def add(self, *row: float) -> None:
        """Keep `row`, or not: one of every `stride` is kept."""
        if self._seen % self._stride == 0:
            if len(self.rows) >= self._capacity:
                self.rows = self.rows[::2]
                self._stride *= 2
            if self._seen % self._stride == 0:
                self.rows.append(row)
        self._seen += 1


class Presence:
    """How many messages came in each of at most 200 equal slices of a run."""

    SLICES = 200

    def __init__(self, slice_s: float = 0.05) -> None:
        self.slice_s = slice_s
        self.counts: list[int] = []

    def add(self, time_s: float) -> None:
        """Count a message at `time_s` since the start."""
        index = max(int(time_s / self.slice_s), 0)
        while index >= self.SLICES:
            pairs = self.counts + [0] * (len(self.counts) % 2)
            self.counts = [a + b for a, b in zip(pairs[::2], pairs[1::2], strict=True)]
            self.slice_s *= 2.0
            index = int(time_s / self.slice_s)
        if index >= len(self.counts):
            self.counts += [0] * (index + 1 - len(self.counts))
        self.counts[index] += 1


class LogHistogram:
    """Quantiles of non-negative values (s) to 3 %, in 420 bins from 1 ns to 1000 s."""

    PER_DECADE = 35
    LOWEST_S = 1e-9

    def __init__(self) -> None:
        self.bins: dict[int, int] = {}
        self.count = 0
        self.max_s = 0.0

    def add(self, value_s: float) -> None:
        """Count one value."""
        self.count += 1
        self.max_s = max(self.max_s, value_s)
        index = 0 if value_s <= self.LOWEST_S else 1 + int(
            math.log10(value_s / self.LOWEST_S) * self.PER_DECADE)
        self.bins[index] = self.bins.get(index, 0) + 1

    def quantile_s(self, fraction: float) -> float:
        """Return the value below which `fraction` of the values lie; NaN of nothing."""
        if not self.count:
            return math.nan
        wanted, passed = fraction * self.count, 0
        for index in sorted(self.bins):
            passed += self.bins[index]
            if passed >= wanted:
                middle = 0.0 if index == 0 else self.LOWEST_S * 10 ** (
                    (index - 0.5) / self.PER_DECADE)
                return min(middle, self.max_s)
        return self.max_s

    def summary(self) -> dict[str, Any]:
        """Return count and quantiles in seconds."""
        return {'count': self.count, 'p50_s': self.quantile_s(0.5),
                'p95_s': self.quantile_s(0.95), 'p99_s': self.quantile_s(0.99),
                'max_s': self.max_s}
