"""Bytes that are not the message their topic promises: dropped, counted, shown."""

from __future__ import annotations

from rig_common.cdr import CdrError
from rig_common.msgs import Level, Status


class Malformed:
    """What a node received and could not read, by topic.

    Subscriptions of ours take bytes, so nothing between the wire and us has looked at them.
    """

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}

    @property
    def counts(self) -> dict[str, int]:
        """Topic -> messages dropped."""
        return {topic: count for topic, (count, _) in self._found.items()}

    def note(self, topic: str, error: CdrError) -> None:
        """Count a message of `topic` that was dropped because of `error`."""
        count, _ = self._found.get(topic, (0, ''))
        self._found[topic] = (count + 1, str(error))

    def statuses(self) -> list[Status]:
        """Return one status, or none while every message could be read."""
        if not self._found:
            return []
        values = {
            topic: f'{count} dropped, the last because {why}'
            for topic, (count, why) in sorted(self._found.items())
        }
        sentence = f'unreadable bytes on {", ".join(values)}'
        return [Status(Level.ERROR, 'unreadable messages', sentence, values)]
