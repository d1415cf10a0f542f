"""Logs of PX4 (ULog): what estimators fuse, in the units and frames of ROS.

A message is received at its `timestamp` (when it was published) and stamped with its
`timestamp_sample`, where the topic has one; both are of the autopilot's clock. Without one its
stamp is when it was published, and nothing tells how late that was. Body frames turn
from front-right-down to front-left-up, world frames from north-east-down to east-north-up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rig_common import msgs
from rig_common.arrays import Floats
from rig_common.cdr import Template
from sensor_rig.bags.formats.made import MadeFile, MadeStream, filled
from sensor_rig.bags.formats.ulog_records import MOST_US, Logged, Rows, ULogRecords
from sensor_rig.bags.storage.base import Miss

FLU = np.array([1.0, -1.0, -1.0])
GAUSS = 1e-4
LEAST_PA = 2000.0
"""Smaller pressures are in hPa, as older logs have them."""


class Made(NamedTuple):
    """Messages of ROS made of the rows of a topic."""

    template: Callable[[str], Template]
    """From the name of the frame."""
    values: dict[str, Floats]
    """A row a message, by block."""
    early_us: Any = 0.0
    """How long before its stamp each was measured."""
    good: Any = slice(None)
    """The rows of which there is a message."""


def ulog_file(path: Path, miss: Miss) -> MadeFile:
    """Return the topics of a log that are read."""
    logged = [each for each in ULogRecords(path, READERS, miss).logged if each.raw]
    several = Counter(each.name for each in logged)
    streams = []
    for each in logged:
        topic = f'/{each.name}_{each.instance}' if several[each.name] > 1 else f'/{each.name}'
        with suppress(ValueError):  # another version of the topic, without a field that is needed
            streams.append(_stream(topic, each, path, miss))
    return MadeFile(path, streams)


def _stream(topic: str, logged: Logged, path: Path, miss: Miss) -> MadeStream:
    rows = logged.rows
    times_us = {
        name: rows[name] for name in ('timestamp', 'timestamp_sample') if name in _names(rows)
    }
    good = np.all([each <= MOST_US for each in times_us.values()], axis=0)
    if not good.all():
        miss(f'{topic} of {path} has {np.sum(~good)} messages with a time that is none')
    rows = rows[good]
    received_ns = rows['timestamp'].astype(np.int64) * 1000
    sampled_ns = received_ns * 0
    if 'timestamp_sample' in times_us:
        sampled_ns = rows['timestamp_sample'].astype(np.int64) * 1000
    made = READERS[logged.name](rows)
    early_ns = np.rint(np.asarray(made.early_us) * 1e3).astype(np.int64)
    stamps_ns = np.where(sampled_ns > 0, sampled_ns, received_ns) - early_ns
    stream = filled(
        topic,
        made.template(topic.strip('/')),
        stamps_ns[made.good],
        received_ns[made.good],
        **{name: each[made.good] for name, each in made.values.items()},
    )
    return stream._replace(has_arrivals=bool((sampled_ns > 0).any()))


def _names(rows: Rows) -> tuple[str, ...]:
    return rows.dtype.names or ()


def _columns(rows: Rows, *names: str) -> Floats:
    """Return a field that is a vector, or several that are none, as [n, parts].

    Raises ValueError where one is not there.
    """
    return np.column_stack([rows[name].astype(float) for name in names])


def _imu(gyro: Floats, force: Floats) -> Made:
    return Made(msgs.imu, {'angular_velocity': gyro * FLU, 'linear_acceleration': force * FLU})


def _sensor_combined(rows: Rows) -> Made:
    return _imu(_columns(rows, 'gyro_rad'), _columns(rows, 'accelerometer_m_s2'))


def _vehicle_imu(rows: Rows) -> Made:
    """Return the mean rates of each step, stamped in its middle."""
    lasted_us = [
        np.maximum(_columns(rows, name), 1.0) for name in ('delta_angle_dt', 'delta_velocity_dt')
    ]
    moved = _columns(rows, 'delta_angle'), _columns(rows, 'delta_velocity')
    made = _imu(*(each / (us * 1e-6) for each, us in zip(moved, lasted_us, strict=True)))
    return made._replace(early_us=lasted_us[0][:, 0] / 2.0)


def _pose(rows: Rows) -> Made:
    quats = _columns(rows, 'q')
    place = np.zeros((len(quats), 3))
    for names in (('position',), ('x', 'y', 'z')):
        if set(names) <= set(_names(rows)):
            place = np.nan_to_num(_columns(rows, *names))
            break
    norms = np.linalg.norm(quats, axis=1)
    w, x, y, z = quats.T
    # (0, h, h, 0) * q * (0, 1, 0, 0), w first, h = sqrt(1/2): the world turns before, the body
    # after.
    xyzw = 0.5**0.5 * np.stack([x + y, x - y, w - z, w + z], axis=1)
    values = {'position': place[:, [1, 0, 2]] * (1.0, 1.0, -1.0), 'orientation': xyzw}
    return Made(msgs.pose_stamped, values, good=np.isfinite(norms) & (norms > 0.5))


def _gps(rows: Rows) -> Made:
    if 'lat' in _names(rows):  # an older log
        places = _columns(rows, 'lat', 'lon', 'alt') * (1e-7, 1e-7, 1e-3)
    else:
        places = _columns(rows, 'latitude_deg', 'longitude_deg', 'altitude_msl_m')
    return Made(msgs.nav_sat_fix, {'position': places})


def _pressure(rows: Rows) -> Made:
    values = _columns(rows, 'pressure')[:, 0]
    pascals = values * (100.0 if np.median(values) < LEAST_PA else 1.0)
    return Made(msgs.fluid_pressure, {'fluid_pressure': pascals})


def _magnetometer(rows: Rows) -> Made:
    return Made(msgs.magnetic_field, {'magnetic_field': _columns(rows, *'xyz') * FLU * GAUSS})


READERS: dict[str, Callable[[Rows], Made]] = {
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
