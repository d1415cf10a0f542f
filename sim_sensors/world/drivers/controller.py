"""The user's own controller or policy in the loop: one class for every way of running.

    class Balance:
        rate_hz = 100.0
        reads = ('imu', 'joint_states')          # late and noisy; () sees the truth instead

        def __init__(self, model, num_envs, **options): ...
        def reset(self, envs): ...               # optional
        def act(self, seen): return {'hip': ...} # or an array [num_envs, nu] of raw commands

What it reads comes from pipelines of its own, by the seed of the rig: noise and delays are drawn
by index, so the values are those of the rig's sensors, in plain Python and in the world node.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rig_common.arrays import Floats, Ids
from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.pipeline.assembly import PipelineMaker
from sim_sensors.pipeline.pipeline import RunSetup
from sim_sensors.pipeline.reading.readout import Reading
from sim_sensors.pipeline.sources import Source, make_source
from sim_sensors.world.config.drivers import PythonConfig
from sim_sensors.world.readers import truth_reader
from sim_sensors.world.world_base import Driver, WorldBase


@dataclass(frozen=True)
class Truth:
    """The true state of all environments when a controller is asked."""

    qpos: Floats
    """[num_envs, nq]"""
    qvel: Floats
    """[num_envs, nv]"""
    sensordata: Floats
    """MuJoCo's own, [num_envs, nsensordata]."""


@dataclass(frozen=True)
class Seen:
    """What a controller is given."""

    time_s: Floats
    """Time since the start of each environment's episode, s [num_envs]."""
    readings: Mapping[str, Reading]
    """What each sensor in `reads` has delivered by now; see its `is_valid`."""
    truth: Truth | None
    """The true state, for a controller that reads no sensor."""


class Controller(Driver):
    """Asks an object of the user's class what to do."""

    def __init__(self, world: WorldBase, config: PythonConfig) -> None:
        super().__init__(world)
        self._label = config.class_.partition(':')[2]
        made = _load(config.class_, world.base_dir)
        rate_hz = getattr(made, 'rate_hz', 100.0)
        if not isinstance(rate_hz, (int, float)) or not 0.0 < rate_hz <= 1e9 / world.dt_ns:
            raise RigError(
                f'world.driver: {self._label}.rate_hz is {rate_hz!r}; it should be '
                f'more than 0 and at most {1e9 / world.dt_ns:g}, the physics rate'
            )
        self.period_s = 1.0 / rate_hz
        self._reads = tuple(getattr(made, 'reads', ()))
        known = [sensor.name for sensor in world.sensors]
        for name in self._reads:
            if name not in known:
                raise RigError(
                    unknown_name(f'world.driver: {self._label}.reads', 'sensor', name, known)
                )
        self._user: Any = self._run(
            lambda: made(world.model, world.num_envs, **config.options), 'making it'
        )
        self._senses: Senses | None = None

    def reset(self, envs: Ids, time_ns: int) -> None:
        """Begin a new episode in `envs`."""
        super().reset(envs, time_ns)
        if self._senses is not None:
            self._senses.reset(envs, time_ns)
        if hasattr(self._user, 'reset'):
            self._run(lambda: self._user.reset(envs), 'its reset')

    def restart(self) -> None:
        """Forget what the sensors delivered: time starts again."""
        self._senses = None

    def observe(self, world: WorldBase) -> None:
        """Let the sensors it reads take what is due."""
        if self._reads:
            if self._senses is None:
                self._senses = Senses(world, self._reads)
            self._senses.advance(world.time_ns)

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Ask the user's object and command what it says."""
        readings: dict[str, Reading] = {}
        if self._reads:
            if self._senses is None:
                return  # nothing has been measured yet
            readings = {name: self._senses.read(name, world.time_ns) for name in self._reads}
        truth = (
            None
            if self._reads
            else Truth(
                world.bound('qpos').copy(), world.bound('qvel').copy(), world.sensordata.copy()
            )
        )
        seen = Seen(self.elapsed_s(time_ns), readings, truth)
        self._take(world, self._run(lambda: self._user.act(seen), 'its act'))

    def _take(self, world: WorldBase, wanted: object) -> None:
        if wanted is None:
            return
        if isinstance(wanted, Mapping):
            for name, value in wanted.items():
                rows = np.broadcast_to(np.asarray(value, float), (world.num_envs,))
                for env, row in enumerate(rows.tolist()):
                    world.command({name: row}, env)
            return
        ctrl = np.asarray(wanted, float)
        shape = (world.num_envs, world.model.nu)
        if ctrl.shape not in (shape, shape[1:]) or not np.isfinite(ctrl).all():
            raise RigError(
                f'world.driver: {self._label}.act returned an array of shape '
                f'{list(ctrl.shape)}; it should be {list(shape)} and finite, or a map '
                f'of names to commands'
            )
        world.command_all(ctrl)

    def _run(self, call: Any, what: str) -> Any:
        """Return what the user's code does; its exception becomes one sentence with its place."""
        try:
            return call()
        except RigError:
            raise
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            raise RigError(
                f'world.driver: {self._label}: {what} failed in '
                f'{Path(last.filename).name}, line {last.lineno}: '
                f'{type(error).__name__}: {error}'
            ) from error


class Senses:
    """Pipelines of the sensors that a controller reads."""

    def __init__(self, world: WorldBase, names: tuple[str, ...]) -> None:
        sensors = {each.name: each for each in world.sensors}
        maker = PipelineMaker(sensors, world.links, world.dt_ns, world.time_base)
        run = RunSetup(
            world.seed,
            world.dt_ns,
            num_envs=world.num_envs,
            episode=world.episode,
            start_ns=world.time_base.start_ns,
        )
        self._sources: dict[str, Source] = {
            name: make_source(world, [truth_reader(sensor, world)], maker.pipeline((name,), run))
            for name, sensor in sensors.items()
            if name in names
        }

    def advance(self, now_ns: int) -> None:
        """Take what is due at `now_ns`."""
        for source in self._sources.values():
            if source.next_ns <= now_ns:
                source.advance(now_ns)

    def read(self, name: str, now_ns: int) -> Reading:
        """Return what sensor `name` has delivered by `now_ns`."""
        pipeline = self._sources[name].pipeline
        pipeline.update(now_ns)
        return pipeline.read(now_ns)

    def reset(self, envs: Ids, now_ns: int) -> None:
        """Begin a new episode of `envs`, the world having been reset."""
        for source in self._sources.values():
            source.reset(envs, now_ns)


def _load(address: str, folder: Path | None) -> Any:
    """Return the class at `module:Class`, looked for beside the rig file too."""
    module, _, name = address.partition(':')
    if folder is not None and str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        raise RigError(
            f'world.driver.class is {address!r}; it cannot be imported: {error}'
        ) from None
    except Exception as error:
        raise RigError(
            f'world.driver.class is {address!r}; the module failed: '
            f'{type(error).__name__}: {error}'
        ) from error
    made = getattr(found, name, None)
    if not isinstance(made, type) or not hasattr(made, 'act'):
        raise RigError(
            f'world.driver.class is {address!r}; the module has no class {name!r} with '
            f'a method act'
        )
    return made
