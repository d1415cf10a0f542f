"""Clocks against the reference sensor's: what selection and bundles use."""

from __future__ import annotations

from math import sqrt

from sync_engine.clocks.offset import ClockEstimate, Offset
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.pairing import TriggerOffset
from sync_engine.streams.stream import Stream

_UNKNOWN = float('inf')


class RelativeClocks:
    """Offsets of the streams' clocks to that of the reference stream."""

    def __init__(self, reference: Stream, estimator: str) -> None:
        self._reference = reference
        self._estimator = estimator

    def to_partner(self, stream: Stream, now_ns: int) -> Offset:
        """Return the stream's clock minus the reference's at host time `now_ns`."""
        if self._estimator == 'none':
            return Offset(0, _UNKNOWN, OffsetState.UNOBSERVABLE)
        pairs = stream.pair_offset
        if pairs is not None:
            sigma_s = pairs.variance**0.5
            state = (
                stream.clock.judge(sigma_s)
                if isinstance(pairs, TriggerOffset)
                else OffsetState.CONVERGING
            )
            return Offset(round(pairs.offset_s * 1e9), sigma_s, state)
        return self._from_clocks(stream, now_ns)

    def of(self, stream: Stream, now_ns: int) -> Offset:
        """As `to_partner`, for any stream: the reference itself is how sure its own clock is."""
        if stream is self._reference:
            return Offset(0, stream.clock.sigma_s, stream.clock.state)
        return self.to_partner(stream, now_ns)

    def _from_clocks(self, stream: Stream, now_ns: int) -> Offset:
        clock, reference = stream.clock, self._reference.clock
        if clock is reference:
            return Offset(0, 0.0, OffsetState.LOCKED)
        blind = clock.state is OffsetState.UNOBSERVABLE
        if blind or reference.state is OffsetState.UNOBSERVABLE:
            # What cannot be observed corrects nothing: those stamps are taken as host time.
            offset_ns = (0 if blind else clock.offset_ns(now_ns)) - self.host_offset_ns(now_ns)
            return Offset(offset_ns, _UNKNOWN, OffsetState.UNOBSERVABLE)
        offset_ns, sigma_s = relative_offset(clock, reference, now_ns)
        return Offset(offset_ns, sigma_s, clock.judge(sigma_s, reference))

    def host_offset_ns(self, now_ns: int) -> int:
        """Return the reference's clock minus the host's; 0 where it is not observable."""
        clock = self._reference.clock
        if self._estimator != 'adaptive' or clock.state is OffsetState.UNOBSERVABLE:
            return 0
        return clock.offset_ns(now_ns)


def relative_offset(
    sensor: ClockEstimate, reference: ClockEstimate, time_ns: int
) -> tuple[int, float]:
    """Return (sensor's clock minus the reference's in ns, its sigma in s) at host time `time_ns`.

    Two sensors can be compared over the host or, where the motion of both was compared with it,
    over the IMU. Over the IMU the error of its own offset cancels; the surer way is taken.
    """
    one, two = sensor.variances, reference.variances
    difference = sensor.offset_ns(time_ns) - reference.offset_ns(time_ns)
    if one is None or two is None:
        return difference, float('inf')
    biases = sensor.bias_var + reference.bias_var
    over_host = one[0] + two[0] + biases
    over_imu = one[1] + two[1] + biases
    if over_imu < over_host and sensor.anchor == reference.anchor:
        return difference - sensor.anchor_ns + reference.anchor_ns, sqrt(max(over_imu, 0.0))
    return difference, sqrt(max(over_host, 0.0))
