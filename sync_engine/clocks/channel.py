"""Which observations a filter believes: its gate and the last reject."""

from __future__ import annotations

from enum import Enum
from math import sqrt


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
        self.rejected: float | None = None
        """The last innovation, where it was rejected; the next one decides."""

    def judge(self, innovation: float, variance: float) -> GateResult:
        """Say what to do with an innovation that was expected to have `variance`.

        Example with sigma 1 and a gate of 9: 0.4 is accepted; 5.0 is rejected; if 5.2 comes next
        the two agree, a jump; if -4 comes next they do not.
        """
        if innovation**2 / variance <= self._gate_nis:
            self.rejected = None
            return GateResult.ACCEPTED
        before, self.rejected = self.rejected, innovation
        if before is not None and (
            abs(innovation - before) < 0.3 * abs(before) + 2.0 * sqrt(variance)
        ):
            return self.trust(innovation)
        return GateResult.REJECTED

    def trust(self, innovation: float) -> GateResult:
        """Believe an innovation that would be rejected: a jump."""
        self.rejected = None
        return GateResult.JUMP
