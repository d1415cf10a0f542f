"""Keys of the section `world:` of a rig file."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from rig_common.errors import RigError
from rig_common.times import TimeBase, seconds_to_ns
from rig_common.validation import Strict
from sim_sensors.timing.units import Latency, NonNegative, Positive
from sim_sensors.world.config.additions import ActuatorConfig, DriveConfig
from sim_sensors.world.config.drivers import DriverConfig, DriverName, driver_config

NODE_NAME = re.compile('[A-Za-z_][A-Za-z0-9_]*')
"""What ROS takes for the name of a node."""


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
    lockstep_timeout_s: Positive = 10.0
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
    base_frame: str = ''
    """Frame of the base, which is the driven body or else the first free one; the body's name when
    empty."""
    frame_prefix: str = ''
    """What all frames begin with, `robot1/`; the nodes' namespace when empty, `/` is nothing."""
    publish_tf: bool = True
    """Publish `map` -> `odom` and, unless wheel odometry does, `odom` -> the base. False leaves
    both to a localisation of yours."""
    true_base_frame: str = ''
    """Frame to publish under `world` that moves as the base truly does, for comparison."""
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
