"""How far each environment is: its episode's start, its last truth tick, its last capture."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Ints
from rig_common.times import seconds_to_ns
from sim_sensors.interface import SensorConfig
from sim_sensors.timing.arrays import NUMPY, Arrays, Rows
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.schedule import Schedule


class TickNumbers(NamedTuple):
    """The numbers of one truth tick of some environments; an int holds for all, see `each`."""

    capture: Ints | int
    """Capture index of each row, -1 where this tick is no new capture."""
    tick: Ints | int
    """Truth tick of each row."""
    captured: bool | None
    """Whether all rows are captures, or none is; None where some are."""


class Progress:
    """Counts ticks and captures.

    While all environments are in step (until some are reset or read alone), three integers hold
    for all of them, which is fast. After that, each environment has its own.
    """

    def __init__(
        self, schedule: Schedule, ticks: Schedule, num_envs: int, xp: Arrays = NUMPY
    ) -> None:
        """Start at time 0; `ticks` contains every time of `schedule`."""
        self._xp = xp
        self._schedule, self._ticks = schedule, ticks
        self._same = ticks is schedule
        self._num_envs = num_envs
        self.origin_ns: Ints = xp.zeros(num_envs, np.int64)
        """When each environment's episode began, ns."""
        self._index: Ints = xp.full(num_envs, -1, np.int64)
        self._tick: Ints = xp.full(num_envs, -1, np.int64)
        self._together: tuple[int, int, int] | None = (0, -1, -1)
        self.next_ns = ticks.time_of(0)
        """When the next tick of any environment is due, ns."""

    def advance(self, rows: Rows, time_ns: int) -> TickNumbers:
        """Move `rows` on to `time_ns` and return their numbers."""
        if self._together is not None and isinstance(rows, slice):
            origin_ns, last_index, _ = self._together
            tick = self._ticks.index_before(time_ns - origin_ns)
            index = tick if self._same else self._schedule.index_before(time_ns - origin_ns)
            self._together = (origin_ns, max(index, last_index), tick)
            self.next_ns = origin_ns + self._ticks.time_of(tick + 1)
            captured = index > last_index
            return TickNumbers(index if captured else -1, tick, captured)
        self._part()
        elapsed = time_ns - self.origin_ns[rows]
        ticks = self._ticks.indices_before(elapsed)
        found = ticks if self._same else self._schedule.indices_before(elapsed)
        last = self._index[rows]
        new = found > last
        self._tick[rows] = ticks
        self._index[rows] = self._xp.maximum(found, last)
        self.next_ns = int((self.origin_ns + self._ticks.times_of(self._tick + 1)).min())
        captured_all = True if new.all() else None if new.any() else False
        return TickNumbers(self._xp.where(new, found, -1), ticks, captured_all)

    @property
    def is_together(self) -> bool:
        """Whether one answer holds for all environments."""
        return self._together is not None

    def is_due(self, now_ns: int) -> bool:
        """Return whether all have a tick due at `now_ns` that was not made; see `is_together`."""
        assert self._together is not None
        return now_ns >= self.next_ns

    def outdated(self, rows: Rows, now_ns: int) -> Flags:
        """Return which of `rows` have a tick due at `now_ns` that was not made, [n]."""
        if self._together is not None:
            return self._xp.full(len(self.origin_ns[rows]), self.is_due(now_ns), np.bool_)
        return self._ticks.indices_before(now_ns - self.origin_ns[rows]) > self._tick[rows]

    def reset(self, rows: Rows, now_ns: int, phase_ns: Ints | None = None) -> None:
        """Let the episodes of `rows` begin at `now_ns`, or `phase_ns` [n] later."""
        first_ns = now_ns + self._ticks.time_of(0)
        if phase_ns is None and isinstance(rows, slice):
            self._together = (now_ns, -1, -1)
            self.next_ns = first_ns
        else:
            self._part()
            first_ns += 0 if phase_ns is None else int(phase_ns.min())
            self.next_ns = first_ns if isinstance(rows, slice) else min(self.next_ns, first_ns)
        self.origin_ns[rows] = now_ns if phase_ns is None else now_ns + phase_ns
        self._index[rows] = -1
        self._tick[rows] = -1

    def _part(self) -> None:
        """From now on every environment has its own numbers."""
        if self._together is not None:
            self.origin_ns[:], self._index[:], self._tick[:] = self._together
            self._together = None

    def each(self, number: Ints | int) -> Ints:
        """Return a number of every row: one that holds for all [num_envs], others as they are."""
        if not isinstance(number, int):
            return number
        out: Ints = self._xp.empty(self._num_envs, np.int64)  # `full` takes three times as long
        out[:] = number
        return out


def drawn_phases_ns(config: SensorConfig, dt_ns: int, streams: RandomStreams, rows: Rows) -> Ints:
    """Return by how much the captures of an episode are shifted, in whole `dt_ns`, ns [n]."""
    low_ns, high_ns = (seconds_to_ns(each) for each in config.phase_range_s)
    draw = streams.constant('phase', rows, 1, 'uniform')[:, 0]
    shift_ns = low_ns + streams.xp.astype(draw * (high_ns - low_ns), np.int64)
    return (2 * shift_ns + dt_ns) // (2 * dt_ns) * dt_ns
