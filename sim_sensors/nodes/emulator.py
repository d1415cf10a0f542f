"""The emulator node: any number of a rig's sensors, from their truth to their messages."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from sensor_rig.cdr import CdrError
from sensor_rig.errors import RigError
from sensor_rig.lockstep import NEVER_NS, Tick
from sensor_rig.msgs import Level, Status
from sensor_rig.rigfile import RigConfig
from sensor_rig.ros.arguments import rig_from_arguments
from sensor_rig.ros.clock import steady_timer
from sensor_rig.ros.diagnostics import Diagnostics
from sensor_rig.ros.executor import run_node
from sensor_rig.ros.follower import Follower
from sensor_rig.ros.handover import Handover
from sensor_rig.ros.matching import Matching
from sensor_rig.ros.parameters import ConfigParameters
from sensor_rig.times import NS_PER_S
from sim_sensors.config import SensorConfig
from sim_sensors.modelfile import whole_timestep_ns
from sim_sensors.pipeline import FIXED_KEYS, Pipeline
from sim_sensors.ros.emulator_channel import EmulatorChannel
from sim_sensors.ros.fault_service import FaultService
from sim_sensors.schedule import schedules_of
from sim_sensors.transit import Fate

LISTEN_PERIOD_S = 0.1
"""Wall time between two looks at who reads our topics."""


class EmulatorNode(Node):
    """Publishes each sample of its sensors at its arrival time, stamped by the sensor's clock."""

    def __init__(self, rig: RigConfig, sensors: Sequence[str] = (), name: str = 'emulator', *,
                 handover: Handover | None = None, **node_options: Any) -> None:
        """Serve `sensors` of `rig`, or what the parameter `only` names, or all of them.

        With `handover` the world is in this process.
        """
        super().__init__(name, **node_options)
        world = rig.simulated_world
        self._rig = rig
        self._num_envs = world.num_envs
        self._dt_ns = whole_timestep_ns(world.timestep_s)
        self._schedules = schedules_of(rig.sensors, self._dt_ns)
        self._episode, self._seed = 0, rig.seed
        chosen = self._choose(sensors)
        self._settings = {each: self._declare(each) for each in chosen}
        self.channels = {each: EmulatorChannel(
            self, self._pipeline(each), hidden=world.hide_truth, on_truth=self._on_truth,
            on_sent=self._on_sent, on_malformed=self._on_malformed) for each in chosen}
        self._matching = Matching(self, (p for channel in self.channels.values()
                                         for p in channel.publishers))
        self._follower = Follower(self, self._on_time, serves=chosen,
                                  on_episode=self._on_episode, ready=self._ready,
                                  handover=handover)
        self._faults = FaultService(self, chosen, self._inject,
                                    lambda: self._follower.now_ns / NS_PER_S)
        self._diagnostics = Diagnostics(self, lambda: self._follower.now_ns)
        self._diagnostics.add(self._statuses)
        self._diagnostics.add(self._follower.malformed.statuses)
        self._listen()
        steady_timer(self, LISTEN_PERIOD_S, self._listen)

    # ---- setting up ---------------------------------------------------------------------------

    def _choose(self, sensors: Sequence[str]) -> list[str]:
        only = self.declare_parameter('only', list(sensors) or [''], ParameterDescriptor(
            description='Sensors this node serves; all of the rig when empty.',
            read_only=True)).value
        chosen = [name for name in only if name] or list(self._rig.sensors)
        for name in chosen:
            if name not in self._rig.sensors:
                raise RigError(f'only names the sensor {name!r}; the rig has '
                               f'{", ".join(sorted(self._rig.sensors))}')
        return chosen

    def _declare(self, name: str) -> ConfigParameters[SensorConfig]:
        return ConfigParameters(
            self, f'sensors.{name}.', self._rig.sensors[name], changeable=_changeable,
            fixed=lambda key: not _changeable(key), on_change=partial(self._reconfigure, name))

    def _pipeline(self, name: str) -> Pipeline:
        """Return a fresh pipeline of the present episode."""
        from sim_sensors.registry import sensor_class
        config = self._settings[name].config
        sensor = sensor_class(config.type)(name, config)
        pipeline = Pipeline(sensor, self._num_envs, seed=self._seed, dt_ns=self._dt_ns,
                            schedule=self._schedules[name], messages=True, arrays=False)
        for _ in range(self._episode):
            pipeline.reset(time_ns=0)
        return pipeline

    def report(self) -> None:
        """Publish the diagnostics now."""
        self._diagnostics.publish()

    def close(self) -> None:
        """Say the last word."""
        self._diagnostics.publish_last()
        self._follower.leave()

    # ---- time ---------------------------------------------------------------------------------

    def _on_time(self, now_ns: int) -> int:
        next_ns = NEVER_NS
        for channel in self.channels.values():
            channel.publish_due(now_ns)
            next_ns = min(next_ns, channel.next_ns(now_ns))
        return next_ns

    def _on_truth(self, channel: EmulatorChannel, key: str) -> None:
        follower = self._follower
        if not follower.lockstep:
            channel.publish_due(follower.now_ns)  # truth that was late
            follower.wake_at(channel.next_ns(follower.now_ns))
        follower.received(key)

    def _on_malformed(self, topic: str, error: CdrError) -> None:
        self._follower.malformed.note(topic, error)

    def _on_sent(self, topic: str) -> None:
        self._follower.sent(topic)

    def _on_episode(self, tick: Tick) -> None:
        self._episode, self._seed = tick.episode, tick.seed
        for name, channel in self.channels.items():
            channel.restart(self._pipeline(name))

    # ---- connections ----------------------------------------------------------------------------

    def _listen(self) -> None:
        """Subscribe to the truth of what is read, and let go of the rest."""
        changed = False
        for channel in self.channels.values():
            wanted = channel.wanted
            if wanted != channel.listening:
                channel.listen(wanted)
                changed = True
        if changed:
            self._follower.counted = {key for channel in self.channels.values()
                                      if channel.listening for key in channel.keys}
            self._follower.rejoin()

    def _ready(self) -> bool:
        """Whether the connections stand, so that nothing sent from now on is missed."""
        if not self._matching.stands():
            return False
        self._listen()
        return all(channel.connected for channel in self.channels.values())

    # ---- changes at run time --------------------------------------------------------------------

    def _reconfigure(self, name: str, config: SensorConfig) -> None:
        channel = self.channels[name]
        channel.reconfigure(config)
        self._follower.wake_at(channel.next_ns(self._follower.now_ns))

    def _inject(self, name: str, fault: Any) -> None:
        self.channels[name].pipeline.inject(fault)

    # ---- diagnostics ----------------------------------------------------------------------------

    def _statuses(self) -> Iterable[Status]:
        for name, channel in self.channels.items():
            yield _status(name, channel, self._num_envs)


def _changeable(key: str) -> bool:
    return key.partition('.')[0] not in (*FIXED_KEYS, 'faults')


def _status(name: str, channel: EmulatorChannel, num_envs: int) -> Status:
    figures, counts = channel.stats.figures(num_envs), channel.counts
    lost = counts[Fate.LOST] + counts[Fate.FAULT_LOSS] + counts[Fate.DEAD]
    values = {
        'configured rate (Hz)': f'{channel.stats.rate_hz:g}',
        'achieved rate (Hz)': f'{figures.rate_hz:.3f}',
        'latency p50 (ms)': f'{figures.latency_ms[0]:.3f}',
        'latency p95 (ms)': f'{figures.latency_ms[1]:.3f}',
        'latency p99 (ms)': f'{figures.latency_ms[2]:.3f}',
        'published late by p99 (ms)': f'{figures.late_ms:.3f}',
        'captured': str(counts[Fate.CAPTURED]),
        'published': str(figures.published),
        'lost': str(lost),
        'in flight': str(channel.on_the_way),
    }
    if not channel.listening:
        return Status(Level.OK, f'emulator: {name}', 'idle, nobody reads it', values)
    if not channel.connected:
        return Status(Level.WARN, f'emulator: {name}', 'no world publishes its truth', values)
    return Status(Level.OK, f'emulator: {name}', 'running', values)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node: `emulator --rig FILE`, or with `--ros-args --params-file FILE`."""
    return run_node(lambda: EmulatorNode(rig_from_arguments(args)),
                    sys.argv if args is None else args)


if __name__ == '__main__':
    sys.exit(main())
