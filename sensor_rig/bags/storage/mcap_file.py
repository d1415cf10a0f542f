"""An MCAP file of ROS 2: with or without a summary, chunks or indexes, whole or damaged."""

from __future__ import annotations

import struct
from binascii import crc32
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from sensor_rig.bags.storage.base import BrokenError
from sensor_rig.bags.storage.chunked import Chunk, ChunkedFile, IndexEntry, StoredAt, Walked
from sensor_rig.bags.storage.mcap_records import (
    CHANNEL,
    CHUNK,
    DATA_END,
    FOOTER,
    HEAD_BYTES,
    HEADER,
    MAGIC,
    MESSAGE,
    MESSAGE_BYTES,
    MESSAGE_INDEX,
    SCHEMA,
    STATISTICS,
    Break,
    ChunkHead,
    Record,
    chunk_head,
    records,
)
from sensor_rig.bags.storage.profiles import profiles_of

RUN_BYTES = 1 << 20
"""Messages outside chunks are read together up to this size."""
FORMATS = {
    'ros2msg': MessageDefinitionFormat.MSG,
    'ros2idl': MessageDefinitionFormat.IDL,
    'omgidl': MessageDefinitionFormat.IDL,
}
_message = struct.Struct('<BQHIQQ').unpack_from
_publish_time = struct.Struct('<Q').unpack_from
"""The last field before the payload."""
_message_body = struct.Struct('<HIQQ').unpack_from
_MARKS = np.dtype([('time', '<u8'), ('at', '<u8')])


class McapSchema(NamedTuple):
    """A message type as the file describes it."""

    name: str
    encoding: str
    text: str


class McapChannel(NamedTuple):
    """Who publishes on what, as the file describes it."""

    schema: int
    topic: str
    encoding: str
    about: bytes


class McapFile(ChunkedFile):
    """The messages of an MCAP."""

    def _open(self) -> None:
        self._schemas: dict[int, McapSchema] = {}
        self._channels: dict[int, McapChannel] = {}
        self._sure: set[tuple[int, int]] = set()
        """Descriptions (opcode, number) from bytes whose checksum fits."""
        if self._file.at(0, len(MAGIC)) != MAGIC:
            raise BrokenError('it does not begin as an MCAP file')
        summary = self._walk_file()
        self._take_summary(summary)
        self._survey()
        self.connections = [
            connection
            for number, channel in sorted(self._channels.items())
            if (connection := self._connection(number, channel)) is not None
        ]
        self._count()

    # ---- the file's own records -----------------------------------------------------------------

    def _walk_file(self) -> list[Record]:
        """Find the chunks and count what their indexes list; return the records behind them."""
        summary: list[Record] = []
        behind = ended = False
        for record in records(self._file):
            if isinstance(record, Break):
                self._leave_chunk(broken=True)
                self._break(record)
                ended |= record.end >= self._file.size
            elif record.kind == FOOTER:
                ended = True
                summary.append(record)
            elif behind or record.kind == DATA_END:
                behind = True
                summary.append(record)
            elif record.kind == HEADER:
                self._check_header(record)
            elif record.kind == CHUNK:
                self._enter(self._chunk(record))
                ended = not record.whole
                if not record.whole:
                    self._damage.at(self._file.size, 'it ends in the middle of a chunk')
            elif record.kind == MESSAGE:
                self._take_loose(record)
            elif record.kind == MESSAGE_INDEX:
                self._take_index(record)
            elif record.kind in (SCHEMA, CHANNEL):
                self._describe(record.kind, self._body(record), sure=False)
        if not ended:
            self._damage.at(self._file.size, 'it ends without a footer')
        return summary

    def _break(self, gap: Break) -> None:
        if gap.end >= self._file.size:
            what = 'nothing makes sense from there on, or the file is cut there'
        else:
            what = f'{gap.end - gap.place} bytes make no sense, and it is read on behind them'
        self._damage.at(gap.place, what)

    def _body(self, record: Record) -> bytes:
        return self._file.at(record.start, record.end - record.start)

    def _check_header(self, record: Record) -> None:
        try:
            profile, _ = _text(self._body(record), 0)
        except BrokenError:
            return
        if profile != 'ros2':
            raise BrokenError(f'its profile is {profile!r}, not ros2')

    def _chunk(self, record: Record) -> Chunk:
        head: ChunkHead = chunk_head(self._file, record.start)
        return Chunk(
            record.place,
            head.start,
            record.end - head.start,
            head.size,
            head.compression,
            head.checksum,
            head.start_ns,
            head.end_ns,
            whole=record.whole,
        )

    def _take_loose(self, record: Record) -> None:
        """Put a message that lies in no chunk to those before it."""
        channel, _, time_ns, _ = _message_body(self._file.at(record.start, MESSAGE_BYTES))
        self._leave_chunk()
        run = self._chunks[-1] if self._chunks else None
        if run is None or run.start + run.size != record.place or run.size > RUN_BYTES:
            run = Chunk(record.place, record.place, 0, 0, counts=Counter())
            run.start_ns = run.end_ns = time_ns
            self._chunks.append(run)
        assert run.counts is not None
        run.size = run.packed_bytes = record.end - run.start
        run.start_ns, run.end_ns = min(run.start_ns, time_ns), max(run.end_ns, time_ns)
        run.counts[channel] += 1

    def _take_index(self, record: Record) -> None:
        """Add what follows a chunk and lists the messages in it."""
        (channel,) = struct.unpack('<H', self._file.at(record.start, 2))
        count = (record.end - record.start - 6) // 16
        self.said[channel] = self.said.get(channel, 0) + count
        chunk = self._current
        if chunk is not None:
            chunk.counts = chunk.counts or Counter()
            chunk.counts[channel] += count
            chunk.index.append((channel, record.start + 6, count))

    # ---- the summary ----------------------------------------------------------------------------

    def _take_summary(self, summary: list[Record]) -> None:
        """Believe the records behind the messages, where their checksum does not forbid it."""
        if not summary:
            return
        checksum, covered = 0, b''
        if summary[-1].kind == FOOTER:
            footer, start = summary[-1], summary[0].end
            (checksum,) = struct.unpack_from('<I', self._body(footer), 16)
            if checksum:
                covered = self._file.at(start, footer.start + 16 - start)
        sure = bool(checksum) and crc32(covered) == checksum
        if checksum and not sure:
            self._damage.say('its summary does not fit its checksum and is not believed')
        for record in summary:
            body = self._body(record)
            if record.kind in (SCHEMA, CHANNEL):
                self._describe(record.kind, body, sure=sure)
            elif record.kind == STATISTICS and (sure or not checksum):
                self._take_statistics(body)

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
        for channel, count in counts.items():
            self.said[channel] = max(self.said.get(channel, 0), count)

    # ---- what describes topics ------------------------------------------------------------------

    def _announce(self, data: bytes, walked: Walked, *, checked: bool) -> None:
        for kind, start, end in walked.announced:
            self._describe(kind, data[start:end], sure=checked)

    def _describe(self, kind: int, body: bytes, *, sure: bool) -> None:
        """Take in a schema or a channel; of two that differ, the one whose checksum fits."""
        known: dict[int, Any] = self._schemas if kind == SCHEMA else self._channels
        try:
            number, made = _schema(body) if kind == SCHEMA else _channel(body)
        except (BrokenError, struct.error):
            self._damage.say('a record that describes a topic makes no sense')
            return
        before, key = known.get(number), (kind, number)
        if before is not None and before != made and sure == (key in self._sure):
            count = self.said.get(number, 0) if kind == CHANNEL else sum(self.said.values())
            self._damage.say(
                f'{"topic" if kind == CHANNEL else "type"} {number} is described in two ways, as '
                f'{_name(before)!r} and {_name(made)!r}; of {count} messages the first is believed'
            )
        elif before is None or sure:
            known[number] = made
            if sure:
                self._sure.add(key)

    def _connection(self, number: int, channel: McapChannel) -> Connection | None:
        if channel.encoding != 'cdr':
            count = self.said.get(number, 0)
            if count:
                self._damage.say(
                    f'{channel.topic} is encoded as {channel.encoding!r} and not as cdr, so its '
                    f'{count} messages are left out'
                )
            return None
        schema = self._schemas.get(channel.schema, McapSchema('__schemaless__', '', ''))
        about = _pairs(channel.about)
        kind = FORMATS.get(schema.encoding, MessageDefinitionFormat.NONE)
        return Connection(
            number,
            channel.topic,
            schema.name,
            MessageDefinition(kind, schema.text if kind != MessageDefinitionFormat.NONE else ''),
            about.get('topic_type_hash', ''),
            0,
            ConnectionExtRosbag2('cdr', profiles_of(about.get('offered_qos_profiles', ''))),
            self,
        )

    def _publish_ns(self, data: bytes, start: int) -> int:
        (publish_ns,) = _publish_time(data, start - 8)
        return int(publish_ns)

    # ---- inside a chunk -------------------------------------------------------------------------

    def _walk(self, data: bytes, at: int, most: int) -> Walked:
        found: list[StoredAt] = []
        announced: list[tuple[int, int, int]] = []
        size, last = len(data), len(data) - HEAD_BYTES - MESSAGE_BYTES
        for _ in range(most):
            if at <= last and data[at] == MESSAGE:
                _, length, channel, number, time_ns, _ = _message(data, at)
                end = at + HEAD_BYTES + length
                if length < MESSAGE_BYTES or end > size:
                    break
                found.append(StoredAt(time_ns, channel, at, at + 31, end, number))
            elif at + HEAD_BYTES <= size and data[at] in (SCHEMA, CHANNEL):
                end = at + HEAD_BYTES + int.from_bytes(data[at + 1 : at + 9], 'little')
                if end > size:
                    break
                announced.append((data[at], at + HEAD_BYTES, end))
            else:
                break
            at = end
        return Walked(found, announced, at)

    def _marks(self, chunk: Chunk) -> dict[int, IndexEntry]:
        marks: dict[int, IndexEntry] = {}
        for channel, place, count in chunk.index:
            entries = np.frombuffer(self._file.at(place, 16 * count), _MARKS)
            times, places = entries['time'].tolist(), entries['at'].tolist()
            for time_ns, at in zip(times, places, strict=True):
                marks[at] = IndexEntry(channel, time_ns)
        return marks


def _name(described: McapSchema | McapChannel) -> str:
    return described.name if isinstance(described, McapSchema) else described.topic


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
    return number, McapChannel(schema, topic, encoding, body[at + 4 : at + 4 + size])


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
