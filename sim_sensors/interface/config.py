"""Keys that every sensor understands, with units, defaults and ranges.

A sensor type adds its own keys by subclassing `SensorConfig` beside its class. Everything is
frozen and unknown keys are refused; ROS parameter files know no null, so `[0.0, 0.0]` means none.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from rig_common.validation import Strict
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.units import Latency, Moment, NonNegative, Span

Vector3 = tuple[float, float, float]


class MountConfig(Strict):
    """Where a sensor sits. Either on a body with a pose, or on a site the model already has."""

    body: str = 'world'
    """Body that carries the sensor."""
    site: str = ''
    """Existing site to sit on, instead of `body`, `pos_m` and `rpy_rad`."""
    pos_m: Vector3 = (0.0, 0.0, 0.0)
    """Position in the body's frame, m."""
    rpy_rad: Vector3 = (0.0, 0.0, 0.0)
    """Fixed-axis roll, pitch, yaw in the body's frame, rad (REP 103)."""

    @field_validator('body')
    @classmethod
    def _named(cls, value: str) -> str:
        if not value:
            raise ValueError("'' names no body; it should be a body of the model, or world")
        return value

    @model_validator(mode='after')
    def _one_place(self) -> MountConfig:
        if self.site and (self.body != 'world' or any((*self.pos_m, *self.rpy_rad))):
            raise ValueError('site is given, so body, pos_m and rpy_rad should not be')
        return self


def _near_is_below_far(config: Any) -> Any:
    if config.min_range_m >= config.max_range_m:
        raise ValueError(
            f'min_range_m is {config.min_range_m}; it must be smaller than '
            f'max_range_m, {config.max_range_m}'
        )
    return config


ranges_are_sane = model_validator(mode='after')(_near_is_below_far)
"""For a config with `min_range_m` and `max_range_m`."""


class SensorConfig(TimingConfig):
    """Keys that every sensor understands, with one meaning for all."""

    type: str
    """Registered type name."""
    mount: MountConfig = MountConfig()
    """Pose of the sensor."""
    frame_id: str = ''
    """Header frame; the sensor's name when empty."""
    phase_s: Moment = 0.0
    """Time of capture 0, s since the start of the run."""
    phase_range_s: Span = (0.0, 0.0)
    """Shift of all captures (min, max), s, drawn once per environment and episode, on top of
    `phase_s`: sensors that nobody synchronised."""
    truth_rate_hz: NonNegative = 0.0
    """Rate of the truth a response model runs on; 0 is the physics rate. Only used by sensors
    with a stateful response; others get truth at `rate_hz`."""
    trigger: str = ''
    """Name of a sensor whose captures trigger this one; `rate_hz` is then that sensor's."""
    trigger_delay_s: Latency = 0.0
    """From the trigger to this sensor's capture, s."""
    delay_backend: Literal['rig', 'mujoco'] = 'rig'
    """`mujoco` compiles the delay into the model (sensors read from sensordata only)."""
    interpolation: Literal['zoh', 'linear', 'cubic', 'slerp'] = 'zoh'
    """How `read()` between captures is answered; messages are never interpolated."""
    history_length: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Past readable values kept for `read(history_length=N)`."""
    stack_history: bool = False
    """Let `read()` give all `history_length` values rather than the newest alone."""
    noise: NonNegative = 0.0
    """Standard deviation of white noise per sample, in the sensor's unit."""
    bias: float = 0.0
    """Constant offset, in the sensor's unit."""
    random_walk: NonNegative = 0.0
    """Standard deviation of a random-walk step per capture, in the sensor's unit."""
    resolution: NonNegative = 0.0
    """Quantisation step, in the sensor's unit; 0 is none."""
    fast_noise: bool = False
    """Draw by a hash of the index, white noise as float32 of 65536 levels: faster for many
    environments, the same distribution, other numbers."""
    eager: bool = False
    """Capture on schedule even when nobody reads."""

    def too_long_for(self, period_s: float) -> str:
        """Say what of a capture does not end before the next, `period_s` later; empty if all does.

        Sensors whose captures take a time of their own say so.
        """
        return ''

    @model_validator(mode='after')
    def _phase_is_sane(self) -> SensorConfig:
        low, high = self.phase_range_s
        for key in ('trigger', 'link') if high else ():
            if getattr(self, key):
                raise ValueError(
                    f'phase_range_s is [{low}, {high}] and {key} is '
                    f'{getattr(self, key)!r}, which has its own times; give one'
                )
        if self.stack_history and not self.history_length:
            raise ValueError('stack_history is true and history_length is 0; it stacks nothing')
        return self

    @model_validator(mode='after')
    def _captures_fit(self) -> SensorConfig:
        known = self.rate_hz > 0.0 and not self.trigger  # else the rig file knows the period
        if known and (problem := self.too_long_for(1.0 / self.rate_hz)):
            raise ValueError(problem)
        return self
