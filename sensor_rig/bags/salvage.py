"""Makes a readable copy of a storage file that is cut off, has no index or is half written.

A recorder that is killed leaves an MCAP without its summary, or an sqlite file beside a log of
changes. A full disk or a broken copy cuts a file anywhere. Everything up to the break is kept.
"""

from __future__ import annotations

import shutil
import sqlite3
import struct
import sys
from binascii import crc32
from collections.abc import Iterator
from contextlib import closing
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from rosbags.rosbag2 import CompressionMode
from rosbags.rosbag2.storage_mcap import (
    Channel,
    McapWriter,
    Schema,
    write_channel,
    write_schema,
)

from rig_common.errors import RigError
from sensor_rig.bags.sqlite_pages import message_rows

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
LARGEST_CHUNK = 1 << 30
"""Bytes of an unpacked chunk; writers use some mebibytes."""
_CHUNK = struct.Struct('<QQQI')
_MESSAGE = struct.Struct('<HIQQ')
SIDE_FILES = ('-wal', '-journal')
"""What sqlite keeps beside a file whose last changes are not in it yet, or not undone."""


class Repaired(NamedTuple):
    """A readable copy of a storage file."""

    messages: int
    broken: str
    """Why the original cannot be read to its end; empty when nothing is missing."""


class _BrokenError(Exception):
    """The bytes end, or make no sense, from here on."""


def repair(source: Path, target: Path) -> Repaired:
    """Write what `source` (.mcap or .db3) holds to `target`; raises RigError when it is nothing.

    What sqlite has put beside a .db3 is taken into the copy.
    """
    try:
        return (_repair_mcap if source.suffix == '.mcap' else _repair_sqlite)(source, target)
    except (_BrokenError, sqlite3.Error, OSError, struct.error, UnicodeDecodeError) as error:
        raise RigError(f'{source} holds nothing that can be read: {error}') from None


def has_side_file(path: Path) -> bool:
    """Whether sqlite left changes beside `path` that are not in it."""
    return any(_has_content(path.with_name(path.name + end)) for end in SIDE_FILES)


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


# ---- MCAP ---------------------------------------------------------------------------------------


def _repair_mcap(source: Path, target: Path) -> Repaired:
    folder = target.with_suffix('.part')
    folder.mkdir()
    writer = McapWriter(folder, CompressionMode.NONE)
    copy = _McapCopy(writer)
    broken = ''
    with source.open('rb') as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise _BrokenError('it does not begin as an MCAP file')
        try:
            for kind, body in _records(file):
                if kind == FOOTER:
                    break
                copy.take(kind, body)
        except (_BrokenError, struct.error, UnicodeDecodeError) as error:
            broken = f'{error} at byte {file.tell()}'
    if not copy.messages:
        raise _BrokenError(broken or 'it has no messages')
    writer.close(0, '')
    writer.path.rename(target)
    folder.rmdir()
    return Repaired(copy.messages, broken)


def _records(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (kind, bytes) of every record; the last may be cut, if it is a chunk."""
    end = file.seek(0, 2)
    file.seek(len(MAGIC))
    while True:
        head = file.read(9)
        if len(head) < 9:
            raise _BrokenError('it ends without a footer')
        kind, size = head[0], int.from_bytes(head[1:], 'little')
        body = file.read(min(size, end - file.tell()))  # a size is only what the file claims
        if len(body) == size or (kind == CHUNK and body):
            yield kind, body
        if len(body) < size:
            raise _BrokenError('it ends in the middle of a record')


class _McapCopy:
    """Puts the records of a broken file into a new one, which gets an index."""

    def __init__(self, writer: McapWriter) -> None:
        self._writer = writer
        self._schemas: dict[int, Schema] = {}
        self._channels: set[int] = set()
        self.messages = 0

    def take(self, kind: int, body: bytes) -> None:
        if kind == HEADER:
            profile, _ = _text(body, 0)
            if profile != 'ros2':
                raise _BrokenError(f'its profile is {profile!r}, not ros2')
        elif kind == SCHEMA:
            self._take_schema(body)
        elif kind == CHANNEL:
            self._take_channel(body)
        elif kind == MESSAGE:
            self._take_message(body)
        elif kind == CHUNK:
            self._take_chunk(body)

    def _take_schema(self, body: bytes) -> None:
        number = int.from_bytes(body[:2], 'little')
        if number in self._schemas:
            return
        name, at = _text(body, 2)
        encoding, at = _text(body, at)
        schema = Schema(number, name, encoding, _text(body, at)[0])
        self._schemas[number] = schema
        self._writer.schemas.append(schema)
        write_schema(self._writer.chunk.bio, schema)

    def _take_channel(self, body: bytes) -> None:
        number, schema = struct.unpack_from('<HH', body)
        if number in self._channels:
            return
        if schema not in self._schemas:
            raise _BrokenError(f'channel {number} has no schema')
        topic, at = _text(body, 4)
        encoding, at = _text(body, at)
        channel = Channel(number, self._schemas[schema].name, topic, encoding, body[at + 4 :])
        self._channels.add(number)
        self._writer.channels.append(channel)
        self._writer.channel_stats[number] = 0
        write_channel(self._writer.chunk.bio, channel, self._writer.schemas)

    def _take_message(self, body: bytes) -> None:
        number, _, log_ns, _ = _MESSAGE.unpack_from(body)
        if number not in self._channels:
            raise _BrokenError(f'a message belongs to channel {number}, which was not announced')
        connection: Any = Channel(number, '', '', '', b'')
        self._writer.write(connection, log_ns, body[_MESSAGE.size :])
        self.messages += 1

    def _take_chunk(self, body: bytes) -> None:
        _, _, size, crc = _CHUNK.unpack_from(body)
        compression, at = _text(body, _CHUNK.size)
        packed = body[at + 8 :]
        whole = len(packed) == int.from_bytes(body[at : at + 8], 'little')
        data = unpacked(packed, compression, size)
        if whole and (len(data) != size or (crc and crc32(data) != crc)):
            raise _BrokenError('a chunk does not fit its checksum')
        at = 0
        while at + 9 <= len(data):
            end = at + 9 + int.from_bytes(data[at + 1 : at + 9], 'little')
            if end > len(data):
                return
            self.take(data[at] if data[at] != CHUNK else 0, data[at + 9 : end])
            at = end


def unpacked(packed: bytes, compression: str, most: int) -> bytes:
    """Return what a chunk holds, as far as it goes, at most `most` bytes."""
    most = min(most, LARGEST_CHUNK)
    try:
        if compression == 'zstd':
            return bytes(zstd.ZstdDecompressor().decompress(packed, most))
        if compression == 'lz4':
            from lz4.frame import LZ4FrameDecompressor  # type: ignore[import-untyped]

            return bytes(LZ4FrameDecompressor().decompress(packed, most))
    except (zstd.ZstdError, RuntimeError, EOFError):
        raise _BrokenError(f'a chunk is no {compression}') from None
    if compression:
        raise _BrokenError(f'a chunk is compressed with {compression!r}')
    return packed


def _text(body: bytes, at: int) -> tuple[str, int]:
    """Return the string at `at` and where it ends."""
    (size,) = struct.unpack_from('<I', body, at)
    end = at + 4 + size
    if end > len(body):
        raise _BrokenError('a text is longer than its record')
    return body[at + 4 : end].decode(), end


# ---- sqlite -------------------------------------------------------------------------------------

TABLES = """
CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL);
CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT,
  offered_qos_profiles TEXT, type_description_hash TEXT);
CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT, encoding TEXT,
  encoded_message_definition TEXT, type_description_hash TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);
CREATE INDEX timestamp_idx ON messages(timestamp ASC);
INSERT INTO schema VALUES(4, '');
"""
"""What rosbag2 has written since Iron."""
COLUMNS = {
    'topics': (
        'id',
        'name',
        'type',
        'serialization_format',
        'offered_qos_profiles',
        'type_description_hash',
    ),
    'message_definitions': (
        'id',
        'topic_type',
        'encoding',
        'encoded_message_definition',
        'type_description_hash',
    ),
}


def _repair_sqlite(source: Path, target: Path) -> Repaired:
    """Take in what sqlite left beside the file; where it is broken, read it page by page."""
    copy = target.with_suffix('.copy')
    for end in ('', *SIDE_FILES):
        if _has_content(source.with_name(source.name + end)):
            shutil.copyfile(source.with_name(source.name + end), copy.with_name(copy.name + end))
    try:
        with closing(sqlite3.connect(copy)) as database:
            database.execute('PRAGMA wal_checkpoint(TRUNCATE)')
            database.execute('PRAGMA journal_mode=DELETE')
            kind = database.execute("SELECT type FROM sqlite_master WHERE name = 'messages'")
            if kind.fetchone() != ('table',):  # a view can be without end
                raise _BrokenError('it has no table of messages')
            sound = database.execute('PRAGMA quick_check(1)').fetchone() == ('ok',)
            count = database.execute('SELECT count(*) FROM messages').fetchone()[0]
    except sqlite3.Error:
        sound = False
    if sound:
        copy.rename(target)
        return Repaired(count, '')
    messages, broken = _copy_pages(copy, target)
    if not messages:
        raise _BrokenError('it has no whole message')
    return Repaired(messages, broken)


def _copy_pages(source: Path, target: Path) -> tuple[int, str]:
    """Write every message of a broken file that is whole; return their number and the reason."""
    size = source.stat().st_size
    with source.open('r+b') as file:
        head = file.read(100)
        if len(head) < 100 or head[:16] != b'SQLite format 3\0':
            raise _BrokenError('it does not begin as an sqlite file')
        page = int.from_bytes(head[16:18], 'big')
        page = 65536 if page == 1 else page
        if page < 512 or page & (page - 1):
            raise _BrokenError(f'its pages are said to have {page} bytes')
        meant = int.from_bytes(head[28:32], 'big') * page
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            if size < meant:
                file.truncate(meant)  # sqlite refuses a file that is shorter than it says
            with closing(sqlite3.connect(target)) as out:
                out.executescript(TABLES)
                with closing(sqlite3.connect(source)) as database:
                    for table in COLUMNS:
                        _copy_table(database, out, table)
                out.executemany(
                    'INSERT OR IGNORE INTO messages VALUES(?, ?, ?, ?)', message_rows(data, page)
                )
                out.commit()
                count = out.execute('SELECT count(*) FROM messages').fetchone()[0]
    return count, (
        f'it ends at byte {size} of {meant}' if size < meant else 'its pages are damaged'
    )


def _copy_table(database: sqlite3.Connection, out: sqlite3.Connection, table: str) -> None:
    """Copy the columns that both have; older recordings lack some."""
    there = {row[1] for row in database.execute(f'PRAGMA table_info({table})')}
    if not there:
        return
    columns = [name if name in there else "''" for name in COLUMNS[table]]
    rows = database.execute(f'SELECT {", ".join(columns)} FROM {table}')
    out.executemany(f'INSERT INTO {table} VALUES({", ".join("?" * len(columns))})', rows)
