"""Logs of PX4 (ULog): what estimators fuse, in the units and frames of ROS.

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

import numpy as np

from rig_common import msgs
from rig_common.arrays import Floats, Ints
from sensor_rig.bags.formats.made import MadeFile, MadeStream, filled
from sensor_rig.bags.formats.trajectory import PoseRows, pose_stream
from sensor_rig.bags.formats.ulog_records import MOST_US, Rows, ULogRecords
from sensor_rig.bags.storage.base import Miss

FLU = np.array([1.0, -1.0, -1.0])
GAUSS = 1e-4
LEAST_PA = 2000.0
"""Smaller pressures are in hPa, as older logs have them."""

Made = Callable[[str, Ints, Ints, Rows], MadeStream | None]
"""From topic, stamps, receive times and fields to the stream; None where fields are missing."""


def ulog_file(path: Path, miss: Miss) -> MadeFile:
    """Return the topics of a log that are read."""
    logged = [each for each in ULogRecords(path, READERS, miss).logged if each.raw]
    several = Counter(each.name for each in logged)
    streams = []
    for each in logged:
        topic = f'/{each.name}_{each.instance}' if several[each.name] > 1 else f'/{each.name}'
        rows = each.rows
        times = [name for name in ('timestamp', 'timestamp_sample') if name in _names(rows)]
        if times[:1] != ['timestamp']:
            miss(f'{topic} of {path} has no times, so its {len(rows)} messages are left out')
            continue
        good = np.all([rows[name] <= MOST_US for name in times], axis=0)
        if not good.all():
            miss(f'{topic} of {path} has {np.sum(~good)} messages with a time that is none')
        rows = rows[good]
        received_ns = rows['timestamp'].astype(np.int64) * 1000
        sampled = rows[times[-1]].astype(np.int64) * 1000 if len(times) > 1 else 0 * received_ns
        made = READERS[each.name](
            topic, np.where(sampled > 0, sampled, received_ns), received_ns, rows
        )
        if made is not None:
            streams.append(replace(made, has_arrivals=bool((sampled > 0).any())))
    return MadeFile(path, streams)


def _names(rows: Rows) -> tuple[str, ...]:
    return rows.dtype.names or ()


def _columns(rows: Rows, *names: str) -> Floats | None:
    """Return a field that is a vector, or several that are none, as [n, parts]; None where one is
    not there."""
    if not all(name in _names(rows) for name in names):
        return None
    return np.column_stack([rows[name].astype(float) for name in names])


def _imu_stream(
    topic: str, stamps_ns: Ints, received_ns: Ints, gyro: Floats | None, force: Floats | None
) -> MadeStream | None:
    if gyro is None or force is None:
        return None
    turned = {'angular_velocity': gyro * FLU, 'linear_acceleration': force * FLU}
    return filled(topic, msgs.imu(topic.strip('/')), stamps_ns, received_ns, **turned)


def _sensor_combined(
    topic: str, stamps_ns: Ints, received_ns: Ints, rows: Rows
) -> MadeStream | None:
    values = (_columns(rows, name) for name in ('gyro_rad', 'accelerometer_m_s2'))
    return _imu_stream(topic, stamps_ns, received_ns, *values)


def _vehicle_imu(topic: str, stamps_ns: Ints, received_ns: Ints, rows: Rows) -> MadeStream | None:
    """Return the mean rates of each step, stamped in its middle."""
    rates = []
    for name in ('angle', 'velocity'):
        moved, lasted_us = (_columns(rows, f'delta_{name}{end}') for end in ('', '_dt'))
        if moved is None or lasted_us is None:
            return None
        lasted_us = np.maximum(lasted_us, 1.0)
        rates.append(moved / (lasted_us * 1e-6))
        if name == 'angle':
            stamps_ns = stamps_ns - np.rint(lasted_us[:, 0] * 500.0).astype(np.int64)
    return _imu_stream(topic, stamps_ns, received_ns, *rates)


def _pose(topic: str, stamps_ns: Ints, received_ns: Ints, rows: Rows) -> MadeStream | None:
    quats = _columns(rows, 'q')
    if quats is None:
        return None
    place = _columns(rows, 'position')
    place = _columns(rows, *'xyz') if place is None else place
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


def _gps(topic: str, stamps_ns: Ints, received_ns: Ints, rows: Rows) -> MadeStream | None:
    places = _columns(rows, 'latitude_deg', 'longitude_deg', 'altitude_msl_m')
    if places is None:
        places = _columns(rows, 'lat', 'lon', 'alt')
        if places is None:
            return None
        places = places * (1e-7, 1e-7, 1e-3)
    template = msgs.nav_sat_fix(topic.strip('/'))
    return filled(topic, template, stamps_ns, received_ns, position=places)


def _pressure(topic: str, stamps_ns: Ints, received_ns: Ints, rows: Rows) -> MadeStream | None:
    values = _columns(rows, 'pressure')
    if values is None:
        return None
    pascals = values[:, 0] * (100.0 if np.median(values) < LEAST_PA else 1.0)
    template = msgs.fluid_pressure(topic.strip('/'))
    return filled(topic, template, stamps_ns, received_ns, fluid_pressure=pascals)


def _magnetometer(topic: str, stamps_ns: Ints, received_ns: Ints, rows: Rows) -> MadeStream | None:
    values = _columns(rows, *'xyz')
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
