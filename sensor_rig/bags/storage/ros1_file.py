"""A ROS 1 bag (format 2.0): indexed or not, whole or damaged. The format has no checksums.

https://wiki.ros.org/Bags/Format/2.0: a record is a header of named fields and data. Messages lie
in chunks, whose indexes follow them; the connections and a list of the chunks come at the end.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag1,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.typesys.msg import normalize_msgtype

from sensor_rig.bags.storage.base import BrokenError
from sensor_rig.bags.storage.chunked import Chunk, ChunkedFile, StoredAt, Walked
from sensor_rig.bags.storage.records import Record

MAGIC = b'#ROSBAG V2.0\n'
MESSAGE, BAG_HEADER, INDEX, CHUNK, CHUNK_INFO, CONNECTION = range(2, 8)
COMPRESSIONS = {b'none': '', b'bz2': 'bz2', b'lz4': 'lz4'}
NOTES = '/sensor_rig/notes'
"""A topic without messages, whose publisher's name is what the maker wrote beside the bag."""
LARGEST_HEADER = 1 << 16
NS_PER_S = 10**9

_ENTRY = np.dtype([('s', '<u4'), ('ns', '<u4'), ('at', '<u4')])
Fields = dict[bytes, bytes]
Read = Callable[[int, int], bytes]
"""Bytes by their place and number."""


class Ros1File(ChunkedFile):
    """The messages of a ROS 1 bag, as it holds them."""

    _sign = re.compile(rb'\x04\x00\x00\x00op=[\x03-\x07]')
    """A field of the header of each record that does not lie in a chunk."""

    def _open(self) -> None:
        self._known: dict[int, Connection] = {}
        if self._file.at(0, len(MAGIC)) != MAGIC:
            raise BrokenError('it does not begin as a bag of version 2.0')
        self._walk_file()
        self._survey()
        self.note: dict[str, str] = {}
        for number, each in sorted(self._known.items()):
            if each.topic != NOTES:
                self.connections.append(self._known[number])
                continue
            about: Any = each.ext
            with suppress(ValueError, AttributeError):
                notes = json.loads(about.callerid or '{}')
                self.note = {str(key): str(value) for key, value in notes.items()}
        self._count()

    # ---- the file's own records -----------------------------------------------------------------

    def _walk_file(self) -> None:
        meant = chunks_listed = 0
        listed = Counter[int]()
        for record in self._records(len(MAGIC)):
            fields, start, size = record.fields, record.start, record.end - record.start
            if record.kind == CHUNK:
                compression = COMPRESSIONS[fields[b'compression']]
                unpacked = _integer(fields, b'size')
                self._enter(
                    Chunk(record.place, start, size, unpacked, compression, whole=record.whole)
                )
            elif record.kind == INDEX:
                self._take_index(_integer(fields, b'conn'), start, size // 12)
            elif record.kind == CONNECTION:
                self._describe(fields, self._file.at(start, size))
            elif record.kind == CHUNK_INFO:
                chunks_listed += 1
                for number, count in struct.iter_unpack(
                    '<II', self._file.at(start, size // 8 * 8)
                ):
                    listed[number] += count
            elif record.kind == BAG_HEADER:
                meant = _integer(fields, b'chunk_count')
        self._counted = bool(chunks_listed)
        self.said |= listed  # the larger ones
        if chunks_listed < meant or not chunks_listed:
            self._damage.at(
                self._file.size, 'it ends without the list of its chunks, or within it'
            )

    def _beginnings(self, sign: int) -> Iterable[int]:
        return range(sign - 4, max(sign - 200, len(MAGIC)) - 1, -1)

    def _record(self, place: int) -> Record | None:
        parsed = _head(self._file.at, place)
        if parsed is None:
            return None
        kind, fields, size = parsed
        start = place + 4 + size + 4
        (data_bytes,) = struct.unpack('<I', self._file.at(start - 4, 4).ljust(4, b'\xff'))
        end = start + data_bytes
        if kind == CHUNK:
            if fields.get(b'compression') not in COMPRESSIONS or b'size' not in fields:
                return None
            if end > self._file.size and data_bytes < 1 << 31:
                return Record(kind, place, start, self._file.size, whole=False, fields=fields)
        if end > self._file.size or kind == MESSAGE:
            return None
        if kind == INDEX and data_bytes != 12 * _integer(fields, b'count'):
            return None
        return Record(kind, place, start, end, fields=fields)

    def _take_index(self, connection: int, place: int, count: int) -> None:
        super()._take_index(connection, place, count)
        chunk = self._current
        if chunk is not None and count:
            times = [time_ns for time_ns, _ in self._entries(place, count)]
            chunk.start_ns = min(chunk.start_ns or times[0], *times)
            chunk.end_ns = max(chunk.end_ns, *times)

    # ---- what describes topics ------------------------------------------------------------------

    def _announce(self, data: bytes, walked: Walked, *, checked: bool) -> None:
        for head, start, end in walked.announced:
            parsed = _head(_slicer(data), head)
            if parsed is not None:
                self._describe(parsed[1], data[start:end])

    def _describe(self, fields: Mapping[bytes, bytes], data: bytes) -> None:
        about = _fields(data)
        try:
            number = _integer(fields, b'conn')
            topic = fields[b'topic'].decode()
            topic = '/' * topic.startswith('/') + '/'.join(
                part for part in topic.split('/') if part
            )
            type_name = normalize_msgtype(about[b'type'].decode())
            text = about[b'message_definition'].decode()
        except (KeyError, ValueError):
            self._damage.say('a record that describes a topic makes no sense')
            return
        latching = about.get(b'latching', b'')
        made = Connection(
            number,
            topic,
            type_name,
            MessageDefinition(MessageDefinitionFormat.MSG, text),
            about.get(b'md5sum', b'').decode('ascii', 'replace'),
            0,
            ConnectionExtRosbag1(
                about.get(b'callerid', b'').decode('utf-8', 'replace') or None,
                int(latching) if latching.isdigit() else None,
            ),
            self,
        )
        before = self._known.setdefault(number, made)
        if before[1:4] != made[1:4]:
            count = self.said[number]
            self._damage.say(
                f'topic {number} is described in two ways, as {before.topic!r} and {topic!r}; of '
                f'{count} messages the first is believed'
            )

    # ---- inside a chunk -------------------------------------------------------------------------

    def _walk(self, data: bytes, at: int, end: int, most: int) -> Walked:
        found: list[StoredAt] = []
        announced: list[tuple[int, int, int]] = []
        read = _slicer(data)
        for _ in range(most):
            parsed = _head(read, at)
            if parsed is None:
                break
            kind, fields, size = parsed
            start = at + 8 + size
            after = start + int.from_bytes(data[start - 4 : start], 'little')
            if max(start, after) > end:
                break
            if kind == CONNECTION:
                announced.append((at, start, after))
            elif kind == MESSAGE and len(fields.get(b'time', b'')) == 8:
                seconds, nanoseconds = struct.unpack('<II', fields[b'time'])
                number, time_ns = _integer(fields, b'conn'), seconds * NS_PER_S + nanoseconds
                found.append((time_ns, number, at, start, after, 0, 0))
            else:
                break
            at = after
        return Walked(found, announced, at)

    def _entries(self, place: int, count: int) -> Iterable[tuple[int, int]]:
        entries = np.frombuffer(self._file.at(place, 12 * count), _ENTRY)
        times = entries['s'].astype(np.int64) * NS_PER_S + entries['ns']
        return zip(times.tolist(), entries['at'].tolist(), strict=True)


def _slicer(data: bytes) -> Read:
    return lambda place, count: data[place : place + count]


def _head(read: Read, place: int) -> tuple[int, Fields, int] | None:
    """Return (opcode, fields, size) of the header at `place`, None where it makes no sense."""
    size = int.from_bytes(read(place, 4), 'little')
    if not 0 < size <= LARGEST_HEADER:
        return None
    header = read(place + 4, size)
    if len(header) < size:
        return None
    fields = _fields(header)
    kind = fields.get(b'op', b'')
    return (kind[0], fields, size) if len(kind) == 1 else None


def _fields(raw: bytes) -> Fields:
    """Return named fields; none where their sizes do not fit."""
    fields: Fields = {}
    at = 0
    while at < len(raw):
        end = at + 4 + int.from_bytes(raw[at : at + 4], 'little')
        name, sign, value = raw[at + 4 : end].partition(b'=')
        if end > len(raw) or not sign:
            return {}
        fields[name] = value
        at = end
    return fields


def _integer(fields: Mapping[bytes, bytes], name: bytes) -> int:
    value = fields.get(name, b'')
    return int.from_bytes(value, 'little') if len(value) == 4 else 0
