"""ROS 1 bags as rosbag2 recordings are: types of ROS 2, messages as CDR."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO

from rosbags.convert.converter import STATIC_MSGTYPE_RENAMES, generate_message_converter
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.store import Typestore

HEADER_TYPE = 'std_msgs/msg/Header'


class Ros1Types:
    """The types of a ROS 1 bag, with what turns their messages into CDR."""

    def __init__(self, source: Typestore) -> None:
        """Know the standard types of ROS 2, and those of the bag that are none of them."""
        self._source = source
        self.store: Typestore = get_typestore(Stores.ROS2_KILTED)
        self.store.register(
            {
                name: definition
                for name, definition in source.fielddefs.items()
                if name not in self.store.fielddefs and name != HEADER_TYPE
            }
        )
        self._cache: dict[str, object] = {}
        self._converters: dict[str, Callable[[bytes | memoryview], memoryview]] = {}

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
        converter = self._converters.get(type_name)
        if converter is None:
            with redirect_stdout(StringIO()):  # it says which types have other fields in ROS 2
                converter = generate_message_converter(
                    self._source,
                    self.store,
                    type_name,
                    self.name_of(type_name),
                    self._cache,
                    src_is2=False,
                    dst_is2=True,
                )
            self._converters[type_name] = converter
        return bytes(converter(raw))
