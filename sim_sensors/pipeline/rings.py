"""Circular arrays over environments: the timeline of a response model, and captured samples.

Slots lie outermost (`[slots, num_envs, width]`), so that a batch stepping together writes one
contiguous row. Environments that fell out of step (partial resets at odd times) keep their own
slot; as long as none did, one integer serves all (`_Cursor`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.times import NEVER_NS
from sim_sensors.pipeline.columns import Column
from sim_sensors.pipeline.layout import Array, Layout

Rows = slice | NDArray[np.intp]
Indices = NDArray[np.int64]

ALL = slice(None)


class _Cursor:
    """Where each environment writes next in a ring of a power of two slots."""

    def __init__(self, least_slots: int, num_envs: int) -> None:
        self.slots = 1 << (least_slots - 1).bit_length()
        self.mask = self.slots - 1
        self.head: Indices = np.full(num_envs, -1, np.int64)
        self.common: int | None = -1
        self.envs = np.arange(num_envs)

    def advance(self, envs: Rows) -> int | tuple[Indices, NDArray[np.intp]]:
        """Move to the next slot and return the subscript that writes `envs`' rows."""
        if isinstance(envs, slice):
            if self.common is not None:
                self.common = (self.common + 1) & self.mask
                self.head[:] = self.common
                return self.common
            envs = self.envs
        elif self.common is not None:
            self.common = None
        self.head[envs] = (self.head[envs] + 1) & self.mask
        return self.head[envs], envs

    def back(self, envs: Rows, steps: int | Indices) -> Indices:
        """Return the slots [n] that lie `steps` before the newest of `envs`."""
        return (self.head[envs] - steps) & self.mask


class TimelineRing:
    """The last truth ticks after the response model, before hardware noise (a `Timeline`)."""

    def __init__(self, depth: int, num_envs: int, layout: Layout) -> None:
        """Keep `depth` ticks before the one being worked on."""
        self._cursor = _Cursor(depth, num_envs)
        self._values = np.zeros((self._cursor.slots, num_envs, layout.width), layout.dtype)
        self._filled = np.zeros(num_envs, np.bool_)
        self.complete = False
        """True when every environment has a previous tick."""
        self._depth = depth
        self._batch: Rows = ALL

    def bind(self, envs: Rows) -> TimelineRing:
        """Let `at` and `filled` speak of `envs`."""
        self._batch = envs
        return self

    def at(self, ticks_back: int) -> Array:
        """Return the rows [n, width] `ticks_back` pushes ago (1 is the previous); do not write."""
        if not 1 <= ticks_back <= self._depth:
            raise ValueError(f'the timeline keeps {self._depth} earlier ticks, not {ticks_back}; '
                             'see Sensor.timeline_length')
        cursor = self._cursor
        if cursor.common is not None and isinstance(self._batch, slice):
            return np.asarray(self._values[(cursor.common - ticks_back + 1) & cursor.mask])
        slots = cursor.back(self._batch, ticks_back - 1)
        return np.asarray(self._values[slots, cursor.envs[self._batch]])

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Rows that have a previous tick, [n]."""
        return self._filled[self._batch]

    def push(self, values: Array, envs: Rows) -> None:
        """Add the newest rows [n, width]."""
        self._values[self._cursor.advance(envs)] = values
        if not self.complete:
            self._filled[envs] = True
            self.complete = isinstance(envs, slice)

    def reset(self, envs: Rows) -> None:
        """Forget `envs`' ticks."""
        self._filled[envs] = False
        self.complete = False


class Found(NamedTuple):
    """Where samples lie in a ring."""

    place: Indices
    """Slot and environment in one number (slot * num_envs + env), [n] or [n, history]."""
    valid: NDArray[np.bool_]
    """Whether there is an answer at all, same shape."""


class SampleRing:
    """Captured samples by capture index, with the time each of them arrives.

    A lost sample's slot holds the sample before it, arrival time included: whoever asks for the
    newest sample that has arrived then needs to know nothing about loss.
    """

    def __init__(self, least_slots: int, num_envs: int, layout: Layout) -> None:
        """Keep at least `least_slots` captures per environment."""
        self.cursor = _Cursor(least_slots, num_envs)
        shape = (self.cursor.slots, num_envs)
        self.values = np.zeros((*shape, layout.width), layout.dtype)
        self.capture_ns: Indices = np.zeros(shape, np.int64)
        self.stamp_ns: Indices = np.zeros(shape, np.int64)
        self.arrival_ns: Indices = np.full(shape, NEVER_NS, np.int64)
        self.newest: Indices = np.full(num_envs, -1, np.int64)
        """Newest capture index of each environment, -1 before the first."""
        self.holes = False
        """Whether some episode began with captures that were skipped or lost."""
        self.holds_gaps = True
        """Fill the slots of skipped captures; not needed where only the newest is ever read."""

    # ---- writing ----------------------------------------------------------------------------

    def push(self, envs: Rows, index: Indices, values: Array, capture_ns: Indices,
             stamp_ns: Column, arrival_ns: Column, lost: NDArray[np.bool_] | None) -> None:
        """Add capture `index` [n] of `envs`; captures that were skipped count as lost."""
        skipped = index - self.newest[envs] - 1
        if self.holds_gaps and skipped.any():
            self._skip(self._ids(envs), np.minimum(skipped, self.cursor.slots))
        at = self.cursor.advance(envs)
        self.values[at] = values
        self.capture_ns[at] = capture_ns
        self.stamp_ns[at] = stamp_ns
        self.arrival_ns[at] = arrival_ns
        if lost is not None and lost.any():
            self._hold(self._ids(envs)[lost])
        self.newest[envs] = index

    def _skip(self, envs: NDArray[np.intp], captures: Indices) -> None:
        """Hold the newest sample of `envs` through `captures` [n] captures nobody made."""
        for done in range(int(captures.max())):
            late = envs[captures > done]
            self.cursor.advance(late if len(late) < len(self.newest) else ALL)
            self._hold(late)

    def _ids(self, envs: Rows) -> NDArray[np.intp]:
        return self.cursor.envs[envs]

    def _hold(self, envs: NDArray[np.intp]) -> None:
        """Make the newest slot of `envs` repeat the one before it."""
        here, before = self.cursor.back(envs, 0), self.cursor.back(envs, 1)
        for array in (self.values, self.capture_ns, self.stamp_ns, self.arrival_ns):
            array[here, envs] = array[before, envs]
        first = self.newest[envs] < 0
        if first.any():
            self.arrival_ns[here[first], envs[first]] = NEVER_NS
            self.holes = True

    def grow(self, least_slots: int) -> SampleRing:
        """Return this ring, or a larger one with the same samples."""
        if least_slots <= self.cursor.slots:
            return self
        _, num_envs, width = self.values.shape
        larger = SampleRing(least_slots, num_envs, Layout({'row': (width,)}, self.values.dtype))
        old = self.cursor
        slots = old.back(ALL, np.arange(old.slots - 1, -1, -1)[:, None])
        for name in ('values', 'capture_ns', 'stamp_ns', 'arrival_ns'):
            getattr(larger, name)[:old.slots] = getattr(self, name)[slots, old.envs]
        larger.cursor.head[:] = larger.cursor.common = old.slots - 1
        larger.newest[:] = self.newest
        larger.holes, larger.holds_gaps = self.holes, self.holds_gaps
        return larger

    def reset(self, envs: Rows) -> None:
        """Forget `envs`' samples."""
        self.newest[envs] = -1

    # ---- finding ----------------------------------------------------------------------------

    def at_index(self, envs: Rows, index: Indices) -> Found:
        """Return where capture `index` [n] or [n, history] lies; the newest if it is to come."""
        env, newest, head = self._ids(envs), self.newest[envs], self.cursor.head[envs]
        if index.ndim == 2:
            env, newest, head = env[:, None], newest[:, None], head[:, None]
        here = np.minimum(index, newest)
        age = newest - here
        valid = (here >= 0) & (age < self.cursor.slots)
        place = ((head - age) & self.cursor.mask) * len(self.newest) + env
        if self.holes:
            valid &= self.arrival_ns.reshape(-1).take(place) < NEVER_NS
        return Found(place, valid)

    def arrived(self, envs: Rows, index: Indices, now_ns: int, spread: int,
                history: int | None = None) -> Found:
        """Return the newest sample not after capture `index` [n] that has arrived by `now_ns`.

        `spread` is how many captures one that has arrived may have overtaken. With a `history` the
        answer is [n, history]: entry i is the same for i captures before entry 0.
        """
        index = np.minimum(index, self.newest[envs])
        if history is None:
            return self._arrived_one(envs, index, now_ns, spread)
        width = history + spread
        found = self.at_index(envs, index[:, None] - np.arange(width))
        here = found.valid & (self.arrival_ns.reshape(-1).take(found.place) <= now_ns)
        # for every column, the next one (older or the same) whose sample is here; `width` if none
        columns = np.where(here, np.arange(width), width)
        older = np.minimum.accumulate(columns[:, ::-1], axis=1)[:, ::-1]
        wanted = np.minimum(here.argmax(axis=1)[:, None] + np.arange(history), width - 1)
        column = np.take_along_axis(older, wanted, axis=1)
        place = np.take_along_axis(found.place, np.minimum(column, width - 1), axis=1)
        return Found(place, column < width)

    def _arrived_one(self, envs: Rows, index: Indices, now_ns: int, spread: int) -> Found:
        """Go back capture by capture, at each with the environments that still wait for one."""
        place, valid = self.at_index(envs, index)
        arrival_ns = self.arrival_ns.reshape(-1)
        waiting = np.flatnonzero(valid & (arrival_ns.take(place) > now_ns))
        oldest = np.maximum(self.newest[envs] - self.cursor.slots + 1, 0)
        size, num_envs = self.arrival_ns.size, len(self.newest)
        for _ in range(spread):
            if not len(waiting):
                break
            index[waiting] -= 1
            place[waiting] = here = (place[waiting] - num_envs) % size
            late = arrival_ns.take(here) > now_ns
            waiting = waiting[late & (index[waiting] > oldest[waiting])]
        valid &= (arrival_ns.take(place) <= now_ns) & (index >= oldest)
        return Found(place, valid)

    @staticmethod
    def take(array: Array, place: Indices) -> Array:
        """Return `array` [slots, num_envs, ...] at `place`."""
        return np.asarray(array.reshape(-1, *array.shape[2:]).take(place, axis=0))
