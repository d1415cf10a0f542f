"""ROS 2 messages as bytes, without ROS: the CDR encoding (XCDR1) that every middleware speaks.

A serialised message is a 4-byte header (byte 1: 0 big endian, 1 little endian) and a body in
which every primitive sits at a multiple of its own size, counted from the start of the body.
A stamped type therefore always has its stamp at the same place: int32 sec at byte 4, uint32
nanosec at byte 8. That is all a sync node needs to know about a message it passes on.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from sensor_rig.times import MAX_STAMP_NS, NS_PER_S

HEADER_BYTES = 4
STAMP_END = 12
"""First byte after the stamp of a stamped message."""

LITTLE_ENDIAN_HEADER = b'\x00\x01\x00\x00'
MIN_STAMP_NS = -(2**31) * NS_PER_S

Buffer: TypeAlias = bytes | bytearray | memoryview

_STAMP = (struct.Struct('>iI'), struct.Struct('<iI'))
_U32 = struct.Struct('<I')
_PACK_STAMP = _STAMP[1].pack


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
    sec, nanosec = _STAMP[endianness(buf)].unpack_from(buf, HEADER_BYTES)
    return int(sec * NS_PER_S + nanosec)


def write_stamp_ns(buf: bytearray | memoryview, stamp_ns: int) -> None:
    """Overwrite the header stamp of a serialised stamped message in place."""
    if len(buf) < STAMP_END:
        raise CdrError(f'a stamped message has at least {STAMP_END} bytes, got {len(buf)}')
    _STAMP[endianness(buf)].pack_into(buf, HEADER_BYTES, *split_stamp(stamp_ns))


def with_stamp_ns(buf: Buffer, stamp_ns: int) -> bytes:
    """Return the message with another header stamp; copies the payload once."""
    if len(buf) < STAMP_END:
        raise CdrError(f'a stamped message has at least {STAMP_END} bytes, got {len(buf)}')
    stamp = _STAMP[endianness(buf)].pack(*split_stamp(stamp_ns))
    view = memoryview(buf)
    return b''.join((view[:HEADER_BYTES], stamp, view[STAMP_END:]))


def split_stamp(stamp_ns: int) -> tuple[int, int]:
    """Return (sec, nanosec) of a time that fits builtin_interfaces/Time."""
    if not MIN_STAMP_NS <= stamp_ns <= MAX_STAMP_NS:
        raise CdrError(f'time {stamp_ns} ns does not fit the int32 seconds of a stamp')
    return divmod(stamp_ns, NS_PER_S)


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
            self.align(_alignment(array.dtype))
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
        self.buf += _PACK_STAMP(*split_stamp(stamp_ns))

    def header(self, stamp_ns: int, frame_id: str) -> None:
        """Write a std_msgs/Header."""
        self.stamp(stamp_ns)
        self.string(frame_id)

    def finish(self) -> bytes:
        """Return the message."""
        return bytes(self.buf)


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
                f'message ends at byte {len(self._buf)}, {size} more wanted at byte {self.pos}')
        part = self._buf[self.pos:self.pos + size]
        self.pos += size
        return part

    def _unpack(self, code: str, size: int) -> Any:
        self.align(size)
        return struct.unpack(self._order + code, self._take(size))[0]

    def boolean(self) -> bool:
        """Read a bool."""
        return self._take(1)[0] != 0

    def u8(self) -> int:
        """Read a uint8 (byte, char)."""
        return self._take(1)[0]

    def i8(self) -> int:
        """Read an int8."""
        return int(self._unpack('b', 1))

    def u16(self) -> int:
        """Read a uint16."""
        return int(self._unpack('H', 2))

    def i16(self) -> int:
        """Read an int16."""
        return int(self._unpack('h', 2))

    def u32(self) -> int:
        """Read a uint32."""
        return int(self._unpack('I', 4))

    def i32(self) -> int:
        """Read an int32."""
        return int(self._unpack('i', 4))

    def u64(self) -> int:
        """Read a uint64."""
        return int(self._unpack('Q', 8))

    def i64(self) -> int:
        """Read an int64."""
        return int(self._unpack('q', 8))

    def f32(self) -> float:
        """Read a float32."""
        return float(self._unpack('f', 4))

    def f64(self) -> float:
        """Read a float64."""
        return float(self._unpack('d', 8))

    def string(self) -> str:
        """Read a string; a length of 0, which some middlewares send, is the empty one."""
        raw = bytes(self._take(self.u32()))
        return raw[:-1].decode('utf-8', 'surrogateescape') if raw[-1:] == b'\0' else (
            raw.decode('utf-8', 'surrogateescape'))

    def count(self, element_bytes: int = 1) -> int:
        """Read a sequence's length, refused when its elements cannot be there."""
        count = self.u32()
        if count * element_bytes > self.remaining:
            raise CdrError(f'a sequence of {count} elements does not fit the '
                           f'{self.remaining} bytes left')
        return count

    def strings(self) -> list[str]:
        """Read a sequence of strings."""
        return [self.string() for _ in range(self.count(4))]

    def array(self, dtype: DTypeLike, count: int) -> NDArray[Any]:
        """Read `count` elements without a length in front: a read-only view, no copy."""
        wanted = np.dtype(dtype).newbyteorder(self._order)
        if count:
            self.align(_alignment(wanted))
        return np.frombuffer(self._take(count * wanted.itemsize), wanted).view(np.ndarray)

    def sequence(self, dtype: DTypeLike) -> NDArray[Any]:
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


class Block(NamedTuple):
    """A part of a template that changes from message to message."""

    offset: int
    """First byte, counted from the start of the message."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    default: bytes
    """What stands there when `fill` is not given the block."""


class TemplateBuilder(Writer):
    """A Writer whose fields may also be named blocks, filled in later."""

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self._type_name = type_name
        self._blocks: dict[str, Block] = {}

    def block(self, name: str, dtype: DTypeLike, shape: tuple[int, ...] = (),
              default: ArrayLike = 0, *, align: bool = True) -> None:
        """Reserve a fixed-size array (or, with shape (), one number) called `name`.

        `align=False` is for numbers that travel as uint8[] (the pixels of an image).
        """
        wanted = np.dtype(dtype).newbyteorder('<')
        values = np.zeros(shape, wanted)
        if wanted.names is None:
            values[...] = default
        if values.size and align:
            self.align(_alignment(wanted))
        self._blocks[name] = Block(len(self.buf), wanted, shape, values.tobytes())
        self.buf += self._blocks[name].default

    def sequence_block(self, name: str, dtype: DTypeLike, shape: tuple[int, ...],
                       default: ArrayLike = 0) -> None:
        """Reserve a sequence: its length is fixed, its elements are the block `name`."""
        self.u32(int(np.prod(shape)))
        self.block(name, dtype, shape, default)

    def build(self) -> Template:
        """Return the finished template."""
        return Template(self._type_name, self.finish(), self._blocks)


class Template:
    """A stamped message of fixed size: built once, then filled and read with no field by field.

    `fill` joins the constant parts and the callers' arrays into fresh bytes, one copy per block,
    and keeps no state, so a template may be shared between sensors and threads.
    """

    def __init__(self, type_name: str, message: bytes, blocks: Mapping[str, Block]) -> None:
        self.type_name = type_name
        self.blocks = dict(blocks)
        self.nbytes = len(message)
        ordered = sorted(self.blocks.items(), key=lambda item: item[1].offset)
        pieces: list[bytes] = [message[:HEADER_BYTES], message[HEADER_BYTES:STAMP_END]]
        self._slots: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        end = STAMP_END
        for name, block in ordered:
            pieces.append(message[end:block.offset])
            self._slots[name] = (len(pieces), block.dtype, block.shape)
            pieces.append(block.default)
            end = block.offset + len(block.default)
        pieces.append(message[end:])
        self._pieces = pieces

    def fill(self, stamp_ns: int, **blocks: ArrayLike) -> bytes:
        """Return the message with this stamp and these blocks; others keep their defaults."""
        pieces: list[Any] = self._pieces.copy()
        try:
            pieces[1] = _PACK_STAMP(*divmod(stamp_ns, NS_PER_S))
        except struct.error:
            split_stamp(stamp_ns)
            raise
        slots = self._slots
        for name, value in blocks.items():
            try:
                slot, dtype, shape = slots[name]
            except KeyError:
                raise CdrError(f'{self.type_name} has no block {name!r}, only '
                               f'{", ".join(slots) or "none"}') from None
            if (type(value) is not np.ndarray or value.dtype != dtype
                    or not value.flags.c_contiguous):
                value = np.ascontiguousarray(value, dtype).reshape(np.shape(value))
            if value.shape != shape:
                raise CdrError(f'block {name!r} of {self.type_name} has shape {shape}, '
                               f'got {value.shape}')
            pieces[slot] = value
        return b''.join(pieces)

    def read(self, buf: Buffer) -> tuple[int, dict[str, NDArray[Any]]]:
        """Return (stamp_ns, {name: read-only view}) of a message made by this template.

        DDS pads a message to a multiple of four bytes on its way between processes.
        """
        if not 0 <= len(buf) - self.nbytes < 4:
            raise CdrError(f'{self.type_name} of this template has {self.nbytes} bytes, '
                           f'got {len(buf)}')
        if not endianness(buf):
            raise CdrError(f'{self.type_name} of a template is little endian, got big endian')
        return read_stamp_ns(buf), {
            name: np.ndarray(block.shape, block.dtype, buf, block.offset)
            for name, block in self.blocks.items()
        }


def _alignment(dtype: np.dtype[Any]) -> int:
    """Return the CDR alignment of an element; records of bytes (point data) have none."""
    return 1 if dtype.names is not None else min(dtype.itemsize, 8)
