"""Reads a recording message by message, as CDR, in the order of receive times.

Rosbag2 recordings (MCAP, sqlite3) as they are; ROS 1 bags turned into their types of ROS 2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from rosbags.interfaces import Qos, QosDurability, QosReliability

from rig_common.errors import LONGEST, RigError
from rig_common.text import shortened
from sensor_rig.bags.connections import definition_of, qos_of, starts_with_header
from sensor_rig.bags.opening import Opening, sentence
from sensor_rig.bags.ros1 import Ros1Types
from sensor_rig.bags.sidecar import load_sidecar

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
    qos: tuple[Qos, ...] = ()
    """What its publishers offered; empty where the recording does not tell."""

    @property
    def latched(self) -> bool:
        """Whether it was offered to late joiners (transient local), as /tf_static is."""
        return bool(self.qos) and all(
            each.durability == QosDurability.TRANSIENT_LOCAL for each in self.qos
        )

    @property
    def best_effort(self) -> bool:
        """Whether a publisher offered best effort."""
        return any(each.reliability == QosReliability.BEST_EFFORT for each in self.qos)


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
        self._opening = Opening(self.path, self._miss)
        self._reader = self._opening.reader
        self._ros1 = None if self._reader.is2 else Ros1Types(self._reader)
        self.topics = self._topics()
        count = self._reader.message_count
        self.message_count = count
        # At the last time that sqlite can hold, its sum of one more is a float.
        self.start_ns = min(int(self._reader.start_time), MAX_RECEIVE_NS) if count else 0
        self.end_ns = min(int(self._reader.end_time), MAX_RECEIVE_NS) if count else 0
        self.note = self._note()
        """What its maker wrote beside it (`custom_data` of metadata.yaml)."""

    @property
    def duration_s(self) -> float:
        """Time from the first to the last message (s)."""
        return (self.end_ns - self.start_ns) / 1e9

    def __enter__(self) -> BagReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        self._opening.close()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Recorded]:
        """Yield the messages of `topics` (all without) in the order they were received."""
        wanted = [
            connection
            for connection in self._reader.connections
            if (topics is None or connection.topic in topics)
            and self._type_of(connection) == self.topics[connection.topic].type_name
        ]
        if not wanted:
            return
        count, meant = 0, sum(connection.msgcount for connection in wanted)
        stored = self._reader.messages(wanted)
        while True:
            try:
                connection, receive_ns, raw = next(stored)
                if self._ros1 is not None:
                    raw = self._ros1.to_cdr(connection.msgtype, raw)
                data, receive_ns = _bytes(raw), _time_ns(receive_ns)
            except StopIteration:
                if count < meant:
                    self._miss(
                        f'{self.path} is said to hold {meant} messages of the topics that '
                        f'are read, but {count} were found'
                    )
                return
            except Exception as error:  # whatever the storage raises about broken bytes
                if not count:
                    raise RigError(
                        f'{self.path} is not a readable recording: {sentence(error)}'
                    ) from None
                self._miss(
                    f'{self.path} cannot be read further than {count} messages: {sentence(error)}'
                )
                return
            count += 1
            if self._sidecar is not None:
                data = self._sidecar.correct(
                    connection.topic, connection.msgtype, data, self.start_ns
                )
            yield Recorded(connection.topic, receive_ns, data)

    def _miss(self, problem: str) -> None:
        problem = shortened(problem, LONGEST)
        if problem not in self.problems:
            self.problems.append(problem)

    def find(self, topic: str) -> BagTopic | None:
        """Return the topic called `topic`; a rig file's relative name means the root's."""
        return self.topics.get(topic) or self.topics.get('/' + topic.lstrip('/'))

    def _note(self) -> dict[str, str]:
        storage: object = getattr(self._reader.readers[0], 'storage', None)
        custom = getattr(getattr(storage, 'metadata', None), 'custom', None)
        if not isinstance(custom, dict):
            return {}
        return {
            str(key): str(value)
            for key, value in custom.items()
            if isinstance(value, (str, int, float))
        }

    def _topics(self) -> dict[str, BagTopic]:
        """Return the topics; of one that was recorded with several types, its commonest."""
        types = self._ros1.store if self._ros1 is not None else self._reader.typestore
        topics: dict[str, BagTopic] = {}
        counts: dict[str, Counter[str]] = {}
        for connection in self._reader.connections:
            counts.setdefault(connection.topic, Counter())[self._type_of(connection)] += (
                connection.msgcount
            )
        for connection in self._reader.connections:
            by_type = counts[connection.topic].most_common()
            type_name, count = by_type[0]
            if self._type_of(connection) != type_name:
                continue
            definition = (
                definition_of(connection, types)
                if self._ros1 is None
                else self._ros1.definition(connection.msgtype)
            )
            topics[connection.topic] = BagTopic(
                connection.topic,
                type_name,
                count,
                starts_with_header(types, type_name),
                definition if all(definition) else None,
                qos_of(connection),
            )
            for other, left_out in by_type[1:]:
                self._miss(
                    f'{connection.topic} of {self.path} has several types: it is read as '
                    f'{type_name}, and {left_out} messages of {other} are left out'
                )
        return dict(sorted(topics.items()))

    def _type_of(self, connection: Any) -> str:
        type_name: str = connection.msgtype
        return type_name if self._ros1 is None else self._ros1.name_of(type_name)


def _bytes(raw: Any) -> bytes:
    """Return a message; a column of sqlite can hold anything."""
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise RigError('a message is no bytes')
    return bytes(raw)


def _time_ns(receive_ns: Any) -> int:
    if not isinstance(receive_ns, int):
        raise RigError('the receive time of a message is no integer')
    return min(receive_ns, MAX_RECEIVE_NS)
