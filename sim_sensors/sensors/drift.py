"""Errors that live in continuous time: their parameters do not change with the sensor's rate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim_sensors.layout import Array
from sim_sensors.sensors.base import Batch, Timeline

Floats = NDArray[np.float64]


def low_pass(values: Array, timeline: Timeline, columns: slice, cutoff_hz: Array | float,
             dt_s: float) -> None:
    """Run first-order low passes over `columns` of `values` [n, width] in place.

    Exact for an input held over a tick; a cutoff of 0 passes its column as it is.
    """
    held = np.exp(-2.0 * np.pi * np.asarray(cutoff_hz) * dt_s) * (np.asarray(cutoff_hz) > 0.0)
    now = values[:, columns]
    before = timeline.at(1)[:, columns]
    np.copyto(now, now + held * (before - now), where=timeline.filled[:, None])


def gauss_markov(stream: str, time_s: float, batch: Batch, width: int) -> Array:
    """Return stationary first-order Gauss-Markov processes [n, width] of unit deviation."""
    decay = np.full(width, np.exp(-batch.period_s / time_s))
    gain = np.full(width, np.sqrt(-np.expm1(-2.0 * batch.period_s / time_s)))
    process = batch.noise.markov(f'{stream} {time_s:g} s', decay=decay, gain=gain,
                                 start=np.ones(width))
    return process.at(batch.envs, batch.index)


class AllanNoise:
    """White noise, bias instability and random walk, as an Allan deviation plot shows them.

    Bias instability is flicker noise, of which no finite recurrence exists; a sum of first-order
    processes, one a decade, has an Allan deviation flat within 6 % from 3 to 1000 s. With
    S(f) = B^2 / (2 pi f) (IEEE Std 952, annex C) each has the variance B^2 ln(10) / pi, and the
    floor is sqrt(2 ln 2 / pi) B = 0.664 B.
    """

    TIMES_S = np.array([1.0, 10.0, 100.0, 1000.0])
    VARIANCE_PER_FLOOR = np.log(10.0) / (2.0 * np.log(2.0))

    def __init__(self, density: Floats, floor: Floats, walk: Floats) -> None:
        """Take values per column [width]: u/sqrt(Hz), u, u/s/sqrt(Hz)."""
        self._density, self._walk = density, walk
        self._flicker = floor * np.sqrt(self.VARIANCE_PER_FLOOR)
        self._width = len(density)

    def white_sigma(self, period_s: float) -> Floats:
        """Return the standard deviation of one sample's white noise, [width]."""
        return np.asarray(self._density / np.sqrt(period_s))

    def apply(self, values: Array, batch: Batch) -> None:
        """Add all three to `values` [n, width]."""
        if self._density.any():
            white = batch.noise.normal('white', batch, self._width)
            values += white * self.white_sigma(batch.period_s)
        if self._flicker.any():
            values += self._flicker * self._unit_flicker(batch)
        if self._walk.any():
            steps = batch.noise.walk('bias_walk', batch, self._width)
            values += steps * (self._walk * np.sqrt(batch.period_s))

    def _unit_flicker(self, batch: Batch) -> Array:
        """Return the sum of unit processes, one a decade, [n, width]."""
        decay = np.repeat(np.exp(-batch.period_s / self.TIMES_S), self._width)
        gain = np.sqrt(-np.expm1(-2.0 * np.repeat(batch.period_s / self.TIMES_S, self._width)))
        process = batch.noise.markov('bias_instability', decay=decay, gain=gain,
                                     start=np.ones_like(decay))
        values = process.at(batch.envs, batch.index)
        return np.asarray(values.reshape(len(values), len(self.TIMES_S), -1).sum(axis=1))
