"""Captured samples in a circular array over environments; see `cursor` for how it is written.

capture      0    1    2    3        1 is lost; 2 arrives at 45 ms, the others at once
made at     10   20   30   40 ms
slot holds   0    0    2    3        `arrived` at 35 ms: 0; at 40 ms and at 45 ms: 3
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Ids, Ints
from rig_common.times import NEVER_NS
from sim_sensors.pipeline.ring_cursor import Cursor
from sim_sensors.timing.arrays import ALL, NUMPY, Array, Arrays, Layout, Rows
from sim_sensors.timing.arrays.columns import Column


class Found(NamedTuple):
    """Where samples lie in a ring."""

    place: Ints | int
    """Slot and environment in one number (slot * num_envs + env), [n] or [n, history]; a slot
    where it is the same for all environments."""
    valid: Flags
    """Whether there is an answer at all, same shape."""


class SampleRing:
    """Captured samples by capture index, with the time each of them arrives.

    A lost sample's slot holds the sample before it, arrival time included: whoever asks for the
    newest sample that has arrived then needs to know nothing about loss.

    Two environments with a capture every ms and 1 ms of delay; capture 1 has 2 ms of jitter, and
    environment 1 is reset at 2 ms, before its capture there:

        t, ms                     0      1      2      3      4
        capture, its arrival    0 -> 1 1 -> 4 2 -> 3 3 -> 4
        environment 0 reads       -      0      0      2      3    2 overtakes 1
        environment 1 reads       -      0      -      2      3    0 and 1 are forgotten
    """

    def __init__(
        self,
        least_slots: int,
        num_envs: int,
        layout: Layout,
        xp: Arrays = NUMPY,
        *,
        at_once: bool = False,
    ) -> None:
        """Keep at least `least_slots` captures per environment.

        `at_once` says that all arrive when they are captured, and are stamped so.
        """
        self._xp, self._layout = xp, layout
        self.dtype = layout.dtype
        self.cursor = Cursor(least_slots, num_envs, xp)
        shape = (self.cursor.slots, num_envs)
        self.values = xp.zeros((*shape, layout.width), layout.dtype)
        self.capture_ns: Ints = xp.zeros(shape, np.int64)
        self.stamp_ns: Ints = self.capture_ns if at_once else xp.zeros(shape, np.int64)
        self.arrival_ns: Ints = self.capture_ns if at_once else xp.full(shape, NEVER_NS, np.int64)
        self._at_once = at_once
        self.newest: Ints = xp.full(num_envs, -1, np.int64)
        """Newest capture index of each environment, -1 before the first."""
        self.first: Ints = xp.zeros(num_envs, np.int64)
        """Oldest capture index that may be read; below 0 where a past was given."""
        self.has_past = False
        """Whether any environment has captures from before its episode."""
        self.holes = False
        """Whether some episode began with captures that were skipped or lost."""
        self.holds_gaps = True
        """Fill the slots of skipped captures; not needed where only the newest is ever read."""

    # ---- writing ----------------------------------------------------------------------------

    def skipped(self, envs: Rows, index: Ints) -> Ints | None:
        """Return how many captures before `index` [n] nobody made; None where all were made."""
        if not self.holds_gaps:
            return None
        following = self.newest[envs] + 1
        return None if (index == following).all() else index - following

    def push(
        self,
        envs: Rows,
        index: Ints,
        values: Array,
        capture_ns: Ints,
        stamp_ns: Column,
        arrival_ns: Column,
        lost: Flags | None,
        skipped: Ints | None,
    ) -> None:
        """Add capture `index` [n] of `envs`; captures that were skipped count as lost."""
        if skipped is not None:
            self._skip(self._ids(envs), self._xp.minimum(skipped, self.cursor.slots))
        at = self.cursor.advance(envs)
        self.values[at] = values
        self.capture_ns[at] = capture_ns
        if not self._at_once:
            self.stamp_ns[at] = stamp_ns
            self.arrival_ns[at] = arrival_ns
        if lost is not None and lost.any():
            self._hold(self._ids(envs)[lost])
        self.newest[envs] = index

    def _skip(self, envs: Ids, captures: Ints) -> None:
        """Hold the newest sample of `envs` through `captures` [n] captures nobody made."""
        for done in range(int(captures.max())):
            late = envs[captures > done]
            self.cursor.advance(late if len(late) < len(self.newest) else ALL)
            self._hold(late)

    def _ids(self, envs: Rows) -> Ids:
        return self.cursor.envs[envs]

    def _hold(self, envs: Ids) -> None:
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
        larger = SampleRing(least_slots, len(self.newest), self._layout, self._xp)
        old = self.cursor
        slots = old.back(ALL, old.slots - 1 - self._xp.arange(old.slots)[:, None])
        for name in ('values', 'capture_ns', 'stamp_ns', 'arrival_ns'):
            getattr(larger, name)[: old.slots] = getattr(self, name)[slots, old.envs]
        larger.cursor.head[:] = old.slots - 1
        larger.cursor.common = None if old.common is None else old.slots - 1
        larger.newest[:], larger.first[:] = self.newest, self.first
        larger.holes, larger.holds_gaps = self.holes, self.holds_gaps
        larger.has_past = self.has_past
        return larger

    def reset(self, envs: Rows) -> None:
        """Forget `envs`' samples."""
        self.newest[envs] = -1
        self.first[envs] = 0
        if isinstance(envs, slice):
            self.has_past = False
            self.cursor.restart()

    def rewrite(
        self,
        envs: Ids,
        index: Ints,
        values: Array,
        times_ns: tuple[Ints, Ints, Ints],
    ) -> None:
        """Let captures `index` [n, m] be `values` [n, m, width], at capture, stamp and arrival.

        None of them is after the newest; those below 0 are the past of the episode.
        """
        slot = (self.cursor.head[envs] - self.newest[envs])[:, None] + index & self.cursor.mask
        lanes = envs[:, None]
        self.values[slot, lanes] = values
        for array, new in zip(
            (self.capture_ns, self.stamp_ns, self.arrival_ns), times_ns, strict=True
        ):
            array[slot, lanes] = new
        self.first[envs] = self._xp.minimum(self.first[envs], index[:, 0])
        self.has_past = bool((self.first < 0).any())

    # ---- finding ----------------------------------------------------------------------------

    def at_index(self, envs: Rows, index: Ints) -> Found:
        """Return where capture `index` [n] or [n, history] lies; the newest if it is to come."""
        env, newest, head = self._ids(envs), self.newest[envs], self.cursor.head[envs]
        if index.ndim == 2:
            env, newest, head = env[:, None], newest[:, None], head[:, None]
        here = self._xp.minimum(index, newest)
        age = newest - here
        valid = (here >= self._first(envs, index.ndim)) & (age < self.cursor.slots)
        place = ((head - age) & self.cursor.mask) * len(self.newest) + env
        if self.holes:
            valid &= self._xp.take(self.arrival_ns.reshape(-1), place) < NEVER_NS
        return Found(place, valid)

    def at_common(self, index: int) -> Found | None:
        """Return where capture `index` of all environments lies, if that is one slot."""
        cursor = self.cursor
        if cursor.common is None or self.holes or self.has_past:
            return None
        newest = int(self.newest[0])
        age = newest - min(index, newest)
        known = newest - age >= 0 and age < cursor.slots
        return Found(
            (cursor.common - age) & cursor.mask, self._xp.full(len(self.newest), known, np.bool_)
        )

    def _first(self, envs: Rows, ndim: int) -> Ints | int:
        if not self.has_past:
            return 0
        return self.first[envs] if ndim == 1 else self.first[envs][:, None]

    def arrived(
        self,
        envs: Rows,
        index: Ints,
        now_ns: int | Ints,
        spread: int,
        history: int | None = None,
    ) -> Found:
        """Return the newest sample not after capture `index` [n] that has arrived by `now_ns`.

        `now_ns` is one time or [n].

        `spread` is how many captures one that has arrived may have overtaken. With a `history` the
        answer is [n, history]: entry i is the same for i captures before entry 0.
        """
        xp = self._xp
        index = xp.minimum(index, self.newest[envs])
        if history is None:
            return self._arrived_one(envs, index, now_ns, spread)
        width = history + spread
        if not isinstance(now_ns, int):
            now_ns = now_ns[:, None]
        found = self.at_index(envs, index[:, None] - xp.arange(width))
        here = found.valid & (xp.take(self.arrival_ns.reshape(-1), found.place) <= now_ns)
        # for every column, the next one (older or the same) whose sample is here; `width` if none
        columns = xp.where(here, xp.arange(width), width)
        older = xp.flip(xp.cumulative_min(xp.flip(columns, 1), 1), 1)
        first = older[:, :1] % width  # 0 where none is here: what is read there is not valid
        wanted = xp.minimum(first + xp.arange(history), width - 1)
        column = xp.take_along_axis(older, wanted, 1)
        place = xp.take_along_axis(found.place, xp.minimum(column, width - 1), 1)
        return Found(place, column < width)

    def _arrived_one(self, envs: Rows, index: Ints, now_ns: int | Ints, spread: int) -> Found:
        """Go back capture by capture, at each with the environments that still wait for one.

        None of `index` is after the newest. A place and its arrival is all that is looked at on
        the way: a hole never arrives, and what is too old is told at the end.
        """
        take, newest, num_envs = self._xp.take, self.newest[envs], len(self.newest)
        place = (self.cursor.head[envs] - newest + index) & self.cursor.mask
        place *= num_envs
        place += self._ids(envs)
        arrivals_ns = self.arrival_ns.reshape(-1)
        arrival_ns = take(arrivals_ns, place)
        oldest = self._xp.maximum(newest - self.cursor.slots + 1, self._first(envs, 1))
        captures_left = index - oldest
        waiting = self._xp.indices(arrival_ns > now_ns)
        for back in range(1, spread + 1):
            waiting = waiting[captures_left[waiting] >= back]
            if not len(waiting):
                break
            here = place[waiting] - num_envs
            here += (here < 0) * len(arrivals_ns)
            place[waiting] = here
            arrival_ns[waiting] = arrival_here_ns = take(arrivals_ns, here)
            waiting = waiting[
                arrival_here_ns > (now_ns if isinstance(now_ns, int) else now_ns[waiting])
            ]
        return Found(place, (arrival_ns <= now_ns) & (captures_left >= 0))

    def take(self, array: Array, place: Ints | int) -> Array:
        """Return `array` [slots, num_envs, ...] at `place`, a copy."""
        if isinstance(place, int):
            return self._xp.copy(array[place])
        return self._xp.take(array.reshape(-1, *array.shape[2:]), place)
