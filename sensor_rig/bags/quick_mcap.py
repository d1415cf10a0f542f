"""rosbags' MCAP writer with checksums, message numbers and fewer copies.

rosbags puts every message into a buffer of its own, that into the chunk's, and the chunk into
another one before it is written. Here large messages go to the file as they are. rosbags writes
neither the checksums of chunks and summary nor the sequence number of a message; with them a
reader can see that bytes were altered, and how many messages are missing.
"""

from __future__ import annotations

from binascii import crc32
from collections import defaultdict
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from io import BytesIO
from pathlib import Path
from struct import Struct, pack, unpack
from typing import Any

import yaml
from rosbags.interfaces import Connection, ConnectionExtRosbag2, Qos
from rosbags.rosbag2 import CompressionMode, StoragePlugin, Writer
from rosbags.rosbag2.metadata import dump_qos_v8
from rosbags.rosbag2.storage_mcap import McapWriter

MESSAGE, CHUNK, MESSAGE_INDEX = 0x05, 0x06, 0x07
FOOTER_BYTES = 37
"""Of the last record, with the magic behind it; 12 bytes before its end stands the checksum."""
CHUNK_BYTES = 1 << 20
"""A chunk is closed when it is larger than this, as in rosbags."""
SMALL_BYTES = 1 << 12
"""Smaller messages are put together before they are written."""

DUMPER: Any = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)
_message_head = Struct('<BQHIQQ').pack
"""Opcode, length, channel, sequence, log time, publish time."""


class QuickMcap(McapWriter):
    """The storage of a recording."""

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        super().__init__(path, compression)
        self._parts: list[bytes | memoryview] = []
        """Of the present chunk."""
        self._size = 0
        self._index: defaultdict[int, list[int]] = defaultdict(list)
        """Receive time and place of each message of the present chunk, by channel."""

    def add_connection(self, connection: Connection, offered_qos_profiles: str) -> None:
        """Describe a topic, and before it its type, in the present chunk."""
        super().add_connection(connection, offered_qos_profiles)
        self._parts.append(self.chunk.bio.getvalue())
        self._size += self.chunk.bio.tell()
        self.chunk.bio = BytesIO()

    def put(
        self, connection: Connection, timestamp: int, data: bytes | memoryview, publish_ns: int
    ) -> None:
        """Append a message to the present chunk."""
        channel, length = connection.id, len(data)
        self.channel_stats[channel] = number = self.channel_stats[channel] + 1
        self._index[channel] += timestamp, self._size
        self._parts += (
            _message_head(
                MESSAGE,
                22 + length,
                channel,
                number & 0xFFFFFFFF,
                timestamp,
                publish_ns or timestamp,
            ),
            data,
        )
        self._size += 31 + length
        if self._size > CHUNK_BYTES:
            self.close_chunk()

    def close_chunk(self) -> None:
        """Write the chunk, the index of its messages, and keep its place for the summary."""
        parts, size, bio = self._parts, self._size, self.bio
        if not size:
            return
        if self.compression or size < SMALL_BYTES * len(parts):
            parts = [b''.join(parts)]
        checksum = 0
        for part in parts:
            checksum = crc32(part, checksum)
        if self.compression:
            parts = [self.compressor(bytes(parts[0]))]
        received = [ns for entries in self._index.values() for ns in entries[::2]]
        times = min(received, default=2**63 - 1), max(received, default=0)
        self.message_start_time = min(self.message_start_time, times[0])
        self.message_end_time = max(self.message_end_time, times[1])
        name, packed = self.compression.encode(), sum(map(len, parts))
        head = pack(f'<QQQII{len(name)}sQ', *times, size, checksum, len(name), name, packed)
        start = bio.tell()
        bio.writelines((pack('<BQ', CHUNK, len(head) + packed), head, *parts))
        end = bio.tell()
        offsets: list[int] = []
        for channel, entries in self._index.items():
            offsets += channel, bio.tell()
            length = 8 * len(entries)
            bio.write(
                pack(f'<BQHI{len(entries)}Q', MESSAGE_INDEX, 6 + length, channel, length, *entries)
            )
        index = BytesIO()
        places = f'<QQQQI{"HQ" * (len(offsets) // 2)}'
        index.write(pack(places, *times, start, end - start, 5 * len(offsets), *offsets))
        sizes = bio.tell() - end, len(name), name, packed, size
        index.write(pack(f'<QI{len(name)}sQQ', *sizes))
        self.chunks.append(index)
        self._parts, self._size = [], 0
        self._index.clear()

    def close(self, version: int, metadata: str) -> None:
        """Write the summary and the footer, then the summary's checksum into the footer."""
        super().close(version, metadata)
        with self.path.open('r+b') as file:
            file.seek(-FOOTER_BYTES, 2)
            (summary,) = unpack('<Q', file.read(17)[9:])
            file.seek(summary)
            covered = file.read()[:-12]
            file.seek(-12, 2)
            file.write(pack('<I', crc32(covered)))


class QuickWriter(Writer):
    """rosbags' writer with that storage for MCAP."""

    STORAGE_PLUGINS = {**Writer.STORAGE_PLUGINS, StoragePlugin.MCAP: QuickMcap}

    @property
    def put(self) -> Callable[[Connection, int, bytes | memoryview, int], None]:
        """What appends a message: connection, receive time, bytes, publish time (0 for none).

        MCAP keeps when it was published.
        """
        if isinstance(self.storage, QuickMcap):
            return self.storage.put
        return lambda connection, receive_ns, data, _: self.write(connection, receive_ns, data)

    def close(self) -> None:
        """Finish the file and write metadata.yaml, which takes rosbags ten times as long."""
        storage = self.storage
        assert storage is not None
        if isinstance(storage, QuickMcap):
            storage.close_chunk()
            self.counts = dict(storage.channel_stats)
            self.min_timestamp = storage.message_start_time
            self.max_timestamp = storage.message_end_time
        if not any(self.counts.values()):
            self.min_timestamp = 0  # an empty recording starts at no time, not at 2^63
        duration_ns = max(self.max_timestamp - self.min_timestamp, 0)
        whole = {
            'starting_time': {'nanoseconds_since_epoch': self.min_timestamp},
            'duration': {'nanoseconds': duration_ns},
            'message_count': sum(self.counts.values()),
        }
        is_packed = self.compression_mode == CompressionMode.MESSAGE
        about: dict[str, object] = {
            'version': self.version,
            'storage_identifier': self.storage_plugin.name.lower(),
            'relative_file_paths': [storage.path.name],
            **whole,
            'topics_with_message_count': [
                {
                    'topic_metadata': {
                        'name': each.topic,
                        'type': each.msgtype,
                        'serialization_format': 'cdr',
                        'offered_qos_profiles': _qos_text(tuple(_profiles(each))),
                        'type_description_hash': each.digest,
                    },
                    'message_count': self.counts[each.id],
                }
                for each in self.connections
            ],
            'compression_format': self.compression_format if is_packed else '',
            'compression_mode': 'message' if is_packed else '',
            'files': [{'path': storage.path.name, **deepcopy(whole)}],
            'custom_data': self.custom_data or None,
            'ros_distro': 'rosbags',
        }
        storage.close(self.version, _yaml(about))
        self.storage = None
        written = self.metapath.with_suffix('.yaml.tmp')
        written.write_text(_yaml({'rosbag2_bagfile_information': about}), encoding='utf-8')
        written.replace(self.metapath)


def _profiles(connection: Connection) -> list[Qos]:
    assert isinstance(connection.ext, ConnectionExtRosbag2)
    return connection.ext.offered_qos_profiles


@cache
def _qos_text(profiles: tuple[Qos, ...]) -> str:
    return dump_qos_v8([*profiles])


def _yaml(values: dict[str, object]) -> str:
    text: str = yaml.dump(values, Dumper=DUMPER, allow_unicode=True, width=1 << 20)
    return text
