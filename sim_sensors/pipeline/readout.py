"""What a host can read of a sensor: the newest sample that has arrived, and those before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim_sensors.pipeline.interpolation import Interpolator, Tap
from sim_sensors.pipeline.layout import Array, Layout
from sim_sensors.pipeline.rings import Found, Rows, SampleRing
from sim_sensors.pipeline.transit import Passage
from sim_sensors.sensors.base import Batch
from sim_sensors.timekeeping.schedule import Schedule

Times = NDArray[np.int64]


class Reading(NamedTuple):
    """What a read gives; arrays are the caller's own."""

    values: Array
    """Return space [n, width], or [n, history, width] with the newest first; 0 where invalid."""
    valid: NDArray[np.bool_]
    """False where nothing has arrived yet, [n] or [n, history]."""
    capture_ns: Times
    """True time of each value, ns; 0 where invalid."""
    stamp_ns: Times
    """What the sensor's clock said, ns; 0 where invalid."""


class Readout:
    """The measured samples and the ground truth of one sensor, kept for reading.

    Times handed in count from each environment's origin, as the schedule's do.
    """

    def __init__(self, schedule: Schedule, layout: Layout, num_envs: int, history: int,
                 interpolator: Interpolator | None) -> None:
        """Keep `history` values of the ground truth; `plan` says how many samples to keep."""
        self._schedule = schedule
        self._interpolator = interpolator
        self._samples = SampleRing(1, num_envs, layout)
        self._truth = SampleRing(max(history, 1), num_envs, layout)
        self._spread = 0

    def plan(self, slots: int, spread: int, keeps_all: bool) -> None:
        """Keep at least `slots` samples.

        `spread` is how many captures may overtake one another, 0 where arrival follows from the
        capture index. `keeps_all` is false where captures are skipped and only the newest counts.
        """
        self._samples = self._samples.grow(slots)
        self._spread = spread
        self._samples.holds_gaps = self._truth.holds_gaps = keeps_all

    def push(self, batch: Batch, values: Array, truth: Array, passage: Passage) -> None:
        """Keep one batch of captures."""
        envs, index, time_ns = batch.envs, batch.index, batch.time_ns
        self._samples.push(envs, index, values, time_ns, passage.stamp_ns,
                           passage.arrival_ns, passage.lost)
        self._truth.push(envs, index, truth, time_ns, time_ns, time_ns, None)

    def reset(self, envs: Rows) -> None:
        """Forget `envs`."""
        self._samples.reset(envs)
        self._truth.reset(envs)

    # ---- reading ------------------------------------------------------------------------------

    def truth(self, envs: Rows, history: int | None) -> Reading:
        """Return the newest ground truth of `envs`."""
        index = _back_from(self._truth.newest[envs], history)
        return self._reading(self._truth, self._truth.at_index(envs, index))

    def measured(self, envs: Rows, sent_ns: Times, now_ns: int, history: int | None) -> Reading:
        """Return what can be read at `now_ns`.

        `sent_ns` [n] is `now_ns` less the least latency: nothing captured after it has arrived.
        """
        ring = self._samples
        newest = self._schedule.indices_before(sent_ns)
        if self._interpolator is not None:
            return self._between(envs, newest, sent_ns, history)
        if self._spread:
            found = ring.arrived(envs, newest, now_ns, self._spread, history)
        else:
            found = ring.at_index(envs, _back_from(newest, history))
        return self._reading(ring, found)

    def _between(self, envs: Rows, newest: Times, sent_ns: Times, history: int | None) -> Reading:
        """Return the values at `sent_ns`, between captures."""
        assert self._interpolator is not None
        low = _back_from(newest, history)
        last = self._samples.newest[envs]
        if history is not None:
            sent_ns, last = sent_ns[:, None], last[:, None]
            sent_ns = sent_ns - self._schedule.times_of(low[:, :1]) + self._schedule.times_of(low)
        low = np.minimum(low, last)
        found = self._samples.at_index(envs, low)
        reading = self._reading(self._samples, found)
        older, here, high, newer = (self._tap(envs, low + step, last) for step in (-1, 0, 1, 2))
        values = self._interpolator.blend(older, here, high, newer, sent_ns)
        values[~reading.valid] = 0
        shift = np.where(high.known & found.valid, sent_ns - here.time_ns, 0)
        return Reading(values.astype(reading.values.dtype, copy=False), reading.valid,
                       reading.capture_ns + shift, reading.stamp_ns + shift)

    def _tap(self, envs: Rows, index: Times, last: Times) -> Tap:
        found = self._samples.at_index(envs, index)
        return Tap(self._samples.take(self._samples.values, found.place),
                   self._schedule.times_of(index), found.valid & (index <= last))

    @staticmethod
    def _reading(ring: SampleRing, found: Found) -> Reading:
        arrays = [ring.take(array, found.place)
                  for array in (ring.values, ring.capture_ns, ring.stamp_ns)]
        if not found.valid.all():
            for array in arrays:
                array[~found.valid] = 0
        values, capture_ns, stamp_ns = arrays
        return Reading(values, found.valid, capture_ns, stamp_ns)


def _back_from(newest: Times, history: int | None) -> Times:
    """Return `newest` [n], or with a history [n, history] counting back from it."""
    return newest if history is None else newest[:, None] - np.arange(history)
