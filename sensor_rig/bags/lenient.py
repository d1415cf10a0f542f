"""rosbags' reader, for recordings whose metadata or types are not as it expects them.

rosbags refuses a recording for one type that it cannot parse, and finds no message of a topic
whose quality of service in metadata.yaml is not that of the storage. Recorders write both:
service events carry the text of a .srv file, and every tool that writes metadata.yaml anew (or
a person who edits it) may change the profiles.
"""

from __future__ import annotations

from typing import Any

from rosbags.highlevel import AnyReader
from rosbags.interfaces import MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

IDL_SEPARATOR = '=' * 80 + '\n'


class LenientReader(AnyReader):
    """A rosbag2 recording, read as far as it can be; types that make no sense stay unknown."""

    def _open(self) -> None:
        assert self.stack is not None
        for reader in self.readers:
            self.stack.enter_context(reader)
            _adopt_profiles(reader)
        self.connections = [each for reader in self.readers for each in reader.connections]
        self.typestore = _types_of(self.connections)


def _adopt_profiles(reader: Any) -> None:
    """Give the topics of the storages the profiles that metadata.yaml has for them."""
    for storage in getattr(reader.storage, 'storages', ()):
        for place, stored in enumerate(storage.connections):
            listed = [
                each.ext
                for each in reader.connections
                if (each.topic, each.msgtype) == (stored.topic, stored.msgtype)
            ]
            if (
                listed
                and stored.ext not in listed
                and stored.ext.serialization_format == listed[0].serialization_format
            ):
                storage.connections[place] = stored._replace(ext=listed[0])


def _types_of(connections: list[Any]) -> Typestore:
    """Return the recorded types; those of ROS 2 Kilted for topics without a definition."""
    known: Any = {}
    complete = True
    for connection in connections:
        found = _defined(connection.msgdef, connection.msgtype)
        complete &= connection.msgtype in found
        known.update(found)
    if not complete:
        known = {**get_typestore(Stores.ROS2_KILTED).fielddefs, **known}
    store = get_typestore(Stores.EMPTY)
    store.register(known)
    return store


def _defined(definition: Any, type_name: str) -> Any:
    try:
        if definition.format == MessageDefinitionFormat.MSG:
            return get_types_from_msg(definition.data, type_name)
        found: Any = {}
        if definition.format == MessageDefinitionFormat.IDL:
            for part in definition.data.split(IDL_SEPARATOR):
                found.update(
                    get_types_from_idl(
                        part.split('\n', 1)[1] if part.startswith('IDL: ') else part
                    )
                )
        return found
    except Exception:  # whatever a parser says of text that is no definition
        return {}
