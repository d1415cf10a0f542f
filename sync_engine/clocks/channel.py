"""One kind of observation of a filter: its adaptive noise, its last reject, its innovations."""

from __future__ import annotations

from enum import Enum
from math import sqrt

_TREND_GAIN = 0.08
"""Share of a new innovation in their mean: a memory of about a dozen."""
_MEAN_SIGMA = sqrt(_TREND_GAIN / (2.0 - _TREND_GAIN))
_SAGE_HUSA_HEAD_START = 5
"""The first observations do not replace the prior noise outright."""


class GateResult(Enum):
    """What became of an observation."""

    ACCEPTED = 'accepted'
    REJECTED = 'rejected'
    JUMP = 'jump'
    """Second reject that agrees with the first: the state was opened and took it."""


class ObservationChannel:
    """Noise (a variance, or a factor on one) that follows what is seen, within limits."""

    def __init__(self, least: float, first: float, largest: float, forgetting: float) -> None:
        self.noise = first
        self._rejected: float | None = None
        self._least = least
        self._largest = largest
        self._forgetting = forgetting
        self._count = _SAGE_HUSA_HEAD_START
        self._scaled = 0.0
        self._mean, self._square, self._product = 0.0, 1.0, 0.0
        """Of the scaled innovations lately: mean, square, product of two in a row."""

    def judge(self, innovation: float, variance: float, gate_nis: float) -> GateResult:
        """Say what to do with an innovation that was expected to have `variance`.

        Example with sigma 1 and a gate of 9: 0.4 is accepted; 5.0 is rejected; if 5.2 comes next
        the two agree, a jump; if -4 comes next they do not, and the noise is raised.
        """
        if innovation**2 / variance <= gate_nis:
            self._rejected = None
            return GateResult.ACCEPTED
        before, self._rejected = self._rejected, innovation
        if before is None:
            return GateResult.REJECTED
        if abs(innovation - before) < 0.3 * abs(before) + 2.0 * sqrt(variance):
            self._rejected = None
            return GateResult.JUMP
        self.set(self.noise * 4.0)  # two rejects that disagree are noise, not a jump
        return GateResult.REJECTED

    def note(self, innovation: float, variance: float) -> None:
        """Take an accepted innovation with the variance it was expected to have."""
        before, self._scaled = self._scaled, innovation / sqrt(variance)
        self._mean += _TREND_GAIN * (self._scaled - self._mean)
        self._square += _TREND_GAIN * (self._scaled**2 - self._square)
        self._product += _TREND_GAIN * (self._scaled * before - self._product)

    @property
    def correlation(self) -> float:
        """Lag-1 correlation of the innovations, 0 .. 0.5: a filter that is right shows none."""
        return min(max(self._product / max(self._square, 0.3), 0.0), 0.5)

    @property
    def trend(self) -> float:
        """Mean of the scaled innovations in its own sigmas: they should have none, of either sign;
        where they do the state moves faster than its walk allows."""
        return abs(self._mean) / _MEAN_SIGMA

    def adapt(self, sample: float) -> None:
        """Sage-Husa: move the noise towards `sample` with a fading memory."""
        self._count += 1
        gain = (1.0 - self._forgetting) / (1.0 - self._forgetting ** (self._count + 1))
        self.set((1.0 - gain) * self.noise + gain * sample)

    def set(self, noise: float) -> None:
        """Take `noise`, clamped to its limits."""
        self.noise = min(max(noise, self._least), self._largest)
