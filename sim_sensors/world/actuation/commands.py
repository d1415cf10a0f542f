"""The way of a command: wanted values -> delay lines -> PD layer -> ctrl.

What is wanted is one row per environment: the raw ctrl of every actuator and, where there is a PD
layer, length, rate and effort of each actuator that it holds. Every column has a delay line of its
actuator's latency. The PD layer sits behind the delay, as a motor's own electronics do: a late
target is late, but the loop around it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rig_common.arrays import Floats, Ids, Ints
from rig_common.errors import RigError
from sim_sensors.timing.arrays import EnvIndex
from sim_sensors.world.actuation.command_latencies import CommandLatencies
from sim_sensors.world.actuation.delay_lines import ControlDelay
from sim_sensors.world.actuation.servo import Servo
from sim_sensors.world.actuation.transmissions import WHAT, Actuators, Field
from sim_sensors.world.config.world import WorldConfig

Changes = list[tuple[int, float]]
"""Columns of `wanted` and their new values."""


class Actuation:
    """What is wanted of the actuators of every environment, and what they get."""

    def __init__(
        self, config: WorldConfig, actuators: Actuators, home: Floats, num_envs: int, dt_ns: int
    ) -> None:
        """Begin with the raw commands `home` [nu], without a PD layer."""
        self._config, self._dt_ns, self._num_envs = config, dt_ns, num_envs
        self.actuators = actuators
        self.servo: Servo | None = None
        self.start: Floats = home.copy()
        """What is wanted at the start of an episode, [nu + 3 n]."""
        self._latencies = CommandLatencies(config, actuators, num_envs, dt_ns)
        self._columns = np.arange(actuators.count)
        """Actuator that each column of what is wanted belongs to."""
        self.reset(None)

    def add_servo(self, servo: Servo, lengths: Floats) -> None:
        """Put a PD layer before the actuators, which starts at `lengths` [n]."""
        if self._config.control_delay_backend == 'mujoco' and not self._latencies.is_none:
            raise RigError(
                'world.control_delay_backend is mujoco, which would delay what the PD '
                'layer of the driver answers, not what it is told; use rig'
            )
        self.servo = servo
        count = len(servo.chosen)
        self.start = np.r_[self.start[: self.actuators.count], lengths, np.zeros(2 * count)]
        self._columns = np.r_[self._columns, np.tile(servo.chosen, 3)]
        self.reset(None)

    def reset(self, envs: Ids | None, seed: int = 0, episode: int = 0) -> None:
        """Let `envs` want what they did at the start; None also restarts time, with `seed`."""
        if envs is None:
            self.wanted: Floats = np.tile(self.start, (self._num_envs, 1))
            self._latencies.restart(seed, episode)
            self._line = self._new_line()
            return
        self.wanted[envs] = self.start
        if self._line is not None:
            if self._latencies.is_drawn:
                self._latencies.next_episode(envs)
                self._line.set_delays(self._latencies.delays_s(self._columns)[envs], envs)
            self._line.reset(envs, self.start)

    @property
    def ctrl(self) -> Floats:
        """Wanted raw commands, [E, nu]; a view."""
        return self.wanted[:, : self.actuators.count]

    @property
    def lengths(self) -> Floats:
        """Wanted lengths of the PD layer, [E, n]; a view."""
        return self._part(self.wanted, 0)

    @property
    def rates(self) -> Floats:
        """Wanted rates of the PD layer, [E, n]; a view."""
        return self._part(self.wanted, 1)

    def outputs(self, time_ns: int, bound: Callable[[str], Floats]) -> Floats:
        """Return the ctrl of all actuators at `time_ns`, [E, nu]."""
        wanted = self.wanted
        if self._line is not None:
            self._line.set(time_ns, wanted)
            wanted = self._line.read(time_ns)
        return self._held(wanted, bound)

    def first_outputs(self, time_ns: int, envs: Ids, bound: Callable[[str], Floats]) -> Floats:
        """Return the ctrl at `time_ns`, [E, nu], at which an episode of `envs` begins."""
        wanted = self.wanted
        if self._line is not None:
            self._line.set(time_ns, wanted[envs], envs)
            wanted = self._line.read(time_ns)
        return self._held(wanted, bound)

    def _held(self, wanted: Floats, bound: Callable[[str], Floats]) -> Floats:
        """Return the ctrl [E, nu] for what is `wanted` [E, width], the PD layer's among it."""
        if self.servo is None:
            return wanted
        ctrl = wanted[:, : self.actuators.count].copy()
        load = bound('qfrc_bias') - bound('qfrc_spring') - bound('qfrc_gravcomp')
        self.servo.write(
            ctrl,
            (self._part(wanted, 0), self._part(wanted, 1), self._part(wanted, 2)),
            bound('actuator_length'),
            bound('qvel'),
            load,
        )
        return ctrl

    def _part(self, wanted: Floats, part: int) -> Floats:
        count = 0 if self.servo is None else len(self.servo.chosen)
        first = self.actuators.count + part * count
        return wanted[:, first : first + count]

    # ---- commands -----------------------------------------------------------------------------

    def raw_changes(self, values: Mapping[str, float]) -> Changes:
        """Return what changes for commands by name, in the actuators' own units."""
        changes = []
        for name, value in values.items():
            held = self.actuators.of(name)
            if len(held) > 1:
                raise RigError(
                    f'the command is for {name!r}, which {len(held)} actuators drive; '
                    f'name one of '
                    f'{", ".join(self.actuators.labels[each] for each in held)}'
                )
            index = held[0]
            if not np.isfinite(value):
                raise RigError(f'the command of actuator {name!r} is {value}; it must be finite')
            if self._is_held(index):
                raise RigError(
                    f'the command is for actuator {name!r}, which the PD layer of the '
                    f'driver holds; give it a position, a velocity or an effort'
                )
            changes.append((index, float(value)))
        return changes

    def joint_changes(self, values: Mapping[str, Mapping[Field, float]]) -> Changes:
        """Return what changes for positions, velocities and efforts by name, in joint units.

        NaN is not given. Each goes to the actuators that take it. A position or velocity for a
        torque motor needs a PD layer; of a joint whose actuators take none, nothing changes.
        """
        changes: Changes = []
        for name, fields in values.items():
            given = {field: value for field, value in fields.items() if not np.isnan(value)}
            for field, value in given.items():
                if not np.isfinite(value):
                    raise RigError(f'the {field} of {name!r} is {value}; it must be finite')
            if given:
                changes += self._joint(name, given)
        return changes

    def _joint(self, name: str, given: Mapping[Field, float]) -> Changes:
        found = self.actuators.of(name)
        kinds = [self.actuators.kinds[index] for index in found]
        if len(set(kinds)) < len(kinds):
            raise RigError(
                f'the command is for {name!r}, which {len(found)} actuators of one '
                f'kind drive; name one of '
                f'{", ".join(self.actuators.labels[each] for each in found)}'
            )
        changes: Changes = []
        for index, kind in zip(found, kinds, strict=True):
            if self.servo is not None and index in self.servo.row:
                changes += self._held_joint(self.servo, index, given)
            elif kind in given:
                changes.append((index, self.actuators.ctrl(index, given[kind])))
        motion = [field for field in given if field != 'effort']
        if set(kinds) == {'effort'} and motion and not self._is_held(found[0]):
            raise RigError(
                f'{name!r} is given a {motion[0]} but driven by a torque motor, which '
                f'takes effort; a PD layer takes both (world.driver: {{type: hold}})'
            )
        if not changes:
            raise RigError(
                f'{name!r} is given {" and ".join(given)} but driven by {WHAT[kinds[0]]}'
            )
        return changes

    def _is_held(self, index: int) -> bool:
        return self.servo is not None and index in self.servo.row

    def _held_joint(self, servo: Servo, index: int, given: Mapping[Field, float]) -> Changes:
        row, count = servo.row[index], len(servo.chosen)
        gear = servo.gear[row]
        scaled = {'position': gear, 'velocity': gear, 'effort': 1.0 / gear}
        first = self.actuators.count + row
        return [
            (first + part * count, given[field] * scaled[field])
            for part, field in enumerate(scaled)
            if field in given
        ]

    def apply(self, changes: Changes, envs: EnvIndex) -> None:
        """Make `changes` in `envs`."""
        for column, value in changes:
            self.wanted[envs, column] = value

    # ---- what has arrived ---------------------------------------------------------------------

    def received(self, time_ns: int | Ints, interpolation: str | None) -> Floats:
        """Return the raw commands that actuators have received by `time_ns`, [E, nu]."""
        if self._line is None:
            return self.ctrl.copy()
        return self._line.read(time_ns, interpolation)[:, : self.actuators.count]

    def start_history(
        self, times_ns: Ints, values: Floats | Mapping[str, ArrayLike], envs: EnvIndex | None
    ) -> None:
        """Let `envs` have been commanded `values` [n, m, nu] at past `times_ns` [m].

        By name of an actuator they are [n, m] each; the others held what they hold at the start.
        """
        if self._line is None:
            raise RigError(
                'a history of commands needs a latency (world.control_delay_s); here '
                'every command arrives at once'
            )
        chosen = np.arange(self._num_envs)[slice(None) if envs is None else envs]
        count = self.actuators.count
        rows = np.repeat(self.wanted[chosen][:, None], len(times_ns), axis=1)
        given: dict[str, tuple[ArrayLike, Any]] = (
            {name: (each, self.actuators.of(name)[0]) for name, each in values.items()}
            if isinstance(values, Mapping)
            else {'': (values, slice(count))}
        )
        for name, (each, columns) in given.items():
            wanted = rows[:, :, columns]
            if np.shape(each) != wanted.shape:
                raise RigError(
                    f'the history of commands{name and " of "}{name} has the shape '
                    f'{list(np.shape(each))}; it must be {list(wanted.shape)}: environments, times'
                    f'{"" if name else ", actuators"}'
                )
            wanted[...] = each
        rows = rows.swapaxes(0, 1)
        self._line.start_history(times_ns, rows, slice(None) if envs is None else chosen)

    # ---- latency ------------------------------------------------------------------------------

    def _new_line(self) -> ControlDelay | None:
        latencies = self._latencies
        if self._config.control_delay_backend == 'mujoco' or latencies.is_none:
            return None
        return ControlDelay(
            self._num_envs,
            len(self._columns),
            latencies.delays_s(self._columns),
            self._dt_ns,
            [latencies.interpolation[index] for index in self._columns],
            self.start,
            partial(latencies.jitter_ns, self._columns) if latencies.most_ns else None,
            latencies.most_ns,
            latencies.high_s[self._columns],
        )
