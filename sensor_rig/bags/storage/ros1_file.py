"""A ROS 1 bag (format 2.0): indexed or not, whole or damaged. The format has no checksums.

https://wiki.ros.org/Bags/Format/2.0: a record is a header of named fields and data. Messages lie
in chunks, whose indexes follow them; the connections and a list of the chunks come at the end.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Callable

import numpy as np
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag1,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.typesys.msg import normalize_msgtype

from sensor_rig.bags.storage.base import BrokenError
from sensor_rig.bags.storage.chunked import Chunk, ChunkedFile, IndexEntry, StoredAt, Walked

MAGIC = b'#ROSBAG V2.0\n'
MESSAGE, BAG_HEADER, INDEX, CHUNK, CHUNK_INFO, CONNECTION = range(2, 8)
COMPRESSIONS = {b'none': '', b'bz2': 'bz2', b'lz4': 'lz4'}
LARGEST_HEADER = 1 << 16
BLOCK_BYTES = 1 << 20
CHAIN = 3
NS_PER_S = 10**9

_OPCODE = re.compile(rb'\x04\x00\x00\x00op=[\x03-\x07]')
"""A field of the header of each record that does not lie in a chunk."""
_ENTRY = np.dtype([('s', '<u4'), ('ns', '<u4'), ('at', '<u4')])
Fields = dict[bytes, bytes]
Read = Callable[[int, int], bytes]
"""Bytes by their place and number."""


class Ros1File(ChunkedFile):
    """The messages of a ROS 1 bag, as it holds them."""

    def _open(self) -> None:
        self._known: dict[int, Connection] = {}
        self._listed: Counter[int] = Counter()
        self._indexed: Counter[int] = Counter()
        if self._file.at(0, len(MAGIC)) != MAGIC:
            raise BrokenError('it does not begin as a bag of version 2.0')
        self._walk_file()
        self._survey()
        for number in {*self._listed, *self._indexed}:
            self.said[number] = max(self._listed[number], self._indexed[number])
        self.connections = [self._known[number] for number in sorted(self._known)]
        self._count()

    # ---- the file's own records -----------------------------------------------------------------

    def _walk_file(self) -> None:
        place, chunks_listed = len(MAGIC), 0
        ended = False
        while place < self._file.size:
            record = self._record(place)
            if record is None:
                self._leave_chunk(broken=True)
                following = self._next_place(place + 1)
                rest = following >= self._file.size
                self._damage.at(
                    place,
                    'nothing makes sense from there on'
                    if rest
                    else f'{following - place} bytes make no sense, and it is read on behind them',
                )
                place = following
                continue
            kind, fields, start, end = record
            if kind == CHUNK:
                self._take_chunk(place, fields, start, end)
            elif kind == INDEX:
                self._take_index(fields, start, end)
            elif kind == CONNECTION:
                self._describe(fields, self._file.at(start, end - start))
            elif kind == CHUNK_INFO:
                ended = True
                chunks_listed += 1
                data = self._file.at(start, end - start)
                for number, count in struct.iter_unpack('<II', data[: len(data) // 8 * 8]):
                    self._listed[number] += count
            elif kind == BAG_HEADER:
                self._meant = _integer(fields, b'chunk_count')
            place = end
        self._counted = ended
        if chunks_listed < getattr(self, '_meant', 0) or not ended:
            self._damage.at(
                self._file.size, 'it ends without the list of its chunks, or within it'
            )

    def _record(self, place: int) -> tuple[int, Fields, int, int] | None:
        """Return (opcode, fields, start and end of the data), None where it makes no sense."""
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
                return kind, fields, start, self._file.size
        if end > self._file.size or kind == MESSAGE:
            return None
        if kind == INDEX and data_bytes != 12 * _integer(fields, b'count'):
            return None
        return kind, fields, start, end

    def _next_place(self, place: int) -> int:
        """Return where the records go on, the end of the file where they do not."""
        place = self._file.next_data(place)
        while place < self._file.size:
            block = self._file.at(place, BLOCK_BYTES + 16)
            if not block.strip(b'\0'):
                place = self._file.next_data(place + BLOCK_BYTES)
                continue
            for match in _OPCODE.finditer(block):
                field = place + match.start()
                for begin in range(field - 4, max(field - 200, len(MAGIC)) - 1, -1):
                    if self._goes_on(begin):
                        return begin
            place += BLOCK_BYTES
        return self._file.size

    def _goes_on(self, place: int) -> bool:
        for _ in range(CHAIN):
            record = self._record(place)
            if record is None:
                return False
            place = record[3]
            if place == self._file.size:
                return True
        return True

    def _take_chunk(self, place: int, fields: Fields, start: int, end: int) -> None:
        (data_bytes,) = struct.unpack('<I', self._file.at(start - 4, 4))
        whole = end - start == data_bytes
        if not whole:
            self._damage.at(self._file.size, 'it ends in the middle of a chunk')
        compression = COMPRESSIONS[fields[b'compression']]
        size = _integer(fields, b'size')
        self._enter(Chunk(place, start, end - start, size, compression, whole=whole))

    def _take_index(self, fields: Fields, start: int, end: int) -> None:
        number, count = _integer(fields, b'conn'), (end - start) // 12
        self._indexed[number] += count
        chunk = self._current
        if chunk is None or not count:
            return
        entries = np.frombuffer(self._file.at(start, 12 * count), _ENTRY)
        times = entries['s'].astype(np.int64) * NS_PER_S + entries['ns']
        first, last = int(times.min()), int(times.max())
        if chunk.counts is None:
            chunk.counts, chunk.start_ns, chunk.end_ns = Counter(), first, last
        chunk.start_ns, chunk.end_ns = min(chunk.start_ns, first), max(chunk.end_ns, last)
        chunk.counts[number] += count
        chunk.index.append((number, start, count))

    # ---- what describes topics ------------------------------------------------------------------

    def _announce(self, data: bytes, walked: Walked, *, checked: bool) -> None:
        for head, start, end in walked.announced:
            parsed = _head(_slicer(data), head)
            if parsed is not None:
                self._describe(parsed[1], data[start:end])

    def _describe(self, fields: Fields, data: bytes) -> None:
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
            count = self._indexed[number]
            self._damage.say(
                f'topic {number} is described in two ways, as {before.topic!r} and {topic!r}; of '
                f'{count} messages the first is believed'
            )

    # ---- inside a chunk -------------------------------------------------------------------------

    def _walk(self, data: bytes, at: int, most: int) -> Walked:
        found: list[StoredAt] = []
        announced: list[tuple[int, int, int]] = []
        read = _slicer(data)
        for _ in range(most):
            parsed = _head(read, at)
            if parsed is None:
                break
            kind, fields, size = parsed
            start = at + 8 + size
            if start > len(data):
                break
            end = start + int.from_bytes(data[start - 4 : start], 'little')
            if end > len(data):
                break
            if kind == CONNECTION:
                announced.append((at, start, end))
            elif kind == MESSAGE and len(fields.get(b'time', b'')) == 8:
                seconds, nanoseconds = struct.unpack('<II', fields[b'time'])
                number = _integer(fields, b'conn')
                found.append(StoredAt(seconds * NS_PER_S + nanoseconds, number, at, start, end, 0))
            else:
                break
            at = end
        return Walked(found, announced, at)

    def _marks(self, chunk: Chunk) -> dict[int, IndexEntry]:
        marks: dict[int, IndexEntry] = {}
        for number, place, count in chunk.index:
            entries = np.frombuffer(self._file.at(place, 12 * count), _ENTRY)
            times = entries['s'].astype(np.int64) * NS_PER_S + entries['ns']
            for time_ns, at in zip(times.tolist(), entries['at'].tolist(), strict=True):
                marks[at] = IndexEntry(number, time_ns)
        return marks


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


def _integer(fields: Fields, name: bytes) -> int:
    value = fields.get(name, b'')
    return int.from_bytes(value, 'little') if len(value) == 4 else 0
