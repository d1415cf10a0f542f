"""One degraded stream: the `Transit` of a simulated sensor over messages that exist already.

message (stamp, receive time) -> number k of its capture -> rate_hz -> faults, loss, delay,
clock, all drawn by k -> the same bytes with another stamp, at another time, or not at all
(and, where the stream has a `type`, with the noise of that sensor on its values)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from operator import sub
from typing import TYPE_CHECKING

import numpy as np

from rig_common.cdr import CdrError, read_stamp_ns, with_stamp_ns
from rig_common.errors import RigError
from rig_common.msgs.decode import read_cloud
from rig_common.times import NS_PER_S, rational_rate, seconds_to_ns
from sensor_rig.degrade.ledger import Fate
from sensor_rig.degrade.messages import CaptureRow, Incoming, Outgoing
from sensor_rig.rigfile.stream_keys import StreamConfig
from sim_sensors.timing.arrays.columns import listed
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
NO_CAPTURE: CaptureRow = (Fate.THINNED, -1, 0, 0, False, HEALTHY)
"""Of messages that `rate_hz` leaves out."""


@dataclass(slots=True)
class _Shared:
    """A capture to which messages of several topics may belong."""

    topics: set[str]
    """Those that had a message of it."""
    row: CaptureRow


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
        self._captures: OrderedDict[int, _Shared] = OrderedDict()
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

    # ---- messages -----------------------------------------------------------------------------

    def take(self, messages: Sequence[Incoming]) -> Outgoing:
        """Return what becomes of messages that follow each other."""
        firsts = [True] * len(messages)
        if self.remembers and messages[0].stamp_ns is not None:
            captures = self._shared(messages, firsts)
        else:
            captures = self._new_captures(messages)
        owner = self if self.owner is None else self.owner
        if owner is not self and owner.config.clock.stamp_at != 'arrival':
            captures = [
                (*row[:3], owner.clock_at(each.time_ns), *row[4:])
                for each, row in zip(messages, captures, strict=True)
            ]
        elif messages[0].stamp_ns is None or owner.config.clock.stamp_at == 'arrival':
            captures = [
                (
                    *row[:3],
                    (each.time_ns if self.from_stamp else each.receive_ns) + row[2],
                    *row[4:],
                )
                for each, row in zip(messages, captures, strict=True)
            ]
        is_plain = self.noise is None and not self._may_stick
        raws: list[bytes] = []
        try:
            for message, row in zip(messages, captures, strict=True):
                topic, raw, _, original_ns, *_ = message
                if row[0] is not Fate.THINNED and not is_plain:
                    raw, original_ns = self._disturbed(message, row)
                if row[0] is Fate.DELIVERED and original_ns not in (None, row[3]):
                    raw = (
                        self._dated(topic, raw, row[3])
                        if self.types[topic] == CLOUD_TYPE
                        else with_stamp_ns(raw, row[3])
                    )
                raws.append(raw)
        except CdrError:
            error = RigError(
                f'streams.{self.name}: a stamp of {read_stamp_ns(raw) / 1e9:.3f} s becomes '
                f'{row[3] / 1e9:.3f} s, which the int32 seconds of a stamp cannot '
                f'hold; choose a smaller clock error'
            )
            return Outgoing(captures, raws, firsts, error)
        return Outgoing(captures, raws, firsts)

    def _disturbed(self, message: Incoming, row: CaptureRow) -> tuple[bytes, int | None]:
        """Return a message with its noise, or another one where it is stuck, and its stamp."""
        topic, raw, _, original_ns, *_ = message
        if self.noise is not None and self.types[topic] == self.noise.type_name:
            raw = self.noise.apply(raw, row[1], message.time_ns - self.origin_ns, row[5])
        if row[5].stuck:
            raw = self._last_raw.get(topic, raw)
            original_ns = None if original_ns is None else read_stamp_ns(raw)
        if self._may_stick:
            self._last_raw[topic] = raw
        return raw, original_ns

    def _shared(self, messages: Sequence[Incoming], firsts: list[bool]) -> list[CaptureRow]:
        """Return the capture each message belongs to, and note who is not the first of one."""
        found, new = [], []
        for place, message in enumerate(messages):
            topic, time_ns = message.topic, message.time_ns
            known = self._captures.get(time_ns)
            if known is None or topic in known.topics:
                known = self._captures[time_ns] = _Shared(set(), NO_CAPTURE)
                self._captures.move_to_end(time_ns)
                new.append((message, known))
                if len(self._captures) > KEPT:
                    self._captures.popitem(last=False)
            else:
                firsts[place] = False
            known.topics.add(topic)
            found.append(known)
        if new:
            made = self._new_captures([message for message, _ in new])
            for (_, shared), row in zip(new, made, strict=True):
                shared.row = row
        return [each.row for each in found]

    def _new_captures(self, messages: Sequence[Incoming]) -> list[CaptureRow]:
        """Send the captures of messages that follow each other on their way."""
        if not self._is_faulty and not self.config.rate_hz and self._transit.takes_runs:
            return self._send(messages, HEALTHY)
        found = []
        for message in messages:
            if self.config.rate_hz and not self._is_kept(message.time_ns):
                found.append(NO_CAPTURE)
                continue
            condition = self._faults.at(message.time_ns - self.origin_ns)
            found += self._send([message], condition)
        return found

    def _send(self, messages: Sequence[Incoming], condition: Condition) -> list[CaptureRow]:
        numbers = range(self.count, self.count + len(messages))
        self.count += len(messages)
        clock_ns = [each.time_ns for each in messages]
        self.last_ns = max(self.last_ns, *clock_ns)
        times_ns = bases_ns = [each - self.origin_ns for each in clock_ns]
        if not self.from_stamp:
            bases_ns = [each.receive_ns - self._received_ns for each in messages]
        index = np.array(numbers)
        passage = self._transit.send(
            CaptureNumbers(_ALL, index, np.array(bases_ns)),
            condition,
            CaptureNumbers(_ALL, index, np.array(times_ns)),
        )
        fates = [Fate.DELIVERED] * len(messages)
        if passage.lost is not None and passage.lost.any():
            why = self._why_lost(condition)
            fates = [why if lost else Fate.DELIVERED for lost in passage.lost.tolist()]
        stamps_ns = [each + self.origin_ns for each in listed(passage.stamp_ns)]
        twice: Iterable[bool] = repeat(False)
        if passage.twice is not None:
            arrive = passage.lost is None or ~passage.lost
            twice = (passage.twice & arrive).tolist()
        latencies_ns = map(sub, listed(passage.arrival_ns), bases_ns)
        return [*zip(fates, numbers, latencies_ns, stamps_ns, twice, repeat(condition))]

    def _why_lost(self, condition: Condition) -> Fate:
        """Return whether loss on the way or a fault took captures that were sent last."""
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

    # ---- stamps -------------------------------------------------------------------------------

    def clock_at(self, original_ns: int) -> int:
        """Return what this stream's clock makes of a stamp, for one that shares the clock.

        Who comes first does not matter: the capture of that stamp has the next number.
        """
        known = self._captures.get(original_ns)
        if known is not None and known.row is not NO_CAPTURE:
            return known.row[3]
        time_ns = original_ns - self.origin_ns
        step_ns = self._faults.at(time_ns).clock_step_ns if self._faults else 0
        numbers = CaptureNumbers(_ALL, np.array([self.count]), np.array([time_ns]))
        return int(self._transit.clock.stamps(numbers, 0, step_ns)) + self.origin_ns

    def _dated(self, topic: str, raw: bytes, stamp_ns: int) -> bytes:
        """Return a cloud with another stamp; dates of its points, as its first one has, follow."""
        if topic not in self._moves_points:
            with suppress(CdrError):
                self._moves_points[topic] = has_absolute_times(read_cloud(raw))
        if not self._moves_points.get(topic):
            return with_stamp_ns(raw, stamp_ns)
        return restamp(CLOUD_TYPE, raw, read_stamp_ns(raw), stamp_ns, stamp_ns)[0]


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
