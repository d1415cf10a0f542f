"""What is kept of one topic while a recording is read: its times, and samples of its payload."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from rig_common.cdr import CdrError, endianness, read_stamp_ns
from rig_common.msgs.decode import read_cloud, read_scan
from sensor_rig.bags.inspect import CLOUD_TYPE, SCAN_TYPE, TopicTimes
from sensor_rig.findings.timeline import TimeLine
from sync_engine.wire.restamp import point_time_field

SAMPLES = 24
"""Payloads that are looked at; the first ones, then one of every `STRIDE`."""
STRIDE = 50
FRAMES = 8
"""Different frame names that are kept."""
HEAD_AT = 12
"""Where the frame's length is: after the CDR header and the stamp."""
_LENGTH = {0: struct.Struct('>I'), 1: struct.Struct('<I')}


@dataclass(frozen=True)
class PointTimes:
    """The times of one cloud's points, as they are written in it."""

    field: str
    """Name of the field; empty where there is none."""
    is_float: bool = True
    low: float = 0.0
    high: float = 0.0
    """In the field's own unit: seconds for floats, nanoseconds for integers."""
    decreasing: float = 0.0
    """Share of neighbouring points whose time decreases."""
    trend: float = 0.0
    """Correlation of a point's time with its place in the cloud."""
    stamp_ns: int = 0


@dataclass
class TopicRecord(TopicTimes):
    """One topic: times for the table, a time line for the findings, samples of the payload."""

    best_effort: bool = False
    """Whether its publisher offered best effort only."""
    line: TimeLine = field(default_factory=TimeLine)
    frames: dict[str, None] = field(default_factory=dict)
    """The first different ones, in their order."""
    frame_changes: int = 0
    doubled: int = 0
    """Messages that are the one before once more."""
    clouds: list[PointTimes] = field(default_factory=list)
    scan_time_s: float = 0.0
    """What a LaserScan says of the time between two scans."""
    _last_raw: bytes = b''
    _head: bytes = b'-'

    def add(self, raw: bytes, arrival_ns: int) -> None:
        """Take one message."""
        number = self.count
        super().add(raw, arrival_ns)
        if not self.stamped:
            return
        try:
            stamp_ns = read_stamp_ns(raw)
        except CdrError:
            return
        if raw == self._last_raw:
            self.doubled += 1
        else:
            self.line.add(stamp_ns, arrival_ns)
        self._last_raw = raw
        if not raw.startswith(self._head, HEAD_AT):
            self._new_frame(raw)
        if number < SAMPLES or number % STRIDE == 0:
            self._sample(raw)

    def _new_frame(self, raw: bytes) -> None:
        frame = frame_of(raw)
        self.frame_changes += bool(self.frames)
        if len(self.frames) < FRAMES:
            self.frames[frame] = None
        # The frame with its length in front and its zero behind, as every message repeats it.
        self._head = raw[HEAD_AT : HEAD_AT + 5 + len(frame.encode())] if frame else raw[HEAD_AT:17]

    def _sample(self, raw: bytes) -> None:
        try:
            if self.type_name == CLOUD_TYPE and len(self.clouds) < SAMPLES:
                self.clouds.append(point_times(raw))
            elif self.type_name == SCAN_TYPE:
                self.scan_time_s = read_scan(raw).scan_time_s
        except CdrError:
            return

    def finish(self) -> None:
        """Look at what came last."""
        self.line.flush()


def frame_of(raw: bytes) -> str:
    """Return the frame of a stamped message; empty where it cannot be read."""
    try:
        length = _LENGTH[endianness(raw)].unpack_from(raw, HEAD_AT)[0]
    except (struct.error, CdrError):
        return ''
    return raw[16 : 16 + max(length - 1, 0)].decode('utf-8', 'replace') if length < 1024 else ''


def point_times(raw: bytes) -> PointTimes:
    """Return what the points of a PointCloud2 say of their times."""
    cloud = read_cloud(raw)
    name = point_time_field(cloud)
    if name is None or not cloud.points.size:
        return PointTimes('', stamp_ns=cloud.stamp_ns)
    column = cloud.points[name]
    times = column.astype(np.float64)
    finite = times[np.isfinite(times)]
    if not len(finite):
        return PointTimes(name, stamp_ns=cloud.stamp_ns)
    steps = np.diff(finite)
    spread = float(finite.std())
    trend = float(np.corrcoef(np.arange(len(finite)), finite)[0, 1]) if spread > 0.0 else 0.0
    return PointTimes(
        name,
        column.dtype.kind == 'f',
        float(finite.min()),
        float(finite.max()),
        float((steps < 0.0).mean()) if len(steps) else 0.0,
        trend,
        cloud.stamp_ns,
    )
