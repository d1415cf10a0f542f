"""ROS 1 bags as rosbag2 recordings are: types of ROS 2, messages as CDR; and back again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from rosbags.convert.converter import STATIC_MSGTYPE_RENAMES, generate_message_converter
from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag1,
    MessageDefinition,
    MessageDefinitionFormat,
)
from rosbags.rosbag1 import Writer
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

from sensor_rig.bags.connections import HEADER_TYPE, starts_with_header
from sensor_rig.bags.storage.ros1_file import NOTES


class Ros1Types:
    """The types of a ROS 1 bag, with what turns their messages into CDR."""

    def __init__(self, source: Typestore, connections: Sequence[Connection]) -> None:
        """Know the standard types of ROS 2, and those of the bag that are none of them."""
        self._source = source
        self.connections = {each.topic: each for each in connections}
        """As the bag describes its topics."""
        self.store: Typestore = get_typestore(Stores.ROS2_KILTED)
        self.store.register(
            {
                name: definition
                for name, definition in source.fielddefs.items()
                if name not in self.store.fielddefs and name != HEADER_TYPE
            }
        )
        self._converters: dict[tuple[str, bool], Callable[[bytes], memoryview]] = {}

    def name_of(self, type_name: str) -> str:
        """Return what a type of the bag is called in ROS 2."""
        return STATIC_MSGTYPE_RENAMES.get(type_name, type_name)

    def definition(self, type_name: str) -> tuple[str, str]:
        """Return (definition text, type hash) of a type, by its name in the bag.

        Both are empty for a type that the bag does not define so that it makes sense.
        """
        name = self.name_of(type_name)
        if name not in self.store.fielddefs:
            return '', ''
        return self.store.generate_msgdef(name, ros_version=2)[0], self.store.hash_rihs01(name)

    def to_cdr(self, type_name: str, raw: bytes) -> bytes:
        """Return a message of the bag as CDR; its header loses `seq`, which ROS 2 has not."""
        return bytes(self._converter(type_name, to_ros2=True)(raw))

    def to_ros1(self, type_name: str, raw: bytes) -> bytes:
        """Return CDR as a message of the bag; `seq` of its header is 0."""
        return bytes(self._converter(type_name, to_ros2=False)(raw))

    def starts_with_header(self, type_name: str) -> bool:
        """Whether messages of a type of the bag begin with a header, and so with `seq`."""
        return starts_with_header(self.store, self.name_of(type_name))

    def _converter(self, type_name: str, *, to_ros2: bool) -> Callable[[bytes], memoryview]:
        converter = self._converters.get((type_name, to_ros2))
        if converter is None:
            ends = [(self._source, type_name, False), (self.store, self.name_of(type_name), True)]
            (source, name, is_2), (target, new_name, becomes_2) = ends if to_ros2 else ends[::-1]
            with redirect_stdout(StringIO()):  # it says which types have other fields in ROS 2
                converter = generate_message_converter(
                    source, target, name, new_name, {}, src_is2=is_2, dst_is2=becomes_2
                )
            self._converters[type_name, to_ros2] = converter
        return converter


class Ros1Writer(Writer):
    """rosbags' writer of ROS 1 bags, for messages that are CDR.

    Those of topics of `types` end with the `seq` that their header had, 4 bytes behind the CDR.
    """

    min_timestamp = max_timestamp = 0

    def __init__(self, path: Path, types: Ros1Types) -> None:
        super().__init__(path)
        self._ros1, self._notes = types, dict[str, str]()
        self._types = get_typestore(Stores.ROS1_NOETIC)
        self._own = Ros1Types(self._types, ())

    @property
    def storage(self) -> object:
        """None when it is closed."""
        return self.bio

    def set_custom_data(self, key: str, value: str) -> None:
        """Keep a fact beside the messages."""
        self._notes[key] = value

    def add_topic(self, topic: str, type_name: str) -> Connection:
        """Announce a topic as the bag has it, or one of a type of ROS 1."""
        known = self._ros1.connections.get(topic)
        if known is None:
            return self.add_connection(topic, type_name, typestore=self._types)
        about: Any = known.ext
        return self.add_connection(
            topic,
            known.msgtype,
            msgdef=known.msgdef.data,
            md5sum=known.digest,
            callerid=about.callerid,
            latching=about.latching,
        )

    def put(
        self, connection: Connection, receive_ns: int, data: bytes | memoryview, _: int
    ) -> None:
        """Append a message."""
        raw, kind = bytes(data), connection.msgtype
        if connection.topic not in self._ros1.connections:
            raw = self._own.to_ros1(kind, raw)
        elif self._ros1.starts_with_header(kind):
            raw = raw[-4:] + self._ros1.to_ros1(kind, raw[:-4])[4:]
        else:
            raw = self._ros1.to_ros1(kind, raw)
        self.write(connection, receive_ns, raw)

    def close(self) -> None:
        """Write the index, with the notes as a topic without messages."""
        if self._notes:
            text = MessageDefinition(MessageDefinitionFormat.MSG, 'string data\n')
            about = ConnectionExtRosbag1(json.dumps(self._notes), None)
            kind, digest = 'std_msgs/msg/String', '992ce8a1687cec8c8bd883ec73ca41d1'
            number = len(self.connections)
            self.connections.append(Connection(number, NOTES, kind, text, digest, 0, about, self))
        super().close()
