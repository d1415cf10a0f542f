"""The engine as a message filter: one import line changes in a node that uses message_filters.

    from sync_engine.filters import AdaptiveTimeSynchronizer as ApproximateTimeSynchronizer

It keeps message_filters' contract (registerCallback, signalMessage, connectInput), takes its
Subscribers, Caches and other filters as inputs, another synchronizer among them. message_filters
need not be installed: plain rclpy subscriptions are inputs too. Importing this needs no ROS.
"""

from __future__ import annotations

import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rig_common.errors import RigError
from rig_common.times import NS_PER_S, seconds_to_ns
from sync_engine.config import SyncConfig, load_config
from sync_engine.engine import SyncEngine
from sync_engine.filters.engine_sets import EngineSets
from sync_engine.filters.inputs import (
    AnyNode,
    Input,
    TimeGetter,
    clock_of,
    connect,
    logger_of,
    node_of,
    stamp_reader,
)
from sync_engine.filters.sets import SetMatcher
from sync_engine.filters.waits import Waits
from sync_engine.streams.payload import MessageSet, Payload

try:
    from message_filters import SimpleFilter
except ImportError:  # no ROS, or one without message_filters
    SimpleFilter = object


class AdaptiveTimeSynchronizer(SimpleFilter):  # type: ignore[misc]
    """Calls back with one message of every input, the best partners, not the first ones.

    The callback's arguments are those of message_filters: the messages in the order of the
    inputs, then what was given to registerCallback. An input that is missing from a set (only
    with `missing_strategy: empty`) is None; one with `collect: true` is a list of messages.

    `engine` makes the sets: a SetMatcher with `queue_size, slop`, a SyncEngine with a
    configuration. Both have `ledger` and `buffered()`.
    """

    def __init__(
        self,
        fs: Sequence[Input],
        queue_size: int | SyncConfig | Mapping[str, object] = 10,
        slop: float = 0.1,
        queue_offset: bool | Sequence[int] | None = False,
        allow_headerless: bool = False,
        sync_arrival_time: bool = False,
        time_getter: TimeGetter | None = None,
        *,
        reference: int = 0,
        node: AnyNode = None,
        now_ns: Callable[[], int] | None = None,
    ) -> None:
        """Synchronise `fs` as ApproximateTimeSynchronizer would, or by a `sync:` section.

        The first arguments are those of message_filters in every distribution. Up to Jazzy the
        fourth one is `allow_headerless`: a bool there is taken for it. From Kilted on it is
        `queue_offset`: for every input the ns by which its stamps are ahead. With
        `sync_arrival_time` the time of arrival is the stamp. `time_getter(message)` gives the
        stamp as rclpy's Time or in ns, or None where there is none.

        Instead of `queue_size` stands a SyncConfig or a mapping with its keys; its inputs belong
        to `fs` in their order. `reference` is the input that sets are made for. `node` gives
        time, a timer and a logger; without, the first input's node is taken, and where none has
        one Python's logging. `now_ns` gives the host's time where neither is right.
        """
        if SimpleFilter is not object:
            super().__init__()
        self.callbacks: dict[int, tuple[Callable[..., object], tuple[object, ...]]] = {}
        self._connections = 0
        self.queue_offset = _checked_offsets(queue_offset, len(fs))
        self.allow_headerless = allow_headerless or queue_offset is True
        self.sync_arrival_time = sync_arrival_time
        self.time_getter = time_getter
        self._read_stamp = stamp_reader(time_getter, sync_arrival_time)
        self.engine: SetMatcher | SyncEngine
        if isinstance(queue_size, int):
            _check_reference(reference, len(fs))
            self.names = [f'input_{index}' for index in range(len(fs))]
            self._sets: SetMatcher | EngineSets = SetMatcher(
                self.names, queue_size, seconds_to_ns(slop), reference
            )
            self.engine = self._sets
        else:
            config = _given_config(queue_size, len(fs))
            self.names = list(config.inputs)
            self._sets = EngineSets(config)
            self.engine = self._sets.engine
        self._has_jobs = self._sets.has_jobs
        self._nested = False
        """Whether an input is itself a synchronizer: then messages of it are tuples."""
        self._lock = threading.Lock()
        self._ready: deque[MessageSet] = deque()
        self._delivering = threading.Lock()
        node = node if node is not None else node_of(fs)
        self._log = logger_of(node)
        self._now_ns = now_ns or clock_of(node)
        self.connectInput(fs)
        if node is not None:
            from rig_common.ros.clock import steady_timer

            self._timer = steady_timer(node, self._sets.POLL_PERIOD_S, self._poll)

    # ---- the contract of message_filters ---------------------------------------------------

    def registerCallback(self, cb: Callable[..., object], *args: object) -> int:  # noqa: N802
        """Call `cb(*messages, *args)` with every set; return the connection's number."""
        self._connections += 1
        self.callbacks[self._connections - 1] = (cb, args)
        return self._connections - 1

    def unregisterCallback(self, conn: int) -> None:  # noqa: N802
        """Stop calling the callback of this number."""
        self.callbacks.pop(conn, None)

    def signalMessage(self, *msg: Payload) -> None:  # noqa: N802
        """Call every callback; one that raises is logged and does not stop the others."""
        for cb, args in list(self.callbacks.values()):
            try:
                cb(*msg, *args)
            except Exception:
                self._log.error(
                    f'a callback of the synchronizer raised:\n{traceback.format_exc()}'
                )

    def connectInput(self, fs: Sequence[Input]) -> None:  # noqa: N802
        """Take the messages of these filters or subscriptions, in the order of the inputs."""
        if len(fs) != len(self.names):
            raise RigError(
                f'{len(fs)} filters were given for {len(self.names)} inputs '
                f'({", ".join(self.names)})'
            )
        queues = self.queues
        self.input_connections = [
            connect(filter_, self.add, queues[index], index) for index, filter_ in enumerate(fs)
        ]

    def add(self, *arguments: Payload) -> None:
        """Take a message (or a set of another synchronizer), its queue, and the input's index."""
        message, index = arguments[0], arguments[-1]
        arrival_ns = self._now_ns()
        stamp_ns = self._read_stamp(message)
        if stamp_ns is None:
            if not self.allow_headerless and not self.sync_arrival_time:
                self._refuse(index)
                return
            stamp_ns = arrival_ns
        if self.queue_offset:
            stamp_ns -= self.queue_offset[index]
        if len(arguments) > 3:
            self._nested, message = True, arguments[:-2]
        with self._lock:
            made = self._sets.push(index, stamp_ns, message, arrival_ns)
            if made:
                self._ready.extend(made)
        if made:
            self._deliver()
        if self._has_jobs:
            with self._lock:
                self._sets.work()

    def _refuse(self, index: int) -> None:
        self._log.warning(
            f'a message without a header came on input {self.names[index]}; set allow_headerless '
            f'to use its arrival time'
        )
        with self._lock:
            self._sets.refuse(index)

    @property
    def slop(self) -> Any:
        """Largest distance of a message to the reference's, as rclpy's Duration; s without ROS."""
        slop_ns = self._sets.slop_ns
        try:
            from rclpy.duration import Duration
        except ImportError:
            return slop_ns / NS_PER_S
        return Duration(nanoseconds=slop_ns)

    @slop.setter
    def slop(self, value: Any) -> None:
        slop_ns = getattr(value, 'nanoseconds', None)
        self._sets.slop_ns = seconds_to_ns(value) if slop_ns is None else slop_ns

    @property
    def queue_size(self) -> int:
        """Messages of one input that may wait."""
        return self._sets.queue_size

    @queue_size.setter
    def queue_size(self, value: int) -> None:
        self._sets.queue_size = value

    @property
    def queues(self) -> list[dict[int, Payload]]:
        """For every input the messages that wait, by stamp in ns; to look at."""
        return self._sets.queues

    @property
    def waits(self) -> Waits:
        """How long sets waited for what might have come late."""
        return self._sets.waits

    # ---- sets -------------------------------------------------------------------------------

    def flush(self) -> None:
        """Call back with the sets that the messages at hand make, without waiting any longer."""
        with self._lock:
            self._ready.extend(self._sets.flush())
        self._deliver()

    def _poll(self) -> None:
        with self._lock:
            self._ready.extend(self._sets.poll(self._now_ns()))
        self._deliver()

    def _deliver(self) -> None:
        """Hand out what is ready, in order and outside the engine's lock.

        A thread that finds another one delivering leaves its sets to it, so the order stays with
        several threads, and a callback may feed this synchronizer.
        """
        while self._ready and self._delivering.acquire(blocking=False):
            try:
                while self._ready:
                    messages = self._ready.popleft()
                    self.signalMessage(*(_flat(messages) if self._nested else messages))
            finally:
                self._delivering.release()


def _flat(messages: MessageSet) -> Iterator[Payload]:
    """Give the messages of inputs that are synchronizers one by one."""
    for message in messages:
        if isinstance(message, tuple):
            yield from message
        else:
            yield message


def _check_reference(reference: int, count: int) -> None:
    if not 0 <= reference < count:
        raise RigError(
            f'reference is {reference}; it should be the index of one of the {count} filters'
        )


def _checked_offsets(given: bool | Sequence[int] | None, count: int) -> list[int]:
    """Return the ns of every input; an empty list stands for none."""
    try:
        offsets = [] if given is None or isinstance(given, bool) else [int(ns) for ns in given]
    except (TypeError, ValueError, OverflowError):
        raise RigError(
            f'queue_offset is {given!r}; it should be a list of ns, one for each of the {count} '
            f'filters, or be left out'
        ) from None
    if offsets and len(offsets) != count:
        raise RigError(
            f'queue_offset has {len(offsets)} values; it should have one for each of the {count} '
            f'filters, in ns'
        )
    return offsets


def _given_config(given: SyncConfig | Mapping[str, object], count: int) -> SyncConfig:
    if not isinstance(given, SyncConfig | Mapping):
        raise RigError(
            f'queue_size is {given!r}; it should be a whole number of messages, or a configuration'
        )
    config = given if isinstance(given, SyncConfig) else load_config(dict(given))
    if len(config.inputs) != count:
        raise RigError(
            f'{count} filters were given for the {len(config.inputs)} inputs of the '
            f'configuration ({", ".join(config.inputs)})'
        )
    return config
