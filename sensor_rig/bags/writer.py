"""Writes a rosbag2 recording that ROS tools play, from messages that are bytes already."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from rosbags.interfaces import Connection, Qos
from rosbags.rosbag1 import WriterError as Ros1WriterError
from rosbags.rosbag2 import (
    CompressionFormat,
    CompressionMode,
    StoragePlugin,
    WriterError,
)
from rosbags.typesys import Stores, get_typestore

from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sensor_rig.bags.connections import usual_qos
from sensor_rig.bags.files import ROS1
from sensor_rig.bags.quick_mcap import QuickWriter
from sensor_rig.bags.ros1 import Ros1Types, Ros1Writer

if TYPE_CHECKING:
    from sensor_rig.bags.reader import BagReader, BagTopic

Storage = Literal['mcap', 'sqlite3', 'bag']
"""`bag` is that of ROS 1, for what is made of one."""
STORAGES: tuple[Storage, ...] = ('mcap', 'sqlite3')

URI_SIGNS = frozenset('?#%')
"""rosbags gives sqlite the path as a URI, where these have a meaning."""
BAG_VERSION: Literal[8] = 8
"""Read by every ROS 2 since Iron."""

RESERVE_BYTES = 16 << 20
"""Kept free on the disk: what is buffered, the index and the metadata must still fit."""
LOOK_BYTES = 1 << 20
"""Payload between two looks at the disk."""


class BagWriter:
    """A new recording. Topics are added when they are first known, messages as they come."""

    def __init__(
        self,
        path: str | Path,
        storage: Storage = 'mcap',
        *,
        compress: bool = False,
        ros1: Ros1Types | None = None,
    ) -> None:
        """Make a folder, or, with the types of another one, a ROS 1 bag."""
        self.path = Path(path)
        self._types = get_typestore(Stores.ROS2_KILTED)
        self._connections: dict[str, Connection] = {}
        self.counts: dict[str, int] = {}
        self._unseen = LOOK_BYTES
        if storage == 'sqlite3' and URI_SIGNS & set(str(path)):
            raise RigError(
                f'{path} has one of {" ".join(sorted(URI_SIGNS))} in its name, so '
                f'sqlite cannot write there; choose another name, or mcap'
            )
        self._writer: QuickWriter | Ros1Writer
        try:
            if ros1 is not None:
                self._writer = Ros1Writer(self.path, ros1)
                if compress:
                    self._writer.set_compression(Ros1Writer.CompressionFormat.LZ4)
            else:
                plugin = StoragePlugin[storage.upper()]
                self._writer = QuickWriter(self.path, version=BAG_VERSION, storage_plugin=plugin)
                if compress:
                    mode = (
                        CompressionMode.STORAGE if storage == 'mcap' else CompressionMode.MESSAGE
                    )
                    self._writer.set_compression(mode, CompressionFormat.ZSTD)
            self._writer.open()
        except (WriterError, Ros1WriterError):
            raise RigError(
                f'{self.path} exists already; choose another name or remove it first'
            ) from None
        except OSError as error:
            raise RigError(f'cannot write a recording to {self.path}: {error.strerror}') from None

    @classmethod
    def like(
        cls, bag: BagReader, path: str | Path, storage: Storage | None, *, compress: bool
    ) -> BagWriter:
        """Begin what is made of a recording: the same kind of file, unless `storage` says it."""
        if storage is None and bag.ros1 is not None:
            storage = 'bag'
        if storage != 'bag':
            return cls(path, storage or 'mcap', compress=compress)
        if bag.ros1 is None:
            raise RigError(f'{bag.path} is no ROS 1 bag, so it cannot be stored as one; take mcap')
        if not str(path).endswith(ROS1):
            raise RigError(
                f'{bag.path} is a ROS 1 bag, and so is what is made of it: end {path} in {ROS1}, '
                f'or choose --storage mcap'
            )
        return cls(path, storage, compress=compress, ros1=bag.ros1)

    def discard(self) -> None:
        """Remove what was written."""
        if self.path.is_dir():
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def add_topic(
        self,
        topic: str,
        type_name: str,
        *,
        definition: tuple[str, str] | None = None,
        qos: Sequence[Qos] = (),
    ) -> None:
        """Announce a topic; `definition` is (text, hash), needed for types of your own.

        `qos` is what `ros2 bag play` will offer; without it, what is usual for such a topic.
        """
        if topic in self._connections:
            return
        self.counts[topic] = 0
        if isinstance(self._writer, Ros1Writer):
            self._connections[topic] = self._writer.add_topic(topic, type_name)
            return
        known = type_name in self._types.fielddefs
        if not known and definition is None:
            raise RigError(f'{topic} has the type {type_name}, of which no definition is known')
        text, digest = (None, None) if definition is None else definition
        self._connections[topic] = self._writer.add_connection(
            topic,
            type_name,
            typestore=self._types,
            msgdef=text,
            rihs01=digest,
            offered_qos_profiles=qos or usual_qos(topic),
        )

    def add_topic_like(self, topic: BagTopic) -> None:
        """Announce a topic as another recording has it: type, definition, QoS."""
        self.add_topic(topic.name, topic.type_name, definition=topic.definition, qos=topic.qos)

    @property
    def seconds(self) -> float:
        """From the first message to the last, by their receive times, s; known at the end."""
        return max(self._writer.max_timestamp - self._writer.min_timestamp, 0) / NS_PER_S

    def note(self, key: str, value: str) -> None:
        """Write a fact beside the messages (`custom_data` of metadata.yaml)."""
        self._writer.set_custom_data(key, value)

    def write(
        self, topic: str, receive_ns: int, raw: bytes | memoryview, publish_ns: int = 0
    ) -> None:
        """Append a message of a topic that was added; MCAP keeps when it was published."""
        self.write_all([(topic, receive_ns, raw, publish_ns)])

    def write_all(self, messages: Iterable[tuple[str, int, bytes | memoryview, int]]) -> None:
        """Append messages: topic, receive time, bytes, publish time (0 where it is not known)."""
        put, connections, counts = self._writer.put, self._connections, self.counts
        try:
            for topic, receive_ns, raw, publish_ns in messages:
                self._unseen += len(raw)
                if self._unseen >= LOOK_BYTES:
                    self._unseen = 0
                    self._require_space(len(raw))
                # Sqlite holds times before 1970, MCAP does not.
                put(connections[topic], max(receive_ns, 0), raw, publish_ns)
                counts[topic] += 1
        except OSError as error:
            raise RigError(f'cannot write to {self.path}: {error.strerror}') from None

    def _require_space(self, more: int) -> None:
        """Stop before the disk is full: a recording without its index is not readable."""
        free = shutil.disk_usage(self.path).free
        if free < RESERVE_BYTES + 2 * more:
            kept = sum(self.counts.values())
            raise RigError(
                f'the disk of {self.path} has {free / 2**20:.1f} MiB left, so '
                f'recording stopped; the {kept} messages until then are readable, all '
                f'later ones are missing'
            )

    def close(self) -> None:
        """Write the index and the metadata; without them ROS tools do not open the recording."""
        if self._writer.storage is not None:
            try:
                self._writer.close()
            except Exception as error:  # sqlite3 has errors of its own for a full disk
                raise RigError(
                    f'cannot finish {self.path}, which now lacks its index: '
                    f'{getattr(error, "strerror", None) or error}'
                ) from None
