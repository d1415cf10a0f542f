"""The members of a bundle: a frame, an interpolated one, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping

from rig_common.times import NS_PER_S
from sync_engine.matching.bundle import Member, MissingReason
from sync_engine.matching.interpolate import CannotInterpolate, Codec, interpolate
from sync_engine.matching.waiting import Pending
from sync_engine.streams.stream import Stream


class MemberMaker:
    """Turns what was chosen for a reference frame into members."""

    def __init__(self, reference: Stream, codecs: Mapping[str, Codec]) -> None:
        self._reference, self._codecs = reference, codecs

    def reference(self, head: Pending, stamp_ns: int) -> Member:
        """Return the reference frame itself; `stamp_ns` is the bundle's stamp."""
        clock, packet = self._reference.clock, head.packet
        return Member(
            self._reference.sensor_id, packet.payload, packet.stamp_ns, packet.arrival_ns,
            packet.stamp_ns, 0, clock.sigma_s, clock.state, stamp_ns,
        )  # fmt: skip

    def partner(self, stream: Stream, head: Pending, stamp_ns: int) -> Member:
        """Return what `stream` has for the reference frame `head`."""
        offset = head.offsets[stream.sensor_id]
        target_ns = head.packet.stamp_ns + offset.offset_ns
        member = Member(
            stream.sensor_id, None, target_ns, 0, target_ns, offset.offset_ns, offset.sigma_s,
            offset.state, stamp_ns,
        )  # fmt: skip
        if stream.given.collect:
            packet = stream.buffer.last_through(target_ns)
            reason = MissingReason.NONE
        else:
            packet, reason, _ = head.choices[stream.sensor_id]
        if packet is not None:
            member.payload = packet.payload
            member.stamp_ns = packet.stamp_ns
            member.arrival_ns = packet.arrival_ns
            member.corrected_timestamp_ns = stamp_ns + packet.stamp_ns - target_ns
        elif stream.strategy != 'interpolate' or not self._interpolate(stream, member):
            member.missing = True
            member.reason = member.reason or self._why(stream, head, reason)
        return member

    def _why(self, stream: Stream, head: Pending, reason: MissingReason) -> MissingReason:
        if stream.sensor_id in head.timed_out:
            return MissingReason.DEADLINE
        if stream.is_silent(head.packet.arrival_ns):
            return MissingReason.NO_DATA
        return reason or MissingReason.NO_DATA

    def _interpolate(self, stream: Stream, member: Member) -> bool:
        """Make the frame at the target out of its two neighbours; False with a reason if not."""
        before = stream.buffer.before(member.target_ns) or stream.previous
        after = stream.buffer.after(member.target_ns)
        codec = self._codecs.get(stream.sensor_id)
        if codec is None:
            member.reason = MissingReason.NOT_INTERPOLABLE
            return False
        if before is None or after is None:
            member.reason = MissingReason.GAP_TOO_LONG
            return False
        gap_ns = after.stamp_ns - before.stamp_ns
        if gap_ns > stream.given.max_gap_s * NS_PER_S or before.stamp_ns > member.target_ns:
            member.reason = MissingReason.GAP_TOO_LONG
            return False
        fraction = (member.target_ns - before.stamp_ns) / gap_ns
        try:
            member.payload = interpolate(codec, before.payload, after.payload, fraction)
        except CannotInterpolate:
            member.reason = MissingReason.NOT_INTERPOLABLE
            return False
        member.interpolated = True
        return True
