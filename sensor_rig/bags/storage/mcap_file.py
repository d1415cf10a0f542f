"""An MCAP file of ROS 2: with or without a summary, chunks or indexes, whole or damaged.

https://mcap.dev/spec: a record is an opcode, the size of its body, and the body. The messages lie
in chunks, whose indexes follow them, or between the other records.
"""

from __future__ import annotations

import re
import struct
from binascii import crc32
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from sensor_rig.bags.profiles import profiles_of
from sensor_rig.bags.storage.base import MAX_RECEIVE_NS, BrokenError
from sensor_rig.bags.storage.chunked import Chunk, ChunkedFile, StoredAt, Walked
from sensor_rig.bags.storage.records import PRIVATE, Record

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX = range(1, 8)
CHUNK_INDEX, STATISTICS, DATA_END = 0x08, 0x0B, 0x0F
HEAD_BYTES, MESSAGE_BYTES, CHUNK_BYTES, FOOTER_BYTES = 9, 22, 40, 20
LARGEST_TEXT = 1 << 24
"""Bytes of a record that describes something."""
MOST_PRIVATE = 1 << 17
"""Records of applications; more than these are nothing but an effort to read."""
RUN_BYTES = 1 << 20
"""Messages outside chunks are read together up to this size."""
FORMATS = {
    'ros2msg': MessageDefinitionFormat.MSG,
    'ros2idl': MessageDefinitionFormat.IDL,
    'omgidl': MessageDefinitionFormat.IDL,
}
_message = struct.Struct('<BQHIQQ').unpack_from
_chunk_head = struct.Struct('<QQQII').unpack_from
_MARKS = np.dtype([('time', '<u8'), ('at', '<u8')])


class McapSchema(NamedTuple):
    """A message type as the file describes it."""

    name: str
    encoding: str
    text: str


class McapChannel(NamedTuple):
    """Who publishes on what, as the file describes it."""

    name: str
    """Of the topic."""
    schema: int
    encoding: str
    about: bytes


class McapFile(ChunkedFile):
    """The messages of an MCAP."""

    _sign = re.compile(rb'(?=[\x02-\x0f].{5}\x00\x00\x00)', re.DOTALL)

    def _open(self) -> None:
        self._described: dict[int, dict[int, Any]] = {SCHEMA: {}, CHANNEL: {}}
        """Schemas and channels by their numbers."""
        self._sure: set[tuple[int, int]] = set()
        """Descriptions (opcode, number) from bytes whose checksum fits."""
        self._private = 0
        if self._file.at(0, len(MAGIC)) != MAGIC:
            raise BrokenError('it does not begin as an MCAP file')
        self._take_summary(self._walk_file())
        self._survey()
        self.connections = [
            connection
            for number, channel in sorted(self._described[CHANNEL].items())
            if (connection := self._connection(number, channel)) is not None
        ]
        self._count()

    # ---- the file's own records -----------------------------------------------------------------

    def _walk_file(self) -> list[Record]:
        """Find the chunks and count what their indexes list; return the records behind them."""
        summary: list[Record] = []
        for record in self._records(len(MAGIC)):
            if summary or record.kind in (DATA_END, FOOTER):
                summary.append(record)
                if record.kind == FOOTER:
                    return summary
            elif record.kind == HEADER:
                self._check_header(record)
            elif record.kind == CHUNK:
                chunk = self._chunk(record)
                chunk.packed_bytes = record.end - chunk.start
                self._enter(chunk)
            elif record.kind == MESSAGE:
                self._take_loose(record)
            elif record.kind == MESSAGE_INDEX:
                (channel,) = struct.unpack('<H', self._file.at(record.start, 2))
                count = (record.end - record.start - 6) // 16
                self._take_index(channel, record.start + 6, count)
            elif record.kind in (SCHEMA, CHANNEL):
                self._describe(record.kind, self._body(record), sure=False)
        self._damage.at(self._file.size, 'it ends without a footer')
        return summary

    def _body(self, record: Record) -> bytes:
        return self._file.at(record.start, record.end - record.start)

    def _check_header(self, record: Record) -> None:
        try:
            profile, _ = _text(self._body(record), 0)
        except BrokenError:
            return
        if profile != 'ros2':
            raise BrokenError(f'its profile is {profile!r}, not ros2')

    def _record(self, place: int) -> Record | None:
        head = self._file.at(place, HEAD_BYTES)
        if len(head) < HEAD_BYTES:
            return None
        kind, size = head[0], int.from_bytes(head[1:], 'little')
        start, end = place + HEAD_BYTES, place + HEAD_BYTES + size
        if kind == CHUNK:
            return self._chunk_record(place, end)
        if kind == 0 or DATA_END < kind < PRIVATE or end > self._file.size:
            return None
        if kind == MESSAGE and size < MESSAGE_BYTES:
            return None
        if kind == MESSAGE_INDEX:
            body = self._file.at(start, 6)
            if size < 6 or int.from_bytes(body[2:], 'little') != size - 6 or (size - 6) % 16:
                return None
        if kind in (SCHEMA, CHANNEL, STATISTICS, CHUNK_INDEX, HEADER) and size > LARGEST_TEXT:
            return None
        if kind == FOOTER and (size != FOOTER_BYTES or end + len(MAGIC) < self._file.size):
            return None
        if kind == DATA_END and size != 4:
            return None
        self._private += kind >= PRIVATE
        return Record(kind, place, start, end) if self._private <= MOST_PRIVATE else None

    def _chunk_record(self, place: int, end: int) -> Record | None:
        """Return a chunk; where its two sizes differ, by the one behind which a record follows."""
        start = place + HEAD_BYTES
        try:
            chunk = self._chunk(Record(CHUNK, place, start, end))
        except BrokenError:
            return None
        by_content = chunk.start + chunk.packed_bytes
        if not chunk.compression and chunk.size != chunk.packed_bytes and by_content != end:
            by_content = -1
        if by_content == end <= self._file.size:
            return Record(CHUNK, place, start, end)
        for possible in (end, by_content):
            if start < possible < self._file.size and self._is_plausible(possible):
                return Record(CHUNK, place, start, possible)
        if by_content == end:  # the file is cut in it
            return Record(CHUNK, place, start, self._file.size, whole=False)
        return None

    def _is_plausible(self, place: int) -> bool:
        head = self._file.at(place, HEAD_BYTES)
        end = place + HEAD_BYTES + int.from_bytes(head[1:], 'little')
        return len(head) == HEAD_BYTES and 0 < head[0] <= DATA_END and end <= self._file.size

    def _chunk(self, record: Record) -> Chunk:
        """Return what a chunk says of itself; raise BrokenError where that makes no sense."""
        fixed = self._file.at(record.start, CHUNK_BYTES + 8)
        name_bytes = _chunk_head(fixed)[4] if len(fixed) >= CHUNK_BYTES else -1
        if name_bytes not in (0, 3, 4) or len(fixed) < CHUNK_BYTES + name_bytes:
            raise BrokenError('a chunk is cut, or says no compression')
        start_ns, end_ns, size, checksum, _ = _chunk_head(fixed)
        compression = fixed[32 : 32 + name_bytes].decode('ascii', 'replace')
        (packed_bytes,) = struct.unpack_from('<Q', fixed, 32 + name_bytes)
        start = record.start + CHUNK_BYTES + name_bytes
        return Chunk(
            record.place, start, packed_bytes, size, compression, checksum, start_ns, end_ns,
            whole=record.whole,
        )  # fmt: skip

    def _take_loose(self, record: Record) -> None:
        """Put a message that lies in no chunk to those before it."""
        _, _, channel, _, time_ns, _ = _message(self._file.at(record.place, 31))
        self._current = None
        run = self._chunks[-1] if self._chunks else None
        if run is None or run.start + run.size != record.place or run.size > RUN_BYTES:
            run = Chunk(record.place, record.place, 0, 0, counts=Counter())
            run.start_ns = run.end_ns = time_ns
            self._chunks.append(run)
        assert run.counts is not None
        run.size = run.packed_bytes = record.end - run.start
        run.start_ns, run.end_ns = min(run.start_ns, time_ns), max(run.end_ns, time_ns)
        run.counts[channel] += 1

    # ---- the summary ----------------------------------------------------------------------------

    def _take_summary(self, summary: list[Record]) -> None:
        """Believe the records behind the messages, where their checksum does not forbid it."""
        checksum, covered = 0, b''
        if summary and summary[-1].kind == FOOTER:
            footer, start = summary[-1], summary[0].end
            (checksum,) = struct.unpack_from('<I', self._body(footer), 16)
            covered = self._file.at(start, footer.start + 16 - start) if checksum else b''
        sure = bool(checksum) and crc32(covered) == checksum
        if checksum and not sure:
            self._damage.say('its summary does not fit its checksum and is not believed')
        for record in summary:
            if record.kind in (SCHEMA, CHANNEL):
                self._describe(record.kind, self._body(record), sure=sure)
            elif record.kind == STATISTICS and (sure or not checksum):
                self._take_statistics(self._body(record))

    def _take_statistics(self, body: bytes) -> None:
        try:
            (total,) = struct.unpack_from('<Q', body)
            (size,) = struct.unpack_from('<I', body, 42)
            counts = dict(struct.iter_unpack('<HQ', body[46 : 46 + size]))
        except struct.error:
            counts, total = {}, -1
        if sum(counts.values()) != total:
            if counts or total:
                self._damage.say('its statistics contradict themselves, so they are not used')
            return
        self._counted = True
        self.said |= Counter(counts)  # the larger ones

    # ---- what describes topics ------------------------------------------------------------------

    def _announce(self, data: bytes, walked: Walked, *, checked: bool) -> None:
        for kind, start, end in walked.announced:
            self._describe(kind, data[start:end], sure=checked)

    def _describe(self, kind: int, body: bytes, *, sure: bool) -> None:
        """Take in a schema or a channel; of two that differ, the one whose checksum fits."""
        known = self._described[kind]
        try:
            number, made = _schema(body) if kind == SCHEMA else _channel(body)
        except (BrokenError, struct.error):
            self._damage.say('a record that describes a topic makes no sense')
            return
        before, key = known.get(number), (kind, number)
        if before is not None and before != made and sure == (key in self._sure):
            count = self.said[number] if kind == CHANNEL else self.said.total()
            self._damage.say(
                f'{"topic" if kind == CHANNEL else "type"} {number} is described in two ways, as '
                f'{before.name!r} and {made.name!r}; of {count} messages the first is believed'
            )
        elif before is None or sure:
            known[number] = made
            if sure:
                self._sure.add(key)

    def _connection(self, number: int, channel: McapChannel) -> Connection | None:
        if channel.encoding != 'cdr':
            if count := self.said[number]:
                self._damage.say(
                    f'{channel.name} is encoded as {channel.encoding!r} and not as cdr, so its '
                    f'{count} messages are left out'
                )
            return None
        schema = self._described[SCHEMA].get(channel.schema, McapSchema('__schemaless__', '', ''))
        about = _pairs(channel.about)
        kind = FORMATS.get(schema.encoding, MessageDefinitionFormat.NONE)
        return Connection(
            number,
            channel.name,
            schema.name,
            MessageDefinition(kind, schema.text if kind != MessageDefinitionFormat.NONE else ''),
            about.get('topic_type_hash', ''),
            0,
            ConnectionExtRosbag2('cdr', profiles_of(about.get('offered_qos_profiles', ''))),
            self,
        )

    # ---- inside a chunk -------------------------------------------------------------------------

    def _walk(self, data: bytes, at: int, end: int, most: int) -> Walked:
        found: list[StoredAt] = []
        announced: list[tuple[int, int, int]] = []
        last = end - HEAD_BYTES - MESSAGE_BYTES
        for _ in range(most):
            if at <= last and data[at] == MESSAGE:
                _, length, channel, sequence, time_ns, publish_ns = _message(data, at)
                after = at + HEAD_BYTES + length
                if length < MESSAGE_BYTES or after > end:
                    break
                if publish_ns > MAX_RECEIVE_NS:
                    publish_ns = 0
                found.append((time_ns, channel, at, at + 31, after, publish_ns, sequence))
            elif at + HEAD_BYTES <= end and data[at] in (SCHEMA, CHANNEL):
                after = at + HEAD_BYTES + int.from_bytes(data[at + 1 : at + 9], 'little')
                if after > end:
                    break
                announced.append((data[at], at + HEAD_BYTES, after))
            else:
                break
            at = after
        return Walked(found, announced, at)

    def _entries(self, place: int, count: int) -> Iterable[tuple[int, int]]:
        entries: list[tuple[int, int]] = np.frombuffer(
            self._file.at(place, 16 * count), _MARKS
        ).tolist()
        return entries


def _text(body: bytes, at: int) -> tuple[str, int]:
    """Return the string at `at` and where it ends."""
    (size,) = struct.unpack_from('<I', body, at)
    end = at + 4 + size
    if end > len(body):
        raise BrokenError('a text is longer than its record')
    try:
        return body[at + 4 : end].decode(), end
    except UnicodeDecodeError:
        raise BrokenError('a text is no UTF-8') from None


def _schema(body: bytes) -> tuple[int, McapSchema]:
    (number,) = struct.unpack_from('<H', body)
    name, at = _text(body, 2)
    encoding, at = _text(body, at)
    return number, McapSchema(name, encoding, _text(body, at)[0])


def _channel(body: bytes) -> tuple[int, McapChannel]:
    number, schema = struct.unpack_from('<HH', body)
    topic, at = _text(body, 4)
    encoding, at = _text(body, at)
    (size,) = struct.unpack_from('<I', body, at)
    if at + 4 + size > len(body):
        raise BrokenError('a map is longer than its record')
    return number, McapChannel(topic, schema, encoding, body[at + 4 : at + 4 + size])


def _pairs(about: bytes) -> dict[str, str]:
    """Return the map of a channel, as far as it makes sense."""
    pairs: dict[str, str] = {}
    at = 0
    try:
        while at < len(about):
            key, at = _text(about, at)
            pairs[key], at = _text(about, at)
    except (BrokenError, struct.error):
        pass
    return pairs
