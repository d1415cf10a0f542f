"""All streams of a rig file together: messages in as they were received, out in order of arrival.

    session = DegradeSession(streams, seed)
    session.add_topic('/imu/data', 'sensor_msgs/msg/Imu', stamped=True)
    session.push([Recorded('/imu/data', receive_ns, raw)])
    for topic, arrival_ns, raw, publish_ns in session.due(now_ns): ...

Topics of no stream pass unchanged. Beside the messages go `truth/time/<stream>` (header: original
stamp, time_ref: new stamp) for every capture that arrives, and `truth/fate/<stream>` (header:
original stamp, time_ref: arrival, source: the fate) for every one that does not arrive just once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, groupby, repeat
from operator import add, and_, itemgetter, ne, not_, sub

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.errors import RigError
from rig_common.quantiles import LogHistogram
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import Recorded
from sensor_rig.degrade.ledger import Account, Fate
from sensor_rig.degrade.messages import Incoming
from sensor_rig.degrade.stream import DegradedStream
from sensor_rig.degrade.truth import TIME_TYPE, StreamTruth
from sensor_rig.rigfile.stream_keys import StreamConfig
from sensor_rig.rigfile.stream_topics import find_stream
from sim_sensors.timing.clock_config import ClockConfig
from sim_sensors.timing.faults import FaultConfig

Told = tuple[int, int, int, int]
"""What the truth says of a capture: arrival, number among all messages, original and told time."""
DELIVERED = Fate.DELIVERED.value
OnFates = Callable[[Iterable[tuple[object, ...]]], object]
"""Takes a row for every message of a stream, and for every copy: stream, topic, number, fate, old
and new stamp (empty where there is none), receive time, arrival."""


class DegradeSession:
    """Degrades messages in the order they come; `due` hands them out as they arrive."""

    def __init__(
        self,
        streams: Mapping[str, StreamConfig],
        seed: int,
        *,
        origin_ns: int | None = None,
        captures_ns: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        """Make the streams.

        `origin_ns` is when time starts to count (by default when the first message was received),
        `captures_ns` how long captures of the sensors last, as far as known; see `RigNote`.
        """
        lasting = captures_ns or {}
        self._configs, self._seed, self._lasting = streams, seed, lasting
        self._origin_ns = origin_ns
        self.on_fates: OnFates | None = None
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
        self._waiting: list[tuple[int, int, int, str, bytes, int]] = []
        """Arrival, number among all messages, 0 for the truth about it, topic, bytes, publish
        time; in order."""
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

    def push(self, messages: Iterable[Recorded]) -> None:
        """Take messages of topics that were added.

        Raises where one of them gets a stamp that no header holds; those before it are taken.
        """
        together: dict[DegradedStream, list[tuple[DegradedStream, Incoming]]] = {}
        for topic, receive_ns, raw, publish_ns in messages:
            account, stream = self.accounts[topic], self._of[topic]
            account.read += 1
            self._pushed += 1
            if self._origin_ns is None:
                self._origin_ns = receive_ns
            if topic in self._known_truth:
                self._known_truth[topic].learn(raw)
                account.replaced += 1
                continue
            stamp_ns = None
            if stream is not None and self._stamped[topic]:
                try:
                    stamp_ns = read_stamp_ns(raw)
                except CdrError:
                    account.unreadable += 1
                    stream = None
            if stream is None:
                account.in_flight += 1
                self._waiting.append((receive_ns, self._pushed, 1, topic, raw, publish_ns))
                continue
            message = Incoming(topic, raw, receive_ns, stamp_ns, publish_ns, self._pushed)
            if not stream.started:
                stream.start(message, self._origin_ns)
            together.setdefault(stream.owner or stream, []).append((stream, message))
        try:
            for pairs in together.values():  # who shares a clock is taken in the order of coming
                for stream, run in groupby(pairs, key=itemgetter(0)):
                    self._take(stream, [message for _, message in run])
        finally:
            self._waiting.sort()

    def _take(self, stream: DegradedStream, messages: Sequence[Incoming]) -> None:
        """Degrade messages of one stream, column by column: most of them just arrive later."""
        captures, raws, firsts, error = stream.take(messages)
        if error is not None and not raws:
            raise error
        messages, captures = messages[: len(raws)], captures[: len(raws)]
        topics, _, received_ns, old_ns, published_ns, orders = zip(*messages, strict=True)
        fates, numbers, latencies_ns, stamps_ns, doubled, _ = zip(*captures, strict=True)
        has_stamps = old_ns[0] is not None
        originals_ns = old_ns if has_stamps else received_ns
        bases_ns = originals_ns if stream.from_stamp else received_ns
        arrivals_ns = [*map(add, bases_ns, latencies_ns)]
        if any(published_ns):  # they are published later by as much
            published_ns = tuple(
                each and each + later_ns
                for each, later_ns in zip(
                    published_ns, map(sub, arrivals_ns, received_ns), strict=True
                )
            )
        arrive = [fate is Fate.DELIVERED for fate in fates]
        arriving = [*zip(arrivals_ns, orders, repeat(1), topics, raws, published_ns)]
        self._waiting += compress(arriving, arrive)
        for topic in compress(topics, arrive):
            self.accounts[topic].in_flight += 1
        self.delays[stream.name].add_all(
            [each / NS_PER_S for each in compress(latencies_ns, arrive)]
        )
        told = zip(arrivals_ns, orders, originals_ns, stamps_ns, strict=True)
        self._tell(stream, Fate.DELIVERED, [*compress(told, map(and_, arrive, firsts))])
        for place in compress(range(len(topics)), map(ne, arrive, map(not_, doubled))):
            fate, arrival_ns = fates[place], arrivals_ns[place]
            if arrive[place]:
                fate = Fate.DUPLICATE
                self._waiting.append(arriving[place])
            self.accounts[topics[place]].note(fate)
            if firsts[place]:
                row = arrival_ns, orders[place], originals_ns[place], arrival_ns
                self._tell(stream, fate, [row])
        if self.on_fates is not None:
            words = [
                DELIVERED if each else fate.value for each, fate in zip(arrive, fates, strict=True)
            ]
            stamps = (old_ns, stamps_ns) if has_stamps else (repeat(''), repeat(''))
            times = [*zip(*stamps, received_ns, arrivals_ns, strict=False)]
            rows = [*zip(repeat(stream.name), topics, numbers, words, times)]
            copied = compress(rows, map(and_, arrive, doubled))
            rows += [(*row[:3], Fate.DUPLICATE.value, row[4]) for row in copied]
            self.on_fates((*row, *times) for *row, times in rows)
        if error is not None:
            raise error

    def _tell(self, stream: DegradedStream, fate: Fate, about: list[Told]) -> None:
        """Send the truth about captures of one fate on its way, beside them."""
        truth = self._truth[stream.name]
        topic = truth.time_topic if fate is Fate.DELIVERED else truth.fate_topic
        if about and topic not in self.unread:
            arrivals_ns, orders, originals_ns, told_ns = zip(*about, strict=True)
            raws = truth.messages(fate, originals_ns, told_ns)
            self._waiting += zip(arrivals_ns, orders, repeat(0), repeat(topic), raws, repeat(0))

    # ---- arrivals -----------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return how many messages are on their way."""
        return len(self._waiting)

    @property
    def next_ns(self) -> int | None:
        """When the next message arrives, ns, or None."""
        return self._waiting[0][0] if self._waiting else None

    def due(self, now_ns: int) -> list[tuple[str, int, bytes, int]]:
        """Take out what has arrived by `now_ns`: topic, arrival, bytes, publish time.

        In order of arrival; ties in order of coming.
        """
        count = bisect_left(self._waiting, (now_ns + 1,))
        arrived = self._waiting[:count]
        del self._waiting[:count]
        found = []
        for arrival_ns, _, is_message, topic, raw, publish_ns in arrived:
            if is_message:
                account = self.accounts[topic]
                account.in_flight -= 1
                account.written += 1
            found.append((topic, arrival_ns, raw, publish_ns))
        return found

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
