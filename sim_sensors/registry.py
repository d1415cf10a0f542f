"""Sensor types by name: ours, and those of any installed package that offers some."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from rig_common.errors import RigError
from rig_common.text import near
from sim_sensors.interface import AnySensor, Sensor

BUILT_IN: dict[str, str] = {
    'barometer': 'sim_sensors.sensors.barometer:Barometer',
    'camera': 'sim_sensors.sensors.cameras.camera:Camera',
    'clock_pps': 'sim_sensors.sensors.clock_pps:ClockPps',
    'contact': 'sim_sensors.sensors.contact:Contact',
    'contact_force': 'sim_sensors.sensors.force_torque:ContactForce',
    'contact_probe': 'sim_sensors.sensors.contact_probe:ContactProbe',
    'depth_camera': 'sim_sensors.sensors.cameras.depth_camera:DepthCamera',
    'force_torque': 'sim_sensors.sensors.force_torque:ForceTorque',
    'gnss': 'sim_sensors.sensors.gnss:Gnss',
    'height_scan': 'sim_sensors.sensors.height_scan:HeightScan',
    'imu': 'sim_sensors.sensors.imu:Imu',
    'joint_state': 'sim_sensors.sensors.joint_state:JointState',
    'lidar2d': 'sim_sensors.sensors.lidar.scan:Lidar2d',
    'lidar3d': 'sim_sensors.sensors.lidar.cloud:Lidar3d',
    'magnetometer': 'sim_sensors.sensors.magnetometer:Magnetometer',
    'pose': 'sim_sensors.sensors.pose:Pose',
    'range': 'sim_sensors.sensors.range_finder:Range',
    'segmentation': 'sim_sensors.sensors.cameras.segmentation:Segmentation',
    'tactile': 'sim_sensors.sensors.tactile:Tactile',
    'temperature_grid': 'sim_sensors.sensors.temperature_grid:TemperatureGrid',
    'wheel_odometry': 'sim_sensors.sensors.wheel_odometry:WheelOdometry',
    'wind': 'sim_sensors.sensors.wind:Wind',
}
"""Type name -> where its class is. Loaded on first use."""

ENTRY_POINT_GROUP = 'sensor_rig.sensors'


@cache
def _foreign() -> dict[str, object]:
    return {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}


def type_names() -> list[str]:
    """Return every known sensor type, sorted."""
    return sorted({*BUILT_IN, *_foreign()})


@cache
def sensor_class(type_name: str) -> type[AnySensor]:
    """Return the class of a sensor type."""
    if type_name in BUILT_IN:
        module, _, attribute = BUILT_IN[type_name].partition(':')
        found = getattr(import_module(module), attribute)
    elif type_name in _foreign():
        found = _load(_foreign()[type_name])
    else:
        raise RigError(
            f'sensor type {type_name!r} is not known; {near(type_name, type_names())}'
            f'allowed are {", ".join(type_names())}'
        )
    if not (isinstance(found, type) and issubclass(found, Sensor)):
        raise RigError(f'sensor type {type_name!r} names {found!r}, which is no Sensor class')
    return found


def _load(point: Any) -> Any:
    """Import what another package offers; whatever breaks there is its own, and said so."""
    try:
        return point.load()
    except Exception as error:
        raise RigError(
            f'sensor type {point.name!r} ({point.value}) cannot be loaded: '
            f'{type(error).__name__}: {error}'
        ) from error
