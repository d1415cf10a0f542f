"""What all parts share: the header of a message, its endianness, its stamp in place."""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import numpy as np

from rig_common.times import MAX_STAMP_NS, NS_PER_S

HEADER_BYTES = 4
STAMP_END = 12
"""First byte after the stamp of a stamped message."""

LITTLE_ENDIAN_HEADER = b'\x00\x01\x00\x00'
SMALL_BYTES = 1 << 12
"""Messages below this cost less to copy twice than to view."""
MIN_STAMP_NS = -(2**31) * NS_PER_S

Buffer: TypeAlias = bytes | bytearray | memoryview

_STAMP = (struct.Struct('>iI'), struct.Struct('<iI'))
PACK_STAMP = _STAMP[1].pack
"""Little-endian bytes of (sec, nanosec)."""


class CdrError(ValueError):
    """Bytes that are not the message they were taken for, or a value CDR cannot hold."""


def endianness(buf: Buffer) -> int:
    """Return 1 for little endian, 0 for big endian."""
    if len(buf) < HEADER_BYTES:
        raise CdrError(f'a serialised message has at least {HEADER_BYTES} bytes, got {len(buf)}')
    kind = buf[1]
    if buf[0] or kind > 1:
        raise CdrError(f'encapsulation {buf[0]:02x}{kind:02x} is not plain CDR (0000 or 0001)')
    return kind


def read_stamp_ns(buf: Buffer) -> int:
    """Return the header stamp of a serialised stamped message, in nanoseconds."""
    if len(buf) < STAMP_END:
        raise CdrError(f'a stamped message has at least {STAMP_END} bytes, got {len(buf)}')
    kind = buf[1] if not buf[0] and buf[1] <= 1 else endianness(buf)  # a call costs as much
    sec: int
    sec, nanosec = _STAMP[kind].unpack_from(buf, HEADER_BYTES)
    return sec * NS_PER_S + int(nanosec)


def write_stamp_ns(buf: bytearray | memoryview, stamp_ns: int, place: int = HEADER_BYTES) -> None:
    """Overwrite the stamp at byte `place` of a serialised message, by default its header's."""
    if len(buf) < place + STAMP_END - HEADER_BYTES:
        raise CdrError(f'a message of {len(buf)} bytes has no stamp at byte {place}')
    _STAMP[endianness(buf)].pack_into(buf, place, *split_stamp(stamp_ns))


def with_stamp_ns(buf: Buffer, stamp_ns: int) -> bytes:
    """Return the message with another header stamp; copies the payload once."""
    if len(buf) < STAMP_END:
        raise CdrError(f'a stamped message has at least {STAMP_END} bytes, got {len(buf)}')
    stamp = _STAMP[endianness(buf)].pack(*split_stamp(stamp_ns))
    if len(buf) < SMALL_BYTES:
        return bytes(buf[:HEADER_BYTES]) + stamp + buf[STAMP_END:]
    view = memoryview(buf)
    return b''.join((view[:HEADER_BYTES], stamp, view[STAMP_END:]))


def split_stamp(stamp_ns: int) -> tuple[int, int]:
    """Return (sec, nanosec) of a time that fits builtin_interfaces/Time."""
    if not MIN_STAMP_NS <= stamp_ns <= MAX_STAMP_NS:
        raise CdrError(f'time {stamp_ns} ns does not fit the int32 seconds of a stamp')
    return divmod(stamp_ns, NS_PER_S)


def alignment(dtype: np.dtype[Any]) -> int:
    """Return the CDR alignment of an element; records of bytes (point data) have none."""
    return 1 if dtype.names is not None else min(dtype.itemsize, 8)
