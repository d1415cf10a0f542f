"""A file whose messages lie in chunks (MCAP, ROS 1): which one is read when, how it is checked.

The formats say how their records look.
"""

from __future__ import annotations

from abc import abstractmethod
from binascii import crc32
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rosbags.interfaces import Connection

from sensor_rig.bags.storage.base import (
    BLOCK_BYTES,
    MAX_RECEIVE_NS,
    BrokenError,
    Damage,
    FileBytes,
    Message,
    Miss,
)
from sensor_rig.bags.storage.records import RecordFile
from sensor_rig.bags.storage.unpacking import Budget, unpacked

LEAST_RECORD_BYTES = 64
"""What is shorter and all zeros is padding: no message fits into it."""
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


StoredAt = tuple[int, int, int, int, int, int, int]
"""A message record inside a chunk: receive time, connection, place, start and end of the payload,
publish time and sequence number; 0 for the last two where there is none. A plain tuple, as most of
the time of reading small messages goes into making these."""


class Walked(NamedTuple):
    """The records of a chunk, up to the first one that makes no sense."""

    found: list[StoredAt]
    announced: list[tuple[int, int, int]]
    """Records that describe a connection: kind, first byte, end."""
    end: int


class ChunkedFile(RecordFile):
    """Reads chunks in order of time and checks each against its checksum or its index."""

    def __init__(self, path: Path, miss: Miss, budget: Budget) -> None:
        self.path = path
        self.connections: list[Connection] = []
        self.said: Counter[int] = Counter()
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
    def _walk(self, data: bytes, at: int, end: int, most: int) -> Walked:
        """Return the records of a chunk from `at` to `end`, at most so many."""

    @abstractmethod
    def _entries(self, place: int, count: int) -> Iterable[tuple[int, int]]:
        """Return (receive time, place in the chunk) of entries of an index."""

    @abstractmethod
    def _announce(self, data: bytes, walked: Walked, *, checked: bool) -> None:
        """Take in what a chunk says of connections; `checked` bytes fit a checksum."""

    # ---- the file's own records -----------------------------------------------------------------

    def _may_pass_over(self, place: int, following: int) -> bool:
        """Whether nothing is lost there: zeros behind a chunk are padding.

        Behind a message that lies in none they may be what a wrong length of it has left of a
        record.
        """
        if self._current is None:
            return False
        self._current.counts, self._current.index = None, []  # an index that is broken off is none
        self._current = None
        size = following - place
        return (
            size < LEAST_RECORD_BYTES
            and following < self._file.size
            and not any(self._file.at(place, size))
        )

    def _enter(self, chunk: Chunk) -> None:
        """Take in the next chunk of the file."""
        self._chunks.append(chunk)
        self._current = chunk
        if not chunk.whole:
            self._damage.at(self._file.size, 'it ends in the middle of a chunk')

    def _take_index(self, connection: int, place: int, count: int) -> None:
        """Add what follows a chunk and lists messages of a connection in it."""
        self.said[connection] += count
        chunk = self._current
        if chunk is not None and count:
            chunk.counts = chunk.counts or Counter()
            chunk.counts[connection] += count
            chunk.index.append((connection, place, count))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    # ---- messages -------------------------------------------------------------------------------

    def blocks(self, wanted: Collection[int]) -> Iterator[list[Message]]:
        """Yield the messages of some connections in order of receive time."""
        self._numbers.clear()
        known = {each.id for each in self.connections}
        chunks = sorted(
            (chunk.start_ns, number)
            for number, chunk in enumerate(self._chunks)
            if chunk.counts is None
            or any(each in wanted or each not in known for each in chunk.counts)
        )
        waiting: list[tuple[int, int, int, int, int, int]] = []
        for start_ns, number in chunks:
            ready = bisect_left(waiting, (start_ns,))
            yield from self._handed_out(waiting[:ready])
            del waiting[:ready]
            self._keep_only({each[1] for each in waiting})
            waiting += [
                (min(receive_ns, MAX_RECEIVE_NS), number, start, end, connection, publish_ns)
                for receive_ns, connection, _, start, end, publish_ns, _ in self._messages_of(
                    number
                )
                if connection in wanted
            ]
            waiting.sort()
        yield from self._handed_out(waiting)
        self._damage.tell_rest()
        self._tell_gaps()

    def _handed_out(
        self, entries: list[tuple[int, int, int, int, int, int]]
    ) -> Iterator[list[Message]]:
        last, data = -1, b''
        block: list[Message] = []
        size = 0
        for receive_ns, number, start, end, connection, publish_ns in entries:
            if number != last:
                last, data = number, self._data_of(number)
            block.append((receive_ns, connection, data[start:end], publish_ns))
            size += end - start
            if size > BLOCK_BYTES:
                yield block
                block, size = [], 0
        if block:
            yield block

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
        self._kept[number] = data
        self._kept_bytes += len(data)
        while self._kept_bytes > KEPT_BYTES and len(self._kept) > 1:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1])
        return data

    def _messages_of(self, number: int) -> list[StoredAt]:
        """Return what is whole of a chunk, and say what is not."""
        chunk = self._chunks[number]
        listed = sum((chunk.counts or {}).values())
        try:
            data = self._data_of(number)
        except BrokenError as error:
            how_many = f'its {listed} messages are' if chunk.counts else 'what it holds is'
            self._damage.at(chunk.place, f'{error}, so {how_many} left out', listed)
            return []
        most = min(self._budget.records_left, MOST_RECORDS + chunk.packed_bytes)
        walked = self._walk(data, 0, len(data), most)
        count = len(walked.found) + len(walked.announced)
        self._budget.records_left -= count
        if count >= most:
            self._damage.at(chunk.place, f'its chunk has more than {most} records, which are read')
        has_checksum = bool(chunk.checksum) and chunk.whole
        fits = has_checksum and crc32(data) == chunk.checksum
        self._announce(data, walked, checked=fits)
        found = walked.found
        if not fits:
            found, lost, wrong = self._compared(chunk, data, walked, listed)
            if has_checksum:
                wrong = (
                    f'a chunk does not fit its checksum, so the {len(found)} messages that are '
                    f'read of it may hold altered bytes{wrong and "; "}{wrong}'
                )
            if wrong:
                self._damage.at(chunk.place, wrong, lost)
        for _, connection, *_, sequence in () if self._counted else found:
            if sequence:
                known = self._numbers.setdefault(connection, [sequence, sequence, 0])
                known[0] = min(known[0], sequence)
                known[1] = max(known[1], sequence)
                known[2] += 1
        return found

    def _compared(
        self, chunk: Chunk, data: bytes, walked: Walked, listed: int
    ) -> tuple[list[StoredAt], int, str]:
        """Return the messages of a chunk as far as they fit its index, how many are lost, and
        what is wrong."""
        found, is_clean = walked.found, walked.end == len(data)
        if not chunk.index or chunk.counts is None or not chunk.whole:
            return (
                found,
                0,
                f'from byte {walked.end} on its chunk makes no sense, and it has no index; the '
                f'{len(found)} messages before that are read'
                if not is_clean and chunk.whole
                else '',
            )
        marks = {
            at: (receive_ns, connection)
            for connection, place, count in chunk.index
            for receive_ns, at in self._entries(place, count)
        }
        if not is_clean or len(found) < listed:
            guided = self._guided(data, marks)
            found = guided if len(guided) > len(found) or not is_clean else found
            if lost := max(listed - len(found), 0):
                wrong = f'its chunk lists {listed} messages, {lost} of which make no sense'
                return found, lost, wrong
        if not is_clean:
            return found, 0, 'a record of its chunk makes no sense'
        differing = sum(marks.get(each[2]) != each[:2] for each in found)
        return (
            found,
            0,
            f'{differing} of {len(found)} messages of its chunk differ from its index in place, '
            f'topic or receive time; they are read as the chunk has them'
            if differing
            else '',
        )

    def _guided(self, data: bytes, marks: dict[int, tuple[int, int]]) -> list[StoredAt]:
        """Return the messages that are whole where the index says that they are."""
        found = []
        places = sorted(place for place in marks if place < len(data))
        for place, following in zip(places, [*places, len(data)][1:], strict=True):
            walked = self._walk(data, place, following, 1 << 16)
            if (
                len(walked.found) == 1
                and walked.end == following
                and walked.found[0][:2] == marks[place]
            ):
                found += walked.found
        return found

    def _tell_gaps(self) -> None:
        """Say how many numbers of messages are missing where nothing else says how many."""
        if self._counted or not self._damage.found:
            return
        numbers = list(self._numbers.values())
        missing = sum(max(last - first + 1 - n, 0) for first, last, n in numbers)
        if numbers:  # one count for all connections, or one for each: what both say is missing
            firsts, lasts, read = zip(*numbers, strict=True)
            one_count = max(lasts) - min(firsts) + 1 - sum(read)
            missing = one_count if 0 <= one_count < missing else missing
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
                chunk.counts = Counter(each[1] for each in found)
                times = [each[0] for each in found]
                chunk.start_ns, chunk.end_ns = min(times, default=0), max(times, default=0)
            if found:
                seen |= set(chunk.counts)
            self._keep_only(set())

    def _count(self) -> None:
        """Fill in how many messages of each connection there are, and when."""
        filled = [chunk for chunk in self._chunks if any((chunk.counts or {}).values())]
        counts = sum((chunk.counts for chunk in filled if chunk.counts), Counter[int]())
        self.start_ns = min((chunk.start_ns for chunk in filled), default=0)
        self.end_ns = max((chunk.end_ns for chunk in filled), default=0)
        self.connections = [
            each._replace(msgcount=counts.pop(each.id, 0)) for each in self.connections
        ]
        if strays := sum(counts.values()):
            self._damage.say(f'{strays} messages belong to no topic and are left out')
