"""A whole rig in one plain Python loop: world, sensors, messages; no ROS, no threads, no clock.

    rig = Rig(world, sensors, seed=7, messages=True)
    for message in rig.step(): ...          # what arrives at this tick, as CDR bytes
    rig.read('imu').values                  # or arrays [num_envs, width], for control and learning

The messages are the same, bit for bit, as those of the ROS nodes for the same rig file and seed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rig_common.arrays import Floats, Ids, Ints
from rig_common.errors import RigError
from rig_common.times import NEVER_NS, NS_PER_S, in_seconds
from sim_sensors.interface import AnySensor
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.outbox import Message, Outbox
from sim_sensors.pipeline.alike import classes_of
from sim_sensors.pipeline.assembly import PipelineMaker
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.pipeline.reading.readout import Reading, beside
from sim_sensors.pipeline.sources import Source, make_source
from sim_sensors.timing.arrays import ALL, EnvIndex, Envs
from sim_sensors.timing.config import LinkConfig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.readers import truth_readers
from sim_sensors.world.world import make_world
from sim_sensors.world.world_base import WorldBase

log = logging.getLogger(__name__)
Past = ArrayLike | Mapping[str, ArrayLike]
"""Commands [n, m, actuators], or [n, m] by name of an actuator."""


class Rig:
    """World and sensors of one rig, in lockstep.

    Made, or reset as a whole, it stands before tick 0: nothing has been measured until the first
    `step()`.
    """

    def __init__(
        self,
        world: WorldConfig,
        sensors: Iterable[AnySensor],
        *,
        seed: int = 0,
        base_dir: Path | None = None,
        messages: bool = False,
        arrays: bool = True,
        links: Mapping[str, LinkConfig] | None = None,
        together: bool = True,
        device: str = '',
        make: Callable[..., WorldBase] = make_world,
    ) -> None:
        """Build the world and the pipelines of its sensors; `links` are lines they may name.

        `messages` makes `step()` return messages, `arrays` keeps values for `read()`. The model
        is looked up in `base_dir` and among the shipped ones. Without messages, sensors that are
        alike are computed `together`. On a `device` ('cpu', 'cuda') readings are torch tensors.
        """
        if device and messages:
            raise RigError(
                f'the rig has messages and the device {device!r}; messages are made of '
                'NumPy arrays, give messages=False'
            )
        self._together, self._device = together and not messages, device
        offered = list(sensors)
        self.world = make(world, offered, base_dir, seed, links)
        self.seed = seed
        self.episode = 0
        """Number of resets of the whole rig so far."""
        self._arrays = arrays
        self._readers = truth_readers(offered, self.world, log.warning)
        self.sensors = {each.name: each for each in offered if each.name in self._readers}
        """The sensors that run, by name."""
        self._maker = PipelineMaker(
            {each.name: each for each in offered},
            links or {},
            self.world.dt_ns,
            self.world.time_base,
        )
        for name in self.sensors:
            self._maker.check_stamps(name, f'sensor {name!r}')
        self._outbox = Outbox(self.sensors, self.num_envs) if messages else None
        self._sources: dict[str, Source] = {}
        self._build()

    def _build(self) -> None:
        """Make fresh pipelines for the present seed and episode."""
        world = self.world
        watched = {name for name, source in self._sources.items() if source.pipeline.watched}
        classes = (
            classes_of(self.sensors, self._maker.schedules, self._readers)
            if self._together
            else [(name,) for name in self.sensors]
        )
        run = RunSetup(
            self.seed,
            world.dt_ns,
            num_envs=world.num_envs,
            episode=self.episode,
            start_ns=world.time_base.start_ns,
            messages=self._outbox is not None,
            arrays=self._arrays,
            device=self._device,
        )
        self._in_order: list[Source] = []
        for names in classes:
            pipeline = self._maker.pipeline(names, run)
            pipeline.watched = not watched.isdisjoint(names)
            source = make_source(world, [self._readers[name] for name in names], pipeline)
            self._in_order.append(source)
            self._sources |= dict.fromkeys(names, source)
        if self._outbox is not None:
            self._outbox.restart([source.pipeline for source in self._in_order])
        self._next_ns = 0
        """When the sensors have something to do; most steps they have not."""

    # ---- time -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Return one line: its sensors, environments and time."""
        copies = f'{self.num_envs} environments, ' if self.num_envs > 1 else ''
        return (
            f'{type(self).__name__}({copies}{len(self.sensors)} sensors: '
            f'{", ".join(self.sensors)}; at {in_seconds(self.time_ns)})'
        )

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return self.world.num_envs

    @property
    def time_ns(self) -> int:
        """Simulated time of the present tick, ns: the time base of messages and readings."""
        return self.world.stamp_ns

    @property
    def elapsed_ns(self) -> int:
        """Time since the start of the run, ns; negative before the first tick."""
        return self.world.time_ns

    @property
    def pipelines(self) -> dict[str, Pipeline]:
        """The pipelines, for faults, counts and changes while running."""
        return {name: source.pipeline for name, source in self._sources.items()}

    def step(self, *, force_recompute: bool = False) -> list[Message]:
        """Move on by one physics step; return the messages that arrive by now, in that order.

        `force_recompute` captures what is due now even where nobody may read it.
        """
        world = self.world
        world.step()
        now_ns = world.time_ns
        if self._next_ns <= now_ns:
            self._advance(now_ns, force_recompute or not world.config.lazy_sensor_update)
        outbox = self._outbox
        return outbox.due(now_ns) if outbox is not None and outbox.next_ns <= now_ns else []

    def _advance(self, now_ns: int, force_recompute: bool) -> None:
        """Let the sensors take what is due."""
        next_ns = NEVER_NS
        for source in self._in_order:
            if source.next_ns <= now_ns:
                source.advance(now_ns, force_recompute)
            next_ns = min(next_ns, source.next_ns)
        self._next_ns = next_ns
        if self._outbox is not None:
            self._outbox.look()

    def set_watched(self, *names: str, on: bool = True) -> None:
        """Capture these sensors (all, if none is named) on schedule while somebody looks on."""
        for name in names or self._sources:
            if name not in self._sources:
                raise RigError(unknown_name('set_watched', 'sensor', name, self._sources))
            self._sources[name].pipeline.watched = on

    def run(self, duration_s: float) -> Iterable[Message]:
        """Yield the messages of the next `duration_s` simulated seconds, tick by tick."""
        for _ in range(round(duration_s * NS_PER_S / self.world.dt_ns)):
            yield from self.step()

    # ---- arrays ---------------------------------------------------------------------------

    def read(
        self,
        name: str,
        envs: Envs = None,
        history_length: int | None = None,
        *,
        at_ns: int | ArrayLike | None = None,
        interpolation: str | None = None,
    ) -> Reading:
        """Return what sensor `name` has delivered by now, [n, width]; see `Pipeline.read`.

        `at_ns` asks for an earlier time of `time_ns`' base, one for all or one for each of `envs`.
        """
        pipeline = self._ready(name)
        return self._outside(
            pipeline.read(
                self._inside(at_ns),
                envs,
                history_length,
                interpolation=interpolation,
                member=pipeline.names.index(name),
            )
        )

    def read_ground_truth(
        self, name: str, envs: Envs = None, history_length: int | None = None
    ) -> Reading:
        """Return the newest capture without noise, delay or loss."""
        pipeline = self._ready(name)
        return self._outside(
            pipeline.read_ground_truth(envs, history_length, member=pipeline.names.index(name))
        )

    @overload
    def read_sensors(self, kind: str, *args: Any, **keys: Any) -> Reading: ...
    @overload
    def read_sensors(self, kind: None = None, *args: Any, **keys: Any) -> dict[str, Reading]: ...
    def read_sensors(
        self,
        kind: str | None = None,
        envs: Envs = None,
        history_length: int | None = None,
        *,
        at_ns: int | ArrayLike | None = None,
        interpolation: str | None = None,
    ) -> Reading | dict[str, Reading]:
        """Return all sensors of type `kind` in one reading, [n, sensors, width].

        They are in the order of `names_of(kind)`, with a history [n, sensors, history, width]. The
        arrays are yours. Without a `kind`: such a reading of every type, by type.
        """
        if kind is None:
            return {
                each: self.read_sensors(
                    each, envs, history_length, at_ns=at_ns, interpolation=interpolation
                )
                for each in dict.fromkeys(sensor.config.type for sensor in self.sensors.values())
            }
        names = self.names_of(kind)
        widths = {self.sensors[name].return_layout for name in names}
        if len(widths) > 1:
            raise RigError(
                f'sensors of type {kind!r} return rows of '
                f'{len({each.width for each in widths})} widths or types; read them by '
                f'name: {", ".join(names)}'
            )
        columns: list[Reading | None] = [None] * len(names)
        for pipeline in {id(self._ready(name)): self._ready(name) for name in names}.values():
            together = pipeline.read(
                self._inside(at_ns), envs, history_length, interpolation=interpolation
            ).by_member(len(pipeline.names))
            if pipeline.names == names:
                return self._outside(together)
            for member, name in enumerate(pipeline.names):
                columns[names.index(name)] = together.of_member(member)
        return self._outside(beside(pipeline.xp, [each for each in columns if each is not None]))

    def names_of(self, kind: str) -> tuple[str, ...]:
        """Return the names of the sensors of a type, in the order of the rig file."""
        names = tuple(name for name, sensor in self.sensors.items() if sensor.config.type == kind)
        if not names:
            known = {sensor.config.type: None for sensor in self.sensors.values()}
            raise RigError(unknown_name('read', 'type of sensor in this rig', kind, known))
        return names

    def init_sensor_history(
        self,
        name: str,
        times_ns: ArrayLike,
        values: ArrayLike,
        phase_ns: int | ArrayLike | None = None,
        envs: Envs = None,
    ) -> None:
        """Let sensor `name` have measured `values` [n, m, width] at times [m] or [n, m].

        See `Pipeline.start_history`; times have the base of `time_ns`.
        """
        pipeline, inside = self._ready(name), self.world.time_base.run_ns
        pipeline.start_history(
            inside(pipeline.xp.asarray(times_ns, np.int64)),
            values,
            None if phase_ns is None else inside(pipeline.xp.asarray(phase_ns, np.int64)),
            envs,
            member=pipeline.names.index(name),
        )

    def _inside(self, at_ns: int | ArrayLike | None) -> int | Ints:
        """Return times of `time_ns`' base as times since the start of the run."""
        if at_ns is None:
            return self.world.time_ns
        times_ns = np.asarray(at_ns, np.int64)
        latest_ns = int(times_ns.max(initial=0))
        if latest_ns > self.time_ns:
            raise RigError(f'at_ns is {latest_ns}, which is after the present, {self.time_ns}')
        base = self.world.time_base
        return base.run_ns(at_ns) if isinstance(at_ns, int) else base.run_ns(times_ns)

    def _outside(self, reading: Reading) -> Reading:
        """Give the times of a reading the time base of `time_ns`, in place."""
        if start_ns := self.world.time_base.start_ns:
            for times_ns in (reading.capture_ns, reading.stamp_ns):
                times_ns += reading.valid * start_ns
        return reading

    def _ready(self, name: str) -> Pipeline:
        if name not in self._sources:
            raise RigError(unknown_name('read', 'sensor', name, self._sources))
        if not self._arrays:
            raise RigError('this rig was made with arrays=False, so it keeps nothing to read')
        if self.world.tick < 0:
            raise RigError('nothing has been measured yet; step() the rig first')
        pipeline = self._sources[name].pipeline
        pipeline.update(self.world.time_ns)
        return pipeline

    # ---- commands and resets --------------------------------------------------------------

    def command(self, values: Mapping[str, float], envs: EnvIndex = ALL) -> None:
        """Set actuator commands by name (see `World.command`)."""
        self.world.command(values, envs)

    def read_ctrl(
        self,
        actuator: str | None = None,
        *,
        at_ns: int | ArrayLike | None = None,
        interpolation: str | None = None,
    ) -> Floats:
        """Return the commands that have reached every actuator, [num_envs, actuators], or one.

        `at_ns` asks for an earlier time, one for all environments or one for each. They are in the
        order of their numbers in `world.actuators`.
        """
        actuation = self.world.actuation
        found = actuation.received(self._inside(at_ns), interpolation)
        return found if actuator is None else found[:, actuation.actuators.of(actuator)[0]]

    def init_ctrl_history(self, times_ns: ArrayLike, values: Past, envs: Envs = None) -> None:
        """Let `envs` have been commanded `values` [n, m, actuators] at past times [m].

        By name of an actuator they are [n, m] each, and the others have held their start.
        Only before the first `step()`: later the step that begins now has been computed already.
        For some environments later on there is `reset(envs, commands=(times_ns, values))`.
        """
        if self.world.tick >= 0:
            raise RigError(
                'a history of commands is given before the first step; later give it with '
                'the reset that begins an episode: reset(envs, commands=(times_ns, values))'
            )
        self.world.actuation.start_history(*self._commands((times_ns, values)), envs)

    def _commands(self, given: tuple[ArrayLike, Past]) -> tuple[Ints, Any]:
        """Return times and values of a history of commands, the times as the world counts them."""
        return self.world.time_base.run_ns(np.asarray(given[0], np.int64)), given[1]

    def command_twist(
        self, forward_m_s: ArrayLike, turn_rad_s: ArrayLike, envs: EnvIndex = ALL
    ) -> None:
        """Drive the base (see `World.command_twist`)."""
        self.world.command_twist(forward_m_s, turn_rad_s, envs)

    def reset(
        self,
        envs: Sequence[int] | Ids | None = None,
        *,
        seed: int | None = None,
        commands: tuple[ArrayLike, Past] | None = None,
    ) -> None:
        """Go back to the start.

        Without `envs` the whole rig stands before tick 0 again: with a `seed` exactly as if newly
        made, without one in a new episode of the old seed (other noise, other delays). With `envs`
        time goes on, and these environments begin a new episode now. With `commands`, past times
        [m] and values [n, m, actuators], they have been commanded these before.
        """
        history = None if commands is None else self._commands(commands)
        if envs is None:
            self.episode = self.episode + 1 if seed is None else 0
            self.seed = self.seed if seed is None else seed
            self.world.reset(seed=seed, commands=history)
            self._build()
            return
        if seed is not None:
            raise RigError('a seed belongs to the whole rig; reset all environments to change it')
        if self.world.tick < 0:
            raise RigError('the rig stands at its start already; step() it first')
        chosen = np.unique(np.asarray(envs, np.intp))
        self.world.reset(chosen, commands=history)
        for source in self._in_order:
            source.reset(chosen, self.world.time_ns)
        self._next_ns = self.world.time_ns  # look again at both
        if self._outbox is not None:
            self._outbox.look()
