"""What every sensor and every world can be told, with units, defaults and ranges.

A sensor type adds its own keys by subclassing `SensorConfig` beside its class. Everything is
frozen and unknown keys are refused; ROS parameter files know no null, so `[0.0, 0.0]` means none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from rig_common.validation import Strict

if TYPE_CHECKING:
    from sim_sensors.sensors.base import Sensor

NonNegative = Annotated[float, Field(ge=0.0)]
Latency = Annotated[float, Field(ge=0.0, le=60.0)]
"""s; what is under way is kept in memory, so it has a limit."""
Moment = Annotated[float, Field(ge=0.0, le=1e9)]
"""s of simulated time; 30 years."""
ClockTime = Annotated[float, Field(ge=-2.1e9, le=2.1e9)]
"""s; what a stamp's int32 seconds hold, with a year and a half to spare."""
MIN_RATE_HZ = 1e-6
Vector3 = tuple[float, float, float]


class MountConfig(Strict):
    """Where a sensor sits. Either on a body with a pose, or on a site the model already has."""

    body: str = 'world'
    """Body that carries the sensor."""
    site: str = ''
    """Existing site to sit on instead; `body`, `pos_m` and `rpy_rad` are then not used."""
    pos_m: Vector3 = (0.0, 0.0, 0.0)
    """Position in the body's frame, m."""
    rpy_rad: Vector3 = (0.0, 0.0, 0.0)
    """Fixed-axis roll, pitch, yaw in the body's frame, rad (REP 103)."""


class ClockConfig(Strict):
    """What the sensor's own clock makes of true time."""

    offset_s: ClockTime = 0.0
    """Sensor clock minus true time at t = 0, s."""
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
    """Start, s of simulated time."""
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


class SensorConfig(Strict):
    """Keys that every sensor understands, with one meaning for all."""

    type: str
    """Registered type name."""
    mount: MountConfig = MountConfig()
    """Pose of the sensor."""
    frame_id: str = ''
    """Header frame; the sensor's name when empty."""
    rate_hz: NonNegative = 0.0
    """Captures a second; 0 captures at every physics step."""
    phase_s: Moment = 0.0
    """Time of capture 0, s."""
    truth_rate_hz: NonNegative = 0.0
    """Rate of the truth a response model runs on; 0 is the physics rate. Only used by sensors
    with a stateful response; others get truth at `rate_hz`."""
    trigger: str = ''
    """Name of a sensor whose captures trigger this one; `rate_hz` is then that sensor's."""
    trigger_delay_s: Latency = 0.0
    """From the trigger to this sensor's capture, s."""
    delay_range_s: tuple[Latency, Latency] = (0.0, 0.0)
    """Latency (min, max), s, drawn once per environment; equal values fix it."""
    jitter_s: Latency = 0.0
    """Further latency, uniform in [0, jitter_s), s, drawn per sample; at most the least delay."""
    delay_backend: Literal['rig', 'mujoco'] = 'rig'
    """`mujoco` compiles the delay into the model (sensors read from sensordata only)."""
    interpolation: Literal['zoh', 'linear', 'cubic', 'slerp'] = 'zoh'
    """How `read()` between captures is answered; messages are never interpolated."""
    history_length: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Past readable values kept for `read(history_length=N)`."""
    clock: ClockConfig = ClockConfig()
    """The sensor's clock."""
    loss: LossConfig = LossConfig()
    """Samples lost on the way."""
    noise: NonNegative = 0.0
    """Standard deviation of white noise per sample, in the sensor's unit."""
    bias: float = 0.0
    """Constant offset, in the sensor's unit."""
    random_walk: NonNegative = 0.0
    """Standard deviation of a random-walk step per capture, in the sensor's unit."""
    resolution: NonNegative = 0.0
    """Quantisation step, in the sensor's unit; 0 is none."""
    eager: bool = False
    """Capture on schedule even when nobody reads."""
    faults: dict[str, FaultConfig] = {}
    """Faults by a name of your choice."""

    def too_long_for(self, period_s: float) -> str:
        """Say what of a capture does not end before the next, `period_s` later; empty if all does.

        Sensors whose captures take a time of their own say so.
        """
        return ''

    @model_validator(mode='after')
    def _rate_has_a_period(self) -> SensorConfig:
        if 0.0 < self.rate_hz < MIN_RATE_HZ:
            raise ValueError(f'rate_hz is {self.rate_hz}; it should be 0 (every physics step) or '
                             f'at least {MIN_RATE_HZ:g}')
        return self

    @model_validator(mode='after')
    def _captures_fit(self) -> SensorConfig:
        known = self.rate_hz > 0.0 and not self.trigger  # else the rig file knows the period
        if known and (problem := self.too_long_for(1.0 / self.rate_hz)):
            raise ValueError(problem)
        return self

    @model_validator(mode='after')
    def _delay_is_sane(self) -> SensorConfig:
        low, high = self.delay_range_s
        if low > high:
            raise ValueError(f'delay_range_s is [{low}, {high}]; the first must not be larger')
        if self.jitter_s > low:
            raise ValueError(f'jitter_s is {self.jitter_s}; it must not be larger than the '
                             f'smallest delay, {low}')
        return self


class WorldConfig(Strict):
    """The simulated world."""

    model: str
    """MJCF file: absolute, beside the rig file, or one shipped in worlds/."""
    keyframe: str = ''
    """Keyframe of the model to start at; its reference pose when empty."""
    timestep_s: Annotated[float, Field(gt=0.0, le=0.1)] = 0.001
    """Physics step, s; a whole number of nanoseconds."""
    real_time_factor: NonNegative = 1.0
    """Simulated seconds per wall second; 0 runs as fast as it can."""
    lockstep: bool = False
    """Wait at every tick for every node of the rig; runs are then bit-identical."""
    lockstep_timeout_s: Annotated[float, Field(gt=0.0)] = 10.0
    """How long lockstep waits for a node before it is an error, s of wall time."""
    driver: str = 'none'
    """Scripted driver: none, figure_eight, rest_cruise_turn, or commands (cmd_vel)."""
    num_envs: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Copies of the world."""
    clock_rate_hz: Annotated[float, Field(gt=0.0, le=2000.0)] = 250.0
    """Rate of /clock, Hz."""
    hide_truth: bool = False
    """Publish truth under `_truth/` so the system under test cannot see it by accident."""
    skip_unavailable: bool = False
    """Run without sensors that cannot work here (a camera with no renderer)."""
    control_delay_s: Latency = 0.0
    """Latency of every actuator command, s."""
    control_delay_backend: Literal['rig', 'mujoco'] = 'rig'
    """`mujoco` compiles that latency into the model; it is then one physics step at least."""
    allow_outside_files: bool = False
    """Let the model read meshes and textures from outside its own folder."""


@dataclass(frozen=True)
class Simulation:
    """What there is to simulate: a world, the sensors in it, and the seed of all their noise."""

    world: WorldConfig
    sensors: Mapping[str, SensorConfig]
    """By name."""
    seed: int = 0
    folder: Path | None = None
    """Where the model is looked up first."""

    def make_sensors(self) -> dict[str, Sensor[Any]]:
        """Return the sensor objects by name."""
        from sim_sensors.registry import sensor_class
        return {name: sensor_class(config.type)(name, config)
                for name, config in self.sensors.items()}
