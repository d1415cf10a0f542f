"""The degrade node: live topics in, the same topics late, stamped wrong, with gaps, out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import TimeReference

from rig_common.diagnostic_fields import to_values
from rig_common.errors import RigError
from rig_common.msgs import Level, Status
from rig_common.quantiles import LogHistogram
from rig_common.ros import qos
from rig_common.ros.clock import steady_timer
from rig_common.ros.diagnostics import Diagnostics
from rig_common.ros.executor import TURN_S
from rig_common.ros.parameters import ConfigParameters, fix_sim_time
from rig_common.ros.types import is_stamped, message_class
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import Recorded
from sensor_rig.bags.ros.listening import LOOK_PERIOD_S, as_offered
from sensor_rig.degrade.facts import StreamFacts
from sensor_rig.degrade.ledger import require_balance
from sensor_rig.degrade.session import DegradeSession
from sensor_rig.rigfile import RigConfig
from sensor_rig.rigfile.stream_keys import StreamConfig
from sensor_rig.rigfile.stream_topics import absolute, find_stream, is_pattern
from sim_sensors.timing.faults import FaultConfig

OUTPUT = 'degraded'
"""`<topic>` is published as `degraded/<topic>`, unless remapped."""
CHANGEABLE = ('delay_range_s', 'jitter_s', 'latency', 'order', 'clock', 'loss')
"""Keys of a stream that may change while it runs."""


class DegradeNode(Node):
    """Subscribes to the topics of the streams as bytes and publishes each message at its arrival.

    It follows the host's clock, or /clock with `use_sim_time`; a /clock that goes back (a bag
    played again) starts everything again.
    """

    wake: Callable[[], None] = staticmethod(lambda: None)
    """Ends the executor's wait; set by whoever drives the node."""

    def __init__(self, rig: RigConfig, name: str = 'degrade', **node_options: Any) -> None:
        super().__init__(name, **node_options)
        fix_sim_time(self)
        if not rig.streams:
            raise RigError(f'{rig.path} has no streams: section, so there is nothing to degrade')
        self._seed = rig.seed
        self._settings = {
            each: ConfigParameters(
                self,
                f'streams.{each}.',
                config,
                changeable=_is_changeable,
                on_change=partial(self._reconfigure, each),
            )
            for each, config in rig.streams.items()
        }
        self._exact = {
            self.resolve_topic_name(topic): absolute(topic)
            for config in rig.streams.values()
            for topic in config.topics
            if not is_pattern(topic)
        }
        """Name in the graph, remapped or not -> name in the rig file."""
        self._has_patterns = any(
            is_pattern(topic) for config in rig.streams.values() for topic in config.topics
        )
        self._moved = set(self._exact.values()) - set(self._exact)
        """Names of the rig file that mean another topic here."""
        self._types: dict[str, tuple[str, bool]] = {}
        self._publishers_of: dict[str, Publisher] = {}
        self._inputs: dict[str, Any] = {}
        self._refused: dict[str, str] = {}
        self._own: set[str] = set()
        self.session = self._new_session()
        self._truth = {
            topic: self.create_publisher(TimeReference, topic[1:], qos.sensor_out())
            for topic in self.session.truth_topics()
        }
        self._publishers_of |= self._truth
        self._own = {each.topic_name for each in self._truth.values()}
        self._late = LogHistogram()
        self._follow_time()
        self._diagnostics = Diagnostics(self, self._now_ns)
        self._diagnostics.add(self._statuses)
        self._look()
        steady_timer(self, LOOK_PERIOD_S, self._look)

    def _new_session(self) -> DegradeSession:
        self._configs = {name: each.config for name, each in self._settings.items()}
        session = DegradeSession(self._configs, self._seed)
        for topic, (type_name, stamped) in self._types.items():
            session.add_topic(topic, type_name, stamped=stamped)
        return session

    # ---- topics -------------------------------------------------------------------------------

    def _look(self) -> None:
        """Subscribe to what is new in the graph, and see whether somebody reads the truth."""
        self.session.unread = frozenset(
            topic for topic, each in self._truth.items() if not each.get_subscription_count()
        )
        if not self._has_patterns and len(self._inputs) + len(self._refused) == len(self._exact):
            return
        for name, types in self.get_topic_names_and_types():
            if name in self._inputs or name in self._refused or name in self._own:
                continue
            topic = self._exact.get(name, name)
            if (topic == name and name in self._moved) or not find_stream(topic, self._configs):
                continue
            offers = self.get_publishers_info_by_topic(name)
            if offers:
                self._join(name, topic, types[0], offers)

    def _join(self, name: str, topic: str, type_name: str, offers: Any) -> None:
        try:
            kind = message_class(type_name, name)
            stamped = is_stamped(kind)
            self.session.add_topic(topic, type_name, stamped=stamped)
        except RigError as error:
            self._refused[name] = str(error)
            self.get_logger().error(f'{name} is not degraded: {error}')
            return
        self._types[topic] = (type_name, stamped)
        profile = as_offered(offers)
        publisher = self.create_publisher(kind, OUTPUT + topic, profile)
        self._publishers_of[topic] = publisher
        self._own.add(publisher.topic_name)
        self._inputs[name] = self.create_subscription(
            kind, name, partial(self._on_message, topic), profile, raw=True
        )

    # ---- messages -----------------------------------------------------------------------------

    def _on_message(self, topic: str, raw: bytes) -> None:
        now_ns = self._now_ns()
        session = self.session
        before_ns = session.next_ns
        session.push([Recorded(topic, now_ns, raw)])
        next_ns = session.next_ns
        if next_ns is not None and next_ns <= now_ns:
            self._release(now_ns)
        elif next_ns != before_ns:
            self.wake()  # it is earlier than what the executor waits for

    def _release(self, now_ns: int) -> None:
        for topic, arrival_ns, raw, _ in self.session.due(now_ns):
            self._publishers_of[topic].publish(raw)
            self._late.add((now_ns - arrival_ns) / NS_PER_S)

    # ---- time ---------------------------------------------------------------------------------

    def _follow_time(self) -> None:
        self._simulated = bool(self.get_parameter('use_sim_time').value)
        # A host's clock that is set does not hold up what is on its way.
        self._steady_zero_ns = time.time_ns() - time.monotonic_ns()
        if self._simulated:
            self._jumps = self.get_clock().create_jump_callback(
                JumpThreshold(
                    min_forward=Duration(nanoseconds=1), min_backward=Duration(nanoseconds=-1)
                ),
                post_callback=self._on_clock,
            )

    def _now_ns(self) -> int:
        if self._simulated:
            return int(self.get_clock().now().nanoseconds)
        return time.monotonic_ns() + self._steady_zero_ns

    def _on_clock(self, jump: Any) -> None:
        """/clock went on: release what has arrived; or back: a bag was started again."""
        if jump.delta.nanoseconds < 0:
            self.session = self._new_session()
        else:
            self._release(self._now_ns())

    def advance(self) -> float:
        """Publish what has arrived; return for how long nothing will, s."""
        if self._simulated:
            return TURN_S
        now_ns = self._now_ns()
        self._release(now_ns)
        next_ns = self.session.next_ns
        return TURN_S if next_ns is None else max(next_ns - now_ns, 0) / NS_PER_S

    def elapsed_s(self) -> float:
        """Return the time of the newest message since the start, s."""
        return (
            max(
                (
                    max(each.last_ns - each.origin_ns, 0)
                    for each in self.session.streams.values()
                    if each.started
                ),
                default=0,
            )
            / NS_PER_S
        )

    # ---- changes and reports ------------------------------------------------------------------

    def _reconfigure(self, name: str, config: StreamConfig) -> None:
        self.session.reconfigure(name, config)

    def inject(self, name: str, fault: FaultConfig) -> None:
        """Start a fault with the next message of a stream."""
        self.session.inject(name, fault)

    def _statuses(self) -> Iterator[Status]:
        for name in self.session.streams:
            facts = self.facts(name)
            missing = not facts.topics
            yield Status(
                Level.WARN if missing else Level.OK,
                name,
                'nobody publishes its topics' if missing else 'running',
                to_values(facts),
            )
        if self._refused:
            yield Status(
                Level.ERROR,
                'topics',
                f'not degraded: {", ".join(self._refused)}',
                self._refused,
            )

    def facts(self, name: str) -> StreamFacts:
        """Return what became of a stream's messages so far."""
        mine = {
            topic: each for topic, each in self.session.accounts.items() if each.stream == name
        }

        def total(key: str) -> int:
            return sum(getattr(each, key) for each in mine.values())

        delays = self.session.delays[name]
        return StreamFacts(
            ', '.join(mine),
            total('read'),
            total('written'),
            total('lost_by_loss'),
            total('lost_by_fault'),
            total('thinned'),
            total('duplicated'),
            total('in_flight'),
            delays.quantile_s(0.5) * 1e3,
            delays.quantile_s(0.99) * 1e3,
            self._late.quantile_s(0.99) * 1e3,
        )

    def close(self) -> None:
        """Publish the last diagnostics; what is still on its way is lost with the node."""
        require_balance(self.session.accounts)
        self._diagnostics.publish_last()


def _is_changeable(key: str) -> bool:
    return key.partition('.')[0] in CHANGEABLE
