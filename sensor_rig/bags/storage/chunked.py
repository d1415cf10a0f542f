"""A file whose messages lie in chunks (MCAP, ROS 1): which chunk is read when, and how it is
checked. The formats say where the chunks are and how their records look.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from binascii import crc32
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rosbags.interfaces import Connection

from sensor_rig.bags.storage.base import BrokenError, Damage, FileBytes, Message, Miss
from sensor_rig.bags.storage.unpacking import Budget, unpacked

MOST_RECORDS = 1 << 17
"""Records that a chunk may have, however small it is; beyond that, one for each byte of it."""
KEPT_BYTES = 1 << 26
"""Unpacked chunks that are kept: as many overlap in time. Others are unpacked again."""


@dataclass
class Chunk:
    """A part of the file that holds messages, packed or not."""

    place: int
    """Where its record begins."""
    start: int
    packed_bytes: int
    size: int
    """Bytes of it when it is unpacked."""
    compression: str = ''
    checksum: int = 0
    """Of the unpacked bytes; 0 where the writer made none."""
    start_ns: int = 0
    end_ns: int = 0
    whole: bool = True
    """Whether the file goes on behind it."""
    counts: Counter[int] | None = None
    """How many messages of each connection its index lists; None where it has no index."""
    index: list[tuple[int, int, int]] = field(default_factory=list)
    """Where its index is: connection, place of the entries, their number."""


class StoredAt(NamedTuple):
    """A message record inside a chunk."""

    receive_ns: int
    connection: int
    at: int
    start: int
    """Of its payload."""
    end: int
    number: int
    """Its sequence number, 0 where there is none."""


class Walked(NamedTuple):
    """The records of a chunk, up to the first one that makes no sense."""

    found: list[StoredAt]
    announced: list[tuple[int, int, int]]
    """Records that describe a connection: kind, first byte, end."""
    end: int


class IndexEntry(NamedTuple):
    """A message as the index of a chunk lists it."""

    connection: int
    receive_ns: int


class ChunkedFile(ABC):
    """Reads chunks in order of time and checks each against its checksum or its index."""

    def __init__(self, path: Path, miss: Miss, budget: Budget) -> None:
        self.path = path
        self.connections: list[Connection] = []
        self.said: dict[int, int] = {}
        self.start_ns = self.end_ns = 0
        self._budget = budget
        self._damage = Damage(path, miss)
        self._chunks: list[Chunk] = []
        self._current: Chunk | None = None
        """The chunk to which an index that comes next belongs."""
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._kept_bytes = 0
        self._counted = False
        """Whether the file says how many messages it holds altogether."""
        self._numbers: dict[int, list[int]] = {}
        """Lowest and highest sequence number of each connection, and how many were found."""
        self._file = FileBytes(path)
        try:
            if not self._file.size:
                raise BrokenError('it is empty')
            self._open()
        except BaseException:
            self._file.close()
            raise

    @abstractmethod
    def _open(self) -> None:
        """Find the chunks and the connections."""

    @abstractmethod
    def _walk(self, data: bytes, at: int, most: int) -> Walked:
        """Return the records of a chunk from `at` on, at most so many."""

    @abstractmethod
    def _marks(self, chunk: Chunk) -> dict[int, IndexEntry]:
        """Return the messages that the index of a chunk lists, by their place in it."""

    @abstractmethod
    def _announce(self, data: bytes, walked: Walked, *, checked: bool) -> None:
        """Take in what a chunk says of connections; `checked` bytes fit a checksum."""

    def _publish_ns(self, data: bytes, start: int) -> int:
        """Return when the message was published whose payload begins at `start`; 0 for unknown."""
        return 0

    def _enter(self, chunk: Chunk) -> None:
        """Take in the next chunk of the file."""
        self._chunks.append(chunk)
        self._current = chunk

    def _leave_chunk(self, *, broken: bool = False) -> None:
        """Go on behind a chunk and its index; one that is broken off in it has none."""
        if broken and self._current is not None:
            self._current.counts, self._current.index = None, []
        self._current = None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def messages(self, wanted: Collection[int]) -> Iterator[Message]:
        """Yield the messages of some connections in order of receive time."""
        self._numbers.clear()
        known = {each.id for each in self.connections}
        chunks = sorted(
            (chunk.start_ns, number)
            for number, chunk in enumerate(self._chunks)
            if _may_hold(chunk, wanted, known)
        )
        waiting: list[tuple[int, int, int, int, int]] = []
        for start_ns, number in chunks:
            ready = bisect_left(waiting, (start_ns,))
            yield from self._handed_out(waiting[:ready])
            del waiting[:ready]
            self._keep_only({each[1] for each in waiting})
            waiting += [
                (each.receive_ns, number, each.start, each.end, each.connection)
                for each in self._messages_of(number)
                if each.connection in wanted
            ]
            waiting.sort()
        yield from self._handed_out(waiting)
        self._damage.tell_rest()
        self._tell_gaps()

    def _handed_out(self, entries: list[tuple[int, int, int, int, int]]) -> Iterator[Message]:
        last, data = -1, b''
        for receive_ns, number, start, end, connection in entries:
            if number != last:
                last, data = number, self._data_of(number)
            yield receive_ns, connection, data[start:end], self._publish_ns(data, start)

    def _keep_only(self, numbers: set[int]) -> None:
        """Forget the unpacked bytes of all chunks but these."""
        for number in self._kept.keys() - numbers:
            self._kept_bytes -= len(self._kept.pop(number))

    def _data_of(self, number: int) -> bytes:
        """Return the unpacked bytes of a chunk; raise BrokenError where they make no sense."""
        data = self._kept.get(number)
        if data is not None:
            self._kept.move_to_end(number)
            return data
        chunk = self._chunks[number]
        if chunk.compression:
            self._budget.take_bytes(chunk.size)
        packed = self._file.at(chunk.start, chunk.packed_bytes)
        data = unpacked(packed, chunk.compression, chunk.size, whole=chunk.whole)
        if chunk.whole and chunk.checksum and crc32(data) != chunk.checksum:
            raise BrokenError('a chunk does not fit its checksum')
        self._kept[number] = data
        self._kept_bytes += len(data)
        while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1])
        return data

    def _messages_of(self, number: int) -> list[StoredAt]:
        """Return what is whole of a chunk, and say what is not."""
        chunk = self._chunks[number]
        lost = sum((chunk.counts or {}).values())
        how_many = f'its {lost} messages are' if chunk.counts else 'what it holds is'
        try:
            data = self._data_of(number)
        except BrokenError as error:
            self._damage.at(chunk.place, f'{error}, so {how_many} left out', lost)
            return []
        most = min(self._budget.records_left, MOST_RECORDS + chunk.packed_bytes)
        walked = self._walk(data, 0, most)
        count = len(walked.found) + len(walked.announced)
        self._budget.records_left -= count
        if count >= most:
            self._damage.at(chunk.place, f'its chunk has more than {most} records, which are read')
        self._announce(data, walked, checked=bool(chunk.checksum))
        found = walked.found
        if not (chunk.checksum and chunk.whole):
            found = self._compared(chunk, data, walked)
        for each in () if self._counted else found:
            if each.number:
                known = self._numbers.setdefault(each.connection, [each.number, each.number, 0])
                known[0] = min(known[0], each.number)
                known[1] = max(known[1], each.number)
                known[2] += 1
        return found

    def _compared(self, chunk: Chunk, data: bytes, walked: Walked) -> list[StoredAt]:
        """Return the messages of a chunk without a checksum, as far as they fit its index."""
        found = walked.found
        clean = walked.end == len(data)
        if not chunk.index or chunk.counts is None or not chunk.whole:
            if not clean and chunk.whole:
                self._damage.at(
                    chunk.place,
                    f'from byte {walked.end} on its chunk makes no sense, and it has no '
                    f'index; the {len(found)} messages before that are read',
                )
            return found
        marks = self._marks(chunk)
        listed = sum(chunk.counts.values())
        if not clean or len(found) < listed:
            guided = self._guided(data, marks)
            found = guided if len(guided) > len(found) or not clean else found
            if len(found) < listed:
                lost = listed - len(found)
                self._damage.at(
                    chunk.place,
                    f'its chunk lists {listed} messages, {lost} of which make no sense',
                    lost,
                )
                return found
        differing = sum(marks.get(each.at) != (each.connection, each.receive_ns) for each in found)
        if differing and clean:
            self._damage.at(
                chunk.place,
                f'{differing} of {len(found)} messages of its chunk differ from its index in '
                f'place, topic or receive time; they are read as the chunk has them',
            )
        elif not clean:
            self._damage.at(chunk.place, 'a record of its chunk makes no sense')
        return found

    def _guided(self, data: bytes, marks: dict[int, IndexEntry]) -> list[StoredAt]:
        """Return the messages that are whole where the index says that they are."""
        found = []
        places = sorted(place for place in marks if place < len(data))
        for place, following in zip(places, [*places, len(data)][1:], strict=True):
            walked = self._walk(data[place:following], 0, 1 << 16)
            first = walked.found[0] if walked.found else None
            if (
                first is not None
                and len(walked.found) == 1
                and walked.end == following - place
                and (first.connection, first.receive_ns) == marks[place]
            ):
                found.append(
                    first._replace(at=place, start=place + first.start, end=place + first.end)
                )
        return found

    def _tell_gaps(self) -> None:
        """Say how many numbers of messages are missing where nothing else says how many."""
        if self._counted or not self._damage.found:
            return
        missing = sum(max(last - first + 1 - n, 0) for first, last, n in self._numbers.values())
        if missing:
            self._damage.say(f'by their sequence numbers at least {missing} messages are missing')

    def _survey(self) -> None:
        """Read the chunks that say what the connections are, and those that have no index."""
        seen: set[int] = set()
        for number, chunk in enumerate(self._chunks):
            if chunk.counts is not None and not set(chunk.counts) - seen:
                continue
            found = self._messages_of(number)
            if chunk.counts is None:
                chunk.counts = Counter(each.connection for each in found)
                if found:
                    chunk.start_ns = min(each.receive_ns for each in found)
                    chunk.end_ns = max(each.receive_ns for each in found)
            if found:
                seen |= set(chunk.counts)
            self._keep_only(set())

    def _count(self) -> None:
        """Fill in how many messages of each connection there are, and when."""
        counts: Counter[int] = Counter()
        for chunk in self._chunks:
            counts.update(chunk.counts or {})
        filled = [chunk for chunk in self._chunks if any((chunk.counts or {}).values())]
        self.start_ns = min((chunk.start_ns for chunk in filled), default=0)
        self.end_ns = max((chunk.end_ns for chunk in filled), default=0)
        self.connections = [
            each._replace(msgcount=counts.pop(each.id, 0)) for each in self.connections
        ]
        strays = sum(counts.values())
        if strays:
            self._damage.say(f'{strays} messages belong to no topic and are left out')


def _may_hold(chunk: Chunk, wanted: Collection[int], known: Collection[int]) -> bool:
    """Whether a chunk must be read: its index names a wanted connection, or makes no sense."""
    return (
        chunk.counts is None
        or any(each in wanted for each in chunk.counts)
        or any(each not in known for each in chunk.counts)
    )
