"""Which frame of a stream belongs to a reference frame.

The frame nearest to the target, not the first one inside the window. A frame that may be used only
once is left to the next reference frame if that one is nearer to it.
"""

from __future__ import annotations

from typing import NamedTuple

from sync_engine.matching.bundle import MissingReason
from sync_engine.streams.buffer import Packet, SensorBuffer


class Choice(NamedTuple):
    """A frame, or why there is none; `wait`: the next reference frame has to be seen first."""

    packet: Packet | None
    reason: MissingReason = MissingReason.NONE
    wait: bool = False


_WAIT = Choice(None, wait=True)


def choose(
    buffer: SensorBuffer,
    target_ns: int,
    window_ns: int,
    next_target_ns: int | None,
    half_period_ns: int,
    may_wait: bool,
) -> Choice:
    """Return the frame of `buffer` for the reference frame at `target_ns`, used at most once.

    All times are on the stream's clock. `next_target_ns` is where the next reference frame lies,
    None while it has not come; a frame more than `half_period_ns` (of the reference) past the
    target may be nearer to it, and is worth waiting for as long as `may_wait`.
    """
    packet = buffer.closest(target_ns, window_ns)
    if packet is None:
        return Choice(None, MissingReason.OUT_OF_WINDOW)
    lead_ns = packet.stamp_ns - target_ns
    if lead_ns <= 0:
        return Choice(packet)
    if next_target_ns is None:
        if lead_ns <= half_period_ns or not may_wait:
            return Choice(packet)
        return _WAIT
    if abs(next_target_ns - packet.stamp_ns) >= lead_ns:
        return Choice(packet)
    earlier = buffer.before(target_ns)
    if earlier is not None and target_ns - earlier.stamp_ns <= window_ns:
        return Choice(earlier)
    return Choice(None, MissingReason.TAKEN_BY_NEXT)


def choose_again(buffer: SensorBuffer, target_ns: int, window_ns: int) -> Choice:
    """Return the nearest frame, even if another bundle used it (`reuse: true`)."""
    packet = buffer.closest(target_ns, window_ns)
    if packet is None:
        return Choice(None, MissingReason.OUT_OF_WINDOW)
    return Choice(packet)
