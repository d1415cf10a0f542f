"""The records of a ULog, also behind a place that makes no sense.

https://docs.px4.io/main/en/dev_log/ulog_file_format: a record is the size of its body, a letter,
and the body. The format has no checksums: what is altered inside a message is not seen.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Collection, Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sensor_rig.bags.storage.base import BrokenError, Damage, Miss
from sensor_rig.bags.storage.unpacking import most_of

MAGIC = b'ULog\x01\x12\x35'
FIRST = 16
"""Where the first record is."""
SYNC = b'\x2f\x73\x13\x20\x25\x0c\xbb\x12'
LEAST_BYTES = {b'A': 4, b'B': 40, b'C': 3, b'D': 2, b'F': 3, b'I': 2, b'L': 9, b'M': 3, b'O': 2}
LEAST_BYTES |= {b'P': 2, b'Q': 3, b'R': 2, b'S': len(SYNC)}
"""What is at least in a record of each letter."""
_SIGN = re.compile(rb'(?=..[ABCDFILMOPQRS])', re.DOTALL)
CHAIN = 3
"""As many records in a row that make sense are no accident."""
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


class ULogRecords:
    """What a log holds of some topics."""

    def __init__(self, path: Path, wanted: Collection[str], miss: Miss) -> None:
        self.logged: list[Logged] = []
        self._wanted = wanted
        self._known: dict[int, Logged] = {}
        """The topics by the numbers that their messages have."""
        self._formats: dict[str, str] = {}
        self._appended: list[int] = []
        """Where something was appended: a record that goes beyond such a place ends there."""
        self._damage = Damage(path, miss)
        strays = 0
        on_disk = path.stat().st_blocks * 512
        if path.stat().st_size > most_of(on_disk):
            raise BrokenError(f'{on_disk} of its {path.stat().st_size} bytes are on the disk')
        with path.open('rb') as file, mmap(file.fileno(), 0, access=ACCESS_READ) as self._data:
            if self._data[: len(MAGIC)] != MAGIC:
                raise BrokenError('it does not begin as a ULog')
            for kind, start, end in self._records():
                if kind == b'D':
                    (number,) = struct.unpack_from('<H', self._data, start)
                    about = self._known.get(number)
                    if about is None:
                        strays += 1
                    elif about.name in wanted:
                        about.raw.extend(self._data[start + 2 : start + 2 + about.dtype.itemsize])
                elif kind in b'ABF':
                    self._take(kind, self._data[start:end])
        self.logged.sort(key=lambda each: each[:2])
        self._damage.tell_rest()
        if strays:
            self._damage.say(f'{strays} messages belong to no topic and are left out')

    def _records(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield letter, start and end of the body of each record."""
        place, size = FIRST, len(self._data)
        while place < size:
            end = self._end(place)
            if end and (self._data[place + 2 : place + 3] in LEAST_BYTES or self._end(end)):
                yield self._data[place + 2 : place + 3], place + 3, end
                place = end
                continue
            following = self._following(place)
            if following not in self._appended:
                self._damage.at(
                    place,
                    'nothing makes sense from there on, or the file is cut there'
                    if following == size
                    else f'{following - place} bytes make no sense, and it is read on behind them',
                )
            place = following

    def _end(self, place: int, *, is_known: bool = False) -> int:
        """Return where the record at `place` ends, 0 where it makes no sense.

        Newer letters are taken for records, too. `is_known` asks for more: a known letter, and a
        message of a known topic.
        """
        head = self._data[place : place + 5]
        if len(head) < 4:
            return 0
        size, letter = int.from_bytes(head[:2], 'little'), head[2:3]
        end = place + 3 + size
        if end > len(self._data) or any(place < each < end for each in self._appended):
            return 0
        if letter not in LEAST_BYTES:
            return end if letter.isupper() and size and not is_known else 0
        if size < LEAST_BYTES[letter] or (letter == b'S' and self._data[place + 3 : end] != SYNC):
            return 0
        if letter == b'D':
            about = self._known.get(int.from_bytes(head[3:], 'little'))
            if about is None:
                return 0 if is_known else end
            return end if about.dtype.itemsize <= size - 2 <= about.most_bytes else 0
        return end

    def _following(self, place: int) -> int:
        """Return where the records go on, the end of the file where nothing makes sense."""
        for match in _SIGN.finditer(self._data, place + 1):
            at = match.start()
            if any(place < each <= at for each in self._appended):
                return min(each for each in self._appended if each > place)
            begin = at
            for _ in range(CHAIN):
                at = self._end(at, is_known=True)
                if at in (0, len(self._data)):
                    break
            if at:
                return begin
        return min((each for each in self._appended if each > place), default=len(self._data))

    def _take(self, kind: bytes, body: bytes) -> None:
        """Take in what describes the messages: flags, a format, a topic."""
        try:
            if kind == b'B':
                if body[8] & ~1 or any(body[9:16]):
                    raise BrokenError('it has parts that are not known here')
                self._appended = [each for each in struct.unpack_from('<3Q', body, 16) if each]
            elif kind == b'F':
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
