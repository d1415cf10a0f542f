"""The emulator node: any number of a rig's sensors, from their truth to their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from rig_common.cdr import CdrError
from rig_common.diagnostic_fields import to_values
from rig_common.errors import RigError
from rig_common.lockstep.handover import Handover
from rig_common.lockstep.messages import Tick
from rig_common.msgs import Level, Status
from rig_common.ros.clock import steady_timer
from rig_common.ros.diagnostics import Diagnostics
from rig_common.ros.follower import Follower, rig_namespace
from rig_common.ros.matching import Matching
from rig_common.ros.parameters import ConfigParameters, fix_sim_time
from rig_common.times import NEVER_NS, NS_PER_S
from sim_sensors.diagnostic_values import SensorFacts
from sim_sensors.interface import SensorConfig
from sim_sensors.interface.topics import diagnostics_topic, parameter_events_topic
from sim_sensors.pipeline.assembly import PipelineMaker
from sim_sensors.pipeline.changes_at_run_time import FIXED_KEYS
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.registry import sensor_class
from sim_sensors.ros.emulator_channel import EmulatorChannel
from sim_sensors.ros.fault_service import FaultService
from sim_sensors.simulation import Simulation
from sim_sensors.timing.fates import LOSSES, CaptureFate
from sim_sensors.world.model.model_file import whole_timestep_ns

LISTEN_PERIOD_S = 0.1
"""Wall time between two looks at who reads our topics."""


class EmulatorNode(Node):
    """Publishes each sample of its sensors at its arrival time, stamped by the sensor's clock."""

    def __init__(
        self,
        simulation: Simulation,
        sensors: Sequence[str] = (),
        name: str = 'emulator',
        *,
        handover: Handover | None = None,
        **node_options: Any,
    ) -> None:
        """Serve `sensors`, or what the parameter `only` names, or all of them.

        With `handover` the world is in this process.
        """
        world, hidden = simulation.world, simulation.world.hide_truth
        if hidden:
            node_options.setdefault(
                'cli_args',
                [
                    '--ros-args',
                    '--remap',
                    '/parameter_events:=' + parameter_events_topic(hidden=True),
                ],
            )
        super().__init__(name, **node_options)
        fix_sim_time(self)
        simulation = simulation.in_namespace(rig_namespace(self))
        self._configs = simulation.sensors
        self._num_envs = world.num_envs
        self._base = world.time_base
        self._dt_ns = whole_timestep_ns(world.timestep_s)
        self._maker = PipelineMaker(
            simulation.make_sensors(), simulation.links, self._dt_ns, self._base
        )
        self._episode, self._seed = 0, simulation.seed
        chosen = self._choose(sensors)
        self._settings = {each: self._declare(each) for each in chosen}
        self.channels = {
            each: EmulatorChannel(
                self,
                self._pipeline(each),
                hidden=hidden,
                time_base=self._base,
                on_truth=self._on_truth,
                on_sent=self._on_sent,
                on_malformed=self._on_malformed,
                now_ns=lambda: self._base.run_ns(self._follower.now_ns),
            )
            for each in chosen
        }
        self._matching = Matching(
            self,
            {
                topic: publisher
                for channel in self.channels.values()
                for topic, publisher in channel.publishers.items()
            },
        )
        self.wake: Callable[[], None] = lambda: None
        """Called when `advance` has something to do earlier than it said; set by the runner."""
        self._follower = Follower(
            self,
            self._on_time,
            serves=chosen,
            on_episode=self._on_episode,
            ready=self._ready,
            deliver=self._deliver,
            handover=handover,
            wake=lambda: self.wake(),  # noqa: PLW0108 - the runner sets another one
        )
        self._faults = FaultService(
            self, chosen, self._inject, lambda: max(self._now_ns, 0) / NS_PER_S
        )
        self._reports = [Diagnostics(self, lambda: self._follower.now_ns)]
        self._reports[0].add(self._follower.malformed.statuses)
        if hidden:
            self._reports[0].add(self._states)
            self._reports.append(
                Diagnostics(
                    self, lambda: self._follower.now_ns, topic=diagnostics_topic(hidden=True)
                )
            )
        self._reports[-1].add(self._statuses)
        self._listen()
        steady_timer(self, LISTEN_PERIOD_S, self._listen)

    # ---- setting up ---------------------------------------------------------------------------

    def _choose(self, sensors: Sequence[str]) -> list[str]:
        only: list[str] = self.declare_parameter(
            'only',
            list(sensors) or [''],
            ParameterDescriptor(
                description='Sensors this node serves; all of the rig when empty.', read_only=True
            ),
        ).value
        chosen = [name for name in only if name] or list(self._configs)
        for name in chosen:
            if name not in self._configs:
                raise RigError(
                    f'only names the sensor {name!r}; the rig has '
                    f'{", ".join(sorted(self._configs))}'
                )
        return chosen

    def _declare(self, name: str) -> ConfigParameters[SensorConfig]:
        settings = ConfigParameters(
            self,
            f'sensors.{name}.',
            self._configs[name],
            changeable=_changeable,
            fixed=lambda key: not _changeable(key),
            on_change=partial(self._reconfigure, name),
        )
        self._maker.check_stamps(name, f'sensors.{name}', settings.config)
        return settings

    def _pipeline(self, name: str) -> Pipeline:
        """Return a fresh pipeline of the present episode."""
        config = self._settings[name].config
        run = RunSetup(
            self._seed,
            self._dt_ns,
            num_envs=self._num_envs,
            episode=self._episode,
            start_ns=self._base.start_ns,
            messages=True,
            arrays=False,
        )
        sensor = sensor_class(config.type)(name, config)
        return self._maker.pipeline((name,), run, sensor)

    def advance(self) -> float:
        """Publish what is due by now; return for how long nothing will be, s of wall time."""
        return self._follower.advance()

    def on_turn(self) -> None:
        """Publish what is due, where nobody calls `advance` on time."""
        self._follower.advance()

    def report(self) -> None:
        """Publish the diagnostics now."""
        for each in self._reports:
            each.publish()

    def close(self) -> None:
        """Publish the last diagnostics and leave the lockstep."""
        for each in self._reports:
            each.publish_last()
        self._follower.leave()

    # ---- time ---------------------------------------------------------------------------------

    @property
    def _now_ns(self) -> int:
        """Latest time heard of, ns since the start of the run."""
        return self._base.run_ns(self._follower.now_ns)

    def _on_time(self, stamp_ns: int) -> int:
        next_ns, now_ns = NEVER_NS, self._base.run_ns(stamp_ns)
        for channel in self.channels.values():
            channel.publish_due(now_ns)
            next_ns = min(next_ns, channel.next_ns(now_ns))
        return self._base.stamp_ns(next_ns)

    def _wake(self, channel: EmulatorChannel) -> None:
        """Have the world call this node when `channel` has something to publish."""
        self._follower.wake_at(self._base.stamp_ns(channel.next_ns(self._now_ns)))

    def _on_truth(self, channel: EmulatorChannel, key: str) -> None:
        follower = self._follower
        if not follower.lockstep:
            follower.advance()
            channel.publish_due(self._now_ns)  # truth that was late
            self._wake(channel)
        follower.received(key)

    def _on_malformed(self, topic: str, error: CdrError) -> None:
        self._follower.malformed.note(topic, error)

    def _on_sent(self, topic: str, data: bytes) -> None:
        self._follower.sent(topic, data)

    def _deliver(self, key: str, data: bytes) -> None:
        """Take truth that came again."""
        for channel in self.channels.values():
            if key in channel.keys:
                channel.receive(channel.keys.index(key), data)

    def _on_episode(self, tick: Tick) -> None:
        self._episode, self._seed = tick.episode, tick.seed
        for name, channel in self.channels.items():
            channel.restart(self._pipeline(name))

    # ---- connections ----------------------------------------------------------------------------

    def _listen(self) -> None:
        """Subscribe to the truth of what is read, and let go of the rest."""
        changed = False
        for channel in self.channels.values():
            channel.is_counted = not channel.publishers.keys().isdisjoint(self._follower.readers)
            wanted = channel.wanted
            if wanted != channel.listening:
                channel.listen(wanted)
                changed = True
        if changed:
            self._follower.counted = {
                key
                for channel in self.channels.values()
                if channel.listening
                for key in channel.keys
            }
            self._follower.rejoin()

    def _ready(self) -> bool:
        """Whether the connections stand, so that nothing sent from now on is missed."""
        if not self._matching.stands(self._follower.readers):
            return False
        self._listen()
        return all(channel.connected for channel in self.channels.values())

    # ---- changes at run time --------------------------------------------------------------------

    def _reconfigure(self, name: str, config: SensorConfig) -> None:
        channel = self.channels[name]
        channel.reconfigure(config)
        self._wake(channel)

    def _inject(self, name: str, fault: Any) -> None:
        self.channels[name].inject(fault)

    # ---- diagnostics ----------------------------------------------------------------------------

    def _states(self) -> Iterable[Status]:
        """Yield how the sensors are, without the figures, which would reveal the truth."""
        for status in self._statuses():
            yield status._replace(values={})

    def _statuses(self) -> Iterable[Status]:
        for name, channel in self.channels.items():
            yield _status(name, channel, self._num_envs)


def _changeable(key: str) -> bool:
    return key.partition('.')[0] not in (*FIXED_KEYS, 'faults')


def _facts(channel: EmulatorChannel, num_envs: int) -> SensorFacts:
    figures, counts = channel.stats.figures(num_envs), channel.counts
    p50_ms, p95_ms, p99_ms = figures.latency_ms
    return SensorFacts(
        rate_hz=channel.stats.rate_hz,
        achieved_hz=figures.rate_hz,
        latency_p50_ms=p50_ms,
        latency_p95_ms=p95_ms,
        latency_p99_ms=p99_ms,
        late_p99_ms=figures.late_ms,
        captured=counts[CaptureFate.CAPTURED],
        published=figures.published,
        lost=sum(counts[fate] for fate in LOSSES),
        in_flight=channel.on_the_way,
    )


def _status(name: str, channel: EmulatorChannel, num_envs: int) -> Status:
    level, message = Level.OK, 'running'
    if not channel.listening:
        message = 'idle, nobody reads it'
    elif not channel.connected:
        level, message = Level.WARN, 'no world publishes its truth'
    return Status(level, name, message, to_values(_facts(channel, num_envs)))
