"""Logs of PX4 (ULog), by pyulog: what estimators fuse, in the units and frames of ROS.

A message is received at its `timestamp` (when it was published) and stamped with its
`timestamp_sample`, where the topic has one; both are of the autopilot's clock. Without one its
stamp is when it was published, and nothing tells how late that was. Body frames turn
from front-right-down to front-left-up, world frames from north-east-down to east-north-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common import msgs
from rig_common.arrays import Ints
from rig_common.errors import RigError
from rig_common.installing import pip_install
from sensor_rig.bags.formats.made import MadeFile, MadeStream
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


def _columns(fields: Fields, name: str, count: int) -> NDArray[np.float64] | None:
    """Return an array field as [n, count]; None where it is not there."""
    names = [f'{name}[{index}]' for index in range(count)]
    if not all(each in fields for each in names):
        return None
    return np.stack([np.asarray(fields[each], float) for each in names], axis=1)


def _imu_stream(
    topic: str, stamps_ns: Ints, received_ns: Ints, gyro: NDArray[np.float64],
    force: NDArray[np.float64],
) -> MadeStream:  # fmt: skip
    template, gyro, force = msgs.imu(topic.strip('/')), gyro * FLU, force * FLU
    return MadeStream(
        topic,
        'sensor_msgs/msg/Imu',
        received_ns,
        lambda index: template.fill(
            int(stamps_ns[index]), angular_velocity=gyro[index], linear_acceleration=force[index]
        ),
    )


def _sensor_combined(
    topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields
) -> MadeStream | None:
    gyro, force = (_columns(fields, name, 3) for name in ('gyro_rad', 'accelerometer_m_s2'))
    if gyro is None or force is None:
        return None
    return _imu_stream(topic, stamps_ns, received_ns, gyro, force)


def _vehicle_imu(
    topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields
) -> MadeStream | None:
    """Return the mean rates of each step, stamped in its middle."""
    turned, pushed = (_columns(fields, name, 3) for name in ('delta_angle', 'delta_velocity'))
    angle_us, velocity_us = (
        np.maximum(np.asarray(fields.get(f'delta_{each}_dt', 0), float), 1.0)
        for each in ('angle', 'velocity')
    )
    if turned is None or pushed is None or angle_us.ndim != 1:
        return None
    middles_ns = stamps_ns - np.rint(angle_us * 500.0).astype(np.int64)
    gyro, force = turned / (angle_us[:, None] * 1e-6), pushed / (velocity_us[:, None] * 1e-6)
    return _imu_stream(topic, middles_ns, received_ns, gyro, force)


def _pose(topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields) -> MadeStream | None:
    quats = _columns(fields, 'q', 4)
    if quats is None:
        return None
    place = _columns(fields, 'position', 3)
    if place is None:
        named = [fields.get(axis) for axis in 'xyz']
        place = (np.zeros((len(quats), 3)) if any(each is None for each in named) else
                 np.stack([np.asarray(each, float) for each in named], axis=1))  # fmt: skip
    good = np.isfinite(quats).all(axis=1) & (np.linalg.norm(quats, axis=1) > 0.5)
    w, x, y, z = quats[good].T
    half = 0.5**0.5
    # (0, h, h, 0) * q * (0, 1, 0, 0), w first: the world turns before, the body after.
    turned = np.stack([half * (w + z), half * (x + y), half * (x - y), half * (w - z)], axis=1)
    xyzw = np.stack([turned[:, 1], turned[:, 2], turned[:, 3], turned[:, 0]], axis=1)
    north, east, down = np.nan_to_num(place[good]).T
    enu = np.stack([east, north, -down], axis=1)
    made = pose_stream(topic, PoseRows(stamps_ns[good], enu, xyzw), topic.strip('/'))
    return MadeStream(topic, made.type_name, received_ns[good], made.make)


def _gps(topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields) -> MadeStream | None:
    if 'latitude_deg' in fields:
        latitude, longitude = fields['latitude_deg'], fields['longitude_deg']
        altitude = fields['altitude_msl_m']
    elif 'lat' in fields:
        latitude, longitude = fields['lat'] * 1e-7, fields['lon'] * 1e-7
        altitude = fields['alt'] * 1e-3
    else:
        return None
    places = np.stack(
        [np.asarray(each, float) for each in (latitude, longitude, altitude)], axis=1
    )
    template = msgs.nav_sat_fix(topic.strip('/'))
    return MadeStream(
        topic,
        'sensor_msgs/msg/NavSatFix',
        received_ns,
        lambda index: template.fill(int(stamps_ns[index]), position=places[index]),
    )


def _pressure(topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields) -> MadeStream | None:
    values = fields.get('pressure')
    if values is None:
        return None
    pascals = np.asarray(values, float) * (100.0 if np.median(values) < LEAST_PA else 1.0)
    template = msgs.fluid_pressure(topic.strip('/'))
    return MadeStream(
        topic,
        'sensor_msgs/msg/FluidPressure',
        received_ns,
        lambda index: template.fill(int(stamps_ns[index]), fluid_pressure=pascals[index]),
    )


def _magnetometer(
    topic: str, stamps_ns: Ints, received_ns: Ints, fields: Fields
) -> MadeStream | None:
    if not all(axis in fields for axis in 'xyz'):
        return None
    values = np.stack([np.asarray(fields[axis], float) for axis in 'xyz'], axis=1) * FLU * GAUSS
    template = msgs.magnetic_field(topic.strip('/'))
    return MadeStream(
        topic,
        'sensor_msgs/msg/MagneticField',
        received_ns,
        lambda index: template.fill(int(stamps_ns[index]), magnetic_field=values[index]),
    )


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
