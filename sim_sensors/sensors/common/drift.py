"""Errors that live in continuous time: their parameters do not change with the sensor's rate."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats
from sim_sensors.interface import Batch, Timeline
from sim_sensors.timing.arrays import Array, Movable, arrays_holding
from sim_sensors.timing.randomness.processes import DriftSpec, MarkovStream


class LowPass(Movable):
    """First-order low passes over some columns, exact for an input held over a tick."""

    def __init__(self, cutoff_hz: Floats | float, columns: slice = slice(None)) -> None:
        """Take a cutoff for every one of `columns`; one of 0 passes its column as it is."""
        self._cutoff_hz = np.asarray(cutoff_hz)
        self._columns = columns
        self._dt_s = 0.0
        self._held: Array = np.zeros(1)

    def apply(self, values: Array, timeline: Timeline, dt_s: float) -> None:
        """Filter `values` [n, width] in place; ticks are `dt_s` apart."""
        if dt_s != self._dt_s:
            self._dt_s = dt_s
            held = arrays_holding(values).exp(-2.0 * np.pi * self._cutoff_hz * dt_s)
            self._held = held * (self._cutoff_hz > 0.0)
        now = values[:, self._columns]
        change = timeline.at(1)[:, self._columns] - now
        change *= self._held
        if not timeline.complete:
            change[~timeline.filled] = 0.0
        now += change


def gauss_markov(stream: str, time_s: float, batch: Batch, width: int) -> Array:
    """Return stationary first-order Gauss-Markov processes [n, width] of unit deviation."""
    name = f'{stream} {time_s:g} s'
    return unit_markov(name, time_s, batch.period_s, batch, width).at(batch.envs, batch.index)


def unit_markov(
    stream: str, time_s: float, step_s: float, batch: Batch, width: int
) -> MarkovStream:
    """Return such processes, which take a step every `step_s`."""
    decay = np.full(width, np.exp(-step_s / time_s))
    gain = np.full(width, np.sqrt(-np.expm1(-2.0 * step_s / time_s)))
    return batch.noise.markov(stream, decay=decay, gain=gain, start=np.ones(width))


class AllanNoise(Movable):
    """White noise, bias instability and random walk, as an Allan deviation plot shows them.

    Bias instability is flicker noise, of which no finite recurrence exists; a sum of first-order
    processes, one a decade, has an Allan deviation flat within 6 % from 3 to 1000 s. With
    S(f) = B^2 / (2 pi f) (IEEE Std 952, annex C) each has the variance B^2 ln(10) / pi, and the
    floor is sqrt(2 ln 2 / pi) B = 0.664 B. A random walk is one more process that never forgets.
    """

    TIMES_S = (1.0, 10.0, 100.0, 1000.0)
    VARIANCE_PER_FLOOR = np.log(10.0) / (2.0 * np.log(2.0))
    KNOT_S = 0.05
    """The bias takes a new direction at most this often: a twentieth of its shortest time is fine
    enough, and most captures then draw white noise only."""

    def __init__(self, density: Floats, floor: Floats, walk: Floats) -> None:
        """Take values per column [width]: u/sqrt(Hz), u, u/s/sqrt(Hz)."""
        self._density = density
        self._is_white = bool(density.any())
        self._sigma, self._sigma_period_s = density, 0.0
        self._width = len(density)
        flicker = np.sqrt(self.VARIANCE_PER_FLOOR) * floor
        self._weights = np.stack([flicker] * len(self.TIMES_S) + [walk])
        self._wanders = bool(self._weights.any())

    def white_sigma(self, period_s: float) -> Floats:
        """Return the standard deviation of one sample's white noise, [width]."""
        return self._density / float(np.sqrt(period_s))

    def apply(self, values: Array, batch: Batch) -> None:
        """Add all three to `values` [n, width]."""
        if self._is_white:
            white = batch.noise.normal('white', batch, self._width)
            if batch.period_s != self._sigma_period_s:
                xp = batch.noise.xp
                self._sigma_period_s = batch.period_s
                self._sigma = xp.astype(self.white_sigma(batch.period_s), xp.dtype(white))
            white *= self._sigma
            values += white
        if self._wanders:
            bias = batch.noise.drift('bias', lambda: self._processes(batch.period_s))
            values += bias.at(batch.envs, batch.index, self._weights)

    def _processes(self, period_s: float) -> DriftSpec:
        """Return unit flicker processes and a unit walk (per sqrt(s)) for every column."""
        every = max(1, round(self.KNOT_S / period_s))
        knot_s = every * period_s
        times_s = np.array(self.TIMES_S)
        return DriftSpec(
            every,
            decay=np.append(np.exp(-knot_s / times_s), 1.0),
            gain=np.append(np.sqrt(-np.expm1(-2.0 * knot_s / times_s)), np.sqrt(knot_s)),
            start=np.append(np.ones_like(times_s), 0.0),
            width=self._width,
        )
