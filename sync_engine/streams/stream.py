"""One input of the engine: its buffer, clock and counters, and which messages it accepts."""

from __future__ import annotations

from collections.abc import Callable

from rig_common.times import MAX_STAMP_NS, NEVER_NS, NS_PER_S
from sync_engine.clocks.offset import ClockEstimate
from sync_engine.clocks.pairing import PairingOffset, TriggerOffset
from sync_engine.clocks.steps import JUMPS, Verdict
from sync_engine.config import SyncConfig
from sync_engine.streams.arrival_rate import Arrivals
from sync_engine.streams.buffer import Packet, SensorBuffer
from sync_engine.streams.ledger import Counts, Outcome
from sync_engine.streams.payload import Payload
from sync_engine.streams.stamp_order import StampOrder


class Stream:
    """Everything the engine keeps about one input."""

    def __init__(
        self,
        sensor_id: str,
        config: SyncConfig,
        clock: ClockEstimate,
        counts: Counts,
        on_jump: Callable[[Stream, Verdict], None],
    ) -> None:
        self.sensor_id = sensor_id
        self.clock = clock
        """Gives the offset; another stream's where `clock_of` says so."""
        self._own_clock = clock
        self.counts = counts
        self._on_jump = on_jump
        bounds = config.buffer
        self.buffer = SensorBuffer(
            bounds.max_size, int(bounds.timeout_s * NS_PER_S), bounds.max_bytes
        )
        self.is_required = sensor_id in config.required_sensors
        self.arrivals = Arrivals()
        self.order = StampOrder()
        self.pair_offset: PairingOffset | TriggerOffset | None = None
        """Offset to the reference, where it is learned from the pairs of the bundles."""
        self.previous: Packet | None = None
        """The last packet that left, where it may serve to interpolate."""
        self._quarantined: Packet | None = None
        self._sequence = 0
        self._floor_ns: int | None = None
        self.configure(config)

    def configure(self, config: SyncConfig) -> None:
        """Take the settings that may change while running."""
        self.given = config.inputs[self.sensor_id]
        self.deadline_ns = int(self.given.deadline_s * NS_PER_S)
        self.strategy = config.strategy_of(self.sensor_id)

    @property
    def held(self) -> int:
        """Packets that are still inside: buffered or quarantined."""
        return len(self.buffer) + (self._quarantined is not None)

    def is_silent(self, now_ns: int) -> bool:
        """Return whether it has stopped, so that nobody should wait for it."""
        return self.arrivals.are_silent(now_ns, self.deadline_ns)

    def refuse(self) -> None:
        """Count a message that came at a time which no stamp can hold (a broken recording)."""
        self.counts.received += 1
        self.counts.invalid += 1

    def admit(
        self, stamp_ns: int | None, payload: Payload, arrival_ns: int, nbytes: int
    ) -> Packet | None:
        """Take one message; return its packet if it was accepted, None if it was not."""
        counts = self.counts
        counts.received += 1
        last_ns = self.arrivals.last_ns
        self.arrivals.see(arrival_ns)
        if stamp_ns is None or (stamp_ns == 0 and self.given.zero_stamp == 'arrival'):
            stamp_ns = arrival_ns
        if not 0 < stamp_ns <= MAX_STAMP_NS:
            counts.invalid += 1
            return None
        if self.order.reached(stamp_ns) and self._is_duplicate(stamp_ns):
            verdict = self._judge_duplicate(stamp_ns, arrival_ns, last_ns)
            if verdict is Verdict.FINE:
                counts.duplicate += 1
                return None
        else:
            verdict = self._own_clock.observe(stamp_ns, arrival_ns)
        self._sequence += 1
        packet = Packet(stamp_ns, self._sequence, payload, arrival_ns, nbytes)
        usual = verdict is Verdict.FINE and self._quarantined is None
        if not usual and not self._judge(verdict, packet):
            return None
        if not self.given.member:
            counts.consumed += 1
            self._see(stamp_ns)
            return packet
        return packet if self._insert(packet) else None

    def _is_duplicate(self, stamp_ns: int) -> bool:
        if stamp_ns == self.order.latest_ns or stamp_ns == self._floor_ns:
            return True
        held = self._quarantined
        return stamp_ns in self.buffer or (held is not None and held.stamp_ns == stamp_ns)

    def _judge_duplicate(self, stamp_ns: int, arrival_ns: int, last_ns: int | None) -> Verdict:
        """Return whether a stamp that was there before is the second of a clock that stepped back.

        A clock that steps by whole periods writes the same stamps once more, but on the stream's
        beat; what is sent twice comes at once.
        """
        if last_ns is None or arrival_ns - last_ns < 0.5 * self.arrivals.period_ns:
            return Verdict.FINE
        verdict = self._own_clock.observe(stamp_ns, arrival_ns)
        return verdict if verdict in JUMPS else Verdict.FINE

    def _see(self, stamp_ns: int) -> None:
        if not self.order.see(stamp_ns):
            self.counts.out_of_order += 1

    def _insert(self, packet: Packet) -> bool:
        stamp_ns = packet.stamp_ns
        self._see(stamp_ns)
        if self._floor_ns is not None and stamp_ns <= self._floor_ns:
            self.counts.late += 1
            return False
        if not self.buffer.push(packet):
            return True
        self.let_go(self.buffer.evict_expired(packet.arrival_ns), Outcome.EXPIRED)
        overflow = self.buffer.evict_overflow()
        self.let_go(overflow, Outcome.OVERFLOW)
        return packet not in overflow

    def _judge(self, verdict: Verdict, packet: Packet) -> bool:
        """Act on a verdict other than fine; return whether `packet` may go on."""
        held, self._quarantined = self._quarantined, None
        if verdict is Verdict.HOLD:
            self._quarantined = packet
        if verdict in JUMPS:
            self.flush(self._own_clock.steps.step_since_ns)
            self._on_jump(self, verdict)
        if held is not None:
            confirmed = verdict in JUMPS
            if confirmed and self.given.member:
                self._insert(held)
            else:
                self.counts.add(Outcome.CONSUMED if confirmed else Outcome.INVALID)
        return verdict is not Verdict.HOLD

    def let_go(self, packets: list[Packet], fate: Outcome) -> None:
        """Count packets that have left the buffer; one that served a bundle is bundled."""
        if not packets:
            return
        if len(packets) == 1 and packets[0].used:  # the usual end of a frame
            self.counts.bundled += 1
            self._let_go_of(packets[0], fate)
            return
        used = 0
        for packet in packets:
            used += packet.used
        self.counts.bundled += used
        if used < len(packets):
            self.counts.add(fate, len(packets) - used)
        self._let_go_of(packets[-1], fate)

    def _let_go_of(self, last: Packet, fate: Outcome) -> None:
        """Nothing up to the last packet that left may come in again, unless time started over."""
        if fate is Outcome.FLUSHED:
            return
        if self._floor_ns is None or last.stamp_ns > self._floor_ns:
            self._floor_ns = last.stamp_ns
        self.previous = last if self.strategy == 'interpolate' else None

    def expire(self, now_ns: int) -> bool:
        """Let go of everything older than the timeout at `now_ns`; return if packets left."""
        expired = self.buffer.evict_expired(now_ns)
        if expired:
            self.let_go(expired, Outcome.EXPIRED)
        held = self._quarantined
        if held is not None and now_ns - held.arrival_ns > self.buffer.timeout_ns:
            self._quarantined = None
            self.counts.invalid += 1
        return bool(expired)

    def flush(self, since_ns: int = NEVER_NS) -> None:
        """Let go of what arrived before `since_ns`, and of what was derived from its stamps."""
        held = self.buffer.clear()
        self.let_go([each for each in held if each.arrival_ns < since_ns], Outcome.FLUSHED)
        if self._quarantined is not None:
            self._quarantined = None
            self.counts.flushed += 1
        self._floor_ns = self.previous = self.pair_offset = None
        self.order = StampOrder()
        for packet in held:
            if packet.arrival_ns >= since_ns:
                self.buffer.push(packet)
                self.order.see(packet.stamp_ns)

    def restart(self) -> None:
        """Forget the clock and the rate (after `flush`, when host time itself broke)."""
        self._own_clock.reset()
        self.arrivals = Arrivals()
