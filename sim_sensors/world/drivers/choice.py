"""From `world.driver` to the driver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rig_common.errors import RigError
from rig_common.text import near
from sim_sensors.world.actuation.servo import lengths_at
from sim_sensors.world.config import drivers as config
from sim_sensors.world.drivers import wheeled
from sim_sensors.world.drivers.controller import Controller
from sim_sensors.world.drivers.excite import Excite
from sim_sensors.world.drivers.flight import Flight
from sim_sensors.world.drivers.hold import Hold, servo_at
from sim_sensors.world.drivers.mocap import Mocap
from sim_sensors.world.drivers.recorded import recorded
from sim_sensors.world.model.poses import start_qpos
from sim_sensors.world.world_base import Driver, WorldBase

DRIVERS: dict[type, Callable[[WorldBase, Any], Driver]] = {
    config.HoldConfig: Hold,
    config.ExciteConfig: Excite,
    config.PythonConfig: Controller,
    config.MocapConfig: Mocap,
    config.WaypointsConfig: Flight,
    config.TrajectoryConfig: recorded,
    config.FigureEightConfig: wheeled.figure_eight,
    config.RestCruiseTurnConfig: wheeled.rest_cruise_turn,
}
DRIVES = ('commands', 'figure_eight', 'rest_cruise_turn')
"""What needs a wheeled base."""


def make_driver(given: str | config.DriverConfig, world: WorldBase) -> Driver | None:
    """Return the driver that the rig file asks for; None for `none` and `commands`."""
    if isinstance(given, str) and given not in config.TYPES:
        raise RigError(
            f'world.driver is {given!r}; {near(given, config.TYPES)}allowed are '
            f'{", ".join(config.TYPES)}'
        )
    chosen: Any = (
        config.TYPES[given].model_validate({'type': given}) if isinstance(given, str) else given
    )
    if chosen.type in DRIVES:
        _require_drive(chosen.type, world)
    if world.drive is not None and chosen.type in ('none', 'trajectory', *DRIVES):
        _hold_wheels(world)
    driver = DRIVERS.get(type(chosen))
    return None if driver is None else driver(world, chosen)


def _require_drive(name: str, world: WorldBase) -> None:
    if world.drive is not None:
        return
    also = (
        ', which take joint_commands, joint_trajectory and pose commands too'
        if name == 'commands'
        else ''
    )
    raise RigError(
        f'world.driver is {name!r}, but the model does not say how it is driven; give '
        f'world.drive, or give the model the custom entries drive, drive_left, '
        f'drive_right and drive_geometry_m, or set driver: none or hold{also}'
    )


def _hold_wheels(world: WorldBase) -> None:
    """Put a velocity loop before wheels that are driven by torque motors."""
    drive, actuators = world.required_drive(), world.actuation.actuators
    wheels = [*drive.left, *drive.right]
    if actuators.kinds[wheels[0]] != 'effort':
        return
    start = start_qpos(world.model, world.keyframe)
    servo = servo_at(world, start, {}, wheels)
    world.actuation.add_servo(servo, lengths_at(world.model, start, servo.outs))
