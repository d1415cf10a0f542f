"""Fingerprints of streams: two runs are the same when every topic's fingerprint is."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from rig_common.cdr import Buffer


class StreamDigests:
    """One running digest per topic over its messages in order, their stamps included."""

    def __init__(self) -> None:
        self._hashes: dict[str, Any] = {}
        self.counts: dict[str, int] = {}
        """Messages so far, by topic."""

    def add(self, topic: str, raw: Buffer) -> None:
        """Take the next message of `topic`."""
        running = self._hashes.get(topic)
        if running is None:
            running = self._hashes[topic] = blake2b(digest_size=16)
            self.counts[topic] = 0
        running.update(len(raw).to_bytes(8, 'little'))
        running.update(raw)
        self.counts[topic] += 1

    def hex(self) -> dict[str, str]:
        """Return the digests so far, by topic."""
        return {topic: running.hexdigest() for topic, running in sorted(self._hashes.items())}
