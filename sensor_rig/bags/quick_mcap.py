"""rosbags' MCAP writer with checksums, message numbers and fewer copies.

rosbags puts every message into a buffer of its own, that into the chunk's, and the chunk into
another one before it is written. Here a message is copied once into the chunk, and the chunk goes
to the file as it is: half of the cost of a recording of pictures. rosbags writes neither the
checksums of chunks and summary nor the sequence number of a message; with them a reader can see
that bytes were altered, and how many messages are missing.
"""

from __future__ import annotations

from binascii import crc32
from collections import defaultdict
from io import BytesIO
from itertools import chain
from struct import Struct, pack, unpack

from rosbags.interfaces import Connection
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.rosbag2.storage_mcap import McapWriter, PendingChunk

MESSAGE, CHUNK, MESSAGE_INDEX = 0x05, 0x06, 0x07
FOOTER_BYTES = 37
"""Of the last record, with the magic behind it; 12 bytes before its end stands the checksum."""
CHUNK_BYTES = 1 << 20
"""A chunk is closed when it is larger than this, as in rosbags."""

_message_head = Struct('<BQHIQQ').pack
"""Opcode, length, channel, sequence, log time, publish time."""


class QuickMcap(McapWriter):
    """The storage of a recording."""

    publish_ns = 0
    """When the next message was published; 0 where that is not known."""

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """Append a message to the present chunk."""
        channel, chunk = connection.id, self.chunk
        if timestamp < self.message_start_time:
            self.message_start_time = timestamp
        if timestamp > self.message_end_time:
            self.message_end_time = timestamp
        if timestamp < chunk.message_start_time:
            chunk.message_start_time = timestamp
        if timestamp > chunk.message_end_time:
            chunk.message_end_time = timestamp
        self.channel_stats[channel] += 1
        number = self.channel_stats[channel] & 0xFFFFFFFF
        bio = chunk.bio
        chunk.msgs[channel].append((timestamp, bio.tell()))
        sent = self.publish_ns or timestamp
        bio.write(_message_head(MESSAGE, 22 + len(data), channel, number, timestamp, sent))
        bio.write(data)
        if bio.tell() > CHUNK_BYTES:
            self.close_chunk()

    def close_chunk(self) -> None:
        """Write the chunk, the index of its messages, and keep its place for the summary."""
        chunk, bio, size = self.chunk, self.bio, self.chunk.bio.tell()
        data: bytes | memoryview = chunk.bio.getbuffer()
        checksum = crc32(data)
        if self.compression:
            data = self.compressor(bytes(data))
        name = self.compression.encode()
        times = (chunk.message_start_time, chunk.message_end_time)
        head = pack(f'<QQQII{len(name)}sQ', *times, size, checksum, len(name), name, len(data))
        start = bio.tell()
        bio.write(pack('<BQ', CHUNK, len(head) + len(data)))
        bio.write(head)
        bio.write(data)
        end = bio.tell()
        offsets: list[int] = []
        for channel, messages in chunk.msgs.items():
            offsets += channel, bio.tell()
            count = 2 * len(messages)
            bio.write(
                pack(
                    f'<BQHI{count}Q',
                    MESSAGE_INDEX,
                    6 + 8 * count,
                    channel,
                    8 * count,
                    *chain.from_iterable(messages),
                )
            )
        index = BytesIO()
        index.write(
            pack(
                f'<QQQQI{"HQ" * (len(offsets) // 2)}',
                *times,
                start,
                end - start,
                5 * len(offsets),
                *offsets,
            )
        )
        index.write(pack(f'<QI{len(name)}sQQ', bio.tell() - end, len(name), name, len(data), size))
        self.chunks.append(index)
        self.chunk = PendingChunk(2**63 - 1, 0, BytesIO(), defaultdict(list))

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
