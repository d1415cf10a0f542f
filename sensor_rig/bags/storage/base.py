"""What every storage file of a recording offers, whatever its format."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Protocol

from rosbags.interfaces import Connection

Message = tuple[int, int, bytes, int]
"""Receive time (ns), number of the connection, bytes as stored, publish time (ns; 0 for none)."""
Miss = Callable[[str], None]
"""Takes a sentence about what is missing or damaged."""
MAX_RECEIVE_NS = 2**63 - 1
"""The last time that ROS can hold; MCAP has twice the room."""
BLOCK_BYTES = 1 << 17
WINDOW_BYTES = 1 << 14
TOLD = 5
"""Damaged places of a file that get a sentence each; the others are counted together."""


class BrokenError(Exception):
    """The bytes make no sense, or are not there; the message says which."""


class StorageFile(Protocol):
    """One file of a recording; opened by its constructor, which raises BrokenError or OSError."""

    path: Path
    connections: list[Connection]
    """Who published what. `msgcount` is how many messages can be read."""
    said: Counter[int]
    """How many messages of each connection the file itself says that it holds."""
    start_ns: int
    end_ns: int
    """The receive time of the last message."""

    def blocks(self, wanted: Collection[int]) -> Iterator[list[Message]]:
        """Yield the messages of the connections with these numbers, in order of receive time.

        They come some at a time: `BLOCK_BYTES` of them or a few more.
        """

    def close(self) -> None:
        """Close the file."""


class FileBytes:
    """Bytes of a file by their place; small reads that follow each other cost one system call."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._file).st_size
        self._start, self._window = 0, b''

    def at(self, place: int, count: int) -> bytes:
        """Return up to `count` bytes; fewer at the end of the file."""
        skipped = place - self._start
        if 0 <= skipped <= len(self._window) - count:
            return self._window[skipped : skipped + count]
        if count >= WINDOW_BYTES:
            return self._read(place, count)
        self._start, self._window = place, self._read(place, WINDOW_BYTES)
        return self._window[:count]

    def _read(self, place: int, count: int) -> bytes:
        parts = []
        while count > 0 and (part := os.pread(self._file, count, place)):
            parts.append(part)
            place, count = place + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else b''.join(parts)

    def next_data(self, place: int) -> int:
        """Return where the first written byte from `place` on is: files can have holes."""
        try:
            return os.lseek(self._file, place, os.SEEK_DATA)
        except (OSError, AttributeError):  # no hole is known here, or nothing but a hole follows
            return place if self._read(place, 1) not in (b'', b'\0') else self.size

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class Damage:
    """What is wrong with one file: the first places a sentence each, the others counted."""

    def __init__(self, path: Path, miss: Miss) -> None:
        self._path, self._miss = path, miss
        self._places: dict[int, int] = {}
        self._told: set[str] = set()
        self.found = False

    def at(self, place: int, what: str, lost: int = 0) -> None:
        """Say that the bytes at `place` are damaged, with the number of messages that it costs."""
        self.found = True
        if place in self._places:
            return
        self._places[place] = lost
        if len(self._places) <= TOLD:
            self._miss(f'{self._path} is damaged at byte {place}: {what}')

    def say(self, what: str) -> None:
        """Say what is wrong with the file as a whole."""
        self.found = True
        if what not in self._told:
            self._told.add(what)
            self._miss(f'{self._path}: {what}')

    def tell_rest(self) -> None:
        """Say how many more places there are."""
        rest = list(self._places.values())[TOLD:]
        if rest:
            self._miss(
                f'{self._path} is damaged at {len(rest)} more places, which cost '
                f'{sum(rest)} messages'
            )
