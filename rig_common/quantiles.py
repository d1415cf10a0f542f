"""Quantiles of a stream of values: in constant memory, or exact."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np

FEW = 8
"""Values below this are counted one by one, which then costs less."""


class LogHistogram:
    """Quantiles of non-negative values (s) to 3 %, in 420 bins from 1 ns to 1000 s."""

    PER_DECADE = 35
    LOWEST_S = 1e-9

    def __init__(self) -> None:
        self.bins = Counter[int]()
        self.count = 0
        self.max_s = 0.0

    def add(self, value_s: float) -> None:
        """Count one value."""
        self.count += 1
        self.max_s = max(self.max_s, value_s)
        index = (
            0
            if value_s <= self.LOWEST_S
            else 1 + int(math.log10(value_s / self.LOWEST_S) * self.PER_DECADE)
        )
        self.bins[index] += 1

    def add_all(self, values_s: Sequence[float]) -> None:
        """Count many values."""
        if len(values_s) < FEW:
            for value_s in values_s:
                self.add(value_s)
            return
        values = np.array(values_s)
        decades = np.log10(np.maximum(values, self.LOWEST_S) / self.LOWEST_S)
        places = np.where(values <= self.LOWEST_S, 0, 1 + (decades * self.PER_DECADE).astype(int))
        self.bins.update(places.tolist())
        self.count += len(values)
        self.max_s = max(self.max_s, float(values.max()))

    def quantile_s(self, fraction: float) -> float:
        """Return the value below which `fraction` of the values lie; NaN of nothing."""
        if not self.count:
            return math.nan
        wanted, passed = fraction * self.count, 0
        for index in sorted(self.bins):
            passed += self.bins[index]
            if passed >= wanted:
                middle = (
                    0.0 if index == 0 else self.LOWEST_S * 10 ** ((index - 0.5) / self.PER_DECADE)
                )
                return min(middle, self.max_s)
        return self.max_s

    def summary(self) -> dict[str, object]:
        """Return count and quantiles in seconds."""
        return {
            'count': self.count,
            'p50_s': self.quantile_s(0.5),
            'p95_s': self.quantile_s(0.95),
            'p99_s': self.quantile_s(0.99),
            'max_s': self.max_s,
        }


class ExactQuantiles(LogHistogram):
    """The same figures without bins: every value is kept, 8 bytes each, for runs of minutes."""

    def __init__(self) -> None:
        super().__init__()
        self.values_s = array('d')

    def add(self, value_s: float) -> None:
        """Keep one value."""
        self.count += 1
        self.max_s = max(self.max_s, value_s)
        self.values_s.append(value_s)

    def quantile_s(self, fraction: float) -> float:
        """Return the smallest value that at least `fraction` of the values do not exceed."""
        if not self.count:
            return math.nan
        return sorted(self.values_s)[max(math.ceil(fraction * self.count) - 1, 0)]
