"""All streams of a rig file together: messages in as they were received, out in order of arrival.

    session = DegradeSession(streams, seed)
    session.add_topic('/imu/data', 'sensor_msgs/msg/Imu', stamped=True)
    session.push('/imu/data', receive_ns, raw)
    for topic, arrival_ns, raw in session.due(now_ns): ...

Topics of no stream pass unchanged. Beside the messages go `truth/time/<stream>` (header: original
stamp, time_ref: new stamp) for every capture that arrives, and `truth/fate/<stream>` (header:
original stamp, time_ref: arrival, source: the fate) for every one that does not arrive just once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.errors import RigError
from rig_common.quantiles import LogHistogram
from rig_common.times import NS_PER_S
from sensor_rig.degrade.ledger import Account, Fate
from sensor_rig.degrade.messages import Incoming, Outgoing
from sensor_rig.degrade.stream import DegradedStream
from sensor_rig.degrade.truth import TIME_TYPE, StreamTruth
from sensor_rig.rigfile.stream_keys import StreamConfig
from sensor_rig.rigfile.stream_topics import find_stream
from sim_sensors.timing.clock_config import ClockConfig
from sim_sensors.timing.faults import FaultConfig


class Degraded(NamedTuple):
    """A message that arrives."""

    topic: str
    arrival_ns: int
    raw: bytes


OnFate = Callable[[str, Incoming, Outgoing], None]
"""Called with the stream's name for every message of a stream, and for every copy."""


class DegradeSession:
    """Degrades messages in the order they come; `due` hands them out as they arrive."""

    def __init__(
        self,
        streams: Mapping[str, StreamConfig],
        seed: int,
        *,
        origin_ns: int | None = None,
        captures_ns: Mapping[str, Mapping[str, int]] | None = None,
        on_fate: OnFate | None = None,
    ) -> None:
        """Make the streams.

        `origin_ns` is when time starts to count (by default when the first message was received),
        `captures_ns` how long captures of the sensors last, as far as known; see `RigNote`.
        """
        lasting = captures_ns or {}
        self._configs, self._seed, self._lasting = streams, seed, lasting
        self._origin_ns = origin_ns
        self._on_fate = on_fate
        self.streams = {
            name: DegradedStream(name, config, seed, lasting.get(name))
            for name, config in streams.items()
        }
        for stream in self.streams.values():
            if stream.config.clock_of:
                stream.owner = self.streams[stream.config.clock_of]
                stream.owner.remembers = True
        self.accounts: dict[str, Account] = {}
        self.delays = {name: LogHistogram() for name in streams}
        """From the receive time to the new arrival, s; of `base: stamp` from the stamp."""
        self._of: dict[str, DegradedStream | None] = {}
        self._stamped: dict[str, bool] = {}
        self._heap: list[tuple[int, int, str, bytes, bool]] = []
        self._pushed = 0
        self._truth = {name: StreamTruth(name) for name in streams}
        self._known_truth: dict[str, StreamTruth] = {}
        self.unread: frozenset[str] = frozenset()
        """Topics of the truth that nobody reads; their messages are not made."""

    # ---- topics -------------------------------------------------------------------------------

    def add_topic(self, topic: str, type_name: str, *, stamped: bool) -> str:
        """Announce a topic; return the stream it belongs to, empty for none.

        Raises where the stream wants what the type does not have.
        """
        name = find_stream(topic, self._configs)
        self.accounts[topic] = Account(name)
        self._of[topic] = stream = self.streams[name] if name else None
        self._stamped[topic] = stamped
        if stream is None:
            for each in self._truth.values():
                if topic == each.time_topic and type_name == TIME_TYPE:
                    self._known_truth[topic] = each
            return ''
        _check_type(stream, topic, type_name, stamped)
        stream.types[topic] = type_name
        stream.remembers |= len(stream.types) > 1
        return name

    def require_noise(self) -> None:
        """Refuse noise of a type that no topic of its stream has."""
        for name, stream in self.streams.items():
            noise = stream.noise
            if noise is not None and noise.type_name not in stream.types.values():
                known = ', '.join(f'{topic} ({kind})' for topic, kind in stream.types.items())
                raise RigError(
                    f'streams.{name}.type is noise for {noise.type_name}; its topics are {known}'
                )

    def truth_topics(self) -> dict[str, str]:
        """Return the topics of the truth and their type."""
        return {
            topic: TIME_TYPE
            for each in self._truth.values()
            for topic in (each.time_topic, each.fate_topic)
        }

    # ---- messages -----------------------------------------------------------------------------

    def push(self, topic: str, receive_ns: int, raw: bytes) -> None:
        """Take a message of a topic that was added."""
        account = self.accounts[topic]
        account.read += 1
        if self._origin_ns is None:
            self._origin_ns = receive_ns
        stream = self._of[topic]
        if stream is None:
            if topic in self._known_truth:
                self._known_truth[topic].learn(raw)
                account.replaced += 1
                return
            account.in_flight += 1
            self._send(receive_ns, topic, raw)
            return
        try:
            stamp_ns = read_stamp_ns(raw) if self._stamped[topic] else None
        except CdrError:
            account.unreadable += 1
            account.in_flight += 1
            self._send(receive_ns, topic, raw)
            return
        message = Incoming(topic, raw, receive_ns, stamp_ns)
        if not stream.started:
            stream.start(message, self._origin_ns)
        outgoing = stream.take(message)
        self._pass_on(stream, account, message, outgoing)
        if outgoing.is_doubled:
            self._pass_on(stream, account, message, outgoing._replace(fate=Fate.DUPLICATE))

    def _pass_on(
        self, stream: DegradedStream, account: Account, message: Incoming, outgoing: Outgoing
    ) -> None:
        fate, arrival_ns = outgoing.fate, outgoing.arrival_ns
        account.note(fate)
        _, _, receive_ns, stamp_ns = message
        original_ns = receive_ns if stamp_ns is None else stamp_ns
        if outgoing.is_first:
            topic, raw = self._truth[stream.name].about(original_ns, outgoing)
            if topic not in self.unread:
                self._send(arrival_ns, topic, raw, truth=True)
        if fate is Fate.DELIVERED:
            base_ns = original_ns if stream.from_stamp else receive_ns
            self.delays[stream.name].add((arrival_ns - base_ns) / NS_PER_S)
            self._send(arrival_ns, message.topic, outgoing.raw)
        elif fate is Fate.DUPLICATE:
            self._send(arrival_ns, message.topic, outgoing.raw)
        if self._on_fate is not None:
            self._on_fate(stream.name, message, outgoing)

    # ---- arrivals -----------------------------------------------------------------------------

    def _send(self, arrival_ns: int, topic: str, raw: bytes, truth: bool = False) -> None:
        self._pushed += 1
        heappush(self._heap, (arrival_ns, self._pushed, topic, raw, truth))

    def __len__(self) -> int:
        """Return how many messages are on their way."""
        return len(self._heap)

    @property
    def next_ns(self) -> int | None:
        """When the next message arrives, ns, or None."""
        return self._heap[0][0] if self._heap else None

    def due(self, now_ns: int) -> Iterator[Degraded]:
        """Take out what has arrived by `now_ns`, in order of arrival; ties in order of coming."""
        heap, accounts = self._heap, self.accounts
        while heap and heap[0][0] <= now_ns:
            arrival_ns, _, topic, raw, truth = heappop(heap)
            if not truth:
                account = accounts[topic]
                account.in_flight -= 1
                account.written += 1
            yield Degraded(topic, arrival_ns, raw)

    # ---- changes at run time ------------------------------------------------------------------

    def reconfigure(self, name: str, config: StreamConfig) -> None:
        """Take other delays, clocks and losses; what is on its way keeps the times it has."""
        stream = self.streams[name]
        for topic, type_name in stream.types.items():
            _check_type(stream, topic, type_name, self._stamped[topic], config)
        stream.reconfigure(config)

    def inject(self, name: str, fault: FaultConfig) -> None:
        """Start a fault with the next message of a stream."""
        stream = self.streams[name]
        begun_s = max(stream.last_ns + 1 - stream.origin_ns, 0) / NS_PER_S
        stream.inject(fault.model_copy(update={'at_s': begun_s}))


def _check_type(
    stream: DegradedStream,
    topic: str,
    type_name: str,
    stamped: bool,
    config: StreamConfig | None = None,
) -> None:
    """Refuse what a topic's type cannot do: stamps where there is no header, noise of others."""
    config = stream.config if config is None else config
    where = f'streams.{stream.name}'
    if stamped:
        return
    steps = any(fault.what.steps_clock for fault in config.faults.values())
    wanted = (
        'clock'
        if config.clock != ClockConfig()
        else 'clock_of'
        if config.clock_of
        else 'base: stamp'
        if config.base == 'stamp'
        else 'a clock_step fault'
        if steps
        else ''
    )
    if wanted:
        raise RigError(
            f'{where} has {wanted}, but {topic} is {type_name}, which has no header '
            f'and so no stamp; such topics take delay, loss and rate only'
        )
