"""The message types of a recording, as its own definitions say; what makes no sense stays unknown.

rosbags refuses a recording for one type that it cannot parse, and recorders write such ones:
service events carry the text of a .srv file.
"""

from __future__ import annotations

from typing import Any

from rosbags.interfaces import Connection, MessageDefinitionFormat
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

IDL_SEPARATOR = '=' * 80 + '\n'


def types_of(connections: list[Connection], *, is_ros2: bool) -> Typestore:
    """Return the recorded types; those of ROS 2 Kilted for topics without a definition."""
    known: Any = {}
    complete = True
    for connection in connections:
        found = _defined(connection.msgdef, connection.msgtype)
        complete &= connection.msgtype in found
        known.update(found)
    if not complete and is_ros2:
        known = {**get_typestore(Stores.ROS2_KILTED).fielddefs, **known}
    store = get_typestore(Stores.EMPTY)
    own = store.fielddefs  # a damaged definition of one of these is left out
    store.register({name: each for name, each in known.items() if own.get(name, each) == each})
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
