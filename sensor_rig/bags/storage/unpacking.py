"""Unpacks what is compressed, within bounds: a few kilobytes can hold gigabytes of zeros."""

from __future__ import annotations

import bz2
import sys
from pathlib import Path
from typing import Any, BinaryIO

from sensor_rig.bags.storage.base import BrokenError

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
SMALLEST_LIMIT = 1 << 28
"""Bytes that one chunk or message may unpack to, however small it is: an 8K image has 100 MB."""
SMALLEST_TOTAL = 1 << 32
"""Bytes that all of a recording may unpack to in one reading, however small it is."""
LARGEST_RATIO = 100
"""Beyond these limits things may unpack to this many times their size."""
SMALLEST_RECORDS = 1 << 20
"""Records that a recording may have, however small it is; beyond that, one for each byte of it."""
BLOCK_BYTES = 1 << 20


def most_of(packed_bytes: int) -> int:
    """Return how many bytes something packed may unpack to."""
    return max(SMALLEST_LIMIT, LARGEST_RATIO * packed_bytes)


class Budget:
    """What one reading of a recording may cost, relative to its size on the disk."""

    def __init__(self, file_bytes: int) -> None:
        self._file_bytes = file_bytes
        self.renew()

    def renew(self) -> None:
        """Begin a new reading."""
        self._bytes_left = max(SMALLEST_TOTAL, LARGEST_RATIO * self._file_bytes)
        self.records_left = SMALLEST_RECORDS + self._file_bytes

    def take_bytes(self, count: int) -> None:
        """Count bytes before they are unpacked; raise BrokenError where they are too many."""
        if count > self._bytes_left:
            raise BrokenError(
                f'with it the recording would unpack to more than '
                f'{max(SMALLEST_TOTAL, LARGEST_RATIO * self._file_bytes) >> 20} MiB'
            )
        self._bytes_left -= count


def unpacked(packed: bytes, compression: str, size: int, *, whole: bool = True) -> bytes:
    """Return what a chunk holds that says its size; of one that is cut, what is there.

    Raises BrokenError where the bytes make no sense or the size is out of all proportion.
    """
    if not compression or compression == 'none':
        data = packed
    else:
        if size > most_of(len(packed)):
            raise BrokenError(
                f'its {len(packed)} bytes are said to unpack to {size / 2**20:.0f} MiB, which is '
                f'out of proportion'
            )
        try:
            data = _decompressor(compression).decompress(packed, size + 1)
        except (zstd.ZstdError, RuntimeError, EOFError, OSError, ValueError):
            raise BrokenError(f'it is no {compression}') from None
    if whole and len(data) != size:
        raise BrokenError(f'it holds {len(data)} bytes instead of {size}')
    return data


def _decompressor(compression: str) -> Any:
    if compression == 'zstd':
        return zstd.ZstdDecompressor()
    if compression == 'bz2':
        return bz2.BZ2Decompressor()
    if compression == 'lz4':
        from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

        return LZ4FrameDecompressor()
    raise BrokenError(f'it is compressed with {compression!r}, which is not known')


def unpacked_message(packed: bytes, budget: Budget) -> bytes:
    """Return a message that was packed on its own; raise BrokenError where it makes no sense."""
    limit = most_of(len(packed))
    decompressor = zstd.ZstdDecompressor()
    try:
        plain: bytes = decompressor.decompress(packed, limit)
    except zstd.ZstdError:
        raise BrokenError('a packed message is no zstd') from None
    if not decompressor.eof:
        raise BrokenError(
            'a packed message breaks off'
            if decompressor.needs_input
            else f'a packed message holds more than {limit >> 20} MiB'
        )
    budget.take_bytes(len(plain))
    return plain


def unpack_file(packed: BinaryIO, target: Path, packed_bytes: int) -> str:
    """Unpack a whole file; return what is wrong with it, or nothing where it is whole."""
    left = limit = max(SMALLEST_TOTAL, LARGEST_RATIO * packed_bytes)
    decompressor = zstd.ZstdDecompressor()
    with target.open('wb') as out:
        while not decompressor.eof:
            block = packed.read(BLOCK_BYTES) if decompressor.needs_input else b''
            if decompressor.needs_input and not block:
                return 'it breaks off'
            try:
                plain = decompressor.decompress(block, BLOCK_BYTES)
            except zstd.ZstdError:
                return 'from some place on it is no zstd'
            left -= len(plain)
            if left < 0:
                return f'it holds more than {limit >> 20} MiB'
            out.write(plain)
    return ''
