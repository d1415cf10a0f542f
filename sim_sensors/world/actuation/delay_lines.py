"""Commands on their way to actuators: the delay line of the control side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from rig_common.arrays import Floats, Ints
from rig_common.errors import RigError
from rig_common.times import LONG_AGO_NS, NS_PER_S
from sim_sensors.pipeline.reading.interpolation import Tap, hermite, straight
from sim_sensors.timing.arrays import ALL, Rows

Jitter = Callable[[int], Ints]
"""From a time, ns, to the further latency of the commands given then, ns [num_envs, actuators]."""


class ControlDelay:
    """What each actuator of each environment has received of the commands given so far.

    A command set at t reaches an actuator at t + its delay. All environments are commanded at
    the same times, so one sorted list of times serves them all; before the first command each
    actuator holds its initial value (0 unless given). The newest command at or before t - delay
    holds (`zoh`), or values in between are interpolated as MuJoCo does (`linear`, `cubic`).

    With `jitter`, a command of step k is late by further jitter_k: with 3 ms of delay, 2 ms of
    jitter and commands at 0, 1, 2 ms whose draws are 1.6, 0.2 and 0.9 ms, they arrive at 4.6, 4.2
    and 5.9 ms, so that at 5 ms the second one holds: the newest that has arrived.
    """

    def __init__(
        self,
        num_envs: int,
        num_actuators: int,
        delay_s: ArrayLike,
        dt_ns: int,
        interpolation: str | Sequence[str] = 'zoh',
        initial: ArrayLike = 0.0,
        jitter: Jitter | None = None,
        most_jitter_ns: int = 0,
        most_s: ArrayLike = 0.0,
    ) -> None:
        """Make the line; `delay_s` and `initial` are one number, a row or [num_envs, actuators].

        At most one command comes per `dt_ns`; later ones at the same time replace it.
        `interpolation` is one for all or a list, one for each actuator; `most_s` is the largest
        delay that `set_delays` may bring.
        """
        ways = [interpolation] * num_actuators if isinstance(interpolation, str) else interpolation
        for way in ways:
            _known(way)
        shape = (num_envs, num_actuators)
        delays = np.broadcast_to(np.asarray(delay_s, np.float64), shape)
        if not (np.isfinite(delays).all() and (delays >= 0.0).all()):
            raise RigError(
                f'the delay of commands is {float(delays.min())} s at least; it must '
                'be finite and not negative'
            )
        self._delay_ns: Ints = np.rint(delays * NS_PER_S).astype(np.int64)
        self._columns = {
            way: np.flatnonzero([each == way for each in ways])
            for way in ('linear', 'cubic')
            if way in ways
        }
        self._jitter = jitter
        self._spread = -(-most_jitter_ns // dt_ns)
        """How many later commands may have arrived before one."""
        longest_ns = round(float(np.max(most_s, initial=0.0)) * NS_PER_S)
        longest_ns = max(int(self._delay_ns.max(initial=0)), longest_ns)
        slots = (longest_ns + most_jitter_ns) // dt_ns + 4
        self._times_ns: Ints = LONG_AGO_NS + np.arange(slots)
        self._values: Floats = np.empty((slots, *shape))
        self._values[:] = initial
        self._late_ns: Ints = np.zeros((slots, *shape), np.int64)
        self._newest = slots - 1
        self._cells = np.arange(num_envs * num_actuators).reshape(shape)

    @property
    def delay_ns(self) -> Ints:
        """Delay of each actuator, ns [num_envs, num_actuators]."""
        return self._delay_ns

    def set_delays(self, delay_s: ArrayLike, envs: Rows) -> None:
        """Give `envs` other delays, [n, actuators]."""
        self._delay_ns[envs] = np.rint(np.asarray(delay_s) * NS_PER_S).astype(np.int64)

    def set(self, time_ns: int, values: ArrayLike, envs: Rows = ALL) -> None:
        """Give `envs` the commands `values` [n, actuators] at `time_ns`; others keep theirs."""
        newest_ns = self._times_ns[self._newest]
        if time_ns < newest_ns:
            raise ValueError(f'a command at {time_ns} ns came after one at {newest_ns} ns')
        before = self._newest
        if time_ns > newest_ns:
            self._newest = (before + 1) % len(self._times_ns)
            self._times_ns[self._newest] = time_ns
            if not isinstance(envs, slice):
                self._values[self._newest] = self._values[before]
        self._values[self._newest, envs] = values
        if self._jitter is not None:
            self._late_ns[self._newest] = self._jitter(time_ns)

    def read(self, time_ns: int | Ints, interpolation: str | None = None) -> Floats:
        """Return what every actuator holds at `time_ns`, [num_envs, num_actuators].

        `time_ns` is one time or one for each environment; `interpolation` is for all actuators in
        place of their own.
        """
        order = (np.arange(1, len(self._times_ns) + 1) + self._newest) % len(self._times_ns)
        times_ns = self._times_ns[order]  # sorted: oldest first
        wanted_ns = np.asarray(time_ns).reshape(-1, 1) - self._delay_ns
        low = np.maximum(np.searchsorted(times_ns, wanted_ns, 'right') - 1, 0)
        if self._spread:
            low = self._newest_arrived(low, times_ns, order, wanted_ns)
        held = self._at(order[low])
        columns_of = (
            self._columns
            if interpolation is None
            else {_known(interpolation): slice(None)}
            if interpolation != 'zoh'
            else {}
        )
        for way, columns in columns_of.items():
            held[:, columns] = self._between(way, low, times_ns, order, wanted_ns)[:, columns]
        return held

    def _newest_arrived(self, low: Ints, times_ns: Ints, order: Ints, wanted_ns: Ints) -> Ints:
        """Go back from the newest command given in time, `low`, to one whose jitter is over."""
        found = np.maximum(low - self._spread, 0)
        for back in range(self._spread - 1, -1, -1):
            place = np.maximum(low - back, 0)
            late_ns = self._late_ns.reshape(-1).take(order[place] * self._cells.size + self._cells)
            found = np.where(times_ns[place] + late_ns <= wanted_ns, place, found)
        return found

    def _between(
        self, way: str, low: Ints, times_ns: Ints, order: Ints, wanted_ns: Ints
    ) -> Floats:
        """Return what every actuator holds if its commands are interpolated."""
        last = len(order) - 1

        def tap(place: Ints) -> Tap:
            inside = np.clip(place, 0, last)
            known = (place >= 0) & (place <= last) & (times_ns[inside] > LONG_AGO_NS + last)
            return Tap(self._at(order[inside])[..., None], times_ns[inside], known)

        here, high = tap(low), tap(low + 1)
        part = np.where(
            high.known & here.known,
            (wanted_ns - here.time_ns) / np.maximum(high.time_ns - here.time_ns, 1),
            0.0,
        )[..., None]
        if way == 'linear':
            return straight(here, high, part)[..., 0]
        return hermite(tap(low - 1), here, high, tap(low + 2), part)[..., 0]

    def _at(self, slot: Ints) -> Floats:
        return self._values.reshape(-1).take(slot * self._cells.size + self._cells)

    def start_history(
        self, times_ns: Sequence[int] | Ints, values: ArrayLike, envs: Rows = ALL
    ) -> None:
        """Let `envs` have received `values` [len(times), n, num_actuators] at past `times_ns`.

        Where only some environments are given, the line must hold commands of these times.
        """
        times = np.asarray(times_ns, np.int64)
        slots = len(self._times_ns)
        if not 1 <= len(times) <= slots or (np.diff(times) <= 0).any():
            raise RigError(
                f'a command history has {len(times)} times; it must have 1 to {slots}, '
                'strictly increasing'
            )
        history = np.broadcast_to(
            np.asarray(values, np.float64), (len(times), *self._values[0][envs].shape)
        )
        order = (np.arange(1, slots + 1) + self._newest) % slots
        if isinstance(envs, slice):
            self._times_ns[order] = LONG_AGO_NS + np.arange(slots)
            self._values[order] = history[0]
            order = order[-len(times) :]
            self._times_ns[order] = times
            self._values[order] = history
            return
        known = self._times_ns[order]
        at = np.maximum(np.searchsorted(times, known, 'right') - 1, 0)
        self._values[order[:, None], envs] = history[at]

    def reset(self, envs: Rows = ALL, initial: ArrayLike = 0.0) -> None:
        """Let `envs` hold `initial` as if they had never been commanded."""
        self._values[:, envs] = initial


def _known(interpolation: str) -> str:
    if interpolation not in ('zoh', 'linear', 'cubic'):
        raise RigError(
            f'the interpolation of commands is {interpolation!r}; allowed are zoh, '
            'linear and cubic'
        )
    return interpolation
