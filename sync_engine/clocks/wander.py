"""How fast an offset wanders that only motion sees: several answers side by side.

Arrival pins o - l, motion pins o - c (clock_filter.py). What is left, l - c, only motion tells: a
latency that changes, or times of the cue that go another way than its stamps. On most streams it
stands still; poses that another computer timed drift by 20 ppm, temperature swings by
milliseconds. How fast is not known beforehand, so a scalar filter runs for each of `WALKS_S`, and
is believed as much as its predictions have earned. With a chance of 0.4 that it wanders, and fixes
with a sigma of 1 ms, one a second:

    after                           | belief, %          | all together, ms
    nothing                         | 60  24  11  5      | 0.0 +- 10
    20 fixes from -1.1 to 1.2 ms    | 74  23   3  0      | 0.01 +- 0.26
    1.9, 2.7, 1.4, 2.2 ms           | 33  31  35  1      | 0.86 +- 0.60

One filter that believes in no wander would say 0.35 +- 0.21 in the end. The mean and the variance
of the mixture are what the clock filter takes over. While the answers disagree its sigma is wide,
and rightly: then it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

WALKS_S = (1e-5, 1e-4, 3e-4, 1e-3)
"""Random walks that are tried (s per root second), the first of a stream that stands still."""
_SHARES = (0.6, 0.28, 0.12)
"""Of all wanders, how many are of each walk but the first."""
_MEMORY_S = 1000.0
"""Time after which old evidence counts little: a clock may begin to wander."""


@dataclass(slots=True)
class _Answer:
    """One filter: how the offset would be with this walk."""

    walk_var: float
    """Growth of its variance (s^2 per s)."""
    mean: float
    """Against the clock filter's estimate (s)."""
    variance: float
    belief: float


class Wander:
    """What motion says beside the clock filter, with the rate of wander unknown. In seconds."""

    def __init__(self, variance: float, chance: float) -> None:
        """Begin with the variance that o - c has, and the chance that it wanders at all."""
        self._prior = (1.0 - chance, *(chance * share for share in _SHARES))
        self._answers = [_Answer(walk**2, 0.0, variance, belief)
                         for walk, belief in zip(WALKS_S, self._prior, strict=True)]
        self._left_var = variance
        self.mean, self.variance = 0.0, variance
        """Of all answers together; the mean is against the clock filter's estimate."""
        self.walk_var = 0.0
        """Expected growth of the variance (s^2 per s)."""
        self._mix()

    def carry(self, dt: float, variance: float) -> None:
        """Go on by `dt`, after which o - c has `variance` in the clock filter.

        What it grew by beyond the walk (skew, jumps) is the same for every answer.
        """
        grown = max(variance - self._left_var - self.walk_var * dt, 0.0)
        forgotten = 1.0 - exp(-dt / _MEMORY_S)
        for answer, prior in zip(self._answers, self._prior, strict=True):
            answer.variance += answer.walk_var * dt + grown
            answer.belief += forgotten * (prior - answer.belief)

    def observe(self, innovation: float, noise: float) -> None:
        """Take motion's difference from the clock filter; what foresaw it is believed more."""
        scores = []
        for answer in self._answers:
            expected = answer.variance + noise
            wrong = innovation - answer.mean
            scores.append(-0.5 * (wrong**2 / expected + log(expected)))
            gain = answer.variance / expected
            answer.mean += gain * wrong
            answer.variance *= 1.0 - gain
        best = max(scores)
        for answer, score in zip(self._answers, scores, strict=True):
            answer.belief *= exp(score - best)
        total = sum(answer.belief for answer in self._answers)
        for answer in self._answers:
            answer.belief /= total
        self._mix()

    def settle(self, variance: float) -> None:
        """The clock filter has taken mean and variance over; `variance` is what it has now."""
        for answer in self._answers:
            answer.mean -= self.mean
        self.mean, self._left_var = 0.0, variance

    @property
    def beliefs(self) -> tuple[float, ...]:
        """Belief in each of `WALKS_S`."""
        return tuple(answer.belief for answer in self._answers)

    def _mix(self) -> None:
        answers = self._answers
        self.mean = sum(each.belief * each.mean for each in answers)
        self.variance = sum(each.belief * (each.variance + (each.mean - self.mean) ** 2)
                            for each in answers)
        self.walk_var = sum(each.belief * each.walk_var for each in answers)
