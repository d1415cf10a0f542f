"""What is kept of one topic while a recording is read: its times, and samples of its payload."""

from __future__ import annotations

import re
import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rig_common.arrays import Flags, Ints
from rig_common.cdr import CdrError, endianness
from rig_common.msgs.decode import read_cloud, read_scan
from sensor_rig.bags.inspect import CLOUD_TYPE, INFO_TYPE, SCAN_TYPE, TopicTimes
from sensor_rig.bags.inspect import seconds_between as between
from sensor_rig.bags.starter import OURS
from sensor_rig.findings.timeline import TimeLine
from sync_engine.wire.restamp import point_time_field

SAMPLES = 24
"""Payloads that are looked at; the first ones, then one of every `STRIDE`."""
STRIDE = 50
KEPT = 1_000_000
"""Messages of a topic whose times are kept, 32 bytes each: 83 minutes at 200 Hz."""
PRINTED = 256
"""Bytes at either end of a message that tell it from others."""
SYNCED = re.compile(r'/?(.*/)?synced/')
"""Members of bundles, as sync writes them."""
SOON_S = 1.0
"""A copy comes within this time of the message."""
FROZEN = 5
"""Equal stamps in a row that are no accident."""
NO_TIMES = np.zeros(0, np.int64)
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
    """One topic: its times, and samples of its payload."""

    kept: int = KEPT
    best_effort: bool = False
    """Whether its publisher offered best effort only."""
    publishers: int = 0
    """How many the recording lists; 0 where its format does not say."""
    frames: dict[str, None] = field(default_factory=dict)
    """The first different ones, in their order."""
    frame_changes: int = 0
    clouds: list[PointTimes] = field(default_factory=list)
    scan_time_s: float = 0.0
    """What a LaserScan says of the time between two scans."""
    line: TimeLine = field(default_factory=lambda: TimeLine(NO_TIMES, NO_TIMES))
    """The times without zero stamps and without copies; made by `finish`."""
    zero: int = 0
    """Stamps of zero."""
    untold_ns: Ints = field(default_factory=lambda: NO_TIMES)
    """Arrivals of frames that are there, with a stamp of zero or with that of the one before."""
    copies: int = 0
    """Messages that have come before, with the same stamp."""
    copies_apart: int = 0
    """Those of them that do not follow the first one at once."""
    _prints: array[int] = field(default_factory=lambda: array('q'))
    """A number for the content of each message whose times are kept."""
    _head: bytes = b'-'

    def add(self, raw: bytes, arrival_ns: int, publish_ns: int = 0) -> bool:
        """Take one message; return whether its times are kept."""
        number = self.count
        kept = super().add(raw, arrival_ns, publish_ns)
        if not self.stamped or not kept:
            return kept
        self._prints.append(hash((raw[:PRINTED], raw[-PRINTED:], len(raw))))
        if not raw.startswith(self._head, HEAD_AT):
            self._new_frame(raw)
        if number < SAMPLES or number % STRIDE == 0:
            self._sample(raw)
        return kept

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

    def arrive_when_stamped(self) -> None:
        """Take the stamps for receive times, where there are none."""
        self.arrivals_ns, self.publishes_ns = self.stamps_ns, array('q')
        if self.stamps_ns:
            self.first_arrival_ns, self.last_arrival_ns = min(self.stamps_ns), max(self.stamps_ns)

    def finish(self) -> None:
        """Make the time line."""
        stamps = np.array(self.stamps_ns, np.int64)
        line = TimeLine(stamps, np.array(self.arrivals_ns, np.int64))
        told = stamps != 0
        self.zero = len(stamps) - int(told.sum())
        if self.stamped and len(stamps):
            first, apart = first_ones(line, np.array(self._prints, np.int64))
            self.copies = int((told & ~first).sum())
            self.copies_apart = int((told & ~first & apart).sum())
            again = np.diff(stamps, prepend=stamps[0] - 1) == 0
            again &= first | (self.type_name == INFO_TYPE)  # equal stamps make these equal
            self.untold_ns = line.arrivals_ns[~told | again]
            told &= first
        self.line = line.only(told)

    def common_messages(self, other: TopicRecord) -> int:
        """Return how many different messages are in both topics."""
        mine, theirs = (np.array(each._prints, np.int64) for each in (self, other))
        return len(np.intersect1d(mine, theirs))

    def with_line(self, line: TimeLine) -> TopicRecord:
        """Return the record with other times, in its table too."""
        return replace(
            self,
            line=line,
            stamps_ns=array('q', line.stamps_ns.tobytes()),
            arrivals_ns=array('q', line.arrivals_ns.tobytes()),
            publishes_ns=array('q'),
        )


def sensors_of(records: Sequence[TopicRecord]) -> list[TopicRecord]:
    """Return the topics with messages that are sensors': synced ones where there are no others."""
    heard = [record for record in records if record.count]
    found = [record for record in heard if not OURS.match(record.name)]
    return found or [record for record in heard if SYNCED.match(record.name)]


def first_ones(line: TimeLine, prints: Ints) -> tuple[Flags, Flags]:
    """Return (which messages are no copy of an earlier one, which follow theirs not at once).

    A copy has the bytes of an earlier message and comes soon after it. Many copies in a row are
    a driver that stands still.
    """
    order = np.lexsort((np.arange(line.count), prints, line.stamps_ns))
    stamps, kinds = line.stamps_ns[order], prints[order]
    same = (stamps[1:] == stamps[:-1]) & (kinds[1:] == kinds[:-1])
    soon = between(line.arrivals_ns[order][:-1], line.arrivals_ns[order][1:]) < SOON_S
    copy = np.zeros(line.count, bool)
    copy[order[1:]] = same & soon
    apart = np.zeros(line.count, bool)
    apart[order[1:]] = np.diff(order) > 1
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    if int(np.diff(np.append(starts, line.count)).max()) > FROZEN:
        copy[:] = False
    return ~copy, apart


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
