"""Writes messages field by field."""

from __future__ import annotations

import struct
from collections.abc import Sequence

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


class Writer:
    """Builds one little-endian message, field by field in the order of its definition."""

    def __init__(self) -> None:
        self.buf = bytearray(LITTLE_ENDIAN_HEADER)

    def align(self, size: int) -> None:
        """Pad with zeros up to the next multiple of `size` bytes of the body."""
        rest = (len(self.buf) - HEADER_BYTES) % size
        if rest:
            self.buf += bytes(size - rest)

    def _pack(self, fmt: str, size: int, value: float) -> None:
        self.align(size)
        try:
            self.buf += struct.pack(fmt, value)
        except (struct.error, OverflowError) as error:
            raise CdrError(f'value {value!r} does not fit its field: {error}') from None

    def boolean(self, value: bool) -> None:
        """Write a bool."""
        self.buf.append(1 if value else 0)

    def u8(self, value: int) -> None:
        """Write a uint8 (byte, char)."""
        self._pack('<B', 1, value)

    def i8(self, value: int) -> None:
        """Write an int8."""
        self._pack('<b', 1, value)

    def u16(self, value: int) -> None:
        """Write a uint16."""
        self._pack('<H', 2, value)

    def i16(self, value: int) -> None:
        """Write an int16."""
        self._pack('<h', 2, value)

    def u32(self, value: int) -> None:
        """Write a uint32."""
        self._pack('<I', 4, value)

    def i32(self, value: int) -> None:
        """Write an int32."""
        self._pack('<i', 4, value)

    def u64(self, value: int) -> None:
        """Write a uint64."""
        self._pack('<Q', 8, value)

    def i64(self, value: int) -> None:
        """Write an int64."""
        self._pack('<q', 8, value)

    def f32(self, value: float) -> None:
        """Write a float32."""
        self._pack('<f', 4, value)

    def f64(self, value: float) -> None:
        """Write a float64."""
        self._pack('<d', 8, value)

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
