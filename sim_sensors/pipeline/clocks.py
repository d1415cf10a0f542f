"""What a sensor's own clock says: offset, drift and jitter on the true time, to the nanosecond."""

from __future__ import annotations

from rig_common.times import seconds_to_ns
from sim_sensors.pipeline.columns import Column, column, rounded
from sim_sensors.randomness.noise import RandomStreams
from sim_sensors.randomness.streams import Captures
from sim_sensors.timing_config import ClockConfig


class SensorClock:
    """Stamps captures.

    stamp = capture + offset + drift * capture + jitter_k, or the time of arrival for a sensor that
    the host stamps (that stamp is the host's own clock, which is true time here).
    """

    def __init__(self, config: ClockConfig, streams: RandomStreams) -> None:
        """Take the clock's errors from `config`, and what is random of them from `streams`."""
        self.at_arrival = config.stamp_at == 'arrival'
        self._offset_ns = seconds_to_ns(config.offset_s)
        self._drift = config.drift_ppm * 1e-6
        self._jitter_ns = config.stamp_jitter_s * 1e9
        self._jitter = streams.normals('stamp_jitter', 1) if self._jitter_ns else None

    def stamps(self, batch: Captures, arrival_ns: Column, step_ns: int = 0) -> Column:
        """Return the stamps of a batch, ns; `step_ns` is what faults made the clock jump."""
        if self.at_arrival:
            return arrival_ns
        time_ns = column(batch.time_ns)
        stamp = time_ns + (self._offset_ns + step_ns)
        if self._drift:
            stamp = stamp + rounded(time_ns * self._drift)
        if self._jitter is not None:
            jitter = self._jitter.at(batch.envs, batch.index)[:, 0] * self._jitter_ns
            stamp = stamp + column(rounded(jitter))
        return stamp
