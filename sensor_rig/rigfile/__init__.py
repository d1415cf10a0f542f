"""The rig file: its keys, how it is read and checked, its schema, slips of units."""

from sensor_rig.rigfile.rig_config import (
    RigConfig,
    SeedConfig,
    load_attached,
    load_rig,
    read_parameters,
    resolve_rig,
    rig_from_parameters,
)

__all__ = [
    'RigConfig',
    'SeedConfig',
    'load_attached',
    'load_rig',
    'read_parameters',
    'resolve_rig',
    'rig_from_parameters',
]
