"""Writes messages field by field."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from rig_common.cdr.stamp import (
    HEADER_BYTES,
    LITTLE_ENDIAN_HEADER,
    PACK_STAMP,
    Buffer,
    CdrError,
    alignment,
    split_stamp,
)


def _number(code: str) -> Callable[[Writer, float], None]:
    """Return the method that writes a number, by its code in `struct`."""
    packed = struct.Struct('<' + code)

    def write(self: Writer, value: float) -> None:
        self.align(packed.size)
        try:
            self.buf += packed.pack(value)
        except (struct.error, OverflowError) as error:
            raise CdrError(f'value {value!r} does not fit its field: {error}') from None

    return write


class Writer:
    """Builds one little-endian message, field by field in the order of its definition."""

    def __init__(self) -> None:
        self.buf = bytearray(LITTLE_ENDIAN_HEADER)

    def align(self, size: int) -> None:
        """Pad with zeros up to the next multiple of `size` bytes of the body."""
        rest = (len(self.buf) - HEADER_BYTES) % size
        if rest:
            self.buf += bytes(size - rest)

    def boolean(self, value: bool) -> None:
        """Write a bool."""
        self.buf.append(1 if value else 0)

    u8, i8 = _number('B'), _number('b')
    u16, i16 = _number('H'), _number('h')
    u32, i32 = _number('I'), _number('i')
    u64, i64 = _number('Q'), _number('q')
    f32, f64 = _number('f'), _number('d')

    def string(self, value: str) -> None:
        """Write a string: its length with the closing NUL, its UTF-8 bytes, the NUL."""
        raw = value.encode('utf-8', 'surrogateescape')
        if b'\0' in raw:
            raise CdrError(f'string {value!r} holds a NUL character')
        self.u32(len(raw) + 1)
        self.buf += raw
        self.buf.append(0)

    def strings(self, values: Sequence[str]) -> None:
        """Write a sequence of strings."""
        self.u32(len(values))
        for value in values:
            self.string(value)

    def array(self, values: ArrayLike, dtype: DTypeLike) -> None:
        """Write a fixed-size array (no length in front), in one copy."""
        array = np.ascontiguousarray(values, dtype)
        if array.size:  # Fast CDR does not pad in front of nothing
            self.align(alignment(array.dtype))
            self.buf += array.data if array.dtype.names is None else array.view(np.uint8).data

    def sequence(self, values: ArrayLike, dtype: DTypeLike) -> None:
        """Write a sequence of primitives: its length, then the elements in one copy."""
        array = np.ascontiguousarray(values, dtype)
        self.u32(array.size)
        self.array(array, dtype)

    def octets(self, data: Buffer) -> None:
        """Write a uint8 sequence from bytes."""
        self.u32(len(data))
        self.buf += data

    def stamp(self, stamp_ns: int) -> None:
        """Write a builtin_interfaces/Time."""
        self.align(4)
        self.buf += PACK_STAMP(*split_stamp(stamp_ns))

    def header(self, stamp_ns: int, frame_id: str) -> None:
        """Write a std_msgs/Header."""
        self.stamp(stamp_ns)
        self.string(frame_id)

    def finish(self) -> bytes:
        """Return the message, of whole 4-byte words.

        DDS fills up the last word on the way to another process; filled up here, a message has
        the same bytes wherever it is read.
        """
        self.align(4)
        return bytes(self.buf)
