"""What `world.driver` of a rig file can say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
)

from rig_common.errors import RigError
from rig_common.text import near
from rig_common.validation import PartError, Strict, validated
from sim_sensors.timing.units import NonNegative, Positive, rising

Names = Annotated[tuple[str, ...], Field(min_length=1)]
Vector3 = tuple[float, float, float]
Settings = dict[str, bool | int | float | str | list[bool] | list[int] | list[float] | list[str]]


def _triples(value: tuple[float, ...]) -> tuple[float, ...]:
    if len(value) % 3:
        raise ValueError(f'{len(value)} numbers; it should be x y z triples')
    return value


Triples = Annotated[tuple[float, ...], AfterValidator(_triples)]
SIMPLE = ('none', 'commands', 'figure_eight', 'rest_cruise_turn')
"""Drivers that can be named without a map."""


class GainConfig(Strict):
    """Gains of some joints of the PD layer, in joint units."""

    joints: Names
    """Joints, tendons or actuators by name or index; `*` and `?` stand for any letters."""
    kp: NonNegative = 0.0
    """Stiffness, N m/rad (N/m for sliding joints); 0 takes the default."""
    kd: NonNegative = 0.0
    """Damping, N m s/rad (N s/m); 0 takes the default."""


class JointServoConfig(Strict):
    """Keys of every driver that moves joints through the PD layer."""

    pose: str | int = ''
    """Pose to hold or to move around: one of `world.poses`, a keyframe by name or number, or
    empty for the start."""
    gains: dict[str, GainConfig] = {}
    """Gains by a name of your choice; joints in none of them have gains from their inertia, the
    load they carry and their force limits."""
    ramp_s: NonNegative = 1.0
    """Time from the start to the pose, s."""


class HoldConfig(JointServoConfig):
    """Hold a pose; positions from `joint_commands` and `joint_trajectory` move it."""

    type: Literal['hold']
    """`hold`."""


class ExciteConfig(JointServoConfig):
    """Move smoothly around a pose, inside the joints' limits, in a band of frequencies."""

    type: Literal['excite']
    """`excite`."""
    joints: Names = ('*',)
    """Joints to move; `*` and `?` stand for any letters."""
    amplitude_rad: NonNegative = 0.25
    """Largest way from the pose (m for sliding joints); less where a limit is nearer."""
    band_hz: Annotated[tuple[Positive, Positive], AfterValidator(rising)] = (0.15, 1.2)
    """Lowest and highest frequency, Hz."""
    sway: Literal['auto', 'base', 'joints'] = 'auto'
    """`base` turns and shifts the base of a legged robot over its feet, which stay where they
    are; `joints` moves every joint on its own; `auto` is `base` for a robot that stands."""
    base_rad: NonNegative = 0.1
    """Largest turn of the base about each axis with sway `base`, rad; less, like the shift, for a
    robot whose feet are near each other under a high centre of mass."""
    base_m: NonNegative = 0.01
    """Largest shift of the base along each axis with sway `base`, m."""


class TrajectoryConfig(JointServoConfig):
    """Follow a recorded motion of joints, of a driven base, or of a body."""

    type: Literal['trajectory']
    """`trajectory`."""
    file: str
    """CSV, NPZ or rosbag2 recording: absolute or beside the rig file."""
    topic: str = 'joint_states'
    """Topic of the JointState messages in a recording."""
    body: str = ''
    """Body that a trajectory of poses (x, y, z, qw ...) moves: a mocap body; empty takes the
    driven base or the only mocap body."""
    loop: bool = True
    """Start again at the end; else the last values hold."""
    speed: Positive = 1.0
    """Seconds of the file per simulated second."""


class PythonConfig(Strict):
    """A controller of the user, in the loop."""

    model_config = ConfigDict(populate_by_name=True)

    type: Literal['python']
    """`python`."""
    class_: Annotated[str, Field(alias='class', pattern=r'^[\w.]+:\w+$')]
    """Where the class is, `module:Class`; modules beside the rig file are found."""
    options: Settings = {}
    """Handed to the class as keyword arguments."""


class MocapConfig(Strict):
    """Move a mocap body through waypoints, or let commands move it."""

    type: Literal['mocap']
    """`mocap`."""
    body: str = ''
    """Mocap body; empty takes the only one."""
    waypoints_m: Triples = ()
    """x, y, z of each waypoint in the world, m; without any the body waits for commands."""
    speed_m_s: Positive = 0.15
    """Mean speed between waypoints, m/s."""
    rest_s: NonNegative = 0.5
    """Rest at every waypoint, s."""
    tilt_rad: NonNegative = 0.0
    """Largest turn about each axis on the way, rad."""


class WaypointsConfig(Strict):
    """Fly a free body through waypoints by its rotors: position, attitude, thrust."""

    type: Literal['waypoints']
    """`waypoints`."""
    body: str = ''
    """Body with a free joint; empty takes the first one that actuators act on."""
    waypoints_m: Triples = ()
    """x, y, z of each waypoint in the world, m; without any the body hovers at its start."""
    speed_m_s: Positive = 1.0
    """Cruising speed, m/s."""
    acceleration_m_s2: Positive = 2.0
    """Largest acceleration wanted, m/s^2."""
    rest_s: NonNegative = 1.0
    """Hover at every waypoint, s."""
    yaw: Literal['fixed', 'ahead', 'swing'] = 'swing'
    """Heading: as at the start, along the way, or swinging to both sides."""
    swing_rad: NonNegative = 0.6
    """How far it swings, rad."""


class FigureEightConfig(Strict):
    """Drive a wheeled base round a figure eight with a slalom on top."""

    type: Literal['figure_eight']
    """`figure_eight`."""
    half_length_m: NonNegative = 0.0
    """Half length of the eight, m; 0 takes the model's `course_m`, or 4."""
    half_width_m: NonNegative = 0.0
    """Half width of the eight, m; 0 takes the model's `course_m`, or 1.6."""


class RestCruiseTurnConfig(Strict):
    """Drive a wheeled base from waypoint to waypoint: rest, turn, cruise."""

    type: Literal['rest_cruise_turn']
    """`rest_cruise_turn`."""
    waypoints_m: tuple[float, ...] = ()
    """x, y of each waypoint, m; none takes the model's `waypoints_m`."""

    @field_validator('waypoints_m')
    @classmethod
    def _pairs(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if value and (len(value) < 4 or len(value) % 2):
            raise ValueError(f'{len(value)} numbers; it should be x y pairs, two at least')
        return value


class PlainConfig(Strict):
    """A driver without keys."""

    type: Literal['none', 'commands']
    """`none` or `commands`."""


DriverConfig = (
    PlainConfig
    | FigureEightConfig
    | RestCruiseTurnConfig
    | HoldConfig
    | ExciteConfig
    | TrajectoryConfig
    | PythonConfig
    | MocapConfig
    | WaypointsConfig
)
TYPES: dict[str, type[Strict]] = {
    name: kind
    for kind in get_args(DriverConfig)
    for name in get_args(kind.model_fields['type'].annotation)
}

DriverName = Annotated[str, WithJsonSchema({'type': 'string', 'enum': list(TYPES)})]
"""A driver without keys; the world says which there are."""


def driver_config(value: object) -> object:
    """Return `world.driver` as a config of its type; a text stays one where it can be a driver
    without keys, or is none (the world says so)."""
    if isinstance(value, str) and value in TYPES and value not in SIMPLE:
        value = {'type': value}
    if isinstance(value, (str, Strict)):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f'{value!r}; it should be the name of a driver, or a map with its type')
    kind = value.get('type')
    if not isinstance(kind, str) or kind not in TYPES:
        given = 'missing' if kind is None else repr(kind)
        known = ', '.join(TYPES)
        raise PartError(f'driver.type is {given}; {near(kind, TYPES)}it should be one of {known}')
    try:
        return validated(TYPES[kind], value, 'driver')
    except RigError as error:
        raise PartError(str(error)) from None
