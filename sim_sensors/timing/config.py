"""How samples are timed: rate, latency, clock, loss and faults, of a sensor or of a recording.

Nothing here needs a simulated sensor: `SensorConfig` adds what only a simulation knows.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from rig_common.validation import Strict
from sim_sensors.timing.clock_config import ClockConfig
from sim_sensors.timing.faults import FaultConfig
from sim_sensors.timing.latency_config import LatencyConfig
from sim_sensors.timing.marginals import filter_taps, marginal_of, normal_lags, reachable
from sim_sensors.timing.units import Latency, NonNegative, Probability, Span

MIN_RATE_HZ = 1e-6


class LossConfig(Strict):
    """Samples that never arrive, and samples that arrive twice."""

    probability: Probability = 0.0
    """Stationary fraction of samples lost."""
    burst_mean: Annotated[float, Field(ge=1.0)] = 1.0
    """Mean length of the bad state, samples; 1 is independent loss."""
    bad_probability: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """Probability that a sample is lost in the bad state; in the good state none is."""
    packet_probability: Probability = 0.0
    """Probability that a packet is lost; a message is lost with any of its packets, so large ones
    are lost more often."""
    packet_bytes: Annotated[int, Field(ge=64, le=65_536)] = 1472
    """Payload of a packet, bytes."""
    duplicate_probability: Probability = 0.0
    """Probability that a sample that arrives does so twice, the copy right after it."""

    @model_validator(mode='after')
    def _bad_state_ends(self) -> LossConfig:
        if self.bad_probability < 1.0 and self.probability >= self.bad_probability:
            raise ValueError(
                f'probability is {self.probability}; it must be smaller than '
                f'bad_probability, {self.bad_probability}, or all is bad state'
            )
        return self

    @field_validator('probability', mode='before')
    @classmethod
    def _something_arrives(cls, value: object) -> object:
        if isinstance(value, float) and value == 1.0:
            raise ValueError(
                '1.0 loses every sample; it should be less than 1 (a fault of the '
                'kind dead silences a sensor)'
            )
        return value


class LinkConfig(Strict):
    """A line that several sensors share: messages wait for those before them."""

    bandwidth_bps: Annotated[float, Field(gt=0.0, le=1e13)]
    """Capacity, bit/s."""
    queue_bytes: Annotated[int, Field(ge=0)] = 0
    """What waits or is being sent, at most, bytes: a message that does not fit is dropped. 0 is no
    limit."""
    reliable: bool = False
    """Send again what `loss` loses: it arrives `round_trip_s` later for each try."""
    round_trip_s: Latency = 0.0
    """Time until a loss is noticed and the message is sent again, s."""

    @model_validator(mode='after')
    def _has_one_meaning(self) -> LinkConfig:
        if self.reliable != bool(self.round_trip_s):
            raise ValueError(
                f'reliable is {str(self.reliable).lower()} and round_trip_s is '
                f'{self.round_trip_s}; a reliable link needs a round trip above 0, '
                'another one none'
            )
        if self.queue_bytes * 8 / self.bandwidth_bps > 60.0:
            raise ValueError(
                f'queue_bytes is {self.queue_bytes}, which takes '
                f'{self.queue_bytes * 8 / self.bandwidth_bps:.3g} s at '
                f'{self.bandwidth_bps:g} bit/s; at most 60 s'
            )
        return self


def _is_reachable(latency: LatencyConfig) -> LatencyConfig:
    """Refuse correlations that the distribution cannot reach."""
    if latency.lags:
        low, high = reachable(marginal_of(latency))
        for given in latency.lags:
            if not low <= given <= high:
                raise ValueError(
                    f'correlation is {given}; with this distribution it '
                    f'can be {low:.2f} to {high:.2f}'
                )
        filter_taps(normal_lags(latency))
    return latency


class TimingConfig(Strict):
    """When samples are made, when they arrive, and what their stamps say."""

    rate_hz: NonNegative = 0.0
    """Captures a second; 0 captures at every physics step."""
    delay_range_s: Span = (0.0, 0.0)
    """Latency (min, max), s, drawn once per environment; equal values fix it, null is none."""
    jitter_s: Latency = 0.0
    """Further latency, uniform in [0, jitter_s), s, drawn per sample; at most the least delay."""
    latency: Annotated[LatencyConfig, AfterValidator(_is_reachable)] = LatencyConfig()
    """Latency as a distribution, with correlation and stalls, in place of `jitter_s`."""
    order: Literal['any', 'fifo'] = 'any'
    """`fifo`: no sample arrives before an earlier one; `any`: a later one may overtake."""
    link: str = ''
    """Name of the link (section `links:`) that carries the messages; none when empty."""
    size_bytes: Annotated[int, Field(ge=0, le=2**40)] = 0
    """Size of a message on the link, bytes (compressed images, other drivers); 0 is the size that
    the sensor's messages have here."""
    clock: ClockConfig = ClockConfig()
    """The sensor's clock."""
    loss: LossConfig = LossConfig()
    """Samples lost on the way."""
    faults: dict[str, FaultConfig] = {}
    """Faults by a name of your choice."""

    @model_validator(mode='after')
    def _rate_has_a_period(self) -> TimingConfig:
        if 0.0 < self.rate_hz < MIN_RATE_HZ:
            raise ValueError(
                f'rate_hz is {self.rate_hz}; it should be 0 (every physics step) or '
                f'at least {MIN_RATE_HZ:g}'
            )
        return self

    @model_validator(mode='after')
    def _delay_is_sane(self) -> TimingConfig:
        if self.jitter_s > self.delay_range_s[0]:
            raise ValueError(
                f'jitter_s is {self.jitter_s}; it must not be larger than the '
                f'smallest delay, {self.delay_range_s[0]}'
            )
        if self.jitter_s and self.latency.model != 'delay':
            raise ValueError(
                f'jitter_s is {self.jitter_s} and latency.model is '
                f'{self.latency.model}; only the model delay has jitter_s'
            )
        return self
