"""Decodes serialised messages into the named arrays that the cues want (see sync_engine.cues)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sensor_rig.cdr import Reader
from sensor_rig.errors import RigError
from sensor_rig.msgs.decode import read_imu, read_odometry, read_twist
from sync_engine.config import SyncConfig

PayloadReader = Callable[[Any], Mapping[str, Any]]


def readers_of(config: SyncConfig) -> dict[str, PayloadReader]:
    """Return the payload readers of all inputs that have a cue."""
    readers: dict[str, PayloadReader] = {}
    for name, given in config.inputs.items():
        if given.cue == 'none':
            continue
        known = READERS[given.cue]
        if given.type not in known:
            raise RigError(f'sync.inputs.{name}.cue is {given.cue!r}, which reads '
                           f'{" or ".join(sorted(known))}; its type is {given.type!r}')
        readers[name] = known[given.type]
    return readers


def _imu_rate(raw: bytes) -> Mapping[str, Any]:
    return {'angular_velocity': read_imu(raw)[0]}


def _twist_rate(raw: bytes) -> Mapping[str, Any]:
    return {'angular_velocity': read_twist(raw)[2]}


def _odometry_rate(raw: bytes) -> Mapping[str, Any]:
    return {'angular_velocity': read_odometry(raw).angular_rad_s}


def _odometry_orientation(raw: bytes) -> Mapping[str, Any]:
    return {'orientation': read_odometry(raw).orientation_xyzw}


def _pose_orientation(raw: bytes) -> Mapping[str, Any]:
    reader = Reader(raw)
    reader.header()
    return {'orientation': reader.array('f8', 7)[3:]}


def _imu_orientation(raw: bytes) -> Mapping[str, Any]:
    reader = Reader(raw)
    reader.header()
    return {'orientation': reader.array('f8', 4)}


READERS: dict[str, dict[str, PayloadReader]] = {
    'rate': {
        'sensor_msgs/msg/Imu': _imu_rate,
        'geometry_msgs/msg/TwistStamped': _twist_rate,
        'geometry_msgs/msg/TwistWithCovarianceStamped': _twist_rate,
        'nav_msgs/msg/Odometry': _odometry_rate,
    },
    'odometry': {
        'nav_msgs/msg/Odometry': _odometry_orientation,
        'geometry_msgs/msg/PoseStamped': _pose_orientation,
        'geometry_msgs/msg/PoseWithCovarianceStamped': _pose_orientation,
        'sensor_msgs/msg/Imu': _imu_orientation,
    },
}
"""Cue -> message type -> reader."""
