"""From one reference frame to one bundle: selection, members, eviction.

Which partners have to be waited for is `waiting.py`, which frame is chosen is `selection.py`.
"""

from __future__ import annotations

from collections import Counter

from rig_common.times import LONG_AGO_NS, NS_PER_S
from sync_engine.clocks.epochs import Epochs
from sync_engine.clocks.pairing import PairingOffset, TriggerOffset
from sync_engine.config import SyncConfig
from sync_engine.matching.bundle import Bundle, Member, MissingReason
from sync_engine.matching.interpolate import Codec
from sync_engine.matching.members import MemberMaker
from sync_engine.matching.selection import choose, choose_again
from sync_engine.matching.waiting import Pending, WaitingRoom
from sync_engine.matching.window import AdaptiveWindow
from sync_engine.streams.buffer import Packet
from sync_engine.streams.ledger import Outcome
from sync_engine.streams.relative_clocks import RelativeClocks
from sync_engine.streams.stream import Stream


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
        self.clocks = RelativeClocks(reference, config.estimator)
        """Offsets to the reference's clock."""
        self.waiting_room = WaitingRoom(reference, partners, self.clocks)
        self._members = MemberMaker(reference, codecs)
        self._estimator = config.estimator
        self._adakf = config.adakf
        self.made = 0
        """Bundles so far; the last one's sequence number."""
        self._last_epoch = 0
        self._last_stamp_ns = LONG_AGO_NS
        self._may_go_back = False
        self.dropped: Counter[tuple[str, MissingReason]] = Counter()
        """Reference frames without a bundle, by the sensor that was missing and why."""

    def let_stamps_go_back(self) -> None:
        """A clock started over: the next bundle may have an earlier stamp than the last one."""
        self._may_go_back = True

    # -- selection --------------------------------------------------------------------------

    def select(self, head: Pending, now_ns: int) -> bool:
        """Choose every partner's frame; False where the next reference frame must come first."""
        head.window_ns = self._window.half_width_ns(min(now_ns, head.deadline_ns))
        following = self._reference.buffer.peek_second()
        period_ns = self._reference.clock.steps.period_ns or self._reference.arrivals.period_ns
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
        """Turn the choices into a bundle and evict what was used; None if it was dropped."""
        at_ns = min(now_ns, head.deadline_ns)
        stamp_ns = self._in_order(head.packet.stamp_ns - self.clocks.host_offset_ns(at_ns))
        members: dict[str, Member] = {}
        for stream in self._partners:
            member = self._members.partner(stream, head, stamp_ns)
            if member.missing and stream.is_required and stream.strategy != 'empty':
                self.dropped[stream.sensor_id, member.reason] += 1
                self._reference.let_go(self._reference.buffer.take_through(
                    head.packet.stamp_ns), Outcome.UNMATCHED)  # fmt: skip
                return None
            members[stream.sensor_id] = member
        self._evict(head, members)
        members[self._reference.sensor_id] = self._members.reference(head, stamp_ns)
        self._learn_from_pairs(head, members)
        self.made += 1
        self._last_epoch = self._epochs.number
        self._last_stamp_ns = stamp_ns
        self._may_go_back = False
        return Bundle(
            self.made, self._epochs.number, stamp_ns, self._reference.sensor_id, members,
            head.window_ns, now_ns,
        )  # fmt: skip

    def _in_order(self, stamp_ns: int) -> int:
        """Return the stamp for a bundle: inside an epoch it is later than the last one's."""
        if stamp_ns > self._last_stamp_ns or self._epochs.number != self._last_epoch:
            return stamp_ns
        if self._may_go_back:
            # The reference started over after others did, and a bundle went out in between.
            self._epochs.split()
            return stamp_ns
        return self._last_stamp_ns + 1

    def _evict(self, head: Pending, members: dict[str, Member]) -> None:
        """Evict what went out and what no later reference frame can use."""
        self._reference.let_go(self._take_used(self._reference, head.packet), Outcome.UNMATCHED)
        self._reference.order.fade()
        for stream in self._partners:
            member = members[stream.sensor_id]
            stream.order.fade()
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
        """Give the residual of each pair to the estimators that learn from pairs."""
        for stream in self._partners:
            member = members[stream.sensor_id]
            if member.missing or member.interpolated or stream.given.collect:
                continue
            if stream.pair_offset is None:
                stream.pair_offset = self._pair_offset(stream, head)
            if stream.pair_offset is not None:
                stream.pair_offset.update((member.stamp_ns - head.packet.stamp_ns) / NS_PER_S)

    def _pair_offset(self, stream: Stream, head: Pending) -> PairingOffset | TriggerOffset | None:
        """Return a new estimator for the pairs of `stream`; None where none learns from them."""
        if self._estimator == 'pairing':
            return PairingOffset(self._adakf)
        if self._estimator == 'adaptive' and stream.given.stamp_source == 'trigger':
            offset = head.offsets[stream.sensor_id]
            return TriggerOffset(offset.offset_ns / NS_PER_S, min(offset.sigma_s, 1.0))
        return None
