"""How late the commands of each actuator of each environment are, drawn by index."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats, Ids, Ints
from rig_common.times import NS_PER_S
from sim_sensors.timing.randomness.lanes import Lanes
from sim_sensors.timing.randomness.noise_stream import NoiseStream
from sim_sensors.world.actuation.transmissions import Actuators
from sim_sensors.world.config.world import WorldConfig

OWNER = 'world/actuators'
"""Name under which the draws are made; no sensor can have it."""


class CommandLatencies:
    """Draws of `delay_range_s` per environment and episode, and of `jitter_s` per command."""

    def __init__(
        self, config: WorldConfig, actuators: Actuators, num_envs: int, dt_ns: int
    ) -> None:
        """Collect what `config` says of every actuator, [nu] each."""
        self._num_envs, self._dt_ns = num_envs, dt_ns
        base = np.full(actuators.count, config.control_delay_s)
        for name, delay_s in config.control_delays_s.items():
            base[actuators.of(name, 'world.control_delays_s')] = delay_s
        self.low_s, self.high_s = base, base.copy()
        self.jitter_s = np.zeros(actuators.count)
        self.interpolation = ['zoh'] * actuators.count
        for name, each in config.actuators.items():
            for index in actuators.matching([each.joint or name], f'world.actuators.{name}'):
                if each.delay_range_s is not None:
                    self.low_s[index], self.high_s[index] = each.delay_range_s
                self.jitter_s[index] = each.jitter_s
                self.interpolation[index] = each.interpolation
        self.most_ns = round(float(self.jitter_s.max(initial=0.0)) * NS_PER_S)
        self.restart(0, 0)

    @property
    def is_none(self) -> bool:
        """Whether every command acts at once."""
        return not (self.high_s.any() or self.jitter_s.any())

    @property
    def is_drawn(self) -> bool:
        """Whether environments differ."""
        return bool((self.low_s != self.high_s).any() or self.jitter_s.any())

    def restart(self, seed: int, episode: int) -> None:
        """Begin with `seed`; all environments are in `episode`."""
        self._lanes = Lanes(seed, (OWNER,), self._num_envs, episode)
        width = max(len(self.low_s), 1)
        self._delay, self._jitter = (
            NoiseStream(self._lanes, stream, width, 'uniform') for stream in ('delay', 'jitter')
        )

    def next_episode(self, envs: Ids) -> None:
        """Let `envs` draw again."""
        self._lanes.episode[envs] += 1
        for stream in (self._delay, self._jitter):
            stream.reset(envs)

    def delays_s(self, columns: Ids) -> Floats:
        """Return the delay of the actuators `columns` in every environment, s [num_envs, n]."""
        if not (self.low_s != self.high_s).any():
            return np.tile(self.low_s[columns], (self._num_envs, 1))
        drawn = self._delay.first(slice(None))[:, : len(self.low_s)]
        return np.asarray((self.low_s + drawn * (self.high_s - self.low_s))[:, columns])

    def jitter_ns(self, columns: Ids, time_ns: int) -> Ints:
        """Return the jitter of the commands of `columns` given at `time_ns`, ns [num_envs, n]."""
        step = np.full(self._num_envs, time_ns // self._dt_ns)
        drawn = self._jitter.at(slice(None), step)[:, : len(self.low_s)]
        late_ns: Ints = (drawn * self.jitter_s * NS_PER_S).astype(np.int64)
        return late_ns[:, columns]
