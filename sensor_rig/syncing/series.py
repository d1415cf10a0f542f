"""Series of unknown length in a fixed amount of memory."""

from __future__ import annotations

from typing import Generic, TypeVar

CAPACITY = 600
RowT = TypeVar('RowT')


class Decimated(Generic[RowT]):
    """Rows spread evenly over a run: when it is full, every second one goes."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._stride = 1
        self._seen = 0
        self.rows: list[tuple[RowT, ...]] = []

    def add(self, *row: RowT) -> None:
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
