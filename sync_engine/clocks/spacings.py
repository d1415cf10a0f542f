"""How far apart a stream's stamps are: what came lately, in order, and the grid it lies on."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import pairwise

from rig_common.times import NS_PER_MS

_KEPT = 128
"""Stamps that are remembered."""
_LATELY = 48
"""The last spacings of them that show the period."""
_REVIEW = 16
"""Stamps between two looks at the period, which may have been learned while frames were lost."""
_FIRST_REVIEW = 6
_ON_GRID = 0.95
"""Share of the spacings that must lie on multiples of the period."""
_ROOM = 0.6
"""Periods that a stamp must keep from all others to fill a hole between them. One of a clock that
went back lies within a half of the nearest, wherever no message is missing."""

SEEN, FITTING, ODD = 2, 1, 0
"""How usual a spacing is: seen lately, a multiple of the period, or neither. Where frames get lost
the multiples that were seen are no others than those that were not."""


class Spacings:
    """The stamps' spacings of one stream, ns.

    Frames get lost, are thinned out by a throttle, or come at a rate that varies: so the period is
    the cluster of the shortest spacings, it is looked at again and again, and where the others are
    no multiples of it the stream has none. Example: 33, 67, 33, 100, 33 ms have the period 33;
    67, 67, 100, 67 ms (every second frame, and one lost before the throttle) have none.

    Messages may overtake one another: 0, 67, 33, 100 have the spacings 33, 33, 33. The third fills
    a hole; -10 more would not, so there the clock went back.
    """

    def __init__(self) -> None:
        self._stamps: list[int] = []
        """In order."""
        self._overtaken = False
        """Whether one came behind a later one since the last review."""
        self._until_review = _FIRST_REVIEW + 1
        self.period_ns = 0.0
        """Shortest usual spacing; 0 before anything is known."""
        self.scatter_ns = 0.0
        """Median distance of the stamps from the grid of the period."""
        self.tolerance_ns = 1.0 * NS_PER_MS
        """How far from the grid a stamp may lie; here, because every message asks."""
        self.is_periodic = False
        """Whether the stamps keep to a grid that is fine enough to show a step."""

        self.is_lossy = False
        """Whether frames were lost lately, or overtook others: holes between stamps are usual."""

    def add(self, stamp_ns: int) -> None:
        """Remember one stamp that is believed, in its place."""
        self._overtaken |= stamp_ns < self._stamps[-1] if self._stamps else False
        insort(self._stamps, stamp_ns)
        if len(self._stamps) > _KEPT:
            del self._stamps[0]
        self._until_review -= 1
        if not self._until_review:
            self._review()

    def shift(self, by_ns: int) -> None:
        """The clock stepped."""
        self._stamps = [each + by_ns for each in self._stamps]

    def has_room(self, stamp_ns: int) -> bool:
        """Return whether a message with this stamp is missing between those that came."""
        at = bisect_left(self._stamps, stamp_ns)
        if not (self.period_ns and 0 < at < len(self._stamps)):
            return False
        before, behind = stamp_ns - self._stamps[at - 1], self._stamps[at] - stamp_ns
        fits = self.on_grid(before) or not self.is_periodic
        return fits and min(before, behind) > _ROOM * self.period_ns

    def _ordered(self) -> list[int]:
        """Return the spacings from the shortest to the longest."""
        return sorted([after - before for before, after in pairwise(self._stamps[-_LATELY - 1 :])])

    def _review(self) -> None:
        ordered = self._ordered()
        self._until_review = _FIRST_REVIEW if len(ordered) < _REVIEW else _REVIEW
        low = ordered[len(ordered) // 5]
        first, end = bisect_right(ordered, 0.7 * low), bisect_left(ordered, 1.4 * low)
        # Their mean, not their median: stamps may be rounded to a share of the period.
        self.period_ns = period = sum(ordered[first:end]) / (end - first)
        alone = 1.5 * period  # below that a spacing is one period; most are
        errors = sorted(
            [
                abs(each - period) if each < alone else abs(each - period * round(each / period))
                for each in ordered
            ]
        )
        self.scatter_ns = errors[len(errors) // 2]
        self.tolerance_ns = max(1.0 * NS_PER_MS, 6.0 * self.scatter_ns)
        inside = bisect_right(errors, self.tolerance_ns)
        self.is_lossy = ordered[-1] > alone or self._overtaken
        self._overtaken = False
        fine = self.tolerance_ns < 0.25 * self.period_ns
        self.is_periodic = fine and inside >= _ON_GRID * len(errors)

    def on_grid(self, spacing_ns: float, slack_ns: float = 0.0) -> bool:
        """Return whether `spacing_ns` is a multiple of the period, as well as that is known."""
        if not self.is_periodic or spacing_ns <= 0:
            return False
        # The period is known to a share of the scatter; over many periods that adds up.
        allowed = self.tolerance_ns + slack_ns + 1e-4 * spacing_ns
        period = self.period_ns
        return abs(spacing_ns - period * (round(spacing_ns / period) or 1)) <= allowed

    def usual(self, spacing_ns: float, slack_ns: float = 0.0) -> int:
        """Return how usual `spacing_ns` is, known to `slack_ns`: SEEN, FITTING or ODD."""
        reach = self.tolerance_ns + slack_ns
        if spacing_ns <= -reach:
            return ODD
        ordered = self._ordered()
        at = bisect_left(ordered, spacing_ns - reach)
        if at < len(ordered) and ordered[at] <= spacing_ns + reach:
            return SEEN
        if not self.on_grid(spacing_ns, slack_ns):
            return ODD
        return SEEN if self.is_lossy else FITTING

    def nearest(self, spacing_ns: float) -> float:
        """Return the multiple of the period next to `spacing_ns`; itself without a grid."""
        if not self.is_periodic:
            return spacing_ns
        return self.period_ns * max(1, round(spacing_ns / self.period_ns))
