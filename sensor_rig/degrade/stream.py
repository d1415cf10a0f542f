"""One degraded stream: the `Transit` of a simulated sensor over messages that exist already.

message (stamp, receive time) -> number k of its capture -> rate_hz -> faults, loss, delay,
clock, all drawn by k -> the same bytes with another stamp, at another time, or not at all
(and, where the stream has a `type`, with the noise of that sensor on its values)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rig_common.cdr import CdrError, read_stamp_ns, with_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs.decode import read_cloud
from rig_common.times import NS_PER_S, rational_rate, seconds_to_ns
from sensor_rig.degrade.ledger import Fate
from sensor_rig.degrade.messages import Incoming, Outgoing
from sensor_rig.rigfile.stream_keys import StreamConfig
from sim_sensors.timing.fates import CaptureFate
from sim_sensors.timing.faults import HEALTHY, Condition, FaultConfig, Faults
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.transit import CaptureNumbers, StreamTraits, Transit
from sync_engine.wire.restamp import CLOUD_TYPE, has_absolute_times, restamp

if TYPE_CHECKING:
    from sensor_rig.payload_noise import PayloadNoise

KEPT = 512
"""Captures that messages of other topics may still belong to."""
SAME_EPOCH_NS = 3600 * NS_PER_S
"""Stamps further than this from the receive times are of another epoch."""
EARLY = 0.1
"""Part of a period by which a message may be early and still count for it (`rate_hz`)."""

_ALL = slice(None)


class _Capture(NamedTuple):
    """Messages of one stamp, on any topic of the stream, have one fate."""

    number: int
    """In the stream; -1 where it was thinned out."""
    fate: Fate
    latency_ns: int
    """From the base (receive time or stamp) to the arrival."""
    stamp_ns: int
    is_doubled: bool
    condition: Condition
    topics: set[str]
    """Those that had a message of it; only where others may have one."""


_ONE: set[str] = set()
"""Topics of a capture that nobody else belongs to."""


class DegradedStream:
    """Everything that happens to the messages of one stream, in the order they come."""

    def __init__(
        self,
        name: str,
        config: StreamConfig,
        seed: int,
        capture_ns: Mapping[str, int] | None = None,
    ) -> None:
        """Draw from `seed` and `name`, as the simulated sensor of that name does.

        `capture_ns` is how long a capture lasts where the config does not say it; see `RigNote`.
        """
        self.name, self.config = name, config
        self._seed, self._lasting = seed, _lasting(name, config, capture_ns or {})
        self._transit = self._make_transit(0)
        self.noise = _make_noise(name, config, seed)
        """What disturbs its values; None where only its timing is degraded."""
        self.from_stamp = config.base == 'stamp'
        """Whether the delay counts from the stamp."""
        self._lost = 0
        """Captures that were lost on the way."""
        self._injected: list[FaultConfig] = []
        self._take_faults()
        self.owner: DegradedStream | None = None
        """The stream whose clock this one shares (`clock_of`)."""
        self.remembers = False
        """Whether other messages may belong to a capture: several topics, or a shared clock."""
        self.origin_ns = 0
        """What the clock's drift and the faults' times count from, on the stamps."""
        self._received_ns = 0
        """What receive times count from; another epoch's stamps are years away from them."""
        self.last_ns = 0
        """Time of the newest message, on the stamps."""
        self.started = False
        self.count = 0
        """Captures so far, without those thinned out."""
        self._captures: OrderedDict[int, _Capture] = OrderedDict()
        self._slot = 0
        self._first_ns: int | None = None
        self._last_raw: dict[str, bytes] = {}
        self._moves_points: dict[str, bool] = {}
        self.types: dict[str, str] = {}
        """Message types by topic."""

    def _make_transit(self, size_bytes: int) -> Transit:
        lasting = dict(self._lasting)
        duration_ns = lasting.pop('duration', 0) if self.config.base == 'stamp' else 0
        return Transit(
            self.config,
            RandomStreams(self._seed, self.name),
            StreamTraits(duration_ns, lasting, size_bytes=size_bytes),
        )

    # ---- changes at run time ------------------------------------------------------------------

    def reconfigure(self, config: StreamConfig) -> None:
        """Take delay, clock and loss from the next message on."""
        self._transit.take(config)
        self.config = config
        self._take_faults()

    def inject(self, fault: FaultConfig) -> None:
        """Add a fault while running."""
        self._injected.append(fault)
        self._take_faults()

    def _take_faults(self) -> None:
        self._faults = Faults([*self.config.faults.values(), *self._injected])
        self._is_faulty, self._may_stick = bool(self._faults), self._faults.repeat_values

    # ---- time ---------------------------------------------------------------------------------

    def start(self, message: Incoming, origin_ns: int) -> None:
        """Take the first message of this clock; `origin_ns` is when the recording starts."""
        if self.owner is not None and not self.owner.started:
            self.owner.start(message, origin_ns)
        self.started = True
        self._received_ns = origin_ns
        time_ns = message.receive_ns if message.stamp_ns is None else message.stamp_ns
        if self.config.start_time_s >= 0.0:
            self.origin_ns = seconds_to_ns(self.config.start_time_s)
        else:
            self.origin_ns = (
                origin_ns if abs(time_ns - message.receive_ns) <= SAME_EPOCH_NS else time_ns
            )
        if self.config.loss.packet_probability and not self.config.size_bytes:
            self._transit = self._make_transit(len(message.raw))
        self._transit.clock.start_ns = self.origin_ns

    # ---- one message --------------------------------------------------------------------------

    def take(self, message: Incoming) -> Outgoing:
        """Return what becomes of a message."""
        topic, raw, receive_ns, original_ns = message
        capture, is_first = self._capture_of(message)
        if capture.fate is Fate.THINNED:
            return Outgoing(Fate.THINNED, -1, receive_ns, original_ns or 0, raw, is_first)
        base_ns = original_ns if self.from_stamp and original_ns is not None else receive_ns
        arrival_ns = base_ns + capture.latency_ns
        if self.noise is not None and self.types[topic] == self.noise.type_name:
            time_ns = (receive_ns if original_ns is None else original_ns) - self.origin_ns
            raw = self.noise.apply(raw, capture.number, time_ns, capture.condition)
        if self._may_stick:
            raw = self._stuck(topic, raw, capture.condition)
        stamp_ns = arrival_ns
        if original_ns is not None:
            stamp_ns = self._stamp(capture, original_ns, arrival_ns)
            if capture.fate is Fate.DELIVERED:
                raw = self._stamped(topic, raw, stamp_ns)
        return Outgoing(
            capture.fate, capture.number, arrival_ns, stamp_ns, raw, is_first, capture.is_doubled
        )

    def _capture_of(self, message: Incoming) -> tuple[_Capture, bool]:
        """Return the capture a message belongs to, and whether it is its first message."""
        stamp_ns = message.stamp_ns
        if not self.remembers or stamp_ns is None:
            return self._new_capture(message), True
        known = self._captures.get(stamp_ns)
        if known is not None and message.topic not in known.topics:
            known.topics.add(message.topic)
            return known, False
        capture = self._new_capture(message)._replace(topics={message.topic})
        self._captures[stamp_ns] = capture
        self._captures.move_to_end(stamp_ns)
        if len(self._captures) > KEPT:
            self._captures.popitem(last=False)
        return capture, True

    def _new_capture(self, message: Incoming) -> _Capture:
        receive_ns, stamp_ns = message.receive_ns, message.stamp_ns
        clock_ns = receive_ns if stamp_ns is None else stamp_ns
        if self.config.rate_hz and not self._is_kept(clock_ns):
            return _Capture(-1, Fate.THINNED, 0, 0, False, HEALTHY, _ONE)
        index, self.count = self.count, self.count + 1
        self.last_ns = max(self.last_ns, clock_ns)
        time_ns = clock_ns - self.origin_ns
        condition = self._faults.at(time_ns) if self._is_faulty else HEALTHY
        base_ns = time_ns if self.from_stamp else receive_ns - self._received_ns
        numbers = np.array([index])
        passage = self._transit.send(
            CaptureNumbers(_ALL, numbers, np.array([base_ns])),
            condition,
            CaptureNumbers(_ALL, numbers, np.array([time_ns])),
        )
        fate = Fate.DELIVERED
        if passage.lost is not None and passage.lost[0]:
            fate = self._why_lost(condition)
        doubled = fate is Fate.DELIVERED and passage.twice is not None and bool(passage.twice[0])
        return _Capture(
            index,
            fate,
            int(passage.arrival_ns) - base_ns,
            int(passage.stamp_ns) + self.origin_ns,
            doubled,
            condition,
            _ONE,
        )

    def _why_lost(self, condition: Condition) -> Fate:
        """Return whether loss on the way or a fault took the capture that was sent last."""
        lost = self._transit.counts[CaptureFate.LOST]
        on_the_way, self._lost = lost > self._lost, lost
        return Fate.FAULT if condition.dead or not on_the_way else Fate.LOST

    def _is_kept(self, time_ns: int) -> bool:
        """Whether `rate_hz` keeps a message: the first one of each period is, counted from 0."""
        if self._first_ns is None:
            self._first_ns = time_ns
        rate = rational_rate(self.config.rate_hz)
        periods = (time_ns - self._first_ns) * rate / NS_PER_S
        if periods + EARLY < self._slot:
            return False
        self._slot = int(periods + EARLY) + 1
        return True

    def _stuck(self, topic: str, raw: bytes, condition: Condition) -> bytes:
        """Return the last message's bytes where the stream is stuck, and remember them."""
        if condition.stuck:
            raw = self._last_raw.get(topic, raw)
        self._last_raw[topic] = raw
        return raw

    # ---- stamps -------------------------------------------------------------------------------

    def _stamp(self, capture: _Capture, original_ns: int, arrival_ns: int) -> int:
        owner = self if self.owner is None else self.owner
        if owner.config.clock.stamp_at == 'arrival':
            return arrival_ns
        return capture.stamp_ns if owner is self else owner.clock_at(original_ns)

    def clock_at(self, original_ns: int) -> int:
        """Return what this stream's clock makes of a stamp, for one that shares the clock.

        Who comes first does not matter: the capture of that stamp has the next number.
        """
        known = self._captures.get(original_ns)
        if known is not None and known.number >= 0:
            return known.stamp_ns
        time_ns = original_ns - self.origin_ns
        step_ns = self._faults.at(time_ns).clock_step_ns if self._faults else 0
        numbers = CaptureNumbers(_ALL, np.array([self.count]), np.array([time_ns]))
        return int(self._transit.clock.stamps(numbers, 0, step_ns)) + self.origin_ns

    def _stamped(self, topic: str, raw: bytes, stamp_ns: int) -> bytes:
        """Return the message with its new stamp; a date in its points moves with it."""
        original_ns = read_stamp_ns(raw)
        if original_ns == stamp_ns:
            return raw
        try:
            if self.types[topic] == CLOUD_TYPE and self._has_dates(topic, raw):
                return restamp(CLOUD_TYPE, raw, original_ns, stamp_ns, stamp_ns)[0]
            return with_stamp_ns(raw, stamp_ns)
        except CdrError:
            raise RigError(
                f'streams.{self.name}: a stamp of {original_ns / 1e9:.3f} s becomes '
                f'{stamp_ns / 1e9:.3f} s, which the int32 seconds of a stamp cannot '
                f'hold; choose a smaller clock error'
            ) from None

    def _has_dates(self, topic: str, raw: bytes) -> bool:
        """Whether the points of a topic's clouds carry dates, seen in its first one."""
        found = self._moves_points.get(topic)
        if found is None:
            try:
                found = has_absolute_times(read_cloud(raw))
            except CdrError:
                return False
            self._moves_points[topic] = found
        return found


def _make_noise(name: str, config: StreamConfig, seed: int) -> PayloadNoise | None:
    """Return the noise of a stream that has a type; only that needs the simulated sensors."""
    if not hasattr(config, 'type'):
        return None
    from sensor_rig.payload_noise import PayloadNoise

    return PayloadNoise(name, config, seed)


def _lasting(name: str, config: StreamConfig, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the `duration` of a capture and where its start, middle and end are, ns."""
    if config.capture_s >= 0.0:
        length_ns = seconds_to_ns(config.capture_s)
        return {'duration': length_ns, 'start': 0, 'middle': length_ns // 2, 'end': length_ns}
    if config.clock.stamp_point != 'default' and not known:
        raise RigError(
            f'streams.{name}.clock.stamp_point is {config.clock.stamp_point}; how long '
            f'a capture lasts is not known, so give capture_s'
        )
    return known
