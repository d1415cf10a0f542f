"""Messages about the system itself: time, transforms, diagnostics, plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from rig_common.cdr import Buffer, Reader, Template, TemplateBuilder, Writer


class Level(IntEnum):
    """diagnostic_msgs/DiagnosticStatus levels."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


class Status(NamedTuple):
    """One diagnostic_msgs/DiagnosticStatus."""

    level: Level
    name: str
    message: str
    values: Mapping[str, str] = {}
    hardware_id: str = ''


class Transform(NamedTuple):
    """One geometry_msgs/TransformStamped."""

    stamp_ns: int
    frame_id: str
    child_frame_id: str
    translation_m: Sequence[float]
    rotation_xyzw: Sequence[float]


def clock() -> Template:
    """rosgraph_msgs/msg/Clock; its only field is the stamp."""
    builder = TemplateBuilder('rosgraph_msgs/msg/Clock')
    builder.stamp(0)
    return builder.build()


def time_reference(frame_id: str, source: str) -> Template:
    """sensor_msgs/msg/TimeReference: block time_ref [2] = divmod(time_ns, 1e9)."""
    builder = TemplateBuilder('sensor_msgs/msg/TimeReference')
    builder.header(0, frame_id)
    builder.block('time_ref', 'i4', (2,))
    builder.string(source)
    return builder.build()


def read_time_reference(buf: Buffer) -> tuple[int, str, int, str]:
    """Return (stamp_ns, frame_id, time_ref_ns, source) of a TimeReference."""
    reader = Reader(buf)
    stamp_ns, frame_id = reader.header()
    return stamp_ns, frame_id, reader.stamp(), reader.string()


def diagnostic_array(stamp_ns: int, statuses: Sequence[Status], frame_id: str = '') -> bytes:
    """diagnostic_msgs/msg/DiagnosticArray."""
    writer = Writer()
    writer.header(stamp_ns, frame_id)
    writer.u32(len(statuses))
    for status in statuses:
        writer.u8(status.level)
        writer.string(status.name)
        writer.string(status.message)
        writer.string(status.hardware_id)
        writer.u32(len(status.values))
        for key, value in status.values.items():
            writer.string(key)
            writer.string(value)
    return writer.finish()


def read_diagnostic_array(buf: Buffer) -> tuple[int, list[Status]]:
    """Return (stamp_ns, statuses) of a DiagnosticArray."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    statuses = []
    for _ in range(reader.count(17)):
        level = Level(min(reader.u8(), Level.STALE))
        name, message, hardware_id = reader.string(), reader.string(), reader.string()
        values = {reader.string(): reader.string() for _ in range(reader.count(8))}
        statuses.append(Status(level, name, message, values, hardware_id))
    return stamp_ns, statuses


def tf_message(transforms: Iterable[Transform]) -> bytes:
    """tf2_msgs/msg/TFMessage."""
    items = list(transforms)
    writer = Writer()
    writer.u32(len(items))
    for item in items:
        writer.header(item.stamp_ns, item.frame_id)
        writer.string(item.child_frame_id)
        writer.array([*item.translation_m, *item.rotation_xyzw], 'f8')
    return writer.finish()


def bool_message(value: bool) -> bytes:
    """std_msgs/msg/Bool."""
    writer = Writer()
    writer.boolean(value)
    return writer.finish()


def uint64_message(value: int) -> bytes:
    """std_msgs/msg/UInt64."""
    writer = Writer()
    writer.u64(value)
    return writer.finish()


def float64_message(value: float) -> bytes:
    """std_msgs/msg/Float64."""
    writer = Writer()
    writer.f64(value)
    return writer.finish()


def string_message(value: str) -> bytes:
    """std_msgs/msg/String."""
    writer = Writer()
    writer.string(value)
    return writer.finish()
