"""The engine as a message filter: one import line changes in a node that uses message_filters.

    from sync_engine.filters import AdaptiveTimeSynchronizer as ApproximateTimeSynchronizer

It keeps message_filters' contract (registerCallback, signalMessage, connectInput), takes its
Subscribers, Caches and other filters as inputs and can be an input itself. message_filters need
not be installed: plain rclpy subscriptions are inputs too. Importing this needs no ROS.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sync_engine.bundle import Bundle
from sync_engine.config import SyncConfig, load_config
from sync_engine.engine import SyncEngine
from sync_engine.wire.typed import TypedCodec, typed_imu, typed_reader

POLL_PERIOD_S = 0.01
PATIENCE_S = 5.0
"""How long a set waits with `queue_size, slop`; message_filters waits until its queue is full."""

_LOG = logging.getLogger('sync_engine.filters')
_NO_STAMP_NS = -1


class AdaptiveTimeSynchronizer:
    """Calls back with one message of every input, the best partners, not the first ones.

    The callback's arguments are those of message_filters: the messages in the order of the
    inputs, then what was given to registerCallback. An input that is missing from a set (only
    with `missing_strategy: empty`) is None; one with `collect: true` is a list of messages.
    """

    def __init__(
        self,
        fs: Sequence[Any],
        queue_size: int | SyncConfig | Mapping[str, Any] = 10,
        slop: float = 0.1,
        allow_headerless: bool = False,
        *,
        reference: int = 0,
        node: Any = None,
        now_ns: Callable[[], int] | None = None,
    ) -> None:
        """Synchronise `fs` as ApproximateTimeSynchronizer would, or by a `sync:` section.

        Instead of `queue_size` stands a SyncConfig or a mapping with its keys; its inputs belong
        to `fs` in their order. `reference` is the input that sets are made for. `node` gives
        time and a timer; without, the first input's node is taken. `now_ns` gives the host's
        time where neither is right.
        """
        self.callbacks: dict[int, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
        if isinstance(queue_size, int):
            config = _plain_config(len(fs), queue_size, slop, reference)
        else:
            config = _given_config(queue_size, len(fs))
        self.names = list(config.inputs)
        self._allow_headerless = allow_headerless
        self._imu = config.imu_sensor_id
        self.engine = SyncEngine(
            config,
            {name: TypedCodec() for name in self.names},
            {
                name: typed_reader(given.cue)
                for name, given in config.inputs.items()
                if given.cue != 'none'
            },
        )
        self._lock = threading.Lock()
        self._ready: deque[Bundle] = deque()
        self._delivering = threading.Lock()
        node = node if node is not None else _node_of(fs)
        self._now_ns = now_ns or _clock_of(node)
        self.connectInput(fs)
        if node is not None:
            from rig_common.ros.clock import steady_timer

            self._timer = steady_timer(node, POLL_PERIOD_S, self._poll)

    # ---- the contract of message_filters ---------------------------------------------------

    def registerCallback(self, cb: Callable[..., Any], *args: Any) -> int:  # noqa: N802
        """Call `cb(*messages, *args)` with every set; return the connection's number."""
        connection = len(self.callbacks)
        self.callbacks[connection] = (cb, args)
        return connection

    def signalMessage(self, *msg: Any) -> None:  # noqa: N802
        """Call every callback; one that raises is logged and does not stop the others."""
        for cb, args in list(self.callbacks.values()):
            try:
                cb(*msg, *args)
            except Exception:
                _LOG.exception('a callback of the synchronizer raised')

    def connectInput(self, fs: Sequence[Any]) -> None:  # noqa: N802
        """Take the messages of these filters or subscriptions, in the order of the inputs."""
        if len(fs) != len(self.names):
            raise RigError(
                f'{len(fs)} filters were given for {len(self.names)} inputs '
                f'({", ".join(self.names)})'
            )
        self.input_connections = [
            _connect(filter_, self.add, index) for index, filter_ in enumerate(fs)
        ]

    def add(self, *arguments: Any) -> None:
        """Take a message (or a set of another synchronizer); the last argument is the input."""
        *messages, index = arguments
        arrival_ns = self._now_ns()
        name = self.names[index]
        payload = messages[0] if len(messages) == 1 else tuple(messages)
        stamp_ns = _stamp_ns(messages[0])
        if stamp_ns is None and not self._allow_headerless:
            _LOG.warning(
                'a message without a header came on input %s; set allow_headerless to '
                'use its arrival time',
                name,
            )
            stamp_ns = _NO_STAMP_NS
        with self._lock:
            if name == self._imu and stamp_ns is not None:
                self.engine.push_imu(stamp_ns, *typed_imu(messages[0]))
            self._ready.extend(self.engine.push(name, stamp_ns, payload, arrival_ns))
        self._deliver()
        with self._lock:
            self.engine.run_cues(1)

    # ---- sets -------------------------------------------------------------------------------

    def _poll(self) -> None:
        with self._lock:
            self._ready.extend(self.engine.poll(self._now_ns()))
        self._deliver()

    def _deliver(self) -> None:
        """Hand out what is ready, in order and outside the engine's lock.

        Whoever finds somebody else delivering leaves its sets to them: with several threads the
        order stays, and a callback may feed this very synchronizer.
        """
        while self._ready and self._delivering.acquire(blocking=False):
            try:
                while self._ready:
                    self.signalMessage(*self._messages(self._ready.popleft()))
            finally:
                self._delivering.release()

    def _messages(self, bundle: Bundle) -> Iterator[Any]:
        for name in self.names:
            member = bundle.members.get(name)
            if member is None:
                continue  # an input with member: false
            if self.engine.config.inputs[name].collect:
                yield [packet.payload for packet in member.collected]
            elif isinstance(member.payload, tuple):
                yield from member.payload
            else:
                yield member.payload


def _plain_config(count: int, queue_size: int, slop: float, reference: int) -> SyncConfig:
    """Return what `queue_size, slop` means: stamps as they are, complete sets only."""
    if not 0 <= reference < count:
        raise RigError(
            f'reference is {reference}; it should be the index of one of the {count} filters'
        )
    names = [f'input_{index}' for index in range(count)]
    return load_config(
        {
            'inputs': {name: {'deadline_s': PATIENCE_S} for name in names},
            'reference_sensor_id': names[reference],
            'required_sensors': names,
            'estimator': 'none',
            'missing_strategy': 'drop',
            'window': {'min_ms': max(slop, 1e-6) * 1e3, 'max_ms': max(slop, 1e-6) * 1e3},
            'buffer': {'max_size': max(queue_size, 2), 'timeout_s': 2.0 * PATIENCE_S},
        }
    )


def _given_config(given: SyncConfig | Mapping[str, Any], count: int) -> SyncConfig:
    config = given if isinstance(given, SyncConfig) else load_config(dict(given))
    if len(config.inputs) != count:
        raise RigError(
            f'{count} filters were given for the {len(config.inputs)} inputs of the '
            f'configuration ({", ".join(config.inputs)})'
        )
    return config


def _connect(filter_: Any, callback: Callable[..., None], index: int) -> Any:
    """Have `callback(message, index)` called with every message of a filter or subscription."""
    if hasattr(filter_, 'registerCallback'):
        return filter_.registerCallback(callback, index)
    if not hasattr(filter_, 'callback'):
        raise RigError(
            f'input {index} is a {type(filter_).__name__}; it should be a message '
            f'filter or an rclpy subscription'
        )
    own = filter_.callback

    def both(message: Any) -> None:
        own(message)
        callback(message, index)

    filter_.callback = both
    return filter_


def _node_of(fs: Sequence[Any]) -> Any:
    """Return the node of the first message_filters.Subscriber among `fs`."""
    return next(
        (
            node
            for node in (vars(f).get('node') for f in fs if hasattr(f, '__dict__'))
            if node is not None
        ),
        None,
    )


def _clock_of(node: Any) -> Callable[[], int]:
    """Return the host's time: of a node on simulated time, else of the machine."""
    if node is None:
        return time.time_ns
    clock = node.get_clock()

    def now_ns() -> int:
        if clock.ros_time_is_active:
            return int(clock.now().nanoseconds)
        return time.time_ns()

    return now_ns


def _stamp_ns(message: Any) -> int | None:
    """Return the stamp of a message, decoded or raw; None where it has no header."""
    if isinstance(message, bytes):
        return read_stamp_ns(message)
    stamp = getattr(getattr(message, 'header', None), 'stamp', None)
    if stamp is None:
        return None
    if hasattr(stamp, 'nanoseconds'):
        return int(stamp.nanoseconds)
    return int(stamp.sec) * NS_PER_S + int(stamp.nanosec)
