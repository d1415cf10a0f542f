"""Finds the LiDAR that a picture is to show."""

from __future__ import annotations

from rig_common.errors import RigError
from sensor_rig.rigfile import RigConfig
from sim_sensors.sensors.lidar.config import LidarConfig
from sim_sensors.sensors.lidar.scanner import Lidar


def lidar_of(config: RigConfig, wanted: str | None) -> Lidar[LidarConfig]:
    """Return the LiDAR called `wanted`, by default the first one of the rig."""
    lidars = {
        name: each for name, each in config.make_sensors().items() if isinstance(each, Lidar)
    }
    name = wanted or next(iter(lidars), '')
    if name not in lidars:
        known = f'its LiDARs are {", ".join(lidars)}' if lidars else 'it has no LiDAR'
        raise RigError(
            f'{config.path.name} has no LiDAR {name!r}; {known}'
            if wanted
            else f'{config.path.name}: {known}'
        )
    return lidars[name]
