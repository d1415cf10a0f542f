"""What a host can read of a sensor: the newest sample that has arrived, and those before it."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Ids, Ints
from rig_common.errors import RigError
from rig_common.times import in_seconds
from sim_sensors.interface import AnySensor, Batch, SensorConfig
from sim_sensors.pipeline.changes_at_run_time import check_interpolation
from sim_sensors.pipeline.reading.interpolation import Interpolator, Tap
from sim_sensors.pipeline.reading.lags import Lags
from sim_sensors.pipeline.reading.sample_ring import Found, SampleRing
from sim_sensors.timing.arrays import NUMPY, Array, Arrays, Rows
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import Passage

MOST_PAST = 2**40
"""Captures before an episode that an index can count back to."""


class Reading(NamedTuple):
    """What a read gives; arrays are the caller's own."""

    values: Array
    """Return space [n, width], or [n, history, width] with the newest first; 0 where invalid."""
    valid: Flags
    """False where nothing has arrived yet, [n] or [n, history]."""
    capture_ns: Ints
    """True time of each value, ns; 0 where invalid."""
    stamp_ns: Ints
    """What the sensor's clock said, ns; 0 where invalid."""

    def __repr__(self) -> str:
        """Return one line: shape, how many are valid, and the times they span."""
        valid, total = int(self.valid.sum()), prod(self.valid.shape)
        span = ''
        if valid:
            times = self.capture_ns[self.valid]
            span = f', captured {in_seconds(int(times.min()))} to {in_seconds(int(times.max()))}'
        return f'Reading({list(self.values.shape)}, {valid} of {total} valid{span})'

    def each(self, change: Callable[[Array], Array]) -> Reading:
        """Return this reading with all its arrays changed."""
        return Reading(
            change(self.values), change(self.valid), change(self.capture_ns), change(self.stamp_ns)
        )

    def by_member(self, count: int) -> Reading:
        """Return lanes [n * count, ...] as [n, count, ...], views; see `Lanes`."""
        return self.each(lambda part: part.reshape(-1, count, *part.shape[1:]))

    def of_member(self, member: int) -> Reading:
        """Return one of the sensors [n, count, ...] as [n, 1, ...]."""
        return self.each(lambda part: part[:, member : member + 1])


def beside(xp: Arrays, readings: list[Reading]) -> Reading:
    """Return readings [n, m, ...] as one, beside each other along the second axis."""
    values, valid, capture_ns, stamp_ns = (
        xp.concat(list(parts), 1) for parts in zip(*readings, strict=True)
    )
    return Reading(values, valid, capture_ns, stamp_ns)


def asked_history(config: SensorConfig, sensor: str, asked: int | None) -> int | None:
    """Return how long a history a read gives, None for the newest value alone."""
    kept = config.history_length
    if asked is None and config.stack_history:
        asked = kept
    if asked is not None and not 1 <= asked <= max(kept, 1):
        raise RigError(
            f'{sensor!r} was asked for a history of {asked}; its history_length allows '
            f'1 to {max(kept, 1)}'
        )
    return asked


class Readout:
    """The measured samples and the ground truth of one sensor, kept for reading.

    Times handed in count from each environment's origin, as the schedule's do.
    """

    def __init__(
        self,
        schedule: Schedule,
        sensor: AnySensor,
        lags: Lags,
        num_envs: int,
        xp: Arrays = NUMPY,
        truth_waits: bool = False,
    ) -> None:
        """Keep what `sensor` measures, to be read after `lags`; `plan` says how many samples.

        Ground truth that waits for its projection is kept in truth space.
        """
        config, layout = sensor.config, sensor.return_layout
        self._schedule, self._lags, self._layout = schedule, lags, layout
        self._interpolators: dict[str, Interpolator | None] = {'zoh': None}
        self._xp = xp
        self._samples = SampleRing(1, num_envs, layout, xp)
        self._truth = SampleRing(
            max(config.history_length, 1),
            num_envs,
            sensor.truth_layout if truth_waits else layout,
            xp,
            at_once=True,
        )
        self._spread = 0
        self.interpolator(config.interpolation, config, sensor.name)  # refuses what cannot be

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
        skipped = self._samples.skipped(envs, index)  # of both: they have the same captures
        self._samples.push(
            envs,
            index,
            values,
            time_ns,
            passage.stamp_ns,
            passage.arrival_ns,
            passage.lost,
            skipped,
        )
        self._truth.push(envs, index, truth, time_ns, time_ns, time_ns, None, skipped)

    def reset(self, envs: Rows) -> None:
        """Forget `envs`."""
        self._samples.reset(envs)
        self._truth.reset(envs)

    # ---- reading ------------------------------------------------------------------------------

    def truth(self, envs: Rows, history: int | None) -> Reading:
        """Return the newest ground truth of `envs`."""
        index = self._back_from(self._truth.newest[envs], history)
        return self._reading(self._truth, self._truth.at_index(envs, index))

    def interpolator(self, kind: str, config: SensorConfig, sensor: str) -> Interpolator | None:
        """Return what answers reads between captures, None for `zoh`."""
        if kind not in self._interpolators:
            check_interpolation(sensor, config, kind)
            self._interpolators[kind] = Interpolator(kind, self._layout, sensor)
        return self._interpolators[kind]

    def measured(
        self,
        envs: Rows,
        now_ns: int | Ints,
        history: int | None,
        interpolator: Interpolator | None,
        late_ns: int = 0,
    ) -> Reading:
        """Return what can be read at `now_ns`, one time or [n].

        A fault makes everything `late_ns` later; only interpolation must be told, which knows
        nothing of arrivals.
        """
        ring, lags = self._samples, self._lags
        if interpolator is not None:
            sent_ns = now_ns - late_ns - lags.line_ns[envs]
            return self._between(envs, self._newest(sent_ns), sent_ns, history, interpolator)
        if (
            lags.common_ns is not None
            and history is None
            and isinstance(now_ns, int)
            and isinstance(envs, slice)
        ):
            common = self._common(now_ns - lags.common_ns)
            if common is not None:
                return self._reading(ring, common)
        newest = self._newest(now_ns - lags.least_ns[envs])
        if self._spread:
            found = ring.arrived(envs, newest, now_ns, self._spread, history)
        else:
            found = ring.at_index(envs, self._back_from(newest, history))
        return self._reading(ring, found)

    def _newest(self, sent_ns: Ints) -> Ints:
        """Return the last capture not after `sent_ns` [n]."""
        return self._schedule.indices_before(sent_ns, -MOST_PAST if self._samples.has_past else -1)

    def _common(self, sent_ns: int) -> Found | None:
        """Return what all environments can read, where it is the same capture for all of them."""
        if self._spread:
            return None
        return self._samples.at_common(self._schedule.index_before(sent_ns))

    def _between(
        self,
        envs: Rows,
        newest: Ints,
        sent_ns: Ints,
        history: int | None,
        interpolator: Interpolator,
    ) -> Reading:
        """Return the values at `sent_ns`, between captures."""
        low = self._back_from(newest, history)
        last = self._samples.newest[envs]
        if history is not None:
            sent_ns, last = sent_ns[:, None], last[:, None]
            sent_ns = sent_ns - self._schedule.times_of(low[:, :1]) + self._schedule.times_of(low)
        low = self._xp.minimum(low, last)
        found = self._samples.at_index(envs, low)
        reading = self._reading(self._samples, found)
        older, here, high, newer = (self._tap(envs, low + step, last) for step in (-1, 0, 1, 2))
        values = interpolator.blend(older, here, high, newer, sent_ns)
        values[~reading.valid] = 0
        shift = self._xp.where(high.known & found.valid, sent_ns - here.time_ns, 0)
        return Reading(
            self._xp.astype(values, self._samples.dtype),
            reading.valid,
            reading.capture_ns + shift,
            reading.stamp_ns + shift,
        )

    def _tap(self, envs: Rows, index: Ints, last: Ints) -> Tap:
        found = self._samples.at_index(envs, index)
        return Tap(
            self._samples.take(self._samples.values, found.place),
            self._schedule.times_of(index),
            found.valid & (index <= last),
        )

    # ---- a past that was given ----------------------------------------------------------------

    def start(
        self,
        lanes: Ids,
        origin_ns: Ints,
        times_ns: Ints,
        values: Array,
        latency_ns: Ints,
        sensor: str,
    ) -> None:
        """Let `lanes` [n] have measured `values` [n, m, width] at `times_ns` [m] or [n, m]."""
        ring, xp = self._samples, self._xp
        values = xp.astype(values, ring.dtype)
        count = times_ns.shape[-1] if times_ns.ndim else 0
        if times_ns.ndim not in (1, 2) or not 1 <= count <= ring.cursor.slots:
            raise RigError(
                f'the history of {sensor!r} has {count} times; it keeps 1 to {ring.cursor.slots}'
            )
        times_ns = times_ns + xp.zeros((len(lanes), 1), np.int64)
        since_ns = times_ns - origin_ns[:, None]
        index = self._schedule.indices_before(since_ns, -MOST_PAST)
        newest = ring.newest[lanes]
        wrong = (
            (self._schedule.times_of(index) != since_ns)
            | (index != index[:, :1] + xp.arange(count))
            | (index > newest[:, None])
            | (newest[:, None] - index >= ring.cursor.slots)
        )
        if wrong.any():
            raise RigError(
                f'the history of {sensor!r} has the times '
                f'{times_ns[wrong.any(1)][0].tolist()} ns; they must be captures of '
                'its schedule, one after another, not after its newest and among the '
                f'last {ring.cursor.slots}'
            )
        ring.rewrite(lanes, index, values, (times_ns, times_ns, times_ns + latency_ns[:, None]))

    @staticmethod
    def _reading(ring: SampleRing, found: Found) -> Reading:
        arrays = [
            ring.take(array, found.place)
            for array in (ring.values, ring.capture_ns, ring.stamp_ns)
        ]
        if not found.valid.all():
            for array in arrays:
                array[~found.valid] = 0
        values, capture_ns, stamp_ns = arrays
        return Reading(values, found.valid, capture_ns, stamp_ns)

    def _back_from(self, newest: Ints, history: int | None) -> Ints:
        """Return `newest` [n], or with a history [n, history] counting back from it."""
        return newest if history is None else newest[:, None] - self._xp.arange(history)
