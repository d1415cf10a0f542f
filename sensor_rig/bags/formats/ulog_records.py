"""The records of a ULog, also behind a place that makes no sense.

https://docs.px4.io/main/en/dev_log/ulog_file_format: a record is the size of its body, a letter,
and the body. The format has no checksums: what is altered inside a message is not seen.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensor_rig.bags.storage.base import BrokenError, Damage, FileBytes, Miss
from sensor_rig.bags.storage.records import PRIVATE, Record, RecordFile

MAGIC = b'ULog\x01\x12\x35'
FIRST = 16
"""Where the first record is."""
SYNC_BYTES = b'\x2f\x73\x13\x20\x25\x0c\xbb\x12'
DATA, SYNC = b'DS'
LEAST_BYTES = dict(zip(b'ABCDFILMOPQRS', (4, 40, 3, 2, 3, 2, 9, 3, 2, 2, 3, 2, 8), strict=True))
"""What is at least in a record of each letter."""
MOST_BYTES = 0xFFFF
"""Of a record: its size has two bytes."""
MOST_US = 2**62 // 1000
"""A later time is none: its nanoseconds do not fit into int64."""
TYPES = {'bool': '?', 'char': 'S1', 'float': '<f4', 'double': '<f8'}
TYPES |= {f'{sign}int{8 * size}_t': f'<{sign or "i"}{size}' for sign in ('', 'u')
          for size in (1, 2, 4, 8)}  # fmt: skip
Rows = NDArray[Any]
"""Messages of one topic, a field a column."""


class Logged(NamedTuple):
    """A topic, or one instance of it."""

    name: str
    instance: int
    dtype: np.dtype[Any]
    most_bytes: int
    """Of a message: padding at its end may be there."""
    raw: bytearray

    @property
    def rows(self) -> Rows:
        """Its messages."""
        return np.frombuffer(self.raw, self.dtype)


class ULogRecords(RecordFile):
    """What a log holds of some topics."""

    _sign = re.compile(rb'(?=..[ABCDFILMOPQRS])', re.DOTALL)

    def __init__(self, path: Path, wanted: Collection[str], miss: Miss) -> None:
        self.logged: list[Logged] = []
        self._wanted = wanted
        self._known: dict[int, Logged] = {}
        """The topics by the numbers that their messages have."""
        self._formats: dict[str, str] = {}
        self._appended: list[int] = []
        """Where something was appended: a record that goes beyond such a place ends there."""
        self._damage = Damage(path, miss)
        self._file = FileBytes(path)
        try:
            strays = self._read()
        finally:
            self._file.close()
        self.logged.sort(key=lambda each: each[:2])
        self._damage.tell_rest()
        if strays:
            self._damage.say(f'{strays} messages belong to no topic and are left out')

    def _read(self) -> int:
        """Take in all records; return how many messages belong to no topic."""
        strays = 0
        for kind, _, start, end, *_ in self._records(FIRST):
            if kind == DATA:
                (number,) = struct.unpack('<H', self._file.at(start, 2))
                about = self._known[number]
                if about.name in self._wanted:
                    about.raw.extend(self._file.at(start + 2, about.dtype.itemsize))
            elif kind in b'ABF':
                self._take(chr(kind), self._file.at(start, end - start))
            else:
                strays += kind == DATA | PRIVATE
        return strays

    def _record(self, place: int) -> Record | None:
        """Return the record at `place`; what is not known is private.

        That is a newer letter where a known one follows, or a message of no topic.
        """
        head = self._file.at(place, 5)
        if len(head) < 4:
            return None
        size, kind = int.from_bytes(head[:2], 'little'), head[2]
        start, end = place + 3, place + 3 + size
        if end > self._file.size or any(place < each < end for each in self._appended):
            return None
        if kind not in LEAST_BYTES:
            following = self._file.at(end, 3)[2:]
            goes_on = end == self._file.size or (following and following[0] in LEAST_BYTES)
            is_newer = chr(kind).isupper() and size and goes_on
            return Record(kind | PRIVATE, place, start, end) if is_newer else None
        if size < LEAST_BYTES[kind]:
            return None
        if kind == SYNC and self._file.at(start, size) != SYNC_BYTES:
            return None
        if kind == DATA:
            about = self._known.get(int.from_bytes(head[3:], 'little'))
            if about is None:
                kind |= PRIVATE
            elif not about.dtype.itemsize <= size - 2 <= about.most_bytes:
                return None
        return Record(kind, place, start, end)

    def _next_place(self, place: int) -> int:
        found = super()._next_place(place)
        return min([found, *(each for each in self._appended if each >= place)])

    def _may_pass_over(self, place: int, following: int) -> bool:
        return following in self._appended

    def _take(self, kind: str, body: bytes) -> None:
        """Take in what describes the messages: flags, a format, a topic."""
        try:
            if kind == 'B':
                if body[8] & ~1 or any(body[9:16]):
                    raise BrokenError('it has parts that are not known here')
                self._appended = [each for each in struct.unpack_from('<3Q', body, 16) if each]
            elif kind == 'F':
                name, _, fields = body.decode('ascii').partition(':')
                self._formats[name] = fields
            else:
                name = body[3:].decode('ascii')
                dtype, most_bytes = self._dtype(name, ())
                about = Logged(name, body[0], dtype, most_bytes, bytearray())
                self._known[int.from_bytes(body[1:3], 'little')] = about
                self.logged += [about] if name in self._wanted else []
        except (ValueError, KeyError, TypeError):
            self._damage.say('a record that describes a topic makes no sense')

    def _dtype(self, name: str, above: tuple[str, ...]) -> tuple[np.dtype[Any], int]:
        """Return the fields of a format, without padding at its end, and the size with it."""
        if name in above:
            raise ValueError('a format that holds itself')
        fields: list[Any] = []
        for part in filter(None, self._formats[name].split(';')):
            kind, field = part.split(' ', 1)
            kind, _, count = kind.partition('[')
            inner = TYPES.get(kind) or self._dtype(kind, (*above, name))[0]
            number = int(count.rstrip(']')) if count else 1
            if not 0 <= number <= MOST_BYTES or number * np.dtype(inner).itemsize > MOST_BYTES:
                raise ValueError('more than a record can hold')
            fields.append((field, inner, (number,)) if count else (field, inner))
        most_bytes = np.dtype(fields).itemsize
        while fields and not above and fields[-1][0].startswith('_padding'):
            fields.pop()
        dtype = np.dtype(fields)
        if most_bytes > MOST_BYTES:
            raise ValueError('more than a record can hold')
        return dtype, most_bytes
