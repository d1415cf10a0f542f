"""Finds the rows of rosbag2's table `messages` in the pages of an sqlite file, without its tree.

A file that is cut off has lost pages of the tree that leads to its rows, not only the last rows.
The leaves that are still there hold whole rows: https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from mmap import mmap

Bytes = bytes | mmap
Row = tuple[int, int, int, bytes]
"""Id, topic's id, receive time (ns), CDR bytes."""
LEAF = 0x0D
HOLE_BYTES = 1 << 20
"""A multiple of every page's size; so often is looked for a hole."""
ROWS_OVER_FILE = 16
"""A page belongs to one row, and to some old ones that were deleted; a file in which every row
claims all pages would be read for hours."""
INTEGER_BYTES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


def message_rows(
    data: Bytes, page_bytes: int, next_data: Callable[[int], int] = lambda place: place
) -> Iterator[Row]:
    """Yield the rows of all leaves in `data`; those whose pages are not all there are left out.

    `next_data` says where the file goes on behind a hole.
    """
    usable = page_bytes - data[20]
    left = ROWS_OVER_FILE * len(data)
    for start in _pages(len(data), page_bytes, next_data):
        head = start + (100 if start == 0 else 0)
        if data[head] != LEAF:
            continue
        (cells,) = struct.unpack_from('>H', data, head + 3)
        for index in range(min(cells, page_bytes // 2)):
            try:
                (offset,) = struct.unpack_from('>H', data, head + 8 + 2 * index)
                size, _ = _varint(data, start + offset)
                left -= size if size <= len(data) else 0
                if left < 0:
                    return
                row = _row(data, start + offset, page_bytes, usable)
            except (struct.error, IndexError, ValueError):
                continue
            if row is not None:
                yield row


def _pages(size: int, page_bytes: int, next_data: Callable[[int], int]) -> Iterator[int]:
    place = 0
    while place <= size - page_bytes:
        if place % HOLE_BYTES == 0:
            place = max(place, next_data(place) // page_bytes * page_bytes)
        yield from range(
            place,
            min(place // HOLE_BYTES * HOLE_BYTES + HOLE_BYTES, size - page_bytes + 1),
            page_bytes,
        )
        place = place // HOLE_BYTES * HOLE_BYTES + HOLE_BYTES


def _row(data: Bytes, at: int, page_bytes: int, usable: int) -> Row | None:
    size, at = _varint(data, at)
    row_id, at = _varint(data, at)
    if size > len(data):
        raise ValueError('larger than the file')
    payload = _payload(data, at, size, page_bytes, usable)
    head_bytes, at = _varint(payload, 0)
    kinds = []
    while at < head_bytes:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    # id (stored as NULL: it is the row's number), topic_id, timestamp, data
    if len(kinds) != 4 or kinds[0] != 0 or kinds[3] < 12 or kinds[3] % 2:
        return None
    topic_id, at = _integer(payload, at, kinds[1])
    receive_ns, at = _integer(payload, at, kinds[2])
    end = at + (kinds[3] - 12) // 2
    if end > len(payload):
        raise ValueError('data longer than its row')
    return row_id, topic_id, receive_ns, payload[at:end]


def _payload(data: Bytes, at: int, size: int, page_bytes: int, usable: int) -> bytes:
    """Return the bytes of a row, from its leaf and the pages behind it."""
    largest = usable - 35
    local = size
    if size > largest:
        least = (usable - 12) * 32 // 255 - 23
        local = least + (size - least) % (usable - 4)
        local = local if local <= largest else least
    parts = [data[at : at + local]]
    missing = size - local
    place = at + local
    while missing > 0:
        (number,) = struct.unpack_from('>I', data, place)
        place = (number - 1) * page_bytes
        if number == 0 or place + usable > len(data):
            raise ValueError('a page of the row is not there')
        parts.append(data[place + 4 : place + 4 + min(missing, usable - 4)])
        missing -= usable - 4
    return b''.join(parts)


def _integer(payload: bytes, at: int, kind: int) -> tuple[int, int]:
    if kind in (8, 9):
        return kind - 8, at
    if kind not in INTEGER_BYTES:
        raise ValueError('not an integer')
    end = at + INTEGER_BYTES[kind]
    return int.from_bytes(payload[at:end], 'big', signed=True), end


def _varint(data: Bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | data[at + 8], at + 9
