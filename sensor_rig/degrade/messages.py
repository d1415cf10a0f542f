"""Messages before and after they were degraded."""

from __future__ import annotations

from typing import NamedTuple

from rig_common.errors import RigError
from sensor_rig.degrade.ledger import Fate
from sim_sensors.timing.faults import Condition

CaptureRow = tuple[Fate, int, int, int, bool, Condition]
"""Fate; number in the stream, the index of all draws, -1 where it was thinned out; time from the
base (receive time or stamp) to the arrival and new stamp, ns; whether it arrives twice; faults."""


class Incoming(NamedTuple):
    """One message as it was received."""

    topic: str
    raw: bytes
    receive_ns: int
    stamp_ns: int | None
    """None for a type without header."""
    publish_ns: int = 0
    order: int = 0
    """Its number among all messages."""

    @property
    def time_ns(self) -> int:
        """Its stamp, or when it was received where it has none."""
        return self.receive_ns if self.stamp_ns is None else self.stamp_ns


class Outgoing(NamedTuple):
    """What becomes of some messages: a list with an entry for each."""

    captures: list[CaptureRow]
    raws: list[bytes]
    """Fewer than messages where one cannot be degraded."""
    firsts: list[bool]
    """Whether it is the first message of its capture, for which the truth is written."""
    error: RigError | None = None
    """Why the messages behind these cannot be degraded."""
