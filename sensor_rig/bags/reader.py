"""Reads a recording message by message, as CDR, in the order of receive times.

Rosbag2 recordings (MCAP, sqlite3) as they are; ROS 1 bags turned into their types of ROS 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple

import yaml
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from rig_common.errors import RigError
from sensor_rig.bags.connections import is_best_effort, is_latched, starts_with_header
from sensor_rig.bags.ros1 import Ros1Types
from sensor_rig.bags.salvage import has_side_file, repair
from sensor_rig.bags.sidecar import load_sidecar

METADATA = 'metadata.yaml'
STORAGES = ('.mcap', '.db3')
ROS1 = '.bag'
MAX_RECEIVE_NS = 2**63 - 1
"""The last time that ROS can hold; MCAP has twice the room."""


class BagTopic(NamedTuple):
    """One topic of a recording."""

    name: str
    type_name: str
    message_count: int
    stamped: bool
    """Whether the message starts with a std_msgs/Header."""
    definition: tuple[str, str] | None
    """(definition text, type hash) as recorded, so that a copy can carry it on."""
    latched: bool = False
    """Whether it was offered to late joiners (transient local), as /tf_static is."""
    best_effort: bool = False
    """Whether it was offered with best effort."""


class Recorded(NamedTuple):
    """One message of a recording."""

    topic: str
    receive_ns: int
    raw: bytes
    """CDR bytes."""


class BagReader:
    """A recording: what is in it, and its messages. Holds one chunk in memory at a time."""

    def __init__(self, path: str | Path, sidecar: Path | None = None) -> None:
        """Open a recording; what cannot be read to its end is read up to the break.

        With a `sidecar` its messages come with corrected stamps.
        """
        self.path = Path(path)
        self._sidecar = None if sidecar is None else load_sidecar(sidecar)
        self.problems: list[str] = []
        """What is missing, and why: a sentence each. `messages` may find more. Whoever writes a
        result all the same says them and ends with exit code 1."""
        self._scratch: TemporaryDirectory[str] | None = None
        try:
            self._reader = self._opened()
        except BaseException:
            self._clean()
            raise
        self._ros1 = None if self._reader.is2 else Ros1Types(self._reader)
        self.topics = self._topics()
        count = self._reader.message_count
        self.message_count = count
        # At the last time that sqlite can hold, its sum of one more is a float.
        self.start_ns = int(self._reader.start_time) if count else 0
        self.end_ns = int(self._reader.end_time) if count else 0
        self.note = self._note()
        """What its maker wrote beside it (`custom_data` of metadata.yaml)."""

    @property
    def duration_s(self) -> float:
        """Time from the first to the last message (s)."""
        return (self.end_ns - self.start_ns) / 1e9

    def __enter__(self) -> BagReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._reader.close()
        self._clean()

    def _clean(self) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Recorded]:
        """Yield the messages of `topics` (all without) in the order they were received."""
        wanted = [connection for connection in self._reader.connections
                  if (topics is None or connection.topic in topics)
                  and self._type_of(connection) == self.topics[connection.topic].type_name]
        if not wanted:
            return
        count = 0
        stored = self._reader.messages(wanted)
        while True:
            try:
                connection, receive_ns, raw = next(stored)
                if self._ros1 is not None:
                    raw = self._ros1.to_cdr(connection.msgtype, raw)
            except StopIteration:
                return
            except Exception as error:  # whatever the storage raises about broken bytes
                if not count:
                    raise RigError(f'{self.path} is not a readable recording: '
                                   f'{_sentence(error)}') from None
                self._miss(f'{self.path} cannot be read further than {count} messages: '
                           f'{_sentence(error)}')
                return
            count += 1
            data = bytes(raw)
            if self._sidecar is not None:
                data = self._sidecar.correct(connection.topic, connection.msgtype, data,
                                             self.start_ns)
            yield Recorded(connection.topic, min(receive_ns, MAX_RECEIVE_NS), data)

    def _miss(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def find(self, topic: str) -> BagTopic | None:
        """Return the topic called `topic`; a rig file's relative name means the root's."""
        return self.topics.get(topic) or self.topics.get('/' + topic.lstrip('/'))

    def _note(self) -> dict[str, str]:
        storage: object = getattr(self._reader.readers[0], 'storage', None)
        metadata = getattr(storage, 'metadata', None)
        return {str(key): str(value)
                for key, value in (getattr(metadata, 'custom', None) or {}).items()}

    def _topics(self) -> dict[str, BagTopic]:
        """Return the topics; of one that was recorded with several types, its commonest."""
        types = self._ros1.store if self._ros1 is not None else self._reader.typestore
        topics: dict[str, BagTopic] = {}
        counts: dict[str, Counter[str]] = {}
        for connection in self._reader.connections:
            counts.setdefault(connection.topic, Counter())[self._type_of(connection)] += \
                connection.msgcount
        for connection in self._reader.connections:
            by_type = counts[connection.topic].most_common()
            type_name, count = by_type[0]
            if self._type_of(connection) != type_name:
                continue
            definition = ((connection.msgdef.data, connection.digest) if self._ros1 is None else
                          self._ros1.definition(connection.msgtype))
            topics[connection.topic] = BagTopic(
                connection.topic, type_name, count, starts_with_header(types, type_name),
                definition if all(definition) else None, is_latched(connection),
                is_best_effort(connection))
            for other, left_out in by_type[1:]:
                self._miss(f'{connection.topic} of {self.path} has several types: it is read as '
                           f'{type_name}, and {left_out} messages of {other} are left out')
        return dict(sorted(topics.items()))

    def _type_of(self, connection: Any) -> str:
        type_name: str = connection.msgtype
        return type_name if self._ros1 is None else self._ros1.name_of(type_name)

    # ---- opening ------------------------------------------------------------------------------

    def _opened(self) -> AnyReader:
        _require_recording(self.path)
        if self.path.suffix == ROS1:
            try:
                return _open(self.path)
            except Exception as error:
                raise RigError(f'{self.path} is not a readable ROS 1 bag: '
                               f'{_sentence(error)}') from None
        try:
            reader = _open(self.path)
        except Exception as error:
            # a broken file surfaces as whatever its storage raises: sqlite3, zstd, struct, yaml
            return self._repaired(f'{self.path} is not a readable rosbag2 recording: '
                                  f'{_sentence(error)}')
        if any(map(has_side_file, _storage_files(self.path))) or not _has_index(reader):
            reader.close()
            return self._repaired(f'{self.path} is not a readable rosbag2 recording')
        return reader

    def _repaired(self, unreadable: str) -> AnyReader:
        """Return a reader of copies: broken storage files up to their break, the others whole.

        Raises `unreadable` where that does not help.
        """
        self._scratch = TemporaryDirectory(prefix='sensor_rig_')
        folder = Path(self._scratch.name)
        found = 0
        for file in _storage_files(self.path):
            try:
                repaired = repair(file, folder / file.name)
            except RigError as error:
                self._miss(str(error))
                continue
            found += repaired.messages
            if repaired.broken:
                self._miss(f'{file} is broken: {repaired.broken}; the {repaired.messages} '
                           f'messages before that are read')
        copies = [path for path in sorted(folder.iterdir()) if path.suffix in STORAGES]
        if not found or not copies:
            raise RigError(unreadable)
        try:
            if self.path.is_dir():
                _write_metadata(self.path / METADATA, folder)
                return _open(folder)
            return _open(copies[0])
        except Exception as error:
            raise RigError(f'{unreadable}; nor is what could be saved of it: '
                           f'{_sentence(error)}') from None


def _require_recording(path: Path) -> None:
    if not path.exists():
        raise RigError(f'there is no recording at {path}')
    if not (path.is_file() or path.is_dir()):
        raise RigError(f'{path} is neither a file nor a folder, so it is no recording')
    if path.is_dir() and not (path / METADATA).exists():
        files = sorted(each.name for each in path.iterdir() if each.suffix in STORAGES)
        instead = f'; give its file {files[0]} instead' if files else ''
        raise RigError(f'{path} is not a rosbag2 recording: there is no {METADATA} in it{instead}')
    if path.is_file() and path.suffix not in (*STORAGES, ROS1):
        raise RigError(f'{path} is not a readable recording: its name should end in '
                       f'{", ".join(STORAGES)} or {ROS1}')


def _open(path: Path) -> AnyReader:
    reader = AnyReader([path], default_typestore=get_typestore(Stores.ROS2_KILTED))
    reader.open()
    return reader


def _storage_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in STORAGES and each.is_file())


def _has_index(reader: AnyReader) -> bool:
    """Whether messages come in order of time; an MCAP without a summary has them as written."""
    first: Any = reader.readers[0]
    storage = first.storage
    storages = getattr(storage, 'storages', [storage])
    return all(getattr(each, 'chunks', True) or not each.metadata.message_count
               for each in storages)


def _write_metadata(source: Path, folder: Path) -> None:
    """Write the metadata of a recording for the copies of its files that there are."""
    counts: Counter[tuple[str, str]] = Counter()
    for copy in _storage_files(folder):
        reader = _open(copy)
        for connection in reader.connections:
            counts[connection.topic, connection.msgtype] += connection.msgcount
        reader.close()
    try:
        values = yaml.safe_load(source.read_text(encoding='utf-8'))
        information = values['rosbag2_bagfile_information']
        names = [Path(name).name for name in information['relative_file_paths']]
        information['relative_file_paths'] = [name for name in names if (folder / name).exists()]
        information.pop('files', None)
        information['message_count'] = sum(counts.values())
        for topic in information['topics_with_message_count']:
            about = topic['topic_metadata']
            topic['message_count'] = counts.pop((about['name'], about['type']), 0)
    except (yaml.YAMLError, KeyError, TypeError, OSError, UnicodeDecodeError) as error:
        raise RigError(f'{source} is not readable: {_sentence(error)}') from None
    (folder / METADATA).write_text(yaml.safe_dump(values), encoding='utf-8')


def _sentence(error: BaseException) -> str:
    if isinstance(error, OverflowError):  # a size that no file can have
        return 'its bytes make no sense'
    return ' '.join(str(error).split()).rstrip('.') or type(error).__name__
