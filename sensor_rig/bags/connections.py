"""What rosbags says of the topics of a recording, beyond their names."""

from __future__ import annotations

from typing import Any

from rosbags.interfaces import Nodetype, QosDurability, QosReliability

HEADER_TYPE = 'std_msgs/msg/Header'


def is_latched(connection: Any) -> bool:
    """Whether a late subscriber gets the last message."""
    if getattr(connection.ext, 'latching', None):  # ROS 1
        return True
    profiles = getattr(connection.ext, 'offered_qos_profiles', ())
    return bool(profiles) and all(p.durability == QosDurability.TRANSIENT_LOCAL for p in profiles)


def is_best_effort(connection: Any) -> bool:
    """Whether a publisher offered best effort."""
    profiles = getattr(connection.ext, 'offered_qos_profiles', ())
    return any(p.reliability == QosReliability.BEST_EFFORT for p in profiles)


def starts_with_header(types: Any, type_name: str) -> bool:
    """Whether messages of a type begin with a header, and so with a stamp."""
    definition = types.fielddefs.get(type_name)
    if definition is None:
        return False
    fields = definition[1]
    return bool(fields) and fields[0] == ('header', (Nodetype.NAME, HEADER_TYPE))


def definition_of(connection: Any, types: Any) -> tuple[str, str]:
    """Return (definition text, type hash) of a topic; either is empty where it is not known.

    ROS before Iron knew no hashes, so that of its recordings is reckoned from the text.
    """
    text, digest = connection.msgdef.data, connection.digest
    if text and not digest and connection.msgtype in types.fielddefs:
        try:
            digest = types.hash_rihs01(connection.msgtype)
        except Exception:  # a type that holds itself, or one that is not defined
            return text, ''
    return text, digest
