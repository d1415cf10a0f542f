"""What a sensor's own clock says: its errors on the true time, and how it counts, to the ns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rig_common.arrays import Ints
from rig_common.errors import RigError
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.timing.arrays import Rows
from sim_sensors.timing.arrays.columns import Column, column, real, rounded
from sim_sensors.timing.clock_config import ClockConfig
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.discipline import Discipline, NtpServo, PtpServo, warmth_s
from sim_sensors.timing.randomness.correlated import ClockWander
from sim_sensors.timing.randomness.noise_stream import Captures
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.schedule import Schedule


class SensorClock:
    """Stamps captures.

        free  = t + offset + drift * t + warmth(t) + wander_k     t: the stamped instant of k
        stamp = free, corrected by NTP or PTP, + jitter_k + TAI-UTC, rounded down, modulo counter

    or the time of arrival for a sensor that the host stamps (that stamp is the host's own clock,
    which is true time here).
    """

    def __init__(
        self,
        config: TimingConfig,
        streams: RandomStreams,
        schedule: Schedule | None = None,
        stamp_points_ns: Mapping[str, int] | None = None,
        start_ns: int = 0,
    ) -> None:
        """Take the clock's errors from `config`, and their random part from `streams`."""
        self.start_ns = start_ns
        """What a true clock shows at time 0: a counter counts from there, ns."""
        self._streams, self._schedule = streams, schedule
        self._points_ns = stamp_points_ns or {}
        self._config: ClockConfig | None = None
        self.take(config)

    def take(self, config: TimingConfig) -> None:
        """Take the errors of `config` for stamps to come; a wander continues from its value."""
        clock = config.clock
        if clock == self._config:
            return
        self._config = clock
        self.at_arrival = clock.stamp_at == 'arrival'
        self._tai_ns = clock.tai_utc_s * NS_PER_S
        self._offset_ns = seconds_to_ns(clock.offset_s) + self._tai_ns
        self._drift = clock.drift_ppm * 1e-6
        self._jitter_ns = clock.stamp_jitter_s * 1e9
        self._jitter = self._streams.normals('stamp_jitter', 1) if self._jitter_ns else None
        self._point_ns = self._points_ns.get(clock.stamp_point, 0)
        self._temperature = clock.temperature
        self._resolution_ns = max(seconds_to_ns(clock.resolution_s), 0)
        self._modulus_ns = self._resolution_ns << clock.counter_bits if clock.counter_bits else 0
        self._wander = self._make_wander(config)
        self._servo = self._make_servo(config)
        self._is_plain = not (
            self._wander
            or self._servo
            or self._resolution_ns
            or self._temperature.coefficient_ppm_per_k
        )

    def _make_wander(self, config: TimingConfig) -> ClockWander | None:
        clock = config.clock
        if not (clock.white_fm or clock.random_walk_fm):
            return None
        if self._schedule is None and not config.rate_hz:
            raise RigError(f'clock noise of {self._streams.sensor!r} needs its rate_hz')
        period_s = self._schedule.period_s if self._schedule else 1.0 / config.rate_hz
        return self._streams.keep(
            'clock_wander',
            ClockWander(
                self._streams.lanes,
                white_fm=clock.white_fm,
                random_walk_fm=clock.random_walk_fm,
                period_s=period_s,
            ),
        )

    def _make_servo(self, config: TimingConfig) -> Discipline | None:
        servo = config.clock.servo
        if servo.kind == 'none':
            return None
        kind = PtpServo if servo.kind == 'ptp' else NtpServo
        return kind(servo, self._streams, self._schedule, self._free_ns)

    @property
    def takes_runs(self) -> bool:
        """Whether captures that follow each other can be stamped together."""
        return not isinstance(self._servo, NtpServo)

    # ---- stamps -------------------------------------------------------------------------------

    def stamps(self, batch: Captures, arrival_ns: Column, step_ns: int) -> Column:
        """Return the stamps of a batch, ns; `step_ns` is how far faults made the clock jump."""
        if self.at_arrival:
            return arrival_ns
        time_ns = column(batch.time_ns)
        if self._point_ns:
            time_ns = time_ns + self._point_ns
        stamp = time_ns + (self._offset_ns + step_ns)
        if self._drift:
            stamp = stamp + rounded(real(time_ns) * self._drift)
        if not self._is_plain:
            stamp = self._disturbed(stamp, batch)
        if self._jitter is not None:
            # as arrays: a single number would be a double where the drawn ones are float32
            xp, drawn = self._streams.xp, self._jitter.at(batch.envs, batch.index)[:, 0]
            stamp = stamp + column(xp.astype(xp.round(drawn * self._jitter_ns), np.int64))
        return self._counted(stamp) if self._resolution_ns else stamp

    def _counted(self, stamp: Column) -> Column:
        """Return the stamps as a counter of whole `resolution_s` shows them."""
        shown = (stamp + self.start_ns) // self._resolution_ns * self._resolution_ns
        return (shown % self._modulus_ns if self._modulus_ns else shown) - self.start_ns

    def _disturbed(self, stamp: Column, batch: Captures) -> Column:
        """Add the clock's wander and the corrections of its servo."""
        times_ns = batch.time_ns + self._point_ns
        if self._servo is not None:
            free_ns = self._servo.corrections(batch.envs, batch.index, times_ns)
        else:
            free_ns = self._streams.xp.zeros(len(times_ns), np.int64)
        return stamp + column(free_ns + self._wandered_ns(batch.envs, batch.index, times_ns))

    def _wandered_ns(self, envs: Rows, index: Ints, times_ns: Ints) -> Ints:
        """Return the error beyond offset and drift of a clock that nobody corrects, ns [n]."""
        xp = self._streams.xp
        error_s = xp.zeros(len(index))
        if self._wander is not None:
            error_s += self._wander.at(envs, index)[:, 1]
        if self._temperature.coefficient_ppm_per_k:
            error_s += warmth_s(self._temperature, xp.astype(times_ns, np.float64) / NS_PER_S, xp)
        return xp.astype(xp.round(error_s * 1e9), np.int64)

    def _free_ns(self, envs: Rows, index: Ints, times_ns: Ints) -> Ints:
        """Return the whole error of the clock without corrections and TAI-UTC, ns [n]."""
        xp = self._streams.xp
        drifted_ns = xp.astype(xp.round(xp.astype(times_ns, np.float64) * self._drift), np.int64)
        drifted_ns += self._offset_ns - self._tai_ns
        return drifted_ns + self._wandered_ns(envs, index, times_ns)

    def reset(self, envs: Rows) -> None:
        """Begin the new episode of `envs`."""
        if self._servo is not None:
            self._servo.reset(envs)
