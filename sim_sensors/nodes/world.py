"""The world node: owns simulated time, steps MuJoCo and publishes the truth."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.event_handler import PublisherEventCallbacks, QoSPublisherMatchedInfo
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.diagnostic_fields import to_values
from rig_common.errors import RigError
from rig_common.lockstep.again import Again, Kept
from rig_common.lockstep.handover import Handover
from rig_common.lockstep.messages import ACK_TOPIC, SETTLED_TOPIC, TICK_TOPIC, Ack, Tick
from rig_common.malformed import Malformed
from rig_common.msgs import Level, Status
from rig_common.ros import qos
from rig_common.ros.diagnostics import Diagnostics
from rig_common.ros.follower import AgainTopic, rig_namespace
from rig_common.ros.matching import Matching
from rig_common.ros.parameters import ConfigParameters, fix_sim_time
from rig_common.ros.types import is_installed
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.diagnostic_values import WorldFacts
from sim_sensors.interface import AnySensor
from sim_sensors.interface.topics import CLOCK_TOPIC
from sim_sensors.pipeline.assembly import refuse_drawn_phases, schedules_of
from sim_sensors.ros.commands import Commands
from sim_sensors.ros.controls import WorldServices
from sim_sensors.ros.other_worlds import OtherWorlds
from sim_sensors.ros.periodics import Clock, Odometry
from sim_sensors.ros.scene import (
    Markers,
    Transforms,
    publish_description,
)
from sim_sensors.ros.truth_channels import HeavyChannel, TruthChannel
from sim_sensors.simulation import Simulation
from sim_sensors.timekeeping.conductor import Conductor
from sim_sensors.timekeeping.pacer import Pacer
from sim_sensors.timekeeping.world_loop import WorldLoop
from sim_sensors.timing.schedule import Schedule
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.readers import truth_readers
from sim_sensors.world.scene.pose_messages import TF_TYPE
from sim_sensors.world.world import make_world

CHANGEABLE = ('real_time_factor',)
"""Keys of `world:` that can be set while it runs."""
SHARED = ('timestep_s', 'start_time_s', 'num_envs', 'hide_truth', 'frame_prefix', 'base_frame')
"""Keys of `world:` that emulators go by as well, so that only the rig file can set them."""
WARN_PERIOD_S = 10.0
TOO_SLOW = 'too slow for a real-time factor of'


class WorldNode(Node):
    """Steps the world of a rig. Whoever runs it calls `advance` between turns of the executor."""

    def __init__(
        self,
        simulation: Simulation,
        name: str = 'world',
        *,
        collectors: Sequence[str] = (),
        handover: Handover | None = None,
        **node_options: Any,
    ) -> None:
        """Make the world; with `handover`, for followers in this process too.

        `collectors` are the nodes that lockstep waits for besides the emulators and those that
        `world.wait_for` names, unless the parameter `waits_for_sync` is false.
        """
        super().__init__(name, **node_options)
        self.set_parameters([Parameter('use_sim_time', value=False)])  # it publishes /clock itself
        fix_sim_time(self)
        simulation = simulation.in_namespace(rig_namespace(self))
        self._handover = handover
        self.wake: Callable[[], None] = lambda: None
        """Called when `advance` has something to do earlier than it said; set by the runner."""
        self._settings = ConfigParameters(
            self,
            'world.',
            simulation.world,
            changeable=lambda key: key in CHANGEABLE,
            on_change=self._reconfigure,
            fixed=lambda key: key in SHARED,
        )
        config = self._settings.config
        config.require_lockstep_to_wait()
        sensors = simulation.make_sensors()
        self.world = make_world(
            config, sensors.values(), simulation.folder, simulation.seed, simulation.links
        )
        events = PublisherEventCallbacks(matched=self._on_match if config.lockstep else None)
        kept = Kept()
        self.channels = self._make_channels(sensors, events, kept)
        self._tick, self._settled = (
            self.create_publisher(TimeReference, topic, qos.beat_out(), event_callbacks=events)
            for topic in (TICK_TOPIC, SETTLED_TOPIC)
        )
        matching = Matching(
            self,
            {
                TICK_TOPIC: self._tick,
                SETTLED_TOPIC: self._settled,
                **{
                    key: publisher
                    for channel in self.channels
                    for key, publisher in zip(channel.keys, channel.publishers, strict=True)
                },
            },
        )
        run = f'{time.time_ns():x}.{os.getpid():x}'  # OtherWorlds reads which began first
        self.conductor = Conductor(
            dt_ns=self.world.dt_ns,
            seed=simulation.seed,
            lockstep=config.lockstep,
            sensors=[channel.sensor.name for channel in self.channels],
            collectors=[*(collectors if self._waits_for_sync() else ()), *config.wait_for],
            timeout_s=config.lockstep_timeout_s,
            send_tick=partial(self._send, self._tick, TICK_TOPIC),
            send_settled=partial(self._send, self._settled, SETTLED_TOPIC),
            connected=matching.stands,
            run=run,
            kept=kept,
            time_base=self.world.time_base,
        )
        self.loop = self._make_loop(config, list(sensors.values()))
        self.create_subscription(TimeReference, ACK_TOPIC, self._on_ack, qos.internal(), raw=True)
        self._others = OtherWorlds(self, self._tick, run)
        if handover is not None:
            handover.conduct(self._hear)
        self._commands = Commands(self, self.world, self._on_command)
        self.conductor.expect_commands(self._commands.topics)
        self._controls = WorldServices(self, self.loop, simulation.seed)
        self._diagnostics = Diagnostics(self, lambda: self.world.stamp_ns)
        self._diagnostics.add(self._statuses)
        self._malformed = Malformed()
        self._diagnostics.add(self._malformed.statuses)
        if config.lockstep:
            self._again = AgainTopic(self, TICK_TOPIC, self._on_again, self._malformed)

    def advance(self) -> float:
        """Do what is due now; return for how long nothing will be, s of wall time."""
        self._others.require_none()
        try:
            return self.loop.advance()
        except RigError as error:
            if self._others.found:
                raise RigError(f'{self._others.sentence} ({error})') from None
            raise

    def report(self) -> None:
        """Publish the diagnostics now."""
        self._diagnostics.publish()

    def close(self) -> None:
        """Publish the last diagnostics and end the worker threads."""
        self._diagnostics.publish_last()
        if self._handover is not None:
            self._handover.conduct(None)
        for channel in self.channels:
            channel.close()

    # ---- setting up ---------------------------------------------------------------------------

    def _make_channels(
        self, sensors: dict[str, AnySensor], events: PublisherEventCallbacks, kept: Kept
    ) -> list[TruthChannel]:
        configs = {name: each.config for name, each in sensors.items()}
        refuse_drawn_phases(configs)
        schedules = schedules_of(configs, self.world.dt_ns)
        readers = truth_readers(sensors.values(), self.world, self.get_logger().warning)
        channels = []
        for name, reader in readers.items():
            kind = HeavyChannel if sensors[name].heavy else TruthChannel
            channels.append(
                kind(
                    self,
                    sensors[name],
                    sensors[name].truth_ticks(schedules[name]),
                    reader,
                    self.world,
                    hidden=self.world.config.hide_truth,
                    counts=self._counts,
                    kept=kept,
                    events=events,
                )
            )
        return channels

    def _waits_for_sync(self) -> bool:
        text = 'Whether lockstep waits for the sync node of the rig; false where nobody starts it.'
        described = ParameterDescriptor(description=text, read_only=True)
        return bool(self.declare_parameter('waits_for_sync', True, described).value)

    def _make_loop(self, config: WorldConfig, sensors: list[AnySensor]) -> WorldLoop:
        dt_ns = self.world.dt_ns
        self._sim_clock = Clock(
            self, Schedule(min(config.clock_rate_hz, 1e9 / dt_ns), dt_ns, name=CLOCK_TOPIC)
        )
        self._markers = Markers(self, self.world)
        periodics: list[Any] = [
            self._sim_clock,
            Odometry(self, self.world),
            self._markers,
        ]
        if is_installed(TF_TYPE) and self.world.num_envs == 1:
            periodics.append(Transforms(self, self.world, sensors))
        publish_description(self, self.world)
        loop = WorldLoop(
            self.world,
            self.conductor,
            Pacer(config.real_time_factor),
            self.channels,
            periodics,
            self._while_paused,
        )
        stop_at_s: float = self.declare_parameter(
            'stop_at_s',
            0.0,
            ParameterDescriptor(
                description='Time of the run at which the world stands still (s); 0 is never.',
                read_only=True,
            ),
        ).value
        if stop_at_s:
            loop.stop_ns = -(-seconds_to_ns(stop_at_s) // dt_ns) * dt_ns
        return loop

    # ---- running ------------------------------------------------------------------------------

    def _send(self, publisher: Publisher, topic: str, tick: Tick) -> None:
        if self._handover is not None:
            self._handover.tick(topic, tick)
            if not publisher.get_subscription_count():
                return
        publisher.publish(tick.encode())

    def _on_ack(self, buf: bytes) -> None:
        try:
            ack = Ack.decode(buf)
        except CdrError as error:
            self._malformed.note(ACK_TOPIC, error)
            return
        self._hear(ack)

    def _counts(self, key: str) -> bool:
        return self.conductor.counts(key)

    def _on_again(self, asked: Again) -> None:
        for again in self.conductor.answers(asked):
            self._again.send(again)

    def _on_match(self, match: QoSPublisherMatchedInfo) -> None:
        if match.current_count_change < 0:
            self.conductor.lost_reader()

    def _on_command(self, topic: str) -> None:
        self.conductor.on_command(topic)
        if self.loop.is_early():
            self.wake()

    def _hear(self, ack: Ack) -> None:
        self.conductor.on_ack(ack)
        if self.loop.is_early():
            self.wake()

    def _while_paused(self) -> None:
        self._sim_clock.publish(self.world)
        self._markers.show_newcomers(self.world)

    def _reconfigure(self, config: WorldConfig) -> None:
        self.loop.set_factor(config.real_time_factor)

    # ---- diagnostics ----------------------------------------------------------------------------

    def _statuses(self) -> Iterable[Status]:
        pacer, conductor = self.loop.pacer, self.conductor
        achieved = pacer.achieved
        facts = WorldFacts(
            simulated_s=self.world.time_ns / NS_PER_S,
            factor_wanted=pacer.factor or None,
            factor_achieved=achieved,
            slowed_s=pacer.slipped_s,
            resets=self.loop.resets,
            lockstep=conductor.lockstep,
            nodes=' '.join(sorted(conductor.roster.members)),
        )
        level, message = self._health(achieved)
        if message.startswith(TOO_SLOW):
            self.get_logger().warning(message, once=True)  # the status says it from then on
        elif level != Level.OK:
            self.get_logger().warning(message, throttle_duration_sec=WARN_PERIOD_S)
        yield Status(level, 'time', message, to_values(facts))

    def _health(self, achieved: float | None) -> tuple[Level, str]:
        pacer, conductor = self.loop.pacer, self.conductor
        if self._others.found:
            return Level.ERROR, self._others.sentence
        if conductor.stuck(time.monotonic()):
            return Level.WARN, f'waits for {", ".join(conductor.waiting_for)}'
        if self.loop.paused:
            return Level.OK, 'paused'
        silent = conductor.silent(time.monotonic())
        if silent:
            return Level.WARN, f'goes on without {", ".join(silent)}, which is silent'
        if pacer.factor and achieved is not None and achieved < 0.98 * pacer.factor:
            return (
                Level.WARN,
                f'{TOO_SLOW} {pacer.factor:g}: '
                f'{achieved:.2f} achieved; the clock is slowed, no capture is skipped',
            )
        return Level.OK, 'running'
