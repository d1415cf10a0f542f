"""What every sensor and every world can be told, with units, defaults and ranges.

A sensor type adds its own keys by subclassing `SensorConfig` beside its class. Everything is
frozen and unknown keys are refused; ROS parameter files know no null, so `[0.0, 0.0]` means none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator, model_validator

from rig_common.errors import RigError
from rig_common.times import TimeBase, seconds_to_ns
from rig_common.validation import Strict
from sim_sensors.timing_config import LinkConfig, TimingConfig
from sim_sensors.units import Latency, Moment, NonNegative
from sim_sensors.world.additions_config import ActuatorConfig, DriveConfig
from sim_sensors.world.driverconfig import DriverConfig, DriverName, driver_config

if TYPE_CHECKING:
    from sim_sensors.sensors.base import AnySensor

Vector3 = tuple[float, float, float]
NODE_NAME = re.compile('[A-Za-z_][A-Za-z0-9_]*')
"""What ROS takes for the name of a node."""


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

    @field_validator('body')
    @classmethod
    def _named(cls, value: str) -> str:
        if not value:
            raise ValueError("'' names no body; it should be a body of the model, or world")
        return value


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
    phase_range_s: tuple[Latency, Latency] = (0.0, 0.0)
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

    @field_validator('phase_range_s', mode='before')
    @classmethod
    def _no_phase(cls, value: object) -> object:
        return (0.0, 0.0) if value is None else value

    @model_validator(mode='after')
    def _phase_is_sane(self) -> SensorConfig:
        low, high = self.phase_range_s
        if low > high:
            raise ValueError(f'phase_range_s is [{low}, {high}]; the first must not be larger')
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


class WorldConfig(Strict):
    """The simulated world."""

    model: str
    """MJCF or URDF file: absolute, beside the rig file, or one shipped in worlds/."""
    keyframe: str | int = ''
    """Keyframe of the model to start at, by name or number, or one of `poses`; the model's
    reference pose when empty."""
    poses: dict[str, dict[str, float]] = {}
    """Poses by name: positions of joints by name, rad or m, `*` and `?` stand for any letters; of
    a free joint, or its body, the height, m. Other joints are as at the start."""
    ground: bool = False
    """Put a plane at height 0 under a model that has none."""
    timestep_s: Annotated[float, Field(gt=0.0, le=0.1)] = 0.001
    """Physics step, s; a whole number of nanoseconds."""
    start_time_s: Annotated[float, Field(gt=0.0, le=2.0e9)] = 1000.0
    """Simulated time at which a run starts, s: the first stamps and /clock. Everything else in
    this file counts from the start of the run."""
    real_time_factor: NonNegative = 1.0
    """Simulated seconds per wall second; 0 runs as fast as it can."""
    lockstep: bool = False
    """Wait at every tick for every node of the rig; runs are then bit-identical."""
    lockstep_timeout_s: Annotated[float, Field(gt=0.0)] = 10.0
    """How long lockstep waits for a node before it is an error, s of wall time."""
    wait_for: tuple[str, ...] = ()
    """Nodes of yours that lockstep waits for besides the rig's own, by name without namespace;
    they follow `world/settled`."""
    driver: DriverName | DriverConfig = 'none'
    """What moves the robot: none, commands (cmd_vel), figure_eight, rest_cruise_turn, or a map
    with `type` hold, excite, trajectory, python, mocap or waypoints."""
    drive: DriveConfig | None = None
    """Geometry of a wheeled base."""
    actuators: dict[str, ActuatorConfig] = {}
    """Actuators to add to the model, by a name of your choice."""
    package_paths: tuple[str, ...] = ()
    """Folders in which `package://` of a URDF is looked up, before the ament index."""
    num_envs: Annotated[int, Field(ge=1, le=65_536)] = 1
    """Copies of the world."""
    clock_rate_hz: Annotated[float, Field(gt=0.0, le=2000.0)] = 250.0
    """Rate of /clock, Hz."""
    hide_truth: bool = False
    """Publish truth under `_truth/` so the system under test cannot see it by accident."""
    lazy_sensor_update: bool = True
    """Compute only what is read, or is needed later; false captures every sensor on schedule."""
    skip_unavailable: bool = False
    """Run without sensors that cannot work here (a camera with no renderer)."""
    control_delay_s: Latency = 0.0
    """Latency of every actuator command, s."""
    control_delays_s: dict[str, Latency] = {}
    """Latency of single actuators by name of actuator or joint, s, instead of the above."""
    control_delay_backend: Literal['rig', 'mujoco'] = 'rig'
    """`mujoco` compiles that latency into the model; it is then one physics step at least."""
    allow_outside_files: bool = False
    """Let the model read meshes and textures from outside its own folder."""

    @property
    def time_base(self) -> TimeBase:
        """Turns times of the run into stamps and back."""
        return TimeBase(seconds_to_ns(self.start_time_s))

    def require_lockstep_to_wait(self) -> None:
        """Raise RigError where `wait_for` would have no effect."""
        if self.wait_for and not self.lockstep:
            raise RigError(
                f'wait_for names {", ".join(self.wait_for)}, which takes effect in '
                f'lockstep only; add --lockstep, or lockstep: true in world: of the '
                f'rig file'
            )

    @field_validator('wait_for')
    @classmethod
    def _names_of_nodes(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not NODE_NAME.fullmatch(name) or name == 'world':
                raise ValueError(
                    f'{name!r} is no node to wait for; it should be the name of a '
                    f'node of yours without namespace, such as controller: letters, '
                    f'digits and underscores, no digit first, and not world'
                )
        return value

    @field_validator('driver', mode='before')
    @classmethod
    def _known_driver(cls, value: object) -> object:
        return driver_config(value)


@dataclass(frozen=True)
class Simulation:
    """What there is to simulate: a world, the sensors in it, and the seed of all their noise."""

    world: WorldConfig
    sensors: Mapping[str, SensorConfig]
    """By name."""
    seed: int = 0
    links: Mapping[str, LinkConfig] = field(default_factory=dict)
    """Lines that sensors share, by name."""
    folder: Path | None = None
    """Where the model is looked up first."""

    def make_sensors(self) -> dict[str, AnySensor]:
        """Return the sensor objects by name."""
        from sim_sensors.registry import sensor_class

        always = {} if self.world.lazy_sensor_update else {'eager': True}
        return {
            name: sensor_class(config.type)(name, config.model_copy(update=always))
            for name, config in self.sensors.items()
        }
