"""How samples are timed: rate, latency, clock, loss and faults, of a sensor or of a recording.

Nothing here needs a simulated sensor: `SensorConfig` adds what only a simulation knows.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from rig_common.validation import Strict

NonNegative = Annotated[float, Field(ge=0.0)]
Latency = Annotated[float, Field(ge=0.0, le=60.0)]
"""s; what is under way is kept in memory, so it has a limit."""
Moment = Annotated[float, Field(ge=0.0, le=1e9)]
"""s since the start of the run; 30 years."""
ClockTime = Annotated[float, Field(ge=-2.1e9, le=2.1e9)]
"""s; what a stamp's int32 seconds hold, with a year and a half to spare."""
MIN_RATE_HZ = 1e-6


class ClockConfig(Strict):
    """What the sensor's own clock makes of true time."""

    offset_s: ClockTime = 0.0
    """Sensor clock minus true time at the start of the run, s."""
    drift_ppm: Annotated[float, Field(ge=-1000.0, le=1000.0)] = 0.0
    """Rate error, parts per million."""
    stamp_jitter_s: Latency = 0.0
    """Standard deviation of the stamp around the sensor's clock, s."""
    stamp_at: Literal['capture', 'arrival'] = 'capture'
    """`arrival` makes a host-stamped sensor: the header carries the time the host received it."""


class LossConfig(Strict):
    """Samples that never arrive."""

    probability: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """Stationary fraction of samples lost."""
    burst_mean: Annotated[float, Field(ge=1.0)] = 1.0
    """Mean length of a run of losses, samples; 1 is independent loss."""

    @field_validator('probability', mode='before')
    @classmethod
    def _something_arrives(cls, value: Any) -> Any:
        if isinstance(value, float) and value == 1.0:
            raise ValueError('1.0 loses every sample; it should be less than 1 (a fault of the '
                             'kind dead silences a sensor)')
        return value


class FaultConfig(Strict):
    """One fault: what, from when, for how long."""

    kind: Literal['dead', 'stuck', 'wrong', 'noisy', 'slow', 'clock_step', 'loss_burst']
    """dead: silence. stuck: repeats the last value. wrong: scale * value + offset. noisy: noise
    times `scale`. slow: `offset` seconds more latency. clock_step: the clock jumps by `offset`
    seconds and stays. loss_burst: a fraction `scale` of samples is lost."""
    at_s: Moment = 0.0
    """Start, s since the start of the run."""
    duration_s: Moment = 0.0
    """Length, s; 0 means until the end."""
    offset: float = 0.0
    """Meaning depends on `kind`."""
    scale: float = 1.0
    """Meaning depends on `kind`."""

    @model_validator(mode='after')
    def _stamps_stay_possible(self) -> FaultConfig:
        limit = {'slow': 60.0, 'clock_step': 2.1e9}.get(self.kind)
        if limit is not None and abs(self.offset) > limit:
            raise ValueError(f'offset is {self.offset} s; {self.kind} takes at most {limit:g} s')
        return self


class TimingConfig(Strict):
    """When samples are made, when they arrive, and what their stamps say."""

    rate_hz: NonNegative = 0.0
    """Captures a second; 0 captures at every physics step."""
    delay_range_s: tuple[Latency, Latency] = (0.0, 0.0)
    """Latency (min, max), s, drawn once per environment; equal values fix it."""
    jitter_s: Latency = 0.0
    """Further latency, uniform in [0, jitter_s), s, drawn per sample; at most the least delay."""
    clock: ClockConfig = ClockConfig()
    """The sensor's clock."""
    loss: LossConfig = LossConfig()
    """Samples lost on the way."""
    faults: dict[str, FaultConfig] = {}
    """Faults by a name of your choice."""

    @model_validator(mode='after')
    def _rate_has_a_period(self) -> TimingConfig:
        if 0.0 < self.rate_hz < MIN_RATE_HZ:
            raise ValueError(f'rate_hz is {self.rate_hz}; it should be 0 (every physics step) or '
                             f'at least {MIN_RATE_HZ:g}')
        return self

    @model_validator(mode='after')
    def _delay_is_sane(self) -> TimingConfig:
        low, high = self.delay_range_s
        if low > high:
            raise ValueError(f'delay_range_s is [{low}, {high}]; the first must not be larger')
        if self.jitter_s > low:
            raise ValueError(f'jitter_s is {self.jitter_s}; it must not be larger than the '
                             f'smallest delay, {low}')
        return self
