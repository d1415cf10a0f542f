"""What happened to every packet: each is counted under exactly one outcome.

For every sensor, after every push and every poll:

    received = bundled + collected + consumed + unmatched + expired + overflow
             + duplicate + late + invalid + flushed + still buffered
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import Enum


class Outcome(str, Enum):
    """How a packet left the engine; the value is the name of its counter."""

    BUNDLED = 'bundled'
    """Nearest frame of a bundle."""
    COLLECTED = 'collected'
    """Handed over with the others since the last bundle."""
    CONSUMED = 'consumed'
    """Used for the window or a cue by a stream that is no member."""
    UNMATCHED = 'unmatched'
    """A bundle with a better or later partner went out, or its own bundle could not be made."""
    EXPIRED = 'expired'
    """Older than the buffer's timeout, by arrival."""
    OVERFLOW = 'overflow'
    """Pushed out by the bound on count or bytes."""
    DUPLICATE = 'duplicate'
    """Same sensor, same stamp."""
    LATE = 'late'
    """Its place in time had already been given out."""
    INVALID = 'invalid'
    """Zero or negative stamp, or a far one that no second packet confirmed."""
    FLUSHED = 'flushed'
    """Cleared by a reset, a restart or a clock jump."""


USED = (Outcome.BUNDLED, Outcome.COLLECTED, Outcome.CONSUMED)
"""Outcomes of messages that were used."""
DROPPED = tuple(each for each in Outcome if each not in USED)

MEANING = {
    Outcome.UNMATCHED: 'in no bundle; usual for a stream that is faster than the reference',
    Outcome.EXPIRED: 'waited longer than the buffer keeps it',
    Outcome.OVERFLOW: 'pushed out of a full buffer',
    Outcome.LATE: 'came after the bundles of its time',
    Outcome.INVALID: 'a stamp of zero or before it (a clock that is behind, at the start), or a '
    'far one that no second message confirmed; or it came at a time that no '
    'stamp can hold',
    Outcome.FLUSHED: 'cleared by a reset, a restart or a jump of a clock',
}
"""An explanation of each outcome, for tables."""


@dataclass(slots=True)
class Counts:
    """Counters of one sensor. Plain attributes: they are touched on every packet."""

    received: int = 0
    bundled: int = 0
    collected: int = 0
    consumed: int = 0
    unmatched: int = 0
    expired: int = 0
    overflow: int = 0
    duplicate: int = 0
    late: int = 0
    invalid: int = 0
    flushed: int = 0
    out_of_order: int = 0
    """Arrived after a later stamp; also counted under its fate."""

    def add(self, fate: Outcome, number: int = 1) -> None:
        """Count `number` packets that ended as `fate`."""
        setattr(self, fate.value, getattr(self, fate.value) + number)

    def settled(self) -> int:
        """Return how many packets have left the engine."""
        return sum(getattr(self, fate.value) for fate in Outcome)

    def ledger(self) -> dict[str, int]:
        """Return the received packets and every fate, by name."""
        names = ('received', *(each.value for each in Outcome))
        return {name: getattr(self, name) for name in names}

    def as_dict(self) -> dict[str, int]:
        """Return every counter by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Ledger:
    """The counters of every sensor, and the check that they add up."""

    def __init__(self, sensor_ids: list[str]) -> None:
        self._counts = {sensor_id: Counts() for sensor_id in sensor_ids}

    def __getitem__(self, sensor_id: str) -> Counts:
        return self._counts[sensor_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def imbalance(self, buffered: dict[str, int]) -> dict[str, int]:
        """Return received minus accounted for, where it is not zero (a bug of the engine).

        `buffered` holds the packets that each sensor's buffers still keep.
        """
        gaps = {
            sensor_id: counts.received - counts.settled() - buffered[sensor_id]
            for sensor_id, counts in self._counts.items()
        }
        return {sensor_id: gap for sensor_id, gap in gaps.items() if gap}

    def as_dict(self) -> dict[str, dict[str, int]]:
        """Return all counters of all sensors."""
        return {sensor_id: counts.as_dict() for sensor_id, counts in self._counts.items()}
