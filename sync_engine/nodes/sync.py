"""The sync node: raw messages in, bundles out under one stamp, and every message accounted for."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from functools import partial
from importlib import import_module
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node

from rig_common.errors import RigError
from rig_common.lockstep.handover import Handover
from rig_common.lockstep.messages import SETTLED_TOPIC, Tick
from rig_common.quantiles import LogHistogram
from rig_common.ros.diagnostics import Diagnostics
from rig_common.ros.follower import Follower
from rig_common.ros.matching import Matching
from rig_common.ros.parameters import ConfigParameters, fix_sim_time
from rig_common.ros.types import is_stamped, message_class
from sync_engine.config import SyncConfig
from sync_engine.config.runtime import runtime_parameters
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import Bundle
from sync_engine.ros.inputs import RELIABILITIES, Inputs
from sync_engine.ros.publishers import BundlePublishers
from sync_engine.ros.services import SyncServices
from sync_engine.wire.live_correction import LiveCorrections
from sync_engine.wire.session import WireSync, synced_topic
from sync_engine.wire.statuses import statuses

POLL_PERIOD_S = 0.04
"""Shortest time between two looks at the deadlines while nothing arrives (wall time).

A message lets the deadlines before it pass, so only silent streams wait for a look. The spinner's
turns are a little longer (0.05 s) where they are not much shorter.
"""
EXPIRE_PERIOD_S = 0.25
"""How often buffers are looked through for what is too old (wall time)."""


class SyncNode(Node):
    """Subscribes to the inputs of its configuration and publishes `synced/...`.

    Time is the host's, or simulated: then an arrival is the latest tick of the rig's world, or,
    without such a world (a played bag), what /clock says.
    """

    def __init__(
        self,
        config: SyncConfig,
        name: str = 'sync',
        *,
        follows_world: bool = False,
        simulated_topics: Collection[str] = (),
        handover: Handover | None = None,
        **node_options: Any,
    ) -> None:
        """`follows_world`: a world node says what time it is; `use_sim_time` does so too.

        `simulated_topics` are the relative names of what the emulators of that world publish: in
        lockstep they are counted, and the node is ready once they have publishers. With `handover`
        the world is in this process.
        """
        super().__init__(name, **node_options)
        fix_sim_time(self)
        use_sim_time = bool(self.get_parameter('use_sim_time').value)
        self._simulated = follows_world or use_sim_time
        self._has_clock = use_sim_time or not self._simulated
        self._settings = ConfigParameters(
            self,
            'sync.',
            config,
            changeable=partial(_is_runtime, config),
            on_change=self._reconfigure,
        )
        config = self._settings.config
        self._declare_own()
        types = {
            name: message_class(given.type, f'sync.inputs.{name}.type')
            for name, given in config.inputs.items()
        }
        self.sync = WireSync(
            config, [name for name, kind in types.items() if not is_stamped(kind)]
        )
        self.latency = LogHistogram()
        """Last member received -> bundle published (s, wall)."""
        self._next_expiry_s = 0.0
        self._next_look_s = 0.0
        self._queue: list[tuple[str, bytes]] = []
        self._diagnostics = Diagnostics(self, self._now_ns)
        self._diagnostics.add(self._statuses)
        collected = {
            synced_topic(given.topic) for given in config.inputs.values() if given.collect
        }
        self._corrections = LiveCorrections(config, self.sync.engine)
        topics = self.sync.output_topics() | {
            topic: config.inputs[name].type for name, topic in self._corrections.topics.items()
        }
        self._outputs = BundlePublishers(self, topics, collected, self._diagnostics.qos)
        self._learned = SyncServices(
            self, lambda: self.engine, lambda: str(self.get_parameter('offsets_file').value)
        )
        self._load_saved()
        self._follow_time(simulated_topics, handover)
        if handover is None:
            # Brings scipy, half a second before messages can come. Where the world is in this
            # process the first message does so instead: its sender need not wait, nor be late.
            import_module('filterpy.kalman')
        self._inputs = Inputs(
            self,
            config,
            types,
            self._on_message,
            self.get_parameter('reliability').value,
            self._diagnostics.qos,
        )
        self._diagnostics.add(self._inputs.statuses)

    # ---- setting up ------------------------------------------------------------------------

    def _declare_own(self) -> None:
        self.declare_parameter(
            'offsets_file',
            '',
            ParameterDescriptor(
                description='Learned clocks are loaded from here at the start, saved at the end.'
            ),
        )
        self.declare_parameter(
            'reliability',
            'auto',
            ParameterDescriptor(
                description='Of the subscriptions; auto is reliable where the publishers are.',
                additional_constraints=f'one of {", ".join(RELIABILITIES)}',
                read_only=True,
            ),
        )
        if self.get_parameter('reliability').value not in RELIABILITIES:
            raise RigError(
                f'reliability is {self.get_parameter("reliability").value!r}; it '
                f'should be one of {", ".join(RELIABILITIES)}'
            )

    def _load_saved(self) -> None:
        """Start with what an earlier run has learned, where there is such a file."""
        if self.get_parameter('offsets_file').value:
            try:
                self.get_logger().info(self._learned.load())
            except RigError as error:
                self.get_logger().info(f'starting without saved offsets: {error}')

    def _follow_time(self, simulated_topics: Collection[str], handover: Handover | None) -> None:
        self._follower: Follower | None = None
        self._matching = Matching(self, self._outputs.by_topic)
        self._ticking = False
        self._latest_ns = 0
        """When the last message has come, by the ticks of the world."""
        if self._simulated:
            self._follower = Follower(
                self,
                self._on_time,
                topic=SETTLED_TOPIC,
                on_episode=self._on_episode,
                ready=self._ready,
                deliver=self._deliver,
                handover=handover,
            )
            self._counted = set(simulated_topics) & {
                self._key(name) for name in self.sync.config.inputs
            }
            self._follower.counted = set(self._counted)
            self._jumps = self.get_clock().create_jump_callback(
                JumpThreshold(min_forward=None, min_backward=Duration(seconds=-0.1)),
                post_callback=self._on_jump,
            )
            self._diagnostics.add(self._follower.malformed.statuses)

    @property
    def engine(self) -> SyncEngine:
        """The engine, with all that has arrived."""
        self._publish(self.sync.catch_up(), time.perf_counter_ns())
        return self.sync.engine

    # ---- messages --------------------------------------------------------------------------

    def _on_message(self, sensor_id: str, raw: bytes) -> None:
        arrival_ns = time.time_ns()
        began_ns = time.perf_counter_ns()
        follower = self._follower
        if follower is not None:
            if follower.lockstep:
                key = self._key(sensor_id)
                if not follower.is_late(key, raw):
                    self._queue.append((sensor_id, raw))
                    follower.received(key)
                return
            arrival_ns = self._arrival_ns(follower, arrival_ns)
        bundles = self.sync.offer(sensor_id, raw, arrival_ns)
        if sensor_id in self._corrections.topics:
            bundles += self.sync.catch_up()
            self._publish_corrected(sensor_id, raw, arrival_ns)
        if bundles:
            self._publish(bundles, began_ns)
        if follower is not None and self._ticking:
            follower.wake_at(self.sync.next_deadline_ns)
        if self.sync.has_cues:
            self.sync.run_cues(1)

    def _key(self, sensor_id: str) -> str:
        """Return what ticks call an input's topic."""
        return self.sync.config.inputs[sensor_id].topic.lstrip('/')

    def _deliver(self, key: str, raw: bytes) -> None:
        """Take a message that came again (lockstep)."""
        assert self._follower is not None
        self._queue += [(name, raw) for name in self.sync.config.inputs if self._key(name) == key]
        self._follower.received(key)

    def _publish(self, bundles: Iterable[Bundle], began_ns: int) -> None:
        for bundle in bundles:
            self._outputs.publish(self.sync, bundle)
            self.latency.add((time.perf_counter_ns() - began_ns) / 1e9)

    def _publish_corrected(self, sensor_id: str, raw: bytes, arrival_ns: int) -> None:
        """Publish a message that the engine has taken by itself, with its right stamp."""
        topic = self._corrections.topics[sensor_id]
        if self._outputs.wanted(topic):
            self._outputs.send(topic, self._corrections.correct(sensor_id, raw, arrival_ns))

    # ---- time ------------------------------------------------------------------------------

    def _now_ns(self) -> int:
        """Return the host's time, simulated or real."""
        if self._follower is None:
            return time.time_ns()
        if not self._ticking:
            return self.get_clock().now().nanoseconds
        return max(self._follower.now_ns, self._latest_ns)

    def _arrival_ns(self, follower: Follower, host_ns: int) -> int:
        """Return when a message has come, also where this process stood still before it."""
        if not self._ticking:
            return self._now_ns()
        self._latest_ns = max(self._latest_ns, follower.clock.now_ns(host_ns), follower.now_ns)
        return self._latest_ns

    def _on_time(self, now_ns: int) -> int:
        """Handle a tick of the world: what has come by now, then the deadlines up to now."""
        now_ns = max(now_ns, self._latest_ns)
        began_ns = time.perf_counter_ns()
        queue, self._queue = self._queue, []
        self._publish(self.sync.advance(queue, now_ns), began_ns)
        for sensor_id, raw in queue:
            if sensor_id in self._corrections.topics:
                self._publish_corrected(sensor_id, raw, now_ns)
        return self.sync.next_deadline_ns

    @property
    def _passes_by_itself(self) -> bool:
        """Whether time goes on where no message and no tick of ours says so.

        In lockstep it does not; before the world's first tick nobody knows the time. Outside
        lockstep a tick only comes here for a deadline, and dead streams leave none.
        """
        if self._follower is not None and self._ticking:
            return not self._follower.lockstep
        return self._has_clock

    def on_turn(self) -> None:
        """Let deadlines pass while nothing arrives, and do what waited for a quiet moment."""
        now_s = time.monotonic()
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + POLL_PERIOD_S
        self._inputs.adapt()
        if self._passes_by_itself:
            began_ns, now_ns = time.perf_counter_ns(), self._now_ns()
            if now_s >= self._next_expiry_s or now_ns >= self.sync.next_deadline_ns:
                self._next_expiry_s = now_s + EXPIRE_PERIOD_S
                self._publish(self.sync.poll(now_ns), began_ns)
        if self._follower is None or not self._follower.lockstep:
            self.sync.run_cues(1)

    def _on_episode(self, tick: Tick) -> None:
        self._latest_ns = 0
        if self._ticking:
            self._queue.clear()
            self.engine.reset(f'episode {tick.episode} begins', max(tick.time_ns, 0))
        self._ticking = True

    def _on_jump(self, jump: object) -> None:
        """/clock went back: a bag was started again."""
        if not self._ticking:
            self.engine.reset('the clock went back')

    def _ready(self) -> bool:
        """Whether inputs have publishers and outputs their readers, so that nothing is missed."""
        assert self._follower is not None
        return self._matching.stands(self._follower.readers) and all(
            self._inputs.connected(name)
            for name in self.sync.config.inputs
            if self._key(name) in self._counted
        )

    # ---- changes and reports ---------------------------------------------------------------

    def _reconfigure(self, config: SyncConfig) -> None:
        """Hand changed settings to the engine; together they are valid, one by one maybe not."""
        before = runtime_parameters(self.sync.config)
        changes = [
            (key, value)
            for key, value in runtime_parameters(config).items()
            if before[key] != value
        ]
        while changes:
            left = []
            for key, value in changes:
                try:
                    self.engine.set_parameter(key, value)
                except RigError:
                    left.append((key, value))
            if len(left) == len(changes):
                self.engine.set_parameter(*left[0])
            changes = left

    def _statuses(self) -> Any:
        extra = {
            'time': 'host'
            if self._follower is None
            else 'lockstep'
            if self._follower.lockstep
            else 'world'
            if self._ticking
            else '/clock'
        }
        return statuses(self.engine.status(), self.sync.config, self.latency, extra)

    @property
    def published(self) -> dict[str, int]:
        """Messages sent so far, by topic."""
        return dict(self._outputs.sent)

    def report(self) -> None:
        """Publish the diagnostics now."""
        self._diagnostics.publish()

    def close(self) -> None:
        """Publish the last diagnostics, save the learned clocks, check the ledger."""
        self._diagnostics.publish_last()
        if self._follower is not None:
            self._follower.leave()
        if self.get_parameter('offsets_file').value:
            try:
                self.get_logger().info(self._learned.save())
            except RigError as error:
                self.get_logger().error(str(error))
        lost = self.engine.ledger.imbalance(self.engine.buffered())
        if lost:
            self.get_logger().error(f'messages without an account: {lost}')


def _is_runtime(config: SyncConfig, key: str) -> bool:
    return key in runtime_parameters(config)
