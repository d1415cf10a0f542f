"""Reads a recording message by message, as CDR, in the order of receive times.

Rosbag2 recordings (MCAP, sqlite3) as they are; ROS 1 bags turned into their types of ROS 2.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from rosbags.interfaces import Connection, Qos, QosDurability, QosReliability

from rig_common.errors import LONGEST
from rig_common.text import shortened
from sensor_rig.bags.connections import definition_of, qos_of, starts_with_header
from sensor_rig.bags.formats.made import MadeFile
from sensor_rig.bags.inspect import TopicTimes
from sensor_rig.bags.recording import Recording
from sensor_rig.bags.ros1 import Ros1Types
from sensor_rig.bags.sidecar import load_sidecar
from sensor_rig.bags.storage.base import MAX_RECEIVE_NS, BrokenError, Message


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

    has_arrivals: bool = True
    """False where the format has no receive times: they are copies of the stamps."""

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
    publish_ns: int = 0
    """When its publisher sent it; 0 where the recording does not say."""


class BagReader:
    """A recording: what is in it, and its messages. Holds one chunk in memory at a time."""

    def __init__(
        self,
        path: str | Path,
        sidecar: Path | None = None,
        trajectories: Sequence[Path] = (),
        *,
        keep_seq: bool = False,
    ) -> None:
        """Open a recording; of one that is damaged everything is read that is whole.

        With a `sidecar` its messages come with corrected stamps. `trajectories` are read beside
        it, each as a topic. `keep_seq` is for whoever writes a ROS 1 bag again: the `seq` that its
        headers have and ROS 2 has not, 4 bytes, comes behind the CDR of each message.
        """
        self._keep_seq = keep_seq
        self.path = Path(path)
        self._sidecar = None if sidecar is None else load_sidecar(sidecar)
        self.problems: list[str] = []
        """What is missing, and why: a sentence each. `messages` may find more. Whoever writes a
        result all the same says them and ends with exit code 1."""
        self._recording = Recording(self.path, self._miss, trajectories)
        self.ros1 = (
            None
            if self._recording.is_ros2
            else Ros1Types(self._recording.types, self._recording.connections)
        )
        """The types of a ROS 1 bag; None for a recording of ROS 2."""
        self.topics = self._topics()
        self.message_count = sum(each.msgcount for each in self._recording.connections)
        self.start_ns = self.end_ns = 0
        if self.message_count:
            self.start_ns = min(self._recording.start_ns, MAX_RECEIVE_NS)
            self.end_ns = min(self._recording.end_ns, MAX_RECEIVE_NS)
        self.note = self._recording.note
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
        self._recording.close()

    def messages(self, topics: Collection[str] | None = None) -> Iterator[Recorded]:
        """Yield the messages of `topics` (all without) in the order they were received."""
        return chain.from_iterable(self.blocks(topics))

    def times(self, advance: Callable[[float], None] = lambda _: None) -> dict[str, TopicTimes]:
        """Return the times of the messages by topic; `advance` counts messages."""
        found = {
            name: TopicTimes(name, topic.type_name, topic.stamped)
            for name, topic in self.topics.items()
        }
        for block in self.blocks():
            for topic, receive_ns, raw, _ in block:
                found[topic].add(raw, receive_ns)
            advance(len(block))
        return found

    def blocks(self, topics: Collection[str] | None = None) -> Iterator[list[Recorded]]:
        """Yield the same messages, some at a time."""
        wanted = {
            each.id: each
            for each in self._recording.connections
            if (topics is None or each.topic in topics)
            and self._type_of(each) == self.topics[each.topic].type_name
        }
        names = {number: each.topic for number, each in wanted.items()}
        found = Counter[int]()
        new = tuple.__new__  # half the cost of Recorded()
        try:
            for block in self._recording.blocks(wanted):
                if self.ros1 is not None:
                    block = [*self._as_cdr(block, wanted)]
                found.update(map(itemgetter(1), block))
                taken = [
                    new(Recorded, (names[number], receive_ns, raw, publish_ns))
                    for receive_ns, number, raw, publish_ns in block
                ]
                yield taken if self._sidecar is None else [*map(self._corrected, taken)]
        except (BrokenError, sqlite3.Error, UnicodeDecodeError, OSError) as error:
            self._miss(
                f'{self.path} cannot be read further than {found.total()} messages: '
                f'{" ".join(str(error).split())}'
            )
        self._compare(wanted.values(), found)

    def _corrected(self, message: Recorded) -> Recorded:
        assert self._sidecar is not None
        topic, receive_ns, raw, publish_ns = message
        raw = self._sidecar.correct(topic, self.topics[topic].type_name, raw, self.start_ns)
        return Recorded(topic, receive_ns, raw, publish_ns)

    def _as_cdr(self, block: list[Message], wanted: Mapping[int, Connection]) -> Iterator[Message]:
        """Yield messages as ROS 2 has them, without those that are none of their type."""
        for receive_ns, number, raw, _ in block:
            connection, keeps = wanted[number], self._keep_seq
            kind = connection.msgtype
            if self.ros1 is not None and not isinstance(connection.owner, MadeFile):
                try:
                    seq = raw[:4] if keeps and self.ros1.starts_with_header(kind) else b''
                    raw = self.ros1.to_cdr(kind, raw) + seq
                except Exception:  # whatever the made converter meets in bytes that are no message
                    continue
            yield receive_ns, number, raw, 0

    def _compare(self, read: Collection[Connection], found: Counter[int]) -> None:
        """Say how many messages the recording says that it has, and were not found."""
        lacking = [
            f'{said - found[each.id]} of {said} of {each.topic}'
            for each in read
            if (said := self._recording.said[each.id]) > found[each.id]
        ]
        if lacking:
            self._miss(f'{self.path} lacks messages that it is said to hold: {", ".join(lacking)}')

    def _miss(self, problem: str) -> None:
        problem = shortened(problem, LONGEST)
        if problem not in self.problems:
            self.problems.append(problem)

    def find(self, topic: str) -> BagTopic | None:
        """Return the topic called `topic`; a rig file's relative name means the root's."""
        return self.topics.get(topic) or self.topics.get('/' + topic.lstrip('/'))

    def _topics(self) -> dict[str, BagTopic]:
        """Return the topics; of one that was recorded with several types, its commonest."""
        types = self._recording.types if self.ros1 is None else self.ros1.store
        topics: dict[str, BagTopic] = {}
        counts: dict[str, Counter[str]] = {}
        for connection in self._recording.connections:
            counts.setdefault(connection.topic, Counter())[self._type_of(connection)] += (
                connection.msgcount
            )
        for connection in self._recording.connections:
            by_type = counts[connection.topic].most_common()
            type_name, count = by_type[0]
            if self._type_of(connection) != type_name:
                continue
            definition = (
                definition_of(connection, types)
                if self.ros1 is None
                else self.ros1.definition(connection.msgtype)
            )
            topics[connection.topic] = BagTopic(
                connection.topic,
                type_name,
                count,
                starts_with_header(types, type_name),
                definition if all(definition) else None,
                qos_of(connection),
                not (
                    isinstance(connection.owner, MadeFile)
                    and connection.topic in connection.owner.without_arrivals
                ),
            )
            for other, left_out in by_type[1:]:
                self._miss(
                    f'{connection.topic} of {self.path} has several types: it is read as '
                    f'{type_name}, and {left_out} messages of {other} are left out'
                )
        return dict(sorted(topics.items()))

    def _type_of(self, connection: Connection) -> str:
        type_name: str = connection.msgtype
        return type_name if self.ros1 is None else self.ros1.name_of(type_name)
