"""A recording: all its files as one, in order of time."""

from __future__ import annotations

import errno
import sqlite3
import struct
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from rig_common.errors import RigError
from sensor_rig.bags.files import PACKED, ROS1, STORAGES, files_of
from sensor_rig.bags.formats.made import MadeFile
from sensor_rig.bags.formats.opening import other_format
from sensor_rig.bags.formats.trajectory import trajectory_file
from sensor_rig.bags.metadata import METADATA
from sensor_rig.bags.recorded_types import types_of
from sensor_rig.bags.storage import mcap_file, ros1_file
from sensor_rig.bags.storage.base import BrokenError, Message, Miss, StorageFile
from sensor_rig.bags.storage.mcap_file import McapFile
from sensor_rig.bags.storage.ros1_file import Ros1File
from sensor_rig.bags.storage.sqlite_file import SqliteFile
from sensor_rig.bags.storage.unpacking import ZSTD_MAGIC, Budget, unpack_file, unpacked_message

MAGICS = {ros1_file.MAGIC: ROS1, b'SQLite format 3\0': '.db3', mcap_file.MAGIC: '.mcap'}
"""How files begin, and the usual ends of their names."""
MERGED = 64
"""Messages of several files that are handed on together."""


class Recording:
    """What a recording holds; what cannot be read of it is said, and the rest is read."""

    def __init__(self, path: Path, miss: Miss, trajectories: Sequence[Path] = ()) -> None:
        """Open `path`, or raise RigError; `miss` gets a sentence for all that is left out.

        Each of `trajectories` becomes one more topic (`formats/trajectory.py`).
        """
        self._path, self._miss = path, miss
        self._problems: list[str] = []
        self._scratch: TemporaryDirectory[str] | None = None
        self._files: list[StorageFile] = []
        self._own: list[dict[int, int]] = []
        """Of each file: its numbers of connections, and ours."""
        self.is_ros2 = True
        self.connections: list[Connection] = []
        """Who published what; `id` is the place in this list."""
        self.said: list[int] = []
        """How many messages of each connection there should be."""
        try:
            opener = other_format(path, self._tell)
            paths, self._metadata = ([], None) if opener else files_of(path, self._tell)
            self._budget = Budget(sum(_size_of(each) for each in paths))
            if opener is not None:
                self._files.append(self._made(path, opener))
            self._open_files(paths)
            for each in trajectories:
                self._add(self._made(each, partial(trajectory_file, each)))
            self._join()
            if self._problems and not sum(each.msgcount for each in self.connections):
                raise RigError(f'{self._unreadable()}: {"; ".join(self._problems[:3])}')
        except BaseException:
            self.close()
            raise
        self.note = {} if self._metadata is None else self._metadata.note
        for file in self._files:
            self.note.update(file.note if isinstance(file, Ros1File) else {})
        self.types = types_of(self.connections, is_ros2=self.is_ros2)

    @property
    def start_ns(self) -> int:
        """The receive time of the first message."""
        return min((file.start_ns for file in self._files if file.end_ns), default=0)

    @property
    def end_ns(self) -> int:
        """Just behind the receive time of the last message."""
        return max((file.end_ns for file in self._files), default=0) + 1

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        if self._scratch is not None:
            self._scratch.cleanup()

    def blocks(self, wanted: Collection[int]) -> Iterator[list[Message]]:
        """Yield the messages of some connections in order of receive time, some at a time."""
        self._budget.renew()
        self._unpackable = Counter[str]()
        streams = [
            self._blocks_of(file, own, wanted)
            for file, own in zip(self._files, self._own, strict=True)
        ]
        if len(streams) == 1:
            blocks = streams[0]
        else:
            merged = merge(*map(chain.from_iterable, streams), key=itemgetter(0))
            blocks = iter(lambda: [*islice(merged, MERGED)], [])
        for block in blocks:
            if self.is_ros2 and ZSTD_MAGIC in {each[2][:4] for each in block}:
                block = [*self._unpacked_messages(block)]  # CDR begins with 0
            yield block
        if self._unpackable.total():
            self._tell(
                f'{self._unpackable.total()} messages of {self._path} are left out: '
                f'{", ".join(self._unpackable)}'
            )

    def _unpacked_messages(self, block: list[Message]) -> Iterator[Message]:
        for receive_ns, number, raw, publish_ns in block:
            try:
                if raw.startswith(ZSTD_MAGIC):
                    raw = unpacked_message(raw, self._budget)
                yield receive_ns, number, raw, publish_ns
            except BrokenError as error:
                self._unpackable[str(error)] += 1

    def _blocks_of(
        self, file: StorageFile, own: dict[int, int], wanted: Collection[int]
    ) -> Iterator[list[Message]]:
        theirs = {number for number, ours in own.items() if ours in wanted}
        for block in file.blocks(theirs) if theirs else ():
            yield [
                (receive_ns, own[number], raw, publish_ns)
                for receive_ns, number, raw, publish_ns in block
            ]

    def _add(self, trajectory: MadeFile) -> None:
        """Take a trajectory beside the recording, which must have times of the recording."""
        start_ns, end_ns = self.start_ns, self.end_ns
        if trajectory.end_ns < start_ns or trajectory.start_ns > end_ns:
            raise RigError(
                f'{trajectory.path} has no time in common with {self._path}: its poses are from '
                f'{trajectory.start_ns / 1e9:.3f} to {trajectory.end_ns / 1e9:.3f} s, the '
                f'recording was received from {start_ns / 1e9:.3f} to {end_ns / 1e9:.3f} s; its '
                f'times should be on the clock of the recording'
            )
        self._files.append(trajectory)

    def _made(self, path: Path, opener: Callable[[], MadeFile]) -> MadeFile:
        try:
            return opener()
        except (BrokenError, OSError, ValueError, LookupError, ArithmeticError) as error:
            why = getattr(error, 'strerror', None) or ' '.join(str(error).split())
            problems = '; '.join([why, *self._problems[:3]])
            raise RigError(f'{path} cannot be read: {problems}') from None

    def _tell(self, problem: str) -> None:
        self._problems.append(problem)
        self._miss(problem)

    def _unreadable(self) -> str:
        kind = 'rosbag2 recording' if self.is_ros2 else 'ROS 1 bag'
        return f'{self._path} is not a readable {kind}'

    def _open_files(self, paths: list[Path]) -> None:
        for path in paths:
            try:
                self._files.append(self._opened(path))
            except (BrokenError, sqlite3.Error, struct.error, OSError) as error:
                if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                    raise RigError(
                        f'{gettempdir()} has no room for a copy of what {path} holds; make room '
                        f'there or set TMPDIR to another folder'
                    ) from None
                why = getattr(error, 'strerror', None) or str(error)
                if len(paths) == 1:
                    why = ', '.join([*self._problems, why])
                    raise RigError(f'{self._unreadable()}: {why}') from None
                self._tell(f'nothing of {path} can be read: {why}')

    def _opened(self, path: Path) -> StorageFile:
        """Open a file as what it begins like; its name counts where that says nothing."""
        with path.open('rb') as file:
            head = file.read(16)
        if head.startswith(ZSTD_MAGIC) and path.suffix == PACKED:
            path = self._unpacked(path)
            with path.open('rb') as file:
                head = file.read(16)
        kind = next(
            (kind for magic, kind in MAGICS.items() if head.startswith(magic)), path.suffix
        )
        if kind == ROS1:
            self.is_ros2 = False
            return Ros1File(path, self._tell, self._budget)
        if kind == '.db3':
            return SqliteFile(path, self._tell, self._folder)
        if kind == '.mcap':
            return McapFile(path, self._tell, self._budget)
        raise BrokenError(
            f'it begins like none, and its name does not end in {", ".join(STORAGES)} or {ROS1}'
        )

    def _unpacked(self, path: Path) -> Path:
        target = self._folder() / path.stem
        with path.open('rb') as packed:
            wrong = unpack_file(packed, target, path.stat().st_size)
        if wrong:
            self._tell(f'{path} is damaged: {wrong}; what comes before that is read')
        return target

    def _folder(self) -> Path:
        """Return a folder for copies, which goes with the recording."""
        if self._scratch is None:
            try:
                self._scratch = TemporaryDirectory(prefix='sensor_rig_')
            except OSError as error:
                raise RigError(
                    f'no temporary folder can be made, which {self._path} needs, because it is '
                    f'packed or damaged: {error.strerror or error}; set TMPDIR to a folder with '
                    f'room'
                ) from None
        return Path(self._scratch.name)

    def _join(self) -> None:
        """Make one list of the connections of all files, with what the metadata add to them."""
        places: dict[tuple[str, str], int] = {}
        for file in self._files:
            own: dict[int, int] = {}
            for each in file.connections:
                key = each.topic, each.msgtype
                place = places.setdefault(key, len(places))
                if place == len(self.connections):
                    self.connections.append(each._replace(id=place, msgcount=0))
                    self.said.append(0)
                known = self.connections[place]
                if known.msgdef.format == MessageDefinitionFormat.NONE:
                    known = known._replace(msgdef=each.msgdef)
                self.connections[place] = known._replace(msgcount=known.msgcount + each.msgcount)
                self.said[place] += max(file.said[each.id], each.msgcount)
                own[each.id] = place
            self._own.append(own)
        self._add_metadata(places)
        self._look_for_copies()

    def _add_metadata(self, places: dict[tuple[str, str], int]) -> None:
        if self._metadata is None:
            return
        for key, count in self._metadata.counts.items():
            place = places.setdefault(key, len(places))
            profiles, digest = self._metadata.profiles[key], self._metadata.digests[key]
            if place == len(self.connections):
                if count:
                    self._tell(
                        f'{METADATA} of {self._path} lists {count} messages of {key[0]}, and its '
                        f'files hold none of it'
                    )
                nothing = MessageDefinition(MessageDefinitionFormat.NONE, '')
                self.connections.append(
                    Connection(place, *key, nothing, '', 0, ConnectionExtRosbag2('cdr', []), self)
                )
                self.said.append(0)
            known = self.connections[place]
            if profiles:
                known = known._replace(ext=ConnectionExtRosbag2('cdr', profiles))
            self.connections[place] = known._replace(digest=known.digest or digest)
            self.said[place] = max(self.said[place], count)

    def _look_for_copies(self) -> None:
        """Say where two files hold the same: one of them took the place of another."""
        seen: dict[object, Path] = {}
        for file in self._files:
            counts = tuple((each.topic, each.msgcount) for each in file.connections)
            if not sum(count for _, count in counts):
                continue
            other = seen.setdefault((file.start_ns, file.end_ns, counts), file.path)
            if other is not file.path:
                self._tell(
                    f'{other.name} and {file.path.name} of {self._path} hold the same messages, '
                    f'which are read twice'
                )


def _size_of(path: Path) -> int:
    """Return the bytes of a file that are on the disk; holes cost nothing."""
    try:
        about = path.stat()
    except OSError:
        return 0
    return min(about.st_size, about.st_blocks * 512)
