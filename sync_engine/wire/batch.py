"""A collected member under its bundle's stamp: one PointCloud2 with a point for each message.

    synced/imu/data_raw         every message, with its own corrected stamp
    synced/imu/data_raw/batch   all of a bundle at once: time, angular_velocity_x, ...

So a plain exact TimeSynchronizer takes it together with the other members. A point's `time` is
the capture in seconds after the header's stamp (0 or negative: what was collected came before);
the other fields are the numbers of the message, as float64, for the types that `codecs` knows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig_common import msgs
from rig_common.cdr import CdrError, Reader
from rig_common.times import NS_PER_S
from sync_engine.matching.bundle import Bundle, Member
from sync_engine.streams.buffer import Packet
from sync_engine.wire.codecs import Run, WireCodec

BATCH = '/batch'
"""Follows the topic of a collected member."""
BATCH_TYPE = 'sensor_msgs/msg/PointCloud2'
AXES = {1: ('',), 3: ('_x', '_y', '_z'), 4: ('_x', '_y', '_z', '_w')}


def batch_message(codec: WireCodec | None, bundle: Bundle, member: Member) -> bytes:
    """Return all that `member` collected for `bundle` as one cloud."""
    packets = member.collected
    columns = [] if codec is None else _columns(codec, packets)
    names = (
        sorted(set.intersection(*map(set, columns)), key=list(columns[0]).index) if columns else []
    )
    points = np.zeros(len(packets), [('time', 'f8'), *((name, 'f8') for name in names)])
    times_ns = np.array([packet.stamp_ns - member.target_ns for packet in packets])
    points['time'] = times_ns / NS_PER_S
    for name in names:
        points[name] = [values[name] for values in columns]
    return msgs.point_cloud2_message(bundle.stamp_ns, _frame_id(packets), points)


def _columns(codec: WireCodec, packets: Sequence[Packet]) -> list[dict[str, float]]:
    """Return the numbers of each message by field name; one that cannot be read has none."""
    found = []
    for packet in packets:
        try:
            runs = codec.runs(packet.payload)
        except CdrError:
            runs = []
        found.append(
            {
                run.name + axis: float(value)
                for run in runs
                for axis, value in zip(_axes(run), run.values.tolist(), strict=True)
            }
        )
    return found


def _axes(run: Run) -> Sequence[str]:
    count = len(run.values)
    return AXES.get(count) or [f'_{index}' for index in range(count)]


def _frame_id(packets: Sequence[Packet]) -> str:
    try:
        return Reader(packets[-1].payload).header()[1]
    except CdrError:
        return ''
