"""Which topic belongs to which stream: exact names first, then patterns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from rig_common.errors import RigError
from rig_common.validation import hint
from sensor_rig.rigfile.stream_keys import StreamConfig

PATTERN = frozenset('*?[')
OWN = ('/truth/', '/_truth/', '/degraded/')
"""Topics that patterns do not match: the truth, and the output of degrade."""
SYSTEM = frozenset({'/clock', '/diagnostics', '/parameter_events', '/rosout', '/tf_static'})
"""Patterns do not match these either; an exact name matches any topic."""


def absolute(topic: str) -> str:
    """Return the name from the root; a rig file's relative name means the root's."""
    return '/' + topic.lstrip('/')


def is_pattern(topic: str) -> bool:
    """Whether a topic of a stream may mean several."""
    return not PATTERN.isdisjoint(topic)


def find_stream(topic: str, streams: Mapping[str, StreamConfig]) -> str:
    """Return the stream that `topic` belongs to, empty for none; two patterns are a mistake."""
    topic = absolute(topic)  # a ROS 1 bag may hold relative names
    for name, config in streams.items():
        if any(absolute(each) == topic for each in config.topics):
            return name
    if topic in SYSTEM or topic.startswith(OWN):
        return ''
    found = [
        name
        for name, config in streams.items()
        if any(is_pattern(each) and fnmatchcase(topic, absolute(each)) for each in config.topics)
    ]
    if len(found) > 1:
        raise RigError(
            f'{topic} is matched by patterns of streams.{found[0]} and '
            f'streams.{found[1]}; name it in one of them'
        )
    return found[0] if found else ''


def refuse_shared(streams: Mapping[str, StreamConfig], where: str) -> None:
    """Refuse an exact topic name that two streams have."""
    owners: dict[str, str] = {}
    for name, config in streams.items():
        for topic in dict.fromkeys(absolute(each) for each in config.topics):
            if topic in owners:
                raise RigError(
                    f'{where}.{name}.topics has {topic}, which streams.{owners[topic]} '
                    f'has already; a topic belongs to one stream'
                )
            owners[topic] = name


def assign(
    known: Iterable[str], streams: Mapping[str, StreamConfig], place: object
) -> dict[str, str]:
    """Return topic -> stream of all `known` topics that belong to one.

    Raises where a topic or a pattern of a stream finds nothing; `place` is where it was looked.
    """
    topics = list(known)
    found = {topic: stream for topic in topics if (stream := find_stream(topic, streams))}
    for name, config in streams.items():
        mine = [absolute(topic) for topic, stream in found.items() if stream == name]
        for given in config.topics:
            wanted = absolute(given)
            if is_pattern(given):
                if not any(fnmatchcase(topic, wanted) for topic in mine):
                    raise RigError(
                        f'streams.{name}.topics has the pattern {given}, which no '
                        f'topic of {place} fits; '
                        f'{hint(wanted, topics, "it has")}'
                    )
            elif wanted not in mine:
                raise RigError(
                    f'{place} has no topic {wanted} (streams.{name}.topics); '
                    f'{hint(wanted, topics, "it has")}'
                )
    return found
