"""What changes a clock's error beside its own drift: warmth, and corrections by NTP and PTP."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from rig_common.arrays import Ints
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.timing.arrays import NUMPY, Array, Arrays, Rows
from sim_sensors.timing.clock_config import ClockTemperatureConfig, DisciplineConfig
from sim_sensors.timing.marginals import filter_taps
from sim_sensors.timing.randomness.correlated import FilteredNormals
from sim_sensors.timing.randomness.noise_stream import NoiseStream
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.schedule import Schedule

FreeError = Callable[[Rows, Ints, Ints], Ints]
"""`free(envs, index, times_ns)` is the error of the clock without corrections, ns [n]."""


def warmth_s(config: ClockTemperatureConfig, time_s: Array, xp: Arrays = NUMPY) -> Array:
    """Return the time error that warmth made since power-up at 0, s: the integral of the rate."""
    rise = config.warmup_k * (time_s - config.warmup_s * -xp.expm1(-time_s / config.warmup_s))
    turn = 2.0 * math.pi / config.swing_period_s
    swing = config.swing_k / turn * (1.0 - xp.cos(turn * time_s))
    return config.coefficient_ppm_per_k * 1e-6 * (rise + swing)


class Discipline(ABC):
    """Corrects a clock from outside, from `config.start_s` on."""

    def __init__(
        self,
        config: DisciplineConfig,
        streams: RandomStreams,
        schedule: Schedule | None,
        free: FreeError,
    ) -> None:
        """Correct the `free` error."""
        self._config, self._schedule, self._free, self._xp = config, schedule, free, streams.xp
        self._period_ns = seconds_to_ns(config.period_s)
        self._start_ns = seconds_to_ns(config.start_s)
        self._begin_with(streams)

    @abstractmethod
    def _begin_with(self, streams: RandomStreams) -> None:
        """Make what it draws from, and its state."""

    @abstractmethod
    def corrections(self, envs: Rows, index: Ints, times_ns: Ints) -> Ints:
        """Return what it adds to the free error of captures in order of their index, ns [n]."""

    def reset(self, envs: Rows) -> None:  # noqa: B027 - not all remember anything
        """Begin the new episode of `envs`."""


class PtpServo(Discipline):
    """Every correction leaves a new random residual; in between the error is linear.

    error(t) = r_j + (r_(j+1) - r_j) * (t - t_j) / period        r_j normal, of sigma_s

    Residuals are independent, or correlated by `correlations`.
    """

    def _begin_with(self, streams: RandomStreams) -> None:
        config = self._config
        taps = filter_taps(config.correlations)

        def residuals() -> NoiseStream:
            if config.correlations:
                return FilteredNormals(streams.lanes, 'ptp_residual', taps)
            return NoiseStream(streams.lanes, 'ptp_residual', 1)

        self._residuals = streams.keep('ptp_residual', residuals())
        self._next = streams.keep('ptp_residual_next', residuals())

    def corrections(self, envs: Rows, index: Ints, times_ns: Ints) -> Ints:
        """Return the residual less the free error, ns [n]; 0 before the first correction."""
        xp = self._xp
        number, part = xp.divmod(times_ns - self._start_ns, self._period_ns)
        number = xp.maximum(number, 0)
        low = self._residuals.at(envs, number)[:, 0]
        high = self._next.at(envs, number + 1)[:, 0]
        into = xp.astype(part, np.float64) / self._period_ns
        residual = (low + (high - low) * into) * self._config.sigma_s * 1e9
        found = xp.astype(xp.round(residual), np.int64) - self._free(envs, index, times_ns)
        return xp.where(times_ns >= self._start_ns, found, 0)


class NtpServo(Discipline):
    """At every poll the error is measured, then slewed away until the next poll, or stepped.

    A recursion over polls from the episode's start: at poll j the error e is seen as
    m = e + sigma_s n_j. Beyond step_s the clock is set back by m at once; else it runs slower by
    m / period, at most by slew_ppm, until the next poll.
    """

    def _begin_with(self, streams: RandomStreams) -> None:
        num_envs, xp = len(streams.lanes), streams.xp
        self._noise = streams.keep('ntp_poll', NoiseStream(streams.lanes, 'ntp_poll', 1))
        self._ids = xp.arange(num_envs)
        self._origin_ns: Ints = xp.zeros(num_envs, np.int64)
        self._poll: Ints = xp.full(num_envs, -2, np.int64)
        """Last poll; -1 before the first, -2 where the episode's start is not known yet."""
        self._correction_ns, self._rate = xp.zeros((2, num_envs))

    def corrections(self, envs: Rows, index: Ints, times_ns: Ints) -> Ints:
        """Return the correction at `times_ns`, ns [n], after the polls that lie before it."""
        ids = self._ids[envs]
        new = self._poll[ids] == -2
        if new.any():
            self._begin(ids[new], index[new], times_ns[new])
        due = (times_ns - self._start_ns) // self._period_ns
        behind = self._poll[ids] < due
        while behind.any():
            self._take_poll(ids[behind], index[behind])
            behind = self._poll[ids] < due
        return self._xp.astype(self._xp.round(self._at(ids, times_ns)), np.int64)

    def _begin(self, ids: Ints, index: Ints, times_ns: Ints) -> None:
        origin_ns = times_ns - (self._schedule.times_of(index) if self._schedule else 0)
        self._origin_ns[ids] = origin_ns
        self._poll[ids] = self._xp.maximum((origin_ns - self._start_ns) // self._period_ns, -1)

    def _at(self, ids: Ints, times_ns: Ints) -> Array:
        since_ns = times_ns - (self._start_ns + self._poll[ids] * self._period_ns)
        found: Array = self._correction_ns[ids] + self._rate[ids] * since_ns
        return found

    def _take_poll(self, ids: Ints, index: Ints) -> None:
        """Let `ids` make their next poll, which lies before capture `index`."""
        times_ns = self._start_ns + (self._poll[ids] + 1) * self._period_ns
        if self._schedule is not None:
            index = self._schedule.indices_before(times_ns - self._origin_ns[ids], 0)
        correction = self._at(ids, times_ns)
        self._poll[ids] += 1
        error = self._free(ids, index, times_ns) + correction
        noise = self._noise.at(ids, self._poll[ids])[:, 0] * self._config.sigma_s * NS_PER_S
        seen = error + noise
        xp = self._xp
        steps = xp.abs(seen) > self._config.step_s * NS_PER_S
        limit = self._config.slew_ppm * 1e-6
        self._correction_ns[ids] = xp.where(steps, correction - seen, correction)
        self._rate[ids] = xp.where(steps, 0.0, xp.clip(-seen / self._period_ns, -limit, limit))

    def reset(self, envs: Rows) -> None:
        """Begin the new episode of `envs`: no correction yet."""
        self._poll[envs] = -2
        self._correction_ns[envs] = self._rate[envs] = 0.0
