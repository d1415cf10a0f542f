"""The records of an MCAP file one after the other, also behind a place that makes no sense.

https://mcap.dev/spec: a record is an opcode, the size of its body, and the body. The messages lie
in chunks, whose indexes follow them, or between the other records.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from sensor_rig.bags.storage.base import BrokenError, FileBytes

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX = range(1, 8)
CHUNK_INDEX, STATISTICS, DATA_END = 0x08, 0x0B, 0x0F
PRIVATE = 0x80
"""Opcodes from here on belong to applications."""
HEAD_BYTES, MESSAGE_BYTES, CHUNK_BYTES, FOOTER_BYTES = 9, 22, 40, 20
LARGEST_TEXT = 1 << 24
"""Bytes of a record that describes something."""
BLOCK_BYTES = 1 << 20
MOST_TRIED = 1 << 21
"""Places that may be tried as the beginning of a record after one that makes no sense."""
MOST_PRIVATE = 1 << 17
"""Records of applications; more than these are nothing but an effort to read."""
CHAIN = 3
"""As many records in a row that make sense are no accident."""

_SIZED = re.compile(rb'(?=[\x02-\x0f].{5}\x00\x00\x00)', re.DOTALL)
_chunk_head = struct.Struct('<QQQII').unpack_from


class Record(NamedTuple):
    """Where a record is."""

    kind: int
    place: int
    start: int
    end: int
    """Of its body, as far as the file goes."""
    whole: bool = True


class Break(NamedTuple):
    """Bytes that make no sense."""

    place: int
    end: int
    """Where the next record is that does; the end of the file where there is none."""


class ChunkHead(NamedTuple):
    """What the record of a chunk says of itself."""

    start_ns: int
    end_ns: int
    size: int
    checksum: int
    compression: str
    start: int
    """Of the packed bytes, in the file."""
    packed_bytes: int


def records(file: FileBytes) -> Iterator[Record | Break]:
    """Yield the records up to the footer; ends without one where the file is cut."""
    place, private = len(MAGIC), 0
    while True:
        record = _record(file, place)
        if record is None:
            if place == file.size:
                return
            following = _next_place(file, place + 1)
            yield Break(place, following)
            if following >= file.size:
                return
            place = following
            continue
        if record.kind >= PRIVATE:
            private += 1
            if private > MOST_PRIVATE:
                yield Break(place, file.size)
                return
        yield record
        if record.kind == FOOTER or not record.whole:
            return
        place = record.end


def chunk_head(file: FileBytes, record_start: int) -> ChunkHead:
    """Return what a chunk says of itself; raise BrokenError where that makes no sense."""
    fixed = file.at(record_start, CHUNK_BYTES + 8)
    if len(fixed) < CHUNK_BYTES:
        raise BrokenError('a chunk is cut')
    start_ns, end_ns, size, checksum, name_bytes = _chunk_head(fixed)
    if name_bytes not in (0, 3, 4) or len(fixed) < CHUNK_BYTES + name_bytes:
        raise BrokenError('a chunk says no compression')
    compression = fixed[32 : 32 + name_bytes].decode('ascii', 'replace')
    (packed_bytes,) = struct.unpack_from('<Q', fixed, 32 + name_bytes)
    start = record_start + CHUNK_BYTES + name_bytes
    return ChunkHead(start_ns, end_ns, size, checksum, compression, start, packed_bytes)


def _record(file: FileBytes, place: int) -> Record | None:
    """Return the record at `place`, None where there is none that makes sense."""
    head = file.at(place, HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return None
    kind, size = head[0], int.from_bytes(head[1:], 'little')
    start, end = place + HEAD_BYTES, place + HEAD_BYTES + size
    if kind == CHUNK:
        return _chunk(file, place, end)
    if kind == 0 or DATA_END < kind < PRIVATE or end > file.size:
        return None
    if kind == MESSAGE and size < MESSAGE_BYTES:
        return None
    if kind == MESSAGE_INDEX:
        body = file.at(start, 6)
        if size < 6 or int.from_bytes(body[2:], 'little') != size - 6 or (size - 6) % 16:
            return None
    if kind in (SCHEMA, CHANNEL, STATISTICS, CHUNK_INDEX, HEADER) and size > LARGEST_TEXT:
        return None
    if kind == FOOTER and (size != FOOTER_BYTES or end + len(MAGIC) < file.size):
        return None
    if kind == DATA_END and size != 4:
        return None
    return Record(kind, place, start, end)


def _chunk(file: FileBytes, place: int, end: int) -> Record | None:
    """Return a chunk; where its two sizes differ, by the one behind which a record follows."""
    start = place + HEAD_BYTES
    try:
        head = chunk_head(file, start)
    except BrokenError:
        return None
    by_content = head.start + head.packed_bytes
    if not head.compression and head.size != head.packed_bytes:
        by_content = -1 if by_content != end else by_content
    if by_content == end and end <= file.size:
        return Record(CHUNK, place, start, end)
    for possible in (end, by_content):
        if start < possible < file.size and _plausible_head(file, possible):
            return Record(CHUNK, place, start, possible)
    if by_content == end > file.size:  # the file is cut in it
        return Record(CHUNK, place, start, file.size, whole=False)
    return None


def _plausible_head(file: FileBytes, place: int) -> bool:
    head = file.at(place, HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return False
    end = place + HEAD_BYTES + int.from_bytes(head[1:], 'little')
    return 0 < head[0] <= DATA_END and end <= file.size


def _next_place(file: FileBytes, place: int) -> int:
    """Return where the records go on, the end of the file where nothing makes sense any more."""
    tried = 0
    place = file.next_data(place)
    while place < file.size:
        block = file.at(place, BLOCK_BYTES + HEAD_BYTES)
        if not block.strip(b'\0'):  # zeros, or a hole
            place = file.next_data(place + BLOCK_BYTES)
            continue
        for match in _SIZED.finditer(block, 0):
            if match.start() >= BLOCK_BYTES:
                break
            tried += 1
            if _goes_on(file, place + match.start()):
                return place + match.start()
        if tried > MOST_TRIED:
            return file.size
        place += BLOCK_BYTES
    return file.size


def _goes_on(file: FileBytes, place: int) -> bool:
    """Whether records that make sense follow each other from here on."""
    for _ in range(CHAIN):
        record = _record(file, place)
        if record is None or record.kind >= PRIVATE:
            return False
        if record.kind == FOOTER or not record.whole or record.end == file.size:
            return True
        place = record.end
    return True
