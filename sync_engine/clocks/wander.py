"""Whether, and how, an offset wanders that only motion sees: several answers side by side.

Arrival pins o - l, motion pins o - c (clock_filter.py). What is left, l - c, only motion tells: a
latency that changes, or times of the cue that go another way than its stamps. On most streams it
stands still. Poses that another computer timed drift by tens of ppm, a latency walks about, a
temperature makes it swing. Which it is is not known beforehand, so a small filter runs for each of
`MODELS`, and is believed as much as its predictions have earned. With a chance of 0.4 that it
wanders, and fixes with a sigma of 1 ms, one a second (beliefs in the order of `MODELS`):

    after                           | belief, %             | all together, ms | rate, ppm
    nothing                         | 60  16   6   2  16    | 0.0 +- 10        | 0
    20 fixes from -1.1 to 1.2 ms    | 72  15   6   1   7    | 0.01 +- 0.26     | 0
    1.9, 2.7, 1.4, 2.2 ms           | 29  23   7   6  35    | 0.82 +- 0.49     | 36

One filter that believes in no wander would say 0.35 +- 0.20 in the end. The mean and the variance
of the mixture are what the clock filter takes over. While the answers disagree its sigma is wide,
and rightly: then it is not known.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple


class WanderModel(NamedTuple):
    """How an offset may move."""

    walk_s: float
    """Random walk (s per root second)."""
    rate_sigma: float
    """How fast it may drift, one sigma (s per s)."""
    rate_walk: float
    """Random walk of that rate (1 per root second)."""
    share: float
    """Of all that wander, how many do it this way."""


MODELS = (
    WanderModel(1e-6, 0.0, 0.0, 0.0),
    WanderModel(1e-6, 3e-5, 1e-7, 0.4),
    WanderModel(1e-4, 0.0, 0.0, 0.15),
    WanderModel(3e-4, 0.0, 0.0, 0.05),
    WanderModel(1e-6, 1e-4, 1e-5, 0.4),
)
"""Stands still; drifts as two crystals do; walks slowly; walks fast; swings. Swinging
has as large a share as drifting: a swing that is believed too late is missed while `locked`."""
_MEMORY_S = 1000.0
"""Time after which old evidence counts little: a clock may begin to wander."""


@dataclass(slots=True)
class _Answer:
    """One filter: how the offset would be if it moved this way. Of offset and rate."""

    way: WanderModel
    belief: float
    mean: float
    """Against the clock filter's estimate (s)."""
    variance: float
    rate: float = 0.0
    rate_var: float = 0.0
    covariance: float = 0.0

    def ahead(self, dt: float) -> tuple[float, float]:
        """Return mean and variance `dt` from now."""
        way = self.way
        walked = (way.walk_s**2 + way.rate_walk**2 * dt * dt / 3.0) * dt
        drifted = (2.0 * self.covariance + self.rate_var * dt) * dt
        return self.mean + self.rate * dt, self.variance + drifted + walked

    def carry(self, dt: float) -> None:
        """Go on by `dt`."""
        self.mean, self.variance = self.ahead(dt)
        walked = self.way.rate_walk**2 * dt
        self.covariance += (self.rate_var + 0.5 * walked) * dt
        self.rate_var += walked

    def observe(self, innovation: float, noise: float) -> float:
        """Take motion's difference from the clock filter; return how well it was foreseen."""
        expected = self.variance + noise
        wrong = innovation - self.mean
        gain, rate_gain = self.variance / expected, self.covariance / expected
        self.mean += gain * wrong
        self.rate += rate_gain * wrong
        self.rate_var -= rate_gain * self.covariance
        self.variance *= 1.0 - gain
        self.covariance *= 1.0 - gain
        return -0.5 * (wrong**2 / expected + log(expected))


class Wander:
    """What motion says beside the clock filter, with the way of wandering unknown. In seconds."""

    def __init__(self, variance: float, chance: float) -> None:
        """Begin with the variance that o - c has, and the chance that it wanders at all."""
        self._prior = (1.0 - chance, *(chance * way.share for way in MODELS[1:]))
        self._answers = [
            _Answer(way, belief, 0.0, variance, rate_var=way.rate_sigma**2)
            for way, belief in zip(MODELS, self._prior, strict=True)
        ]
        self._left_var = variance

    def ahead(self, dt: float) -> tuple[float, float]:
        """Return mean (against the clock filter) and variance of all answers `dt` from now."""
        each = [(answer.belief, *answer.ahead(dt)) for answer in self._answers]
        mean = sum(belief * at for belief, at, _ in each)
        return mean, sum(belief * (var + (at - mean) ** 2) for belief, at, var in each)

    @property
    def rate(self) -> float:
        """How fast it drifts (s per s)."""
        return sum(answer.belief * answer.rate for answer in self._answers)

    @property
    def beliefs(self) -> tuple[float, ...]:
        """Belief in each of `MODELS`."""
        return tuple(answer.belief for answer in self._answers)

    def carry(self, dt: float, variance: float) -> None:
        """Go on by `dt`, after which o - c has `variance` in the clock filter.

        What it grew by beyond this wander (skew, jumps) is the same for every answer. The clock
        filter has drifted along.
        """
        (now, now_var), (then, then_var) = self.ahead(0.0), self.ahead(dt)
        grown = max(variance - self._left_var - (then_var - now_var), 0.0)
        forgotten = 1.0 - exp(-dt / _MEMORY_S)
        for answer, prior in zip(self._answers, self._prior, strict=True):
            answer.carry(dt)
            answer.mean -= then - now
            answer.variance += grown
            answer.belief += forgotten * (prior - answer.belief)

    def observe(self, innovation: float, noise: float) -> tuple[float, float]:
        """Take motion's difference from the clock filter; what foresaw it is believed more.

        Returns mean and variance of all answers together.
        """
        scores = [answer.observe(innovation, noise) for answer in self._answers]
        best = max(scores)
        for answer, score in zip(self._answers, scores, strict=True):
            answer.belief *= exp(score - best)
        total = sum(answer.belief for answer in self._answers)
        for answer in self._answers:
            answer.belief /= total
        return self.ahead(0.0)

    def settle(self, mean: float, variance: float) -> None:
        """The clock filter has moved by `mean`; `variance` is what it has now."""
        for answer in self._answers:
            answer.mean -= mean
        self._left_var = variance
