"""Which observations a filter believes: its gate, the last reject, how innovations correlate."""

from __future__ import annotations

from enum import Enum
from math import sqrt

_CORRELATION_GAIN = 0.08
"""Share of a new innovation in their correlation: a memory of about a dozen."""


class GateResult(Enum):
    """What became of an observation."""

    ACCEPTED = 'accepted'
    REJECTED = 'rejected'
    JUMP = 'jump'
    """Second reject that agrees with the first: the state was opened and took it."""


class InnovationGate:
    """One kind of observation of a filter."""

    def __init__(self, gate_nis: float) -> None:
        self._gate_nis = gate_nis
        self._rejected: float | None = None
        self._scaled, self._square, self._product = 0.0, 1.0, 0.0
        """Of the scaled innovations lately: the last, mean square, product of two in a row."""

    def judge(self, innovation: float, variance: float) -> GateResult:
        """Say what to do with an innovation that was expected to have `variance`.

        Example with sigma 1 and a gate of 9: 0.4 is accepted; 5.0 is rejected; if 5.2 comes next
        the two agree, a jump; if -4 comes next they do not.
        """
        if innovation**2 / variance <= self._gate_nis:
            self._rejected = None
            return GateResult.ACCEPTED
        before, self._rejected = self._rejected, innovation
        if before is not None and (
            abs(innovation - before) < 0.3 * abs(before) + 2.0 * sqrt(variance)
        ):
            return self.trust(innovation)
        return GateResult.REJECTED

    def trust(self, innovation: float) -> GateResult:
        """Believe an innovation that would be rejected: a jump."""
        self._rejected = None
        return GateResult.JUMP

    @property
    def in_doubt(self) -> bool:
        """Whether the last observation was rejected; the next one decides."""
        return self._rejected is not None

    def note(self, innovation: float, variance: float) -> None:
        """Take an accepted innovation with the variance it was expected to have."""
        before, self._scaled = self._scaled, innovation / sqrt(variance)
        self._square += _CORRELATION_GAIN * (self._scaled**2 - self._square)
        self._product += _CORRELATION_GAIN * (self._scaled * before - self._product)

    @property
    def correlation(self) -> float:
        """Lag-1 correlation of the innovations, 0 .. 0.5: a filter that is right shows none."""
        return min(max(self._product / max(self._square, 0.3), 0.0), 0.5)
