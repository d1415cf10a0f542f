"""One sensor inside an emulator: truth comes in, samples go out when they arrive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription
from sensor_msgs.msg import TimeReference

from rig_common import msgs
from rig_common.cdr import CdrError
from rig_common.ros import qos
from rig_common.ros.types import is_installed, message_class
from rig_common.times import NEVER_NS, NS_PER_S, TimeBase
from rig_common.topics import truth_time_topic, truth_topic
from sim_sensors.interface import Sample, SensorConfig
from sim_sensors.interface.topics import env_prefix, sensor_topics, truth_key
from sim_sensors.pipeline.pipeline import Pipeline
from sim_sensors.pipeline.stream_stats import StreamStats
from sim_sensors.timing.fates import CaptureFate
from sim_sensors.timing.faults import FaultConfig
from sim_sensors.timing.stamp_limits import require_stamps

FAR_AHEAD_NS = 3600 * NS_PER_S
"""Truth this far ahead of the last tick is no world's: drifts and walks would be computed through
every period up to it. A node that stood still finds truth ahead of its ticks, but not so far."""


class EmulatorChannel:
    """The pipeline of one sensor between `truth/<sensor>` and the sensor's own topics."""

    def __init__(
        self,
        node: Node,
        pipeline: Pipeline,
        *,
        hidden: bool,
        time_base: TimeBase,
        on_truth: Callable[[EmulatorChannel, str], None],
        on_sent: Callable[[str, bytes], None],
        on_malformed: Callable[[str, CdrError], None],
        now_ns: Callable[[], int],
    ) -> None:
        """Call `on_truth(channel, key)` after each truth, `on_sent(topic, bytes)` after each
        message.

        `on_malformed(topic, error)` hears of truth that cannot be read; it is dropped. Messages
        carry the times of `time_base`; in here all count from the start of the run. `now_ns`
        gives its time as far as ticks told it.
        """
        self._node = node
        self._on_truth, self._on_sent, self._on_malformed = on_truth, on_sent, on_malformed
        self._hidden, self._base, self._now_ns = hidden, time_base, now_ns
        sensor = pipeline.sensor
        self.name = sensor.name
        envs = range(pipeline.num_envs)
        self.keys = [truth_key(sensor.name, env, pipeline.num_envs) for env in envs]
        self._truth_type, self._template = sensor.truth_template()
        self._row = sensor.truth_layout.zeros(1)
        self._subscriptions: list[Subscription] = []
        self._topics = [sensor_topics(sensor, env, len(envs)) for env in envs]
        profile = qos.sensor_out(pipeline.schedule.rate_hz)
        self._publishers = [
            {
                t.suffix: node.create_publisher(
                    message_class(t.type_name),
                    '/' * t.is_global + self._topics[env][t.suffix],
                    profile,
                )
                for t in sensor.topics()
                if not t.is_global or is_installed(t.type_name)
            }
            for env in envs
        ]
        self._time_topics = [
            env_prefix(env, len(envs)) + truth_time_topic(sensor.name, hidden=hidden)
            for env in envs
        ]
        self._time_publishers = [
            node.create_publisher(TimeReference, topic, profile) for topic in self._time_topics
        ]
        self.publishers: dict[str, Publisher] = {
            topics[suffix]: publisher
            for topics, by_suffix in zip(self._topics, self._publishers, strict=True)
            for suffix, publisher in by_suffix.items()
        } | dict(zip(self._time_topics, self._time_publishers, strict=True))
        """All publishers of this sensor, by topic as ticks name it."""
        self._time_template = msgs.time_reference(sensor.frame_id, sensor.name)
        self.stats = StreamStats(pipeline.schedule.rate_hz)
        self.is_counted = False
        """Whether a node in lockstep counts what is sent, connected just now or not."""
        self._ignore_above_ns = NEVER_NS
        self._take(pipeline)

    def _take(self, pipeline: Pipeline) -> None:
        """Work with a pipeline that has seen no truth yet."""
        assert pipeline.in_flight is not None
        self.pipeline = pipeline
        self._in_flight = pipeline.in_flight
        self._last_truth_ns = [-1] * pipeline.num_envs
        self._expect()

    # ---- truth in -----------------------------------------------------------------------------

    @property
    def wanted(self) -> bool:
        """Whether truth is needed: somebody reads, or the sensor must not miss any."""
        sensor = self.pipeline.sensor
        return bool(
            sensor.config.eager
            or sensor.stateful
            or self.is_counted
            or any(p.get_subscription_count() for p in self.publishers.values())
        )

    @property
    def listening(self) -> bool:
        """Whether truth is subscribed to."""
        return bool(self._subscriptions)

    @property
    def connected(self) -> bool:
        """Whether every subscription has its publisher."""
        return all(s.get_publisher_count() for s in self._subscriptions)

    def listen(self, wanted: bool) -> None:
        """Subscribe to the truth, or stop."""
        if wanted and not self._subscriptions:
            truth_type = message_class(self._truth_type)
            for env in range(self.pipeline.num_envs):
                self._subscriptions.append(
                    self._node.create_subscription(
                        truth_type,
                        self._truth_topic(env),
                        partial(self.receive, env),
                        qos.internal(),
                        raw=True,
                    )
                )
        elif not wanted:
            for subscription in self._subscriptions:
                self._node.destroy_subscription(subscription)
            self._subscriptions.clear()

    def receive(self, env: int, buf: bytes) -> None:
        """Take the truth of one environment."""
        try:
            stamp_ns, blocks = self._template.read(buf)
        except CdrError as error:
            self._on_malformed(self._truth_topic(env), error)
            return
        time_ns = self._base.run_ns(stamp_ns)
        if time_ns > self._ignore_above_ns:
            return  # sent before a reset, came after it
        if time_ns <= self._last_truth_ns[env]:
            return
        ahead_ns = time_ns - max(self._now_ns(), self._last_truth_ns[env])
        if ahead_ns > FAR_AHEAD_NS:
            self._on_malformed(
                self._truth_topic(env),
                CdrError(f'its stamp is {ahead_ns // NS_PER_S} s ahead of the world'),
            )
            return
        self._last_truth_ns[env] = time_ns
        self.pipeline.sensor.blocks_to_truth(blocks, self._row[0])
        self.pipeline.tick(None if self.pipeline.num_envs == 1 else [env], time_ns, self._row)
        if time_ns >= self._expected[env][0]:
            self._expected[env] = self._capture_after(env, time_ns)
        self._on_truth(self, self.keys[env])

    def _truth_topic(self, env: int) -> str:
        topic = truth_topic(self.name, hidden=self._hidden)
        return env_prefix(env, self.pipeline.num_envs) + topic

    def restart(self, pipeline: Pipeline) -> None:
        """Go on with a fresh pipeline: the world starts again at time 0."""
        newest = max(self._last_truth_ns)
        self._ignore_above_ns = newest if newest >= 0 else NEVER_NS
        self.stats.reset()
        self._take(pipeline)

    def reconfigure(self, config: SensorConfig) -> None:
        """Take delay, noise, clock and loss of `config` from the next capture on."""
        require_stamps(
            f'sensors.{self.name}',
            config,
            self.pipeline.schedule,
            self._base,
            self.pipeline.faults,
        )
        self.pipeline.reconfigure(config)
        self._expect()

    def inject(self, fault: FaultConfig) -> None:
        """Add a fault while running; one that makes stamps impossible is refused."""
        config = self.pipeline.config
        require_stamps(
            f'sensors.{self.name}',
            config,
            self.pipeline.schedule,
            self._base,
            self.pipeline.faults.with_one(fault),
        )
        self.pipeline.inject(fault)

    # ---- samples out ----------------------------------------------------------------------------

    def publish_due(self, now_ns: int) -> None:
        """Publish every sample that has arrived by `now_ns`."""
        if now_ns >= self._ignore_above_ns:
            self._ignore_above_ns = NEVER_NS
        if self._in_flight.next_ns() > now_ns:
            return
        for sample in self.pipeline.due(now_ns):
            self._publish(sample)
            self.stats.add(sample, self._base.stamp_ns(now_ns))

    def _publish(self, sample: Sample) -> None:
        publishers, topics = self._publishers[sample.env], self._topics[sample.env]
        for topic, data in self.pipeline.sensor.encode(sample):
            if topic.suffix in publishers:
                publishers[topic.suffix].publish(data)
                self._on_sent(topics[topic.suffix], data)
        times = self._time_publishers[sample.env]
        if times.get_subscription_count():
            time_ref = divmod(sample.stamp_ns, NS_PER_S)
            data = self._time_template.fill(sample.capture_ns, time_ref=time_ref)
            times.publish(data)
            self._on_sent(self._time_topics[sample.env], data)

    def next_ns(self, now_ns: int) -> int:
        """Return the earliest time after `now_ns` at which a sample can arrive.

        Where truth is overdue (late, or from before this node joined) its coming is what wakes
        this channel, and the promise is about the captures after `now_ns`.
        """
        earliest = self._in_flight.next_ns()
        if self._subscriptions:
            for env, (_, arrival_ns) in enumerate(self._expected):
                if arrival_ns <= now_ns:
                    _, arrival_ns = self._capture_after(env, now_ns)
                earliest = min(earliest, arrival_ns)
        return earliest

    def _capture_after(self, env: int, time_ns: int) -> tuple[int, int]:
        """Return when the first capture after `time_ns` is, and when it or a later one arrives.

        It is known before the capture is made; only a fault can make the sample later than this.
        """
        schedule = self.pipeline.schedule
        k = schedule.index_before(time_ns) + 1
        return schedule.time_of(k), self.pipeline.transit.earliest_arrival(env, k, schedule)

    def _expect(self) -> None:
        """Note the captures that follow the truth that has come."""
        self._expected = [
            self._capture_after(env, last_ns) for env, last_ns in enumerate(self._last_truth_ns)
        ]

    @property
    def counts(self) -> Counter[CaptureFate]:
        """What became of the captures so far."""
        return self.pipeline.counts

    @property
    def on_the_way(self) -> int:
        """Samples that are captured and have not arrived."""
        return len(self._in_flight)
