"""The sync engine: packets in, bundles out, every packet accounted for. It never reads a clock.

    push -> admit (stream.py: stamp, duplicate, jump, buffer) -> the earliest reference frame waits
         -> every stream settles it (a stamp at or past its target) or its deadline passes
         -> select (selection.py, with offsets of offset.py, inside window.py) -> bundle

    engine = SyncEngine(load_config({...}))
    for bundle in engine.push("camera", stamp_ns, payload, arrival_ns, nbytes): publish(bundle)
    for bundle in engine.poll(now_ns): publish(bundle)     # when engine.next_deadline_ns passes
    engine.push_imu(stamp_ns, gyro, accel)                 # decoded IMU: window and motion
    engine.push_rotation("lidar", t0_ns, t1_ns, yaw, axis=(0, 0, 1), variance=1e-6)
    engine.run_cues()                                      # after the bundles are out

One owner: all calls come from one thread, or under one lock of the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from rig_common.errors import RigError
from rig_common.times import MAX_STAMP_NS, NEVER_NS, NS_PER_S
from sync_engine.clocks.epochs import Epochs
from sync_engine.clocks.offset import ClockEstimate, Offset
from sync_engine.clocks.prior import anchor_sigma_s
from sync_engine.clocks.steps import Verdict
from sync_engine.config import SyncConfig
from sync_engine.config.runtime import changed_config
from sync_engine.cues.motion import Rotation
from sync_engine.cues.runner import CueRunner, rotation_of
from sync_engine.matching.assembly import Assembler
from sync_engine.matching.bundle import Bundle
from sync_engine.matching.interpolate import Codec
from sync_engine.matching.waiting import Pending
from sync_engine.matching.window import AdaptiveWindow
from sync_engine.state.learned_clocks import LearnedClocks
from sync_engine.state.machine import StateMachine, SyncState
from sync_engine.state.status import EngineStatus, engine_status
from sync_engine.streams.buffer import Packet
from sync_engine.streams.ledger import Ledger
from sync_engine.streams.payload import Payload, PayloadReader
from sync_engine.streams.relative_clocks import relative_offset
from sync_engine.streams.stream import Stream


class SyncEngine:
    """Puts the streams of `config` together.

    `codecs` say how payloads are interpolated (per sensor; others cannot be); `readers` decode
    payloads for the cues that `config` names (per sensor), see `cues/`.
    """

    def __init__(
        self,
        config: SyncConfig,
        codecs: Mapping[str, Codec] | None = None,
        readers: Mapping[str, PayloadReader] | None = None,
    ) -> None:
        self.config = config
        self.ledger = Ledger(list(config.inputs))
        self.machine = StateMachine()
        self.window = AdaptiveWindow(config.window)
        self.epochs = Epochs()
        self._streams = {name: self._stream(name) for name in config.inputs}
        for stream in self._streams.values():
            owner = stream.given.clock_of
            stream.clock = self._streams[owner].clock if owner else stream.clock
        self.clocks = LearnedClocks(self._streams)
        self._reference = self._streams[config.reference_sensor_id]
        partners = [
            stream
            for stream in self._streams.values()
            if stream.given.member and stream is not self._reference
        ]
        self._assembler = Assembler(
            config, self._reference, partners, self.window, self.epochs, dict(codecs or {})
        )
        self._cues = CueRunner(config, self._streams, dict(readers or {}))
        self._head: Pending | None = None
        self._due_ns = NEVER_NS
        self._now_ns = 0
        self._backward_ns = int(config.epochs.host_backward_s * NS_PER_S)

    def _stream(self, name: str) -> Stream:
        config = self.config
        anchor = config.clock_anchor(name)
        sigma_s = 0.0 if name == anchor else anchor_sigma_s(config, anchor)
        clock = ClockEstimate(
            config.inputs[name], config.adakf, config.epochs, sigma_s, name == anchor, anchor
        )
        return Stream(name, config, clock, self.ledger[name], self._on_jump)

    # -- the data's way ---------------------------------------------------------------------

    def push(
        self,
        sensor_id: str,
        stamp_ns: int | None,
        payload: Payload,
        arrival_ns: int,
        nbytes: int = 0,
    ) -> list[Bundle]:
        """Take one message and return the bundles that it completes.

        `stamp_ns` is on the sensor's clock (None for a type without header: the arrival counts),
        `arrival_ns` on the host's. `payload` is kept as it is, `nbytes` is its size.
        """
        stream = self._streams.get(sensor_id) or self._known(sensor_id)
        if not 0 <= arrival_ns <= MAX_STAMP_NS:
            stream.refuse()
            return []
        bundles: list[Bundle] = []
        if arrival_ns >= self._due_ns:
            bundles = self._advance(arrival_ns)  # what was due before this message comes first
        if arrival_ns > self._now_ns:
            self._now_ns = arrival_ns
        elif self._now_ns - arrival_ns > self._backward_ns:
            self.reset('host time went back', arrival_ns)
        packet = stream.admit(stamp_ns, payload, arrival_ns, nbytes)
        if packet is not None:
            if stream.given.cue != 'none':
                self._cues.offer(stream, packet)
            if self.machine.state is SyncState.IDLE and stream.given.member:
                self.machine.enter(SyncState.BUFFERING)
        head = self._head
        if head is not None and head.settles_at_ns:
            head.see(stream)
        if self._may_advance(stream, packet):
            bundles += self._advance(self._now_ns)
        return bundles

    def awaits(self, sensors: Set[str], arrival_ns: int) -> bool:
        """Return whether new messages of `sensors`, up to now, can complete or begin a bundle.

        Without a reference frame, or while the one that waits does so for others too, they
        cannot: pushed later, in their order and with their own arrival times, they give the same
        bundles. (Only a message that shows a step of its clock may let one out.)
        """
        if arrival_ns >= self._due_ns or self._reference.sensor_id in sensors:
            return True
        if self._head is None:
            return bool(self._reference.buffer.stamps)
        return self._head.settles_at_ns.keys() <= sensors

    def _may_advance(self, stream: Stream, packet: Packet | None) -> bool:
        """Return whether a push to `stream` can have completed or opened a reference frame."""
        if stream is self._reference:
            return True
        head = self._head
        if head is None:
            return bool(self._reference.buffer.stamps)
        if not head.awaits_next or packet is None:
            return not head.settles_at_ns
        return packet.stamp_ns != stream.order.latest_ns  # out of order: perhaps a better partner

    def poll(self, now_ns: int) -> list[Bundle]:
        """Advance host time: return the bundles whose deadline has come, expire old packets."""
        if self._now_ns - now_ns > self._backward_ns:
            self.reset('host time went back', now_ns)
        self._now_ns = max(self._now_ns, now_ns)
        bundles = self._advance(self._now_ns)
        expired = False
        for stream in self._streams.values():
            expired |= stream.expire(self._now_ns)
        if expired:
            bundles += self._advance(self._now_ns)  # the frame that waited may be gone
        if not self._has_packets():
            self.machine.enter(SyncState.IDLE)
        return bundles

    def _advance(self, now_ns: int) -> list[Bundle]:
        """Complete reference frames, earliest first, as far as they go at host time `now_ns`."""
        bundles: list[Bundle] = []
        while True:
            earliest = self._reference.buffer.peek()
            if earliest is None:
                self._head = None
                break
            if self._head is None or self._head.packet is not earliest:
                self._head = self._assembler.waiting_room.open(earliest)
            head = self._head
            if head.settles_at_ns and now_ns >= head.next_deadline_ns:
                self._assembler.waiting_room.give_up(head, now_ns)
            if head.settles_at_ns:
                break
            self.machine.enter(SyncState.SYNCING)
            if not self._assembler.select(head, now_ns):
                # A partner may belong to the next reference frame.
                self.machine.enter(SyncState.BUFFERING)
                break
            bundle = self._assembler.emit(head, now_ns)
            self._head = None
            if bundle is not None:
                self.machine.enter(SyncState.OUTPUT_READY)
                bundles.append(bundle)
            self.machine.enter(SyncState.BUFFERING if self._has_packets() else SyncState.IDLE)
        self._due_ns = NEVER_NS if self._head is None else self._head.next_deadline_ns
        return bundles

    def _has_packets(self) -> bool:
        return any(stream.held for stream in self._streams.values())

    @property
    def next_deadline_ns(self) -> int | None:
        """Host time at which `poll` has something to decide; None while nothing waits."""
        return None if self._due_ns == NEVER_NS else self._due_ns

    # -- motion -----------------------------------------------------------------------------

    def push_imu(self, stamp_ns: int, gyro: Sequence[float], accel: Sequence[float]) -> None:
        """Take a decoded IMU sample: rate [3] (rad/s) and specific force [3] (m/s^2).

        It drives the window and is what motion cues are compared with; the message itself goes
        through `push` like any other.
        """
        self.window.update(stamp_ns, gyro, accel, self._now_ns)
        self._cues.gyro.add(stamp_ns, float(gyro[0]), float(gyro[1]), float(gyro[2]))

    def push_velocity(self, stamp_ns: int, velocity: Sequence[float]) -> None:
        """Take a velocity [3] (m/s) of the speed reference, where its messages are not read."""
        self._cues.velocities.add(stamp_ns, *map(float, velocity))

    def push_rotation(
        self,
        sensor_id: str,
        stamp_from_ns: int,
        stamp_to_ns: int,
        turn_rad: float | Sequence[float],
        axis: Sequence[float] | None = None,
        variance: float | Sequence[float] = 1e-6,
    ) -> None:
        """Take how far a sensor turned between two of its stamps; `run_cues` compares it.

        `turn_rad` is an angle about `axis` [3], a rotation vector [3], or, without an axis, the
        size of the turn; `variance` (rad^2) is that of each value. Axis and vector are in the
        sensor's frame; `imu_quat_wxyz` of its input takes them to the IMU's, or is estimated.
        """
        self.add_rotation(
            sensor_id, rotation_of(stamp_from_ns, stamp_to_ns, turn_rad, axis, variance)
        )

    def add_rotation(self, sensor_id: str, rotation: Rotation) -> None:
        """Take a turn as a cue gave it (see `on_rotation`); `run_cues` compares it."""
        self._known(sensor_id)
        self._cues.add_rotation(sensor_id, rotation)

    @property
    def on_rotation(self) -> Callable[[str, Rotation], None] | None:
        """Called with (sensor, turn in its frame) for every turn that will be compared."""
        return self._cues.on_rotation

    @on_rotation.setter
    def on_rotation(self, callback: Callable[[str, Rotation], None] | None) -> None:
        self._cues.on_rotation = callback

    def run_cues(self, max_jobs: int = 64) -> int:
        """Do deferred work (decode, match, compare); return how many pieces are left.

        Call it when the bundles are out; with `max_jobs=1` one piece takes a few milliseconds.
        """
        return self._cues.run(max_jobs)

    # -- when time breaks -------------------------------------------------------------------

    def reset(self, reason: str, now_ns: int | None = None) -> None:
        """Flush every buffer, forget every clock, begin a new epoch (host time jumped).

        `now_ns` is the host time from which it goes on, where that is known.
        """
        if now_ns is not None:
            self._now_ns = now_ns
        for stream in self._streams.values():
            stream.flush()
            stream.restart()
        self._cues.reset()
        self.window.reset()
        self._close_head()
        self.epochs.begin(self._now_ns, reason)
        self.machine.enter(SyncState.IDLE)

    def _on_jump(self, stream: Stream, verdict: Verdict) -> None:
        """Handle a clock that stepped or started over; its stream has flushed what came before."""
        self._cues.forget(stream.sensor_id)
        if verdict is Verdict.RESTART:
            self.epochs.restart(self._now_ns, stream.sensor_id)
            self._assembler.let_stamps_go_back()
        self._close_head()

    def _close_head(self) -> None:
        """Drop the targets of the waiting reference frame; they are computed again."""
        self._head = None
        self._due_ns = NEVER_NS

    # -- settings and state ------------------------------------------------------------------

    def set_parameter(self, name: str, value: object) -> None:
        """Change one setting while running, by its dotted name (see parameters.py)."""
        self.config = changed_config(self.config, name, value)
        self.window.configure(self.config.window)
        for stream in self._streams.values():
            stream.configure(self.config)

    @property
    def state(self) -> SyncState:
        """What the engine is doing."""
        return self.machine.state

    @property
    def now_ns(self) -> int:
        """Latest host time that was handed in."""
        return self._now_ns

    @property
    def bundles_made(self) -> int:
        """Bundles handed out since the start, over all epochs."""
        return self._assembler.made

    def buffered(self) -> dict[str, int]:
        """Return how many packets of every sensor are still inside."""
        return {name: stream.held for name, stream in self._streams.items()}

    @property
    def reorder_ns(self) -> int:
        """Largest measured reorder allowance of any sensor."""
        return max(stream.order.allowance_ns for stream in self._streams.values())

    def waiting(self, sensor_id: str) -> dict[int, Payload]:
        """Return the payloads of one sensor that wait, by stamp (ns)."""
        return self._known(sensor_id).buffer.payloads()

    def offset(self, sensor_id: str, to: str = '') -> Offset:
        """Return the sensor's clock minus another's (by default the reference's), as of now."""
        stream = self._known(sensor_id)
        if not to:
            return self._assembler.clocks.of(stream, self._now_ns)
        other = self._known(to).clock
        offset_ns, sigma_s = relative_offset(stream.clock, other, self._now_ns)
        return Offset(offset_ns, sigma_s, stream.clock.judge(sigma_s, other))

    def correction(self, sensor_id: str, *, to_host: bool) -> Offset:
        """Return how far the sensor's stamps are ahead as of now, as bundles correct them.

        On the reference's clock, or `to_host` on the host's by way of the reference; directly,
        where that is surer.
        """
        clocks, clock = self._assembler.clocks, self._known(sensor_id).clock
        found = clocks.of(self._known(sensor_id), self._now_ns)
        if not to_host:
            return found
        if clock.host_sigma_s <= found.sigma_s < float('inf'):
            return Offset(
                clock.offset_ns(self._now_ns), clock.host_sigma_s, clock.judge(clock.host_sigma_s)
            )
        return found._replace(offset_ns=found.offset_ns + clocks.host_offset_ns(self._now_ns))

    def offset_to_host(self, sensor_id: str) -> Offset:
        """Return the sensor's clock minus the host's, with sigma and state, as of now."""
        clock = self._known(sensor_id).clock
        sigma_s = clock.host_sigma_s
        return Offset(clock.offset_ns(self._now_ns), sigma_s, clock.judge(sigma_s))

    def status(self) -> EngineStatus:
        """Return the state of the engine and of every input as plain data."""
        return engine_status(self, self._streams, self._assembler, self._cues)

    def _known(self, sensor_id: str) -> Stream:
        if sensor_id not in self._streams:
            known = ', '.join(self._streams)
            raise RigError(f"sensor '{sensor_id}' is not an input of the sync engine ({known}).")
        return self._streams[sensor_id]
