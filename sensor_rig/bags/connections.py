"""What rosbags says of the topics of a recording, beyond their names."""

from __future__ import annotations

from typing import Any

from rosbags.interfaces import (
    Nodetype,
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)

HEADER_TYPE = 'std_msgs/msg/Header'
LATCHED = frozenset({'tf_static', 'robot_description'})
"""Last parts of the names of topics that are offered to late joiners by convention: listeners of
`/tf_static` (tf2) and `/robot_description` (RViz) ask for it, and hear nothing else."""
_FOREVER = QosTime(2147483647, 4294967295)


def offered(*, latched: bool = False, best_effort: bool = False, depth: int = 0) -> Qos:
    """Return the QoS of a publisher, as `ros2 bag play` will offer it."""
    return Qos(
        QosHistory.KEEP_LAST,
        depth or (1 if latched else 10),
        QosReliability.BEST_EFFORT if best_effort else QosReliability.RELIABLE,
        QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE,
        _FOREVER,
        _FOREVER,
        QosLiveliness.AUTOMATIC,
        _FOREVER,
        False,
    )


def usual_qos(topic: str) -> tuple[Qos, ...]:
    """Return what the publishers of a topic offer by convention."""
    return (offered(latched=topic.rpartition('/')[2] in LATCHED),)


def qos_of(connection: Any) -> tuple[Qos, ...]:
    """Return what the publishers of a recorded topic offered; nothing where it is not told."""
    if getattr(connection.ext, 'latching', None):  # ROS 1
        return (offered(latched=True),)
    return tuple(getattr(connection.ext, 'offered_qos_profiles', ()))


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
