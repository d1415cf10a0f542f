"""Where runs stop being good: between which values of a factor, and how surely.

The boundary is where half of the runs are good. Between two neighbouring levels whose majorities
differ there is one. How surely it is there follows from exact binomial tests on both sides; that
takes only that runs do not become better again further into the bad side, nor worse again further
into the good one. Two levels of a side may then be counted together: what holds for their mean
holds for the outer one.

    level    0    10    20    30 ms                     the boundary is in 10 ... 20 ms with
    good    5/5   5/5   0/5   0/5                       1 - 2 * 0.5^5 = 94 % confidence
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sensor_rig.measures.claims import Claim
from sensor_rig.sweep.analysis.binomial import confidence_above
from sensor_rig.sweep.running.outcome import RunStatus

HALF = 0.5


@dataclass(frozen=True)
class FactorLevel:
    """The runs at one value of a factor."""

    value: float
    good: int
    runs: int

    @property
    def is_good(self) -> bool:
        """Whether most of the runs are good."""
        return 2 * self.good > self.runs


@dataclass(frozen=True)
class Boundary:
    """A place where the majority changes."""

    low: float
    high: float
    """Neighbouring levels on either side."""
    confidence: float
    """That the boundary is between them."""
    interval: tuple[float, float] | None
    """Levels between which it is with the wanted confidence; None where there are too few runs."""
    good_below: bool
    """Whether runs are good below it (the usual limit) or above."""

    @property
    def middle(self) -> float:
        """The best guess."""
        return (self.low + self.high) / 2.0


def is_good(status: str, measures: Mapping[str, float], claims: Sequence[Claim]) -> bool:
    """Return whether a run ended well and meets every limit; a missing measure meets none."""
    return status == RunStatus.OK.value and all(
        claim.key in measures and claim.holds(measures[claim.key]) for claim in claims
    )


def boundaries(levels: Sequence[FactorLevel], confidence: float) -> list[Boundary]:
    """Return the boundaries of a line of levels, in ascending order."""
    line = sorted(levels, key=lambda level: level.value)
    found = []
    for index, (left, right) in enumerate(pairwise(line)):
        if left.is_good == right.is_good:
            continue
        below, above = _side(line, index, -1), _side(line, index + 1, 1)
        sure = 1.0 - (1.0 - _surely(below[:1])) - (1.0 - _surely(above[:1]))
        each = 1.0 - (1.0 - confidence) / 2.0
        ends = _reach(below, each), _reach(above, each)
        interval = None if ends[0] is None or ends[1] is None else (ends[0], ends[1])
        found.append(Boundary(left.value, right.value, max(sure, 0.0), interval, left.is_good))
    return found


def _side(line: Sequence[FactorLevel], start: int, step: int) -> list[FactorLevel]:
    """Return the levels from a crossing outwards, up to the next crossing."""
    side = []
    index = start
    while 0 <= index < len(line) and line[index].is_good == line[start].is_good:
        side.append(line[index])
        index += step
    return side


def _surely(levels: Sequence[FactorLevel]) -> float:
    """Return how surely these levels, together, are on their side of one half."""
    good, runs = sum(each.good for each in levels), sum(each.runs for each in levels)
    return confidence_above(good if levels[0].is_good else runs - good, runs, HALF)


def _reach(side: Sequence[FactorLevel], confidence: float) -> float | None:
    """Return the nearest level of a side that is on it with `confidence`."""
    for count in range(1, len(side) + 1):
        if _surely(side[:count]) >= confidence:
            return side[count - 1].value
    return None
