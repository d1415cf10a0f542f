"""What a sensor's own clock says: offset, drift and jitter on the true time, to the nanosecond."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rig_common.times import seconds_to_ns
from sim_sensors.config import ClockConfig
from sim_sensors.pipeline.columns import Column, column, rounded

if TYPE_CHECKING:
    from sim_sensors.sensors.base import Batch


class SensorClock:
    """Stamps captures.

    stamp = capture + offset + drift * capture + jitter_k, or the time of arrival for a sensor that
    the host stamps (that stamp is the host's own clock, which is true time here).
    """

    def __init__(self, config: ClockConfig) -> None:
        """Take the clock's errors from `config`."""
        self.at_arrival = config.stamp_at == 'arrival'
        self._offset_ns = seconds_to_ns(config.offset_s)
        self._drift = config.drift_ppm * 1e-6
        self._jitter_ns = config.stamp_jitter_s * 1e9

    def stamps(self, batch: Batch, arrival_ns: Column, step_ns: int = 0) -> Column:
        """Return the stamps of a batch, ns; `step_ns` is what faults made the clock jump."""
        if self.at_arrival:
            return arrival_ns
        time_ns = column(batch.time_ns)
        stamp = time_ns + (self._offset_ns + step_ns)
        if self._drift:
            stamp = stamp + rounded(time_ns * self._drift)
        if self._jitter_ns:
            jitter = batch.noise.normal('stamp_jitter', batch, 1)[:, 0] * self._jitter_ns
            stamp = stamp + column(rounded(jitter))
        return stamp
