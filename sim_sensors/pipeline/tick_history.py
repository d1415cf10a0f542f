"""The last truth ticks of a sensor with a stateful response, as its response model sees them."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Flags
from sim_sensors.pipeline.ring_cursor import Cursor
from sim_sensors.timing.arrays import ALL, NUMPY, Array, Arrays, Layout, Rows


class TimelineRing:
    """The last truth ticks after the response model, before hardware noise (a `Timeline`)."""

    def __init__(self, depth: int, num_envs: int, layout: Layout, xp: Arrays = NUMPY) -> None:
        """Keep `depth` ticks before the one being worked on."""
        self._cursor = Cursor(depth, num_envs, xp)
        self._values = xp.zeros((self._cursor.slots, num_envs, layout.width), layout.dtype)
        self._filled = xp.zeros(num_envs, np.bool_)
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
            raise ValueError(
                f'the timeline keeps {self._depth} earlier ticks, not {ticks_back}; '
                'see Sensor.timeline_length'
            )
        cursor = self._cursor
        if cursor.common is not None and isinstance(self._batch, slice):
            found: Array = self._values[(cursor.common - ticks_back + 1) & cursor.mask]
            return found
        slots = cursor.back(self._batch, ticks_back - 1)
        return self._values[slots, cursor.envs[self._batch]]

    @property
    def filled(self) -> Flags:
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
        if isinstance(envs, slice):
            self._cursor.restart()
