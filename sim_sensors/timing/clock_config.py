"""What a sensor's clock makes of true time: errors that grow, corrections, and how it counts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rig_common.validation import Strict
from sim_sensors.timing.units import ClockTime, Latency, NonNegative

StampPoint = Literal['default', 'start', 'middle', 'end']


class ClockTemperatureConfig(Strict):
    """A clock that runs at another rate when it is warm.

    The temperature rises by `warmup_k` with the time constant `warmup_s`, and swings by
    `swing_k` around that with the period `swing_period_s`.
    """

    coefficient_ppm_per_k: Annotated[float, Field(ge=-100.0, le=100.0)] = 0.0
    """Rate error for each kelvin above the start, ppm/K."""
    warmup_k: Annotated[float, Field(ge=-100.0, le=100.0)] = 0.0
    """Rise of temperature after power-up, K."""
    warmup_s: Annotated[float, Field(gt=0.0, le=1e6)] = 600.0
    """Time constant of the rise, s."""
    swing_k: Annotated[float, Field(ge=0.0, le=100.0)] = 0.0
    """Amplitude of a sine on top (an air conditioner, a day), K."""
    swing_period_s: Annotated[float, Field(gt=0.0, le=1e7)] = 3600.0
    """Period of that sine, s."""

    @model_validator(mode='after')
    def _has_an_effect(self) -> ClockTemperatureConfig:
        if bool(self.coefficient_ppm_per_k) != bool(self.warmup_k or self.swing_k):
            raise ValueError(
                f'coefficient_ppm_per_k is {self.coefficient_ppm_per_k}, warmup_k '
                f'{self.warmup_k} and swing_k {self.swing_k}; a coefficient needs a change of '
                'temperature, and a change a coefficient'
            )
        return self


class DisciplineConfig(Strict):
    """How the clock is corrected from outside."""

    kind: Literal['none', 'ntp', 'ptp'] = 'none'
    """`ptp`: at every correction the error is what is left of it, normal with `sigma_s`; straight
    in between. `ntp`: at every correction the error is measured with `sigma_s`, then slewed away
    until the next, or stepped where it is larger than `step_s`."""
    period_s: Annotated[float, Field(ge=0.01, le=1e5)] = 1.0
    """Time between corrections, s."""
    sigma_s: NonNegative = 0.0
    """Standard deviation of what is left (ptp) or of the measurement (ntp), s."""
    correlations: tuple[Annotated[float, Field(gt=-1.0, lt=1.0)], ...] = ()
    """Of what is left, with what was left one correction before, two before, ... (ptp): for a
    residual that swings or wanders. None: each is drawn anew."""
    start_s: Annotated[float, Field(ge=0.0, le=1e6)] = 0.0
    """First correction, s; the clock runs free before."""
    slew_ppm: Annotated[float, Field(gt=0.0, le=100_000.0)] = 500.0
    """Fastest slew, ppm (ntp)."""
    step_s: Annotated[float, Field(gt=0.0, le=1e6)] = 0.128
    """Error from which on the clock is stepped and not slewed, s (ntp)."""

    @model_validator(mode='after')
    def _keys_are_used(self) -> DisciplineConfig:
        fields = type(self).model_fields
        unused = {
            'none': ('period_s', 'sigma_s', 'correlations', 'start_s', 'slew_ppm', 'step_s'),
            'ptp': ('slew_ppm', 'step_s'),
            'ntp': ('correlations',),
        }[self.kind]
        for name in unused:
            if getattr(self, name) != fields[name].default:
                raise ValueError(
                    f'{name} is {getattr(self, name)}, which kind {self.kind} does not read'
                )
        if self.correlations:
            from sim_sensors.timing.marginals import filter_taps

            filter_taps(self.correlations)
        return self


class ClockConfig(Strict):
    """What the sensor's own clock makes of true time."""

    offset_s: ClockTime = 0.0
    """Sensor clock minus true time at the start of the run, s; days for one that counts from
    power-up."""
    drift_ppm: Annotated[float, Field(ge=-1000.0, le=1000.0)] = 0.0
    """Rate error, parts per million."""
    stamp_jitter_s: Latency = 0.0
    """Standard deviation of the stamp around the sensor's clock, s."""
    stamp_at: Literal['capture', 'arrival'] = 'capture'
    """`arrival` makes a host-stamped sensor: the header carries the time the host received it."""
    white_fm: Annotated[float, Field(ge=0.0, le=1e-2)] = 0.0
    """White frequency noise: Allan deviation at 1 s (it falls with the root of the time)."""
    random_walk_fm: Annotated[float, Field(ge=0.0, le=1e-2)] = 0.0
    """Random-walk frequency noise: the rate error wanders by this in a second, 1/s^0.5; Allan
    deviation is this times the root of a third of the time."""
    temperature: ClockTemperatureConfig = ClockTemperatureConfig()
    """Rate error that depends on the temperature."""
    servo: DisciplineConfig = DisciplineConfig()
    """Corrections by NTP or PTP."""
    resolution_s: Annotated[float, Field(ge=0.0, le=10.0)] = 0.0
    """What the stamp is rounded down to, s (0.001 for stamps in ms); 0 is a nanosecond."""
    counter_bits: Annotated[int, Field(ge=0, le=62)] = 0
    """Bits of the counter of `resolution_s`: 32 bits of microseconds overflow after 71 min;
    0 never does."""
    tai_utc_s: Annotated[int, Field(ge=-100, le=100)] = 0
    """Whole seconds that the clock is ahead because it counts TAI and not UTC (37 since 2017)."""
    stamp_point: StampPoint = 'default'
    """Which instant of a sweep or an exposure is stamped; by default a sweep's start and an
    exposure's middle (of the first row)."""

    @model_validator(mode='after')
    def _has_one_meaning(self) -> ClockConfig:
        if self.counter_bits and not self.resolution_s:
            raise ValueError(
                f'counter_bits is {self.counter_bits}; a counter needs the time of '
                'one count, resolution_s'
            )
        if self.stamp_at == 'arrival':
            for name, info in type(self).model_fields.items():
                if (
                    name not in ('stamp_at', 'offset_s', 'drift_ppm', 'stamp_jitter_s')
                    and getattr(self, name) != info.default
                ):
                    raise ValueError(
                        f'{name} is set, but stamp_at is arrival: the host stamps '
                        'these samples, and its clock is true time'
                    )
        return self
