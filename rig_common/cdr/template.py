"""Messages of a fixed size: built once, filled and read whole."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from rig_common.arrays import AnyArray
from rig_common.cdr.stamp import (
    HEADER_BYTES,
    PACK_STAMP,
    STAMP_END,
    Buffer,
    CdrError,
    alignment,
    endianness,
    read_stamp_ns,
    split_stamp,
)
from rig_common.cdr.writer import Writer
from rig_common.times import NS_PER_S


class Block(NamedTuple):
    """A part of a template that changes from message to message."""

    offset: int
    """First byte, counted from the start of the message."""
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    default: bytes
    """What stands there when `fill` is not given the block."""


class Blocks(Mapping[str, AnyArray]):
    """The blocks of one message by name: read-only views, made when asked for."""

    __slots__ = ('_blocks', '_buf')

    def __init__(self, blocks: Mapping[str, Block], buf: Buffer) -> None:
        self._blocks, self._buf = blocks, buf

    def __getitem__(self, name: str) -> AnyArray:
        """Return a view of block `name`."""
        block = self._blocks[name]
        return np.ndarray(block.shape, block.dtype, self._buf, block.offset)

    def __iter__(self) -> Iterator[str]:
        """Go through the names."""
        return iter(self._blocks)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._blocks)


class TemplateBuilder(Writer):
    """A Writer whose fields may also be named blocks, filled in later."""

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self._type_name = type_name
        self._blocks: dict[str, Block] = {}

    def block(
        self,
        name: str,
        dtype: DTypeLike,
        shape: tuple[int, ...] = (),
        default: ArrayLike = 0,
        *,
        align: bool = True,
    ) -> None:
        """Reserve a fixed-size array (or, with shape (), one number) called `name`.

        `align=False` is for numbers that travel as uint8[] (the pixels of an image).
        """
        wanted = np.dtype(dtype).newbyteorder('<')
        values = np.zeros(shape, wanted)
        if wanted.names is None:
            values[...] = default
        if values.size and align:
            self.align(alignment(wanted))
        self._blocks[name] = Block(len(self.buf), wanted, shape, values.tobytes())
        self.buf += self._blocks[name].default

    def sequence_block(
        self, name: str, dtype: DTypeLike, shape: tuple[int, ...], default: ArrayLike = 0
    ) -> None:
        """Reserve a sequence: its length is fixed, its elements are the block `name`."""
        self.u32(int(np.prod(shape)))
        self.block(name, dtype, shape, default)

    def build(self) -> Template:
        """Return the finished template."""
        least_bytes = len(self.buf)
        return Template(self._type_name, self.finish(), self._blocks, least_bytes)


class Template:
    """A stamped message of fixed size: built once, then filled and read with no field by field.

    `fill` joins the constant parts and the callers' arrays into fresh bytes, one copy per block,
    and keeps no state, so a template may be shared between sensors and threads.
    """

    def __init__(
        self, type_name: str, message: bytes, blocks: Mapping[str, Block], least_bytes: int
    ) -> None:
        """Take a message, the places of its blocks, and its length without the last padding."""
        self.type_name = type_name
        self.blocks = dict(blocks)
        self._least_bytes = least_bytes
        ordered = sorted(self.blocks.items(), key=lambda item: item[1].offset)
        pieces: list[bytes] = [message[:HEADER_BYTES], message[HEADER_BYTES:STAMP_END]]
        self._slots: dict[str, tuple[int, np.dtype[Any], tuple[int, ...]]] = {}
        end = STAMP_END
        for name, block in ordered:
            pieces.append(message[end : block.offset])
            self._slots[name] = (len(pieces), block.dtype, block.shape)
            pieces.append(block.default)
            end = block.offset + len(block.default)
        pieces.append(message[end:])
        self._pieces = pieces

    def preset(self, **blocks: ArrayLike) -> Template:
        """Return a template that has these blocks where `fill` is given none."""
        message = self.fill(0, **blocks)
        return Template(
            self.type_name,
            message,
            {
                name: block._replace(
                    default=message[block.offset : block.offset + len(block.default)]
                )
                for name, block in self.blocks.items()
            },
            self._least_bytes,
        )

    def fill(self, stamp_ns: int, **blocks: ArrayLike) -> bytes:
        """Return the message with this stamp and these blocks; others keep their defaults."""
        pieces: list[Any] = self._pieces.copy()
        try:
            pieces[1] = PACK_STAMP(*divmod(stamp_ns, NS_PER_S))
        except struct.error:
            split_stamp(stamp_ns)
            raise
        slots = self._slots
        for name, value in blocks.items():
            try:
                slot, dtype, shape = slots[name]
            except KeyError:
                raise CdrError(
                    f'{self.type_name} has no block {name!r}, only {", ".join(slots) or "none"}'
                ) from None
            if (
                type(value) is not np.ndarray
                or value.dtype != dtype
                or not value.flags.c_contiguous
            ):
                value = np.asarray(value, dtype, order='C')
            if value.shape != shape:
                raise CdrError(
                    f'block {name!r} of {self.type_name} has shape {shape}, got {value.shape}'
                )
            pieces[slot] = value
        return b''.join(pieces)

    def read(self, buf: Buffer) -> tuple[int, Blocks]:
        """Return (stamp_ns, blocks) of a message made by this template.

        Others may send it without the padding at its end.
        """
        if not 0 <= len(buf) - self._least_bytes < 4:
            raise CdrError(
                f'{self.type_name} of this template has {self._least_bytes} bytes, got {len(buf)}'
            )
        if not endianness(buf):
            raise CdrError(f'{self.type_name} of a template is little endian, got big endian')
        return read_stamp_ns(buf), Blocks(self.blocks, buf)
