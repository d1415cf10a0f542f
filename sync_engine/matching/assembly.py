"""From one reference frame to one bundle: targets, waiting, selection, eviction."""

from __future__ import annotations

from collections import Counter

from rig_common.times import NS_PER_S
from sync_engine.bundle import Bundle, Member, MissingReason, OffsetState
from sync_engine.clocks.epochs import Epochs
from sync_engine.clocks.offset import Offset, relative_offset
from sync_engine.clocks.pairing import PairingOffset, TriggerOffset
from sync_engine.config import SyncConfig
from sync_engine.ledger import Outcome
from sync_engine.matching.buffer import Packet
from sync_engine.matching.interpolate import CannotInterpolate, Codec, interpolate
from sync_engine.matching.selection import Choice, choose, choose_again
from sync_engine.matching.window import AdaptiveWindow
from sync_engine.stream import Stream

_UNKNOWN = float('inf')


class Pending:
    """The earliest reference frame while its partners come in."""

    __slots__ = (
        'awaits_next', 'choices', 'deadline_ns', 'next_deadline_ns', 'offsets', 'packet',
        'timed_out', 'waiting', 'window_ns',
    )  # fmt: skip

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.offsets: dict[str, Offset] = {}
        self.choices: dict[str, Choice] = {}
        self.timed_out: set[str] = set()
        self.waiting = 0
        """Streams that have not settled it yet."""
        self.awaits_next = False
        """Whether the next reference frame has to come first."""
        self.next_deadline_ns = packet.arrival_ns
        """When the next of them is given up (host)."""
        self.deadline_ns = packet.arrival_ns
        """When the last of them is given up (host)."""
        self.window_ns = 0


class Assembler:
    """Makes bundles out of reference frames and their partners."""

    def __init__(
        self,
        config: SyncConfig,
        reference: Stream,
        partners: list[Stream],
        window: AdaptiveWindow,
        epochs: Epochs,
        codecs: dict[str, Codec],
    ) -> None:
        self._reference = reference
        self._partners = partners
        self._window = window
        self._epochs = epochs
        self._codecs = codecs
        self._estimator = config.estimator
        self._adakf = config.adakf
        self.made = 0
        """Bundles so far; the last one's sequence number."""
        self._last_stamp_ns: int | None = None
        self.dropped: Counter[tuple[str, MissingReason]] = Counter()
        """Reference frames without a bundle, by the sensor that was missing and why."""

    def forget_output(self) -> None:
        """A new epoch may start at an earlier time than the last one ended."""
        self._last_stamp_ns = None

    # -- waiting ----------------------------------------------------------------------------

    def open(self, packet: Packet) -> Pending:
        """Say for every partner where `packet` lies on its clock, and who has to be waited for."""
        head = Pending(packet)
        now_ns = packet.arrival_ns
        for stream in self._partners:
            offset = head.offsets[stream.sensor_id] = self.relative(stream, now_ns)
            settles_ns = packet.stamp_ns + offset.offset_ns + stream.reorder_ns
            stream.settles_at_ns = None
            if stream.latest_ns is not None and stream.latest_ns >= settles_ns:
                continue
            if not stream.is_silent(now_ns):
                stream.settles_at_ns = settles_ns
        self._await_order(packet)
        self.give_up(head, now_ns)
        return head

    def _await_order(self, packet: Packet) -> None:
        """A reference that comes out of order is itself waited for, so that none comes late."""
        reference = self._reference
        settles_ns = packet.stamp_ns + reference.reorder_ns
        late = reference.latest_ns is None or reference.latest_ns < settles_ns
        reference.settles_at_ns = settles_ns if late else None

    def give_up(self, head: Pending, now_ns: int) -> None:
        """Stop waiting for the streams whose deadline has passed; find the next deadline."""
        arrival_ns = head.packet.arrival_ns
        waiting, soonest, latest = 0, None, arrival_ns
        for stream in (*self._partners, self._reference):
            due_ns = arrival_ns + stream.deadline_ns
            if stream is not self._reference:
                latest = max(latest, due_ns)
            if stream.settles_at_ns is None:
                continue
            if due_ns <= now_ns:
                stream.settles_at_ns = None
                head.timed_out.add(stream.sensor_id)
                continue
            waiting += 1
            soonest = due_ns if soonest is None else min(soonest, due_ns)
        head.waiting = waiting
        head.deadline_ns = latest
        head.next_deadline_ns = latest if soonest is None else soonest

    def relative(self, stream: Stream, now_ns: int) -> Offset:
        """Return the stream's clock minus the reference's at host time `now_ns`."""
        if self._estimator == 'none':
            return Offset(0, _UNKNOWN, OffsetState.UNOBSERVABLE)
        if stream.pairing is not None:
            offset_ns = round(stream.pairing.offset_s * 1e9)
            return Offset(offset_ns, stream.pairing.variance**0.5, OffsetState.CONVERGING)
        if stream.trigger is not None:
            sigma_s = stream.trigger.variance**0.5
            offset_ns = round(stream.trigger.offset_s * 1e9)
            return Offset(offset_ns, sigma_s, stream.clock.judge(sigma_s))
        return self._from_clocks(stream, now_ns)

    def relative_to_reference(self, stream: Stream, now_ns: int) -> Offset:
        """As `relative`, for any stream: the reference itself is how sure its own clock is."""
        if stream is self._reference:
            return Offset(0, stream.clock.sigma_s, stream.clock.state)
        return self.relative(stream, now_ns)

    def _from_clocks(self, stream: Stream, now_ns: int) -> Offset:
        clock, reference = stream.clock, self._reference.clock
        if clock is reference:
            return Offset(0, 0.0, OffsetState.LOCKED)
        blind = clock.state is OffsetState.UNOBSERVABLE
        if blind or reference.state is OffsetState.UNOBSERVABLE:
            # What cannot be observed corrects nothing: those stamps are taken as host time.
            offset_ns = (0 if blind else clock.offset_ns(now_ns)) - self._host_offset_ns(now_ns)
            return Offset(offset_ns, _UNKNOWN, OffsetState.UNOBSERVABLE)
        offset_ns, sigma_s = relative_offset(clock, reference, now_ns)
        return Offset(offset_ns, sigma_s, clock.judge(sigma_s))

    def _host_offset_ns(self, now_ns: int) -> int:
        """Return the reference's clock minus the host's; 0 where it is not observable."""
        clock = self._reference.clock
        if self._estimator != 'adaptive' or clock.state is OffsetState.UNOBSERVABLE:
            return 0
        return clock.offset_ns(now_ns)

    # -- selection --------------------------------------------------------------------------

    def select(self, head: Pending, now_ns: int) -> bool:
        """Choose every partner's frame; False where the next reference frame must come first."""
        head.window_ns = self._window.half_width_ns(min(now_ns, head.deadline_ns))
        following = self._reference.buffer.peek_second()
        period_ns = self._reference.clock.steps.period_ns or self._reference.period_ns
        half_period_ns = int(period_ns / 2)
        may_wait = following is None and now_ns < head.deadline_ns
        for stream in self._partners:
            if stream.given.collect:
                continue
            offset_ns = head.offsets[stream.sensor_id].offset_ns
            target_ns = head.packet.stamp_ns + offset_ns
            if stream.given.reuse:
                choice = choose_again(stream.buffer, target_ns, head.window_ns)
            else:
                next_ns = None if following is None else following.stamp_ns + offset_ns
                choice = choose(
                    stream.buffer, target_ns, head.window_ns, next_ns, half_period_ns, may_wait
                )
            if choice.wait:
                head.awaits_next = True
                head.next_deadline_ns = head.deadline_ns
                return False
            head.choices[stream.sensor_id] = choice
        return True

    # -- output -----------------------------------------------------------------------------

    def emit(self, head: Pending, now_ns: int) -> Bundle | None:
        """Turn the choices into a bundle and evict what is done with; None: dropped, counted."""
        at_ns = min(now_ns, head.deadline_ns)
        stamp_ns = head.packet.stamp_ns - self._host_offset_ns(at_ns)
        if self._last_stamp_ns is not None and stamp_ns <= self._last_stamp_ns:
            stamp_ns = self._last_stamp_ns + 1
        members: dict[str, Member] = {}
        for stream in self._partners:
            member = self._member(stream, head, stamp_ns)
            if member.missing and stream.is_required and stream.strategy != 'empty':
                self.dropped[stream.sensor_id, member.reason] += 1
                self._reference.let_go(self._reference.buffer.take_through(
                    head.packet.stamp_ns), Outcome.UNMATCHED)  # fmt: skip
                return None
            members[stream.sensor_id] = member
        self._evict(head, members)
        members[self._reference.sensor_id] = self._reference_member(head, stamp_ns)
        self._learn_from_pairs(head, members)
        self.made += 1
        self._last_stamp_ns = stamp_ns
        return Bundle(
            self.made, self._epochs.number, stamp_ns, self._reference.sensor_id, members,
            head.window_ns, now_ns,
        )  # fmt: skip

    def _reference_member(self, head: Pending, stamp_ns: int) -> Member:
        clock, packet = self._reference.clock, head.packet
        return Member(
            self._reference.sensor_id, packet.payload, packet.stamp_ns, packet.arrival_ns,
            packet.stamp_ns, 0, clock.sigma_s, clock.state, stamp_ns,
        )  # fmt: skip

    def _member(self, stream: Stream, head: Pending, stamp_ns: int) -> Member:
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
        if gap_ns > stream.max_gap_ns or before.stamp_ns > member.target_ns:
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

    def _evict(self, head: Pending, members: dict[str, Member]) -> None:
        """Let go of what went out and of what no later reference frame can want."""
        self._reference.let_go(self._take_used(self._reference, head.packet), Outcome.UNMATCHED)
        self._reference.fade_reorder()
        for stream in self._partners:
            member = members[stream.sensor_id]
            stream.fade_reorder()
            if stream.given.collect:
                taken = stream.buffer.take_through(member.target_ns)
                stream.let_go(taken, Outcome.COLLECTED)
                member.collected = taken
                continue
            packet = head.choices[stream.sensor_id].packet
            if packet is None:
                continue
            if stream.given.reuse:
                packet.used = True
                stream.let_go(stream.buffer.take_before(packet.stamp_ns), Outcome.UNMATCHED)
            else:
                stream.let_go(self._take_used(stream, packet), Outcome.UNMATCHED)

    @staticmethod
    def _take_used(stream: Stream, packet: Packet) -> list[Packet]:
        packet.used = True
        return stream.buffer.take_through(packet.stamp_ns)

    def _learn_from_pairs(self, head: Pending, members: dict[str, Member]) -> None:
        """Feed the pairing residual to the estimators that are declared to want it."""
        for stream in self._partners:
            member = members[stream.sensor_id]
            if member.missing or member.interpolated or stream.given.collect:
                continue
            residual_s = (member.stamp_ns - head.packet.stamp_ns) / NS_PER_S
            if self._estimator == 'pairing':
                if stream.pairing is None:
                    stream.pairing = PairingOffset(self._adakf)
                stream.pairing.update(residual_s)
            elif self._estimator == 'adaptive' and stream.given.stamp_source == 'trigger':
                if stream.trigger is None:
                    offset = head.offsets[stream.sensor_id]
                    start_sigma_s = min(offset.sigma_s, 1.0)
                    stream.trigger = TriggerOffset(offset.offset_ns / NS_PER_S, start_sigma_s)
                stream.trigger.update(residual_s)
