"""Reads a rosbag2 recording message by message, as bytes, in the order of receive times."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from rosbags.highlevel import AnyReader
from rosbags.interfaces import Nodetype, QosDurability
from rosbags.typesys import Stores, get_typestore

from rig_common.errors import RigError

HEADER_TYPE = 'std_msgs/msg/Header'
METADATA = 'metadata.yaml'
STORAGES = ('.mcap', '.db3')


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


class Recorded(NamedTuple):
    """One message of a recording."""

    topic: str
    receive_ns: int
    raw: bytes
    """CDR bytes."""


class BagReader:
    """A recording: what is in it, and its messages. Holds one chunk in memory at a time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._reader = _opened(self.path)
        self.topics = self._topics()
        count = self._reader.message_count
        self.message_count = count
        self.start_ns = self._reader.start_time if count else 0
        self.end_ns = self._reader.end_time if count else 0
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

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Recorded]:
        """Yield the messages of `topics` (all without) in the order they were received."""
        wanted = [connection for connection in self._reader.connections
                  if topics is None or connection.topic in topics]
        if not wanted:
            return
        try:
            for connection, receive_ns, raw in self._reader.messages(wanted):
                yield Recorded(connection.topic, receive_ns, bytes(raw))
        except Exception as error:  # whatever the storage raises about broken bytes
            raise RigError(f'{self.path} cannot be read further: {_sentence(error)}') from None

    def find(self, topic: str) -> BagTopic | None:
        """Return the topic called `topic`; a rig file's relative name means the root's."""
        return self.topics.get(topic) or self.topics.get('/' + topic.lstrip('/'))

    def _note(self) -> dict[str, str]:
        storage: Any = getattr(self._reader.readers[0], 'storage', None)
        metadata = getattr(storage, 'metadata', None)
        return {str(key): str(value)
                for key, value in (getattr(metadata, 'custom', None) or {}).items()}

    def _topics(self) -> dict[str, BagTopic]:
        types = self._reader.typestore
        topics: dict[str, BagTopic] = {}
        for connection in self._reader.connections:
            known = topics.get(connection.topic)
            count = connection.msgcount + (known.message_count if known else 0)
            definition = (connection.msgdef.data, connection.digest)
            topics[connection.topic] = BagTopic(
                connection.topic, connection.msgtype, count,
                _starts_with_header(types, connection.msgtype),
                definition if all(definition) else None, _is_latched(connection))
        return dict(sorted(topics.items()))


def _opened(path: Path) -> AnyReader:
    if not path.exists():
        raise RigError(f'there is no recording at {path}')
    if path.suffix == '.bag':
        raise RigError(f'{path} is a ROS 1 bag; convert it first: rosbags-convert --src {path} '
                       f'--dst {path.with_suffix("")}')
    if path.is_dir() and not (path / METADATA).exists():
        files = sorted(each.name for each in path.iterdir() if each.suffix in STORAGES)
        instead = f'; give its file {files[0]} instead' if files else ''
        raise RigError(f'{path} is not a rosbag2 recording: there is no {METADATA} in it{instead}')
    try:
        reader = AnyReader([path], default_typestore=get_typestore(Stores.ROS2_KILTED))
        reader.open()
    except Exception as error:
        # a broken file surfaces as whatever its storage raises: sqlite3, zstd, struct, yaml
        raise RigError(f'{path} is not a readable rosbag2 recording: {_sentence(error)}') from None
    return reader


def _is_latched(connection: Any) -> bool:
    profiles = getattr(connection.ext, 'offered_qos_profiles', ())
    return bool(profiles) and all(p.durability == QosDurability.TRANSIENT_LOCAL for p in profiles)


def _starts_with_header(types: Any, type_name: str) -> bool:
    definition = types.fielddefs.get(type_name)
    if definition is None:
        return False
    fields = definition[1]
    return bool(fields) and fields[0] == ('header', (Nodetype.NAME, HEADER_TYPE))


def _sentence(error: BaseException) -> str:
    return ' '.join(str(error).split()).rstrip('.') or type(error).__name__
