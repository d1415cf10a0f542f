"""When a sensor captures: exact rational times on the physics grid, in whole nanoseconds."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from rig_common.arrays import Ints
from rig_common.errors import RigError
from rig_common.times import NS_PER_S, rational_rate, seconds_to_ns
from sim_sensors.timing.arrays import arrays_holding

NONE = -1
"""Index that stands for "no capture" in arrays."""

_SAFE = 2**62
"""Products below this cannot overflow an int64."""


class Schedule:
    """Captures at k / rate, rounded (half up) to the physics grid, after a phase.

    400 Hz on 1 ms steps gives 0, 3, 5, 8 ms ...: capture k comes from k alone, never from a sum,
    so nothing drifts however long it runs. Times count from the start of the episode.
    """

    def __init__(
        self, rate_hz: float, dt_ns: int, phase_s: float = 0.0, *, name: str = 'sensor'
    ) -> None:
        """Make the schedule of sensor `name`; `rate_hz` 0 captures at every step of `dt_ns`."""
        physics_rate = Fraction(NS_PER_S, dt_ns)
        rate = rational_rate(rate_hz) if rate_hz else physics_rate
        if rate > physics_rate:
            raise RigError(
                f'rate_hz of {name!r} is {rate_hz}; the physics runs at '
                f'{float(physics_rate):g} Hz and a sensor cannot be faster'
            )
        self.dt_ns = dt_ns
        self.rate = rate
        self.steps = physics_rate / rate
        """Physics steps between captures, exact."""
        self.phase_ns = _on_grid(seconds_to_ns(phase_s), dt_ns)
        """Time of capture 0, ns."""
        self._num, self._den = self.steps.numerator, self.steps.denominator

    @property
    def rate_hz(self) -> float:
        """Captures a second."""
        return float(self.rate)

    @property
    def period_s(self) -> float:
        """Nominal time between captures, s."""
        return float(1 / self.rate)

    def triggered(self, delay_s: float) -> Schedule:
        """Return the schedule of a sensor this one triggers, `delay_s` after each capture."""
        follower = Schedule.__new__(Schedule)
        follower.__dict__.update(self.__dict__)
        follower.phase_ns = self.phase_ns + _on_grid(seconds_to_ns(delay_s), self.dt_ns)
        return follower

    def finer(self, rate_hz: float, name: str = 'sensor') -> Schedule:
        """Return the truth ticks at `rate_hz` (0: every step) that contain every capture."""
        ticks = Schedule(rate_hz, self.dt_ns, name=f'{name} (truth_rate_hz)')
        if rate_hz and (ticks.rate / self.rate).denominator != 1:
            raise RigError(
                f'truth_rate_hz of {name!r} is {rate_hz}; it must be 0 (every physics '
                f'step) or a whole multiple of its rate, {self.rate_hz:g} Hz'
            )
        ticks.phase_ns = self.phase_ns
        return ticks

    def captures_in(self, duration_ns: int) -> int:
        """Return the most captures that any window of `duration_ns` can hold."""
        return int(Fraction(duration_ns, self.dt_ns) / self.steps) + 2

    # ---- one time ---------------------------------------------------------------------------

    def time_of(self, k: int) -> int:
        """Return the time of capture `k`, ns."""
        return self.phase_ns + (2 * k * self._num + self._den) // (2 * self._den) * self.dt_ns

    def index_before(self, time_ns: int) -> int:
        """Return the newest capture at or before `time_ns`, or -1."""
        return max(self._index_before(time_ns), NONE)

    def _index_before(self, time_ns: int) -> int:
        step = (time_ns - self.phase_ns) // self.dt_ns
        return (self._den * (2 * step + 1) - 1) // (2 * self._num)

    def index_at(self, time_ns: int) -> int | None:
        """Return the capture that falls exactly on `time_ns`, or None."""
        k = self.index_before(time_ns)
        return k if k >= 0 and self.time_of(k) == time_ns else None

    def next_time(self, time_ns: int) -> int:
        """Return the time of the first capture after `time_ns`, ns."""
        return self.time_of(self.index_before(time_ns) + 1)

    # ---- many times -------------------------------------------------------------------------

    def times_of(self, k: Ints) -> Ints:
        """Return the times of captures `k`, ns; same shape."""
        if 2 * self._num * self._den >= _SAFE:
            return _one_by_one(self.time_of, k)
        whole, part = k // self._den, k % self._den
        steps = whole * self._num + (2 * part * self._num + self._den) // (2 * self._den)
        return steps * self.dt_ns + self.phase_ns

    def indices_before(self, times_ns: Ints, least: int = NONE) -> Ints:
        """Return the newest capture at or before each time, `least` where there is none.

        With a `least` below -1 the schedule goes on into the time before its start.
        """
        step = (times_ns - self.phase_ns) // self.dt_ns
        if self._den == 1:
            k = step // self._num if self._num > 1 else step
        elif 4 * self._num * self._den >= _SAFE:
            k = _one_by_one(self._index_before, times_ns)
        else:  # whole cycles of _num steps hold _den captures each; only the rest is multiplied
            cycle, rest = step // self._num, step % self._num
            k = cycle * self._den + (self._den * (2 * rest + 1) - 1) // (2 * self._num)
        return arrays_holding(k).maximum(k, least)

    def indices_at(self, times_ns: Ints) -> Ints:
        """Return the capture exactly on each time, -1 where there is none."""
        k = self.indices_before(times_ns)
        return arrays_holding(k).where((k >= 0) & (self.times_of(k) == times_ns), k, NONE)


def _one_by_one(function: Callable[[int], int], values: Ints) -> Ints:
    """Return a function of whole numbers without the limits of 64 bits, same shape."""
    found = [function(each) for each in values.reshape(-1).tolist()]
    return arrays_holding(values).asarray(np.array(found, np.int64)).reshape(values.shape)


def _on_grid(time_ns: int, dt_ns: int) -> int:
    """Return `time_ns` rounded (half up) to whole steps."""
    return (2 * time_ns + dt_ns) // (2 * dt_ns) * dt_ns
