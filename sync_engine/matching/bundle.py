"""What comes out: one bundle per reference frame, with a fact sheet per member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from rig_common.times import in_seconds
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.streams.buffer import Packet
from sync_engine.streams.payload import Payload


class MissingReason(str, Enum):
    """Why a member has no frame of its own."""

    NONE = ''
    NO_DATA = 'no_data'
    """The stream is silent or was never seen."""
    DEADLINE = 'deadline'
    """Nothing past the target had come when the deadline passed, and nothing was near enough."""
    OUT_OF_WINDOW = 'out_of_window'
    """The nearest frame is further away than the window."""
    TAKEN_BY_NEXT = 'taken_by_next'
    """The nearest frame is nearer still to the next reference frame, and is used once."""
    GAP_TOO_LONG = 'gap_too_long'
    """Interpolation would bridge more than `max_gap_s`, or has one side only."""
    NOT_INTERPOLABLE = 'not_interpolable'
    """Nobody said how this type is interpolated, or its two neighbours do not fit together."""


@dataclass(slots=True)
class Member:
    """One sensor's part of a bundle. Times in ns; which clock each is on is said."""

    sensor_id: str
    payload: Payload
    """As pushed; None where missing; made by the codec where `interpolated`."""
    stamp_ns: int
    """Sensor's clock, as received; the target itself where interpolated or missing."""
    arrival_ns: int
    """Host's clock; 0 where interpolated or missing."""
    target_ns: int
    """Where the reference frame lies on this sensor's clock."""
    offset_ns: int
    """Sensor's clock minus the reference's, as used."""
    offset_sigma_s: float
    offset_state: OffsetState
    corrected_timestamp_ns: int
    """Capture time on the host's clock."""
    interpolated: bool = False
    missing: bool = False
    reason: MissingReason = MissingReason.NONE
    collected: Sequence[Packet] = ()
    """With `collect`: every packet since the last bundle, earliest first."""

    @property
    def time_delta_ns(self) -> int:
        """How far the frame is from the target (ns), positive when it is later."""
        return self.stamp_ns - self.target_ns

    def __repr__(self) -> str:
        """Return one line of facts, without the payload."""
        if self.missing:
            return f'Member({self.sensor_id} missing: {self.reason.value})'
        made = ' interpolated' if self.interpolated else ''
        more = f', {len(self.collected)} collected' if self.collected else ''
        return (
            f'Member({self.sensor_id}{made} {self.time_delta_ns / 1e6:+.3f} ms, offset '
            f'{self.offset_ns / 1e6:+.3f} ms {self.offset_state.value}{more})'
        )


@dataclass(slots=True)
class Bundle:
    """Frames that belong to one moment."""

    sequence: int
    epoch: int
    """Rises whenever a stream or the host started over."""
    stamp_ns: int
    """Capture time of the reference frame on the host's clock; never goes back in an epoch."""
    reference_id: str
    members: dict[str, Member]
    window_ns: int
    emitted_ns: int
    """Host time of the push or poll that completed it."""

    @property
    def complete(self) -> bool:
        """Whether every member has a frame."""
        return not any(member.missing for member in self.members.values())

    def __repr__(self) -> str:
        """Return one line: number, stamp and what each member is."""
        return (
            f'Bundle({self.sequence}, stamp {in_seconds(self.stamp_ns)}, '
            f'{", ".join(map(repr, self.members.values()))})'
        )
