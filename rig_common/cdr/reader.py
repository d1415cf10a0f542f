"""Reads messages field by field; the bytes may be anything."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from rig_common.arrays import AnyArray
from rig_common.cdr.stamp import HEADER_BYTES, Buffer, CdrError, alignment, endianness
from rig_common.times import NS_PER_S

Number = TypeVar('Number', int, float)


def _number(code: str, kind: Callable[[Any], Number]) -> Callable[[Reader], Number]:
    """Return the method that reads a number, by its code in `struct`."""
    sizes = {order: struct.Struct(order + code) for order in '<>'}

    def read(self: Reader) -> Number:
        packed = sizes[self._order]
        self.align(packed.size)
        return kind(packed.unpack(self._take(packed.size))[0])

    return read


class Reader:
    """Reads one message of either endianness, field by field; raises CdrError, never more."""

    def __init__(self, buf: Buffer) -> None:
        little = endianness(buf)
        self._buf = memoryview(buf).cast('B')
        self._order: Literal['<', '>'] = '<' if little else '>'
        self.pos = HEADER_BYTES

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self._buf) - self.pos

    def align(self, size: int) -> None:
        """Skip the padding in front of a primitive of `size` bytes."""
        self.pos += -(self.pos - HEADER_BYTES) % size

    def _take(self, size: int) -> memoryview:
        if size > self.remaining:
            raise CdrError(
                f'message ends at byte {len(self._buf)}, {size} more wanted at byte {self.pos}'
            )
        part = self._buf[self.pos : self.pos + size]
        self.pos += size
        return part

    def boolean(self) -> bool:
        """Read a bool."""
        return self._take(1)[0] != 0

    u8, i8 = _number('B', int), _number('b', int)
    u16, i16 = _number('H', int), _number('h', int)
    u32, i32 = _number('I', int), _number('i', int)
    u64, i64 = _number('Q', int), _number('q', int)
    f32, f64 = _number('f', float), _number('d', float)

    def string(self) -> str:
        """Read a string; a length of 0, which some middlewares send, is the empty one."""
        raw = bytes(self._take(self.u32()))
        return (
            raw[:-1].decode('utf-8', 'surrogateescape')
            if raw[-1:] == b'\0'
            else (raw.decode('utf-8', 'surrogateescape'))
        )

    def count(self, element_bytes: int = 1) -> int:
        """Read a sequence's length, refused when its elements cannot be there."""
        count = self.u32()
        if count * element_bytes > self.remaining:
            raise CdrError(
                f'a sequence of {count} elements does not fit the {self.remaining} bytes left'
            )
        return count

    def strings(self) -> list[str]:
        """Read a sequence of strings."""
        return [self.string() for _ in range(self.count(4))]

    def array(self, dtype: DTypeLike, count: int) -> AnyArray:
        """Read `count` elements without a length in front: a read-only view, no copy."""
        wanted = np.dtype(dtype).newbyteorder(self._order)
        if count:
            self.align(alignment(wanted))
        return np.frombuffer(self._take(count * wanted.itemsize), wanted).view(np.ndarray)

    def sequence(self, dtype: DTypeLike) -> AnyArray:
        """Read a sequence of primitives: a read-only view, no copy."""
        return self.array(dtype, self.count(np.dtype(dtype).itemsize))

    def octets(self) -> memoryview:
        """Read a uint8 sequence as a view."""
        return self._take(self.count())

    def stamp(self) -> int:
        """Read a builtin_interfaces/Time in nanoseconds."""
        sec = self.i32()
        return sec * NS_PER_S + self.u32()

    def header(self) -> tuple[int, str]:
        """Read a std_msgs/Header: (stamp_ns, frame_id)."""
        return self.stamp(), self.string()
