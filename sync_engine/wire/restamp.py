"""Gives a member its new stamp, and keeps the times inside the message true.

A cloud's points carry their own times. Most count from the header's stamp, so when the header
moves by d they move by -d; some are absolute, on the sensor's clock, and move by its offset.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import AnyArray
from rig_common.cdr import Buffer, CdrError, read_stamp_ns, with_stamp_ns, write_stamp_ns
from rig_common.msgs.decode import Cloud, read_cloud

CLOUD_TYPE = 'sensor_msgs/msg/PointCloud2'
POINT_TIME_FIELDS = ('time', 't', 'timestamp', 'time_stamp', 'offset_time')
"""Names that LiDAR drivers give to a point's time."""

ABSOLUTE_FROM_S = 1e6
"""A point time above this many seconds is a date, not a time since the sweep began."""


EARLY_SHARE = 0.1
"""Share of a sweep by which its first point must be before the stamp, to be counted from it."""


def corrected(type_name: str, raw: Buffer, offset_ns: int, late_ns: int = 0) -> bytes:
    """Return the message with the stamp that it should have had.

    `offset_ns` is how far the clock that stamped it is ahead, `late_ns` how long after the instant
    that stamps mean (the start of a sweep) it was stamped.
    """
    stamp_ns = read_stamp_ns(raw)
    capture_ns = stamp_ns - offset_ns
    return restamp(type_name, raw, stamp_ns, capture_ns - late_ns, capture_ns, late_ns)[0]


def restamp(
    type_name: str,
    raw: Buffer,
    stamp_ns: int,
    new_stamp_ns: int,
    capture_ns: int,
    late_ns: int = 0,
) -> tuple[bytes, int]:
    """Return (the message with `new_stamp_ns`, shift of its relative point times in ns).

    `stamp_ns` is the stamp it came with, on the sensor's clock; `capture_ns` is that moment on
    the host's. `late_ns` is how long after the start of its sweep it was stamped: points whose
    times count from there are told by the first of them. The shift is 0 for everything but clouds
    with a time per point, and for a cloud whose unsigned times cannot hold the shifted ones.
    """
    if type_name == CLOUD_TYPE:
        shifted = _restamp_cloud(raw, stamp_ns, new_stamp_ns, capture_ns, late_ns)
        if shifted is not None:
            return shifted
    return with_stamp_ns(raw, new_stamp_ns), 0


def _restamp_cloud(
    raw: Buffer, stamp_ns: int, new_stamp_ns: int, capture_ns: int, late_ns: int
) -> tuple[bytes, int] | None:
    relative_ns, absolute_ns = capture_ns - new_stamp_ns, capture_ns - stamp_ns
    if not relative_ns and not absolute_ns:
        return None
    try:
        cloud = read_cloud(raw)
    except CdrError:
        return None  # not ours to judge: it is passed on as it came
    name = point_time_field(cloud)
    if name is None or not cloud.points.size:
        return None
    absolute = _is_absolute(cloud.points[name])
    if late_ns and not absolute and not counts_from_stamp(cloud):
        relative_ns -= late_ns
    shift_ns = absolute_ns if absolute else relative_ns
    changed = BytesIO(raw)  # its bytes can be written to and are handed out without another copy
    with changed.getbuffer() as copy:
        points = np.frombuffer(copy, cloud.points.dtype, cloud.points.size, cloud.data_offset)
        fits = _shift(points[name], shift_ns)
        del points
        write_stamp_ns(copy, new_stamp_ns)
    return (changed.getvalue(), 0 if absolute else shift_ns) if fits else None


def point_time_field(cloud: Cloud) -> str | None:
    """Return the name of the field that holds a point's time."""
    names = cloud.points.dtype.names or ()
    return next(
        (
            name
            for name in POINT_TIME_FIELDS
            if name in names and cloud.points.dtype[name].shape == ()
        ),
        None,
    )


def point_times_s(cloud: Cloud) -> NDArray[np.float64] | None:
    """Return the points' times [n], s after the stamp; None for a cloud without them."""
    name = point_time_field(cloud)
    if name is None or not cloud.points.size:
        return None
    times = cloud.points[name].astype(np.float64)
    if cloud.points[name].dtype.kind in 'iu':
        times *= 1e-9
    elif _is_absolute(cloud.points[name]):
        times -= cloud.stamp_ns / 1e9
    return times


def counts_from_stamp(cloud: Cloud) -> bool:
    """Whether the times of a cloud that is not stamped at its start count from the stamp.

    Then those of its first points are negative; else they count from the start of the sweep.
    """
    times = point_times_s(cloud)
    return times is not None and float(times.min()) < -EARLY_SHARE * float(np.ptp(times))


def has_absolute_times(cloud: Cloud) -> bool:
    """Whether the points carry dates on the sensor's clock, not times since the stamp."""
    name = point_time_field(cloud)
    return name is not None and bool(cloud.points.size) and _is_absolute(cloud.points[name])


def _is_absolute(times: AnyArray) -> bool:
    return times.dtype.kind == 'f' and float(times[0]) > ABSOLUTE_FROM_S


def _shift(times: AnyArray, shift_ns: int) -> bool:
    """Add `shift_ns` in place; floats are seconds, integers nanoseconds. False: they cannot."""
    if times.dtype.kind == 'f':
        times += times.dtype.type(shift_ns / 1e9)
        return True
    limits = np.iinfo(times.dtype)
    if int(times.min()) + shift_ns < limits.min or int(times.max()) + shift_ns > limits.max:
        return False
    times[...] = times.astype(np.int64) + shift_ns
    return True
