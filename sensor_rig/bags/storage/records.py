"""A file of records: one after the other, also behind a place that makes no sense."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NamedTuple

from sensor_rig.bags.storage.base import Damage, FileBytes

LOOK_BYTES = 1 << 20
"""Of the file, in which the next record is looked for at once."""
MOST_TRIED = 1 << 21
"""Places that may be tried as the beginning of a record after one that makes no sense."""
CHAIN = 3
"""As many records in a row that make sense are no accident."""
PRIVATE = 0x80
"""Kinds of records from here on belong to applications."""


class Record(NamedTuple):
    """Where a record is."""

    kind: int
    place: int
    start: int
    end: int
    """Of its body, as far as the file goes."""
    whole: bool = True
    fields: Mapping[bytes, bytes] = {}
    """What its header says (ROS 1)."""


class RecordFile(ABC):
    """Walks the records of a file; the formats say how one looks."""

    _sign: ClassVar[re.Pattern[bytes]]
    """What every record of the file has in it."""
    _file: FileBytes
    _damage: Damage

    @abstractmethod
    def _record(self, place: int) -> Record | None:
        """Return the record at `place`, None where there is none that makes sense."""

    def _beginnings(self, sign: int) -> Iterable[int]:
        """Return where a record may begin whose sign is at `sign`."""
        return (sign,)

    def _may_pass_over(self, place: int, following: int) -> bool:
        """Whether nothing is lost from `place`, where nothing makes sense, to `following`."""
        return False

    def _records(self, place: int) -> Iterator[Record]:
        """Yield the records from `place` on; say which bytes make no sense."""
        while place < self._file.size:
            record = self._record(place)
            if record is not None:
                yield record
                place = record.end
                continue
            following = self._next_place(place + 1)
            if not self._may_pass_over(place, following):
                self._damage.at(
                    place,
                    'nothing makes sense from there on, or the file is cut there'
                    if following >= self._file.size
                    else f'{following - place} bytes make no sense, and it is read on behind them',
                )
            place = following

    def _next_place(self, place: int) -> int:
        """Return where the records go on, the end of the file where nothing makes sense."""
        tried = 0
        place = self._file.next_data(place)
        while place < self._file.size and tried <= MOST_TRIED:
            block = self._file.at(place, LOOK_BYTES + 16)
            following = place + LOOK_BYTES
            if not block.strip(b'\0'):  # zeros, or a hole
                following = self._file.next_data(following)
            for match in self._sign.finditer(block, 0):
                for begin in self._beginnings(place + match.start()):
                    tried += 1
                    if self._goes_on(begin):
                        return begin
            place = following
        return self._file.size

    def _goes_on(self, place: int) -> bool:
        """Whether records that make sense follow each other from here on."""
        for _ in range(CHAIN):
            record = self._record(place)
            if record is None or record.kind >= PRIVATE:
                return False
            place = record.end
            if place == self._file.size:
                return True
        return True
