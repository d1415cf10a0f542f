"""Logs of PX4 (ULog), by pyulog: what estimators fuse, in the units and frames of ROS.

A message is received at its `timestamp` (when it was published) and stamped with its
`timestamp_sample`, where the topic has one; both are of the autopilot's clock. Without one its
stamp is when it was published, and nothing tells how late that was. Body frames turn
from front-right-down to front-left-up, world frames from north-east-down to east-north-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common import msgs
from rig_common.arrays import Floats, Ints
from rig_common.errors import RigError
from rig_common.installing import pip_install
from sensor_rig.bags.formats.made import MadeFile, MadeStream, filled
from sensor_rig.bags.formats.trajectory import PoseRows, pose_stream
from sensor_rig.bags.storage.base import BrokenError

MAGIC = b'ULog\x01\x12\x35'
FLU = np.array([1.0, -1.0, -1.0])
GAUSS = 1e-4
LEAST_PA = 2000.0
"""Smaller pressures are in hPa, as older logs have them."""

Fields = dict[str, NDArray[Any]]
Made = Callable[[str, Ints, Ints, Fields], MadeStream | None]
"""From topic, stamps, receive times and fields to the stream; None where fields are missing."""


def ulog_file(path: Path) -> MadeFile:
    """Return the topics of a log that are read."""
    try:
        from pyulog import ULog
    except ImportError:
        need = pip_install('pyulog')
        raise RigError(f'{path} is a log of PX4, which needs pyulog: {need}') from None
    try:
        log: Any = ULog(str(path), list(READERS))
    except Exception as error:  # whatever pyulog meets in broken bytes
        raise BrokenError(f'pyulog cannot read it: {error}') from None
    several = Counter(each.name for each in log.data_list)
    streams = []
    for each in log.data_list:
        topic = f'/{each.name}_{each.multi_id}' if several[each.name] > 1 else f'/{each.name}'
        received_ns = np.asarray(each.data['timestamp'], np.int64) * 1000
        sampled = np.asarray(each.data.get('timestamp_sample', 0), np.int64) * 1000
        stamps_ns = np.where(sampled > 0, sampled, received_ns)
        made = READERS[each.name](topic, stamps_ns, received_ns, each.data)
        if made is not None:
            streams.append(replace(made, has_arrivals=bool((sampled > 0).any())))
    return MadeFile(path, streams)


def _columns(fields: Fields, name: str, parts: Sequence[object]) -> Floats | None:
    """Return fields such as `q[0]`, `q[1]` as [n, parts]; None where one is not there."""
    names = [f'{name}[{part}]' if name else str(part) for part in parts]
    if not all(each in fields for each in names):
        return None
    return np.stack([np.asarray(fields[each], float) for each in names], axis=1)


def _imu_stream(
    topic: str, stamps_ns: Ints, received_ns: Ints, gyro: Floats | None, force: Floats | None
) -> MadeStream | None:
    if gyro is None or force is None:
        return None
    turned = {'angular_velocity': gyro * FLU, 'linear_acceleration': force * FLU}
    return filled(topic, msgs.imu(topic.strip('/')), stamps_ns, received_ns, **turned)


def _sensor_combined(
    topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields
) -> MadeStream | None:
    values = (_columns(fields, name, range(3)) for name in ('gyro_rad', 'accelerometer_m_s2'))
    return _imu_stream(topic, stamps_ns, received_ns, *values)


def _vehicle_imu(
    topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields
) -> MadeStream | None:
    """Return the mean rates of each step, stamped in its middle."""
    rates = []
    for name in ('angle', 'velocity'):
        moved = _columns(fields, f'delta_{name}', range(3))
        lasted_us = np.maximum(np.asarray(fields.get(f'delta_{name}_dt', 0), float), 1.0)
        if moved is None or lasted_us.ndim != 1:
            return None
        rates.append(moved / (lasted_us[:, None] * 1e-6))
        if name == 'angle':
            stamps_ns = stamps_ns - np.rint(lasted_us * 500.0).astype(np.int64)
    return _imu_stream(topic, stamps_ns, received_ns, *rates)


def _pose(topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields) -> MadeStream | None:
    quats = _columns(fields, 'q', range(4))
    if quats is None:
        return None
    place = _columns(fields, 'position', range(3))
    place = _columns(fields, '', 'xyz') if place is None else place
    place = np.zeros((len(quats), 3)) if place is None else place
    good = np.isfinite(quats).all(axis=1) & (np.linalg.norm(quats, axis=1) > 0.5)
    w, x, y, z = quats[good].T
    # (0, h, h, 0) * q * (0, 1, 0, 0), w first, h = sqrt(1/2): the world turns before, the body
    # after.
    xyzw = 0.5**0.5 * np.stack([x + y, x - y, w - z, w + z], axis=1)
    north, east, down = np.nan_to_num(place[good]).T
    poses = PoseRows(stamps_ns[good], np.stack([east, north, -down], axis=1), xyzw)
    made = pose_stream(topic, poses, topic.strip('/'))
    return replace(made, receive_ns=received_ns[good])


def _gps(topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields) -> MadeStream | None:
    places = _columns(fields, '', ('latitude_deg', 'longitude_deg', 'altitude_msl_m'))
    if places is None:
        places = _columns(fields, '', ('lat', 'lon', 'alt'))
        if places is None:
            return None
        places = places * (1e-7, 1e-7, 1e-3)
    template = msgs.nav_sat_fix(topic.strip('/'))
    return filled(topic, template, stamps_ns, received_ns, position=places)


def _pressure(topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields) -> MadeStream | None:
    values = _columns(fields, '', ('pressure',))
    if values is None:
        return None
    pascals = values[:, 0] * (100.0 if np.median(values) < LEAST_PA else 1.0)
    template = msgs.fluid_pressure(topic.strip('/'))
    return filled(topic, template, stamps_ns, received_ns, fluid_pressure=pascals)


def _magnetometer(
    topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields
) -> MadeStream | None:
    values = _columns(fields, '', 'xyz')
    if values is None:
        return None
    template = msgs.magnetic_field(topic.strip('/'))
    field = values * FLU * GAUSS
    return filled(topic, template, stamps_ns, received_ns, magnetic_field=field)


READERS: dict[str, Made] = {
    'sensor_combined': _sensor_combined,
    'vehicle_imu': _vehicle_imu,
    'vehicle_attitude': _pose,
    'vehicle_odometry': _pose,
    'vehicle_visual_odometry': _pose,
    'vehicle_mocap_odometry': _pose,
    'estimator_odometry': _pose,
    'vehicle_gps_position': _gps,
    'sensor_gps': _gps,
    'sensor_baro': _pressure,
    'sensor_mag': _magnetometer,
}
