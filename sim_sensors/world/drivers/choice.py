"""From `world.driver` to the driver."""

from __future__ import annotations

import mujoco

from rig_common.errors import RigError
from rig_common.text import near
from sim_sensors.world.actuation.servo import Servo, lengths_at
from sim_sensors.world.config import drivers as config
from sim_sensors.world.drivers import wheeled
from sim_sensors.world.drivers.controller import Controller
from sim_sensors.world.drivers.excite import Excite
from sim_sensors.world.drivers.flight import Flight
from sim_sensors.world.drivers.hold import Hold
from sim_sensors.world.drivers.mocap import Mocap
from sim_sensors.world.drivers.recorded import recorded
from sim_sensors.world.model.poses import start_qpos
from sim_sensors.world.world_base import Driver, WorldBase


def make_driver(given: str | config.DriverConfig, world: WorldBase) -> Driver | None:
    """Return the driver that the rig file asks for; None for `none` and `commands`."""
    if isinstance(given, str) and given not in config.TYPES:
        raise RigError(
            f'world.driver is {given!r}; {near(given, config.TYPES)}allowed are '
            f'{", ".join(config.TYPES)}'
        )
    chosen = (
        config.TYPES[given].model_validate({'type': given}) if isinstance(given, str) else given
    )
    if isinstance(chosen, (config.FigureEightConfig, config.RestCruiseTurnConfig)) or (
        isinstance(chosen, config.PlainConfig) and chosen.type == 'commands'
    ):
        _require_drive(chosen.type, world)
    if isinstance(chosen, config.HoldConfig):
        return Hold(world, chosen)
    if isinstance(chosen, config.ExciteConfig):
        return Excite(world, chosen)
    if isinstance(chosen, config.PythonConfig):
        return Controller(world, chosen)
    if isinstance(chosen, config.MocapConfig):
        return Mocap(world, chosen)
    if isinstance(chosen, config.WaypointsConfig):
        return Flight(world, chosen)
    if world.drive is not None:
        _hold_wheels(world)
    if isinstance(chosen, config.TrajectoryConfig):
        return recorded(world, chosen)
    if isinstance(chosen, config.FigureEightConfig):
        return wheeled.figure_eight(world, chosen)
    if isinstance(chosen, config.RestCruiseTurnConfig):
        return wheeled.rest_cruise_turn(world, chosen)
    return None


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
    data = mujoco.MjData(world.model)
    data.qpos[:] = start_qpos(world.model, world.keyframe)
    mujoco.mj_forward(world.model, data)
    servo = Servo(world.model, actuators, data, {}, wheels)
    world.actuation.add_servo(servo, lengths_at(world.model, data.qpos, servo.outs))
