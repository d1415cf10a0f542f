"""The design notes' own estimator: a scalar filter on the pairing residual.

    z = t_selected - t_reference        x <- x + K (z - x)

It measures a clock offset only where the frames of a pair were captured at the same instant, that
is on hardware-triggered rigs. Anywhere else it measures the sampling phase, follows itself and
runs away; `docs/offsets_theory.md` shows by how much.
"""

from __future__ import annotations

from collections import deque

from sync_engine.config import AdaKFConfig


class PairingOffset:
    """Offset of one sensor's clock to the reference's (s)."""

    def __init__(self, config: AdaKFConfig, start_s: float | None = None) -> None:
        self._config = config
        self.offset_s = config.initial_offset if start_s is None else start_s
        self.variance = 1.0
        self.noise = config.measurement_noise
        self._residuals: deque[float] = deque(maxlen=config.residual_window)

    def update(self, observation_s: float) -> None:
        """Take `t_selected - t_reference` (s) of one bundle."""
        self.variance += self._config.process_noise
        residual = observation_s - self.offset_s
        gain = self.variance / (self.variance + self.noise)
        self.offset_s += gain * residual
        self.variance *= 1.0 - gain
        self._residuals.append(residual)
        if 2 * len(self._residuals) >= self._config.residual_window:
            self.noise = self._adapted_noise()

    def _adapted_noise(self) -> float:
        base = self._config.measurement_noise
        mean = sum(self._residuals) / len(self._residuals)
        variance = sum((value - mean) ** 2 for value in self._residuals) / len(self._residuals)
        return min(max(base * variance, 0.1 * base), 10.0 * base)


class TriggerOffset:
    """The same observation with noise in its right units, for `stamp_source: trigger`.

    The residual of a triggered pair is exposure plus stamp jitter, fractions of a millisecond; R
    follows what is seen, and a residual of another size three times in a row is a new wiring.
    """

    _WALK_S2 = 1e-9
    _LEAST_S2 = 1e-10
    _FIRST_S2 = 1e-6

    def __init__(self, start_s: float, start_sigma_s: float) -> None:
        self.offset_s = start_s
        self.variance = start_sigma_s**2
        self.noise = self._FIRST_S2
        self._odd = 0

    def update(self, observation_s: float) -> None:
        """Take `t_selected - t_reference` (s) of one bundle."""
        self.variance += self._WALK_S2
        residual = observation_s - self.offset_s
        spread = self.variance + self.noise
        if residual**2 > 16.0 * spread:
            self._odd += 1
            if self._odd < 3:
                return
            self.variance += residual**2
            spread = self.variance + self.noise
        self._odd = 0
        gain = self.variance / spread
        self.offset_s += gain * residual
        self.variance *= 1.0 - gain
        after = observation_s - self.offset_s
        self.noise = max(0.95 * self.noise + 0.05 * (after**2 + self.variance), self._LEAST_S2)
