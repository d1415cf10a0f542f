"""The rig file: its keys, how it is read and checked, its schema, slips of units."""

from rig_common.requirements import require

require('pydantic')

from sensor_rig.rigfile.rig_config import (  # noqa: E402
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
