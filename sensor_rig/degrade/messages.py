"""A message before and after it was degraded."""

from __future__ import annotations

from typing import NamedTuple

from sensor_rig.degrade.ledger import Fate


class Incoming(NamedTuple):
    """One message as it was received."""

    topic: str
    raw: bytes
    receive_ns: int
    stamp_ns: int | None
    """None for a type without header."""


class Outgoing(NamedTuple):
    """What becomes of one message."""

    fate: Fate
    number: int
    """Of its capture in the stream, the index of all its draws; -1 where it was thinned out."""
    arrival_ns: int
    """When it arrives, or would have."""
    stamp_ns: int
    """Its new stamp; that of a headerless message is its arrival."""
    raw: bytes
    is_first: bool
    """Whether it is the first message of its capture, for which the truth is written."""
    is_doubled: bool = False
    """Whether it arrives twice."""
