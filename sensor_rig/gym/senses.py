"""A rig's sensors in an environment that somebody else wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
from gymnasium.spaces.utils import flatten, flatten_space
from gymnasium.vector import SyncVectorEnv, VectorEnv

from rig_common.errors import RigError
from sensor_rig.gym.finding import Simulation, find_simulation
from sensor_rig.gym.observing import OWN, SensedSpaces, merged
from sensor_rig.inprocess import attach
from sim_sensors.attached import AttachedRig

RigFile = str | Path | Mapping[str, Any]
Observation: TypeAlias = Any
"""What the wrapped environment observes, with the senses in it: its spaces say what that is."""
Info: TypeAlias = dict[str, Any]
"""Gymnasium's facts beside an observation."""


class SenseWrapper(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Adds what the sensors of `rig` have delivered to the observations of `env`.

    `env` is any environment on MuJoCo, or a SyncVectorEnv of such; neither its code nor its model
    is changed. Observations are a Dict: one entry per sensor and, with `keep`, the environment's
    own under `env` (or its own keys, where it has a Dict); with `flat` one vector. What has not
    arrived yet is zero, and `info['senses'][name]['valid']` says so.

    `reset(seed=...)` seeds the sensors as well; a reset without one goes on to the next episode,
    with other noise and other latencies.
    """

    def __new__(cls, env: object, *args: object, **kwargs: object) -> Any:
        """Wrap every environment of a vector singly: each then keeps its own time and resets."""
        if isinstance(env, VectorEnv):
            return _sense_each(env, *args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        rig: RigFile,
        *,
        keep: bool = True,
        flat: bool = False,
        simulation: Callable[[gymnasium.Env[Any, Any]], Simulation] | None = None,
    ) -> None:
        """Mount the sensors; `simulation` finds MjModel and MjData where nobody else does."""
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, rig=rig, keep=keep, flat=flat, simulation=simulation
        )
        gymnasium.Wrapper.__init__(self, env)
        self._rig_file, self._keep, self._flat = rig, keep, flat
        self._find = simulation or find_simulation
        if _find_or_none(self._find, env) is None:
            env.reset()  # some make their simulation with the first episode
        self._model, self._data = self._find(env)
        self.rig: AttachedRig = attach(self._model, self._data, rig)
        """The sensors: `rig.read`, `rig.read_ground_truth`, `rig.pipelines`."""
        self._senses = SensedSpaces(self.rig)
        self._space = merged(env.observation_space if keep else None, self._senses.spaces)
        self.observation_space = flatten_space(self._space) if flat else self._space

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Observation, Info]:
        """Reset the environment and begin a new episode of the sensors."""
        observed, info = self.env.reset(seed=seed, options=options)
        self._follow()
        self.rig.reset(seed=seed)
        self.rig.observe()
        return self._observe(observed, info)

    def step(self, action: object) -> tuple[Observation, Any, bool, bool, Info]:
        """Step the environment; the sensors measure on their own schedules meanwhile."""
        observed, reward, terminated, truncated, info = self.env.step(action)
        self.rig.observe()
        return *self._observe(observed, info)[:1], reward, terminated, truncated, info

    def _follow(self) -> None:
        """Go over to the environment's new model or data, where a reset made some."""
        model, data = self._find(self.env)
        if model is not self._model:
            before = self.rig
            self.rig = attach(model, data, self._rig_file)
            self.rig.seed, self.rig.episode = before.seed, before.episode
            self._senses = SensedSpaces(self.rig)
        elif data is not self._data:
            self.rig.world.attach(data)
        self._model, self._data = model, data

    def _observe(self, observed: Observation, info: Info) -> tuple[Observation, Info]:
        values, facts = self._senses.read()
        info['senses'] = {
            name: {key: each[0] for key, each in fact.items()} for name, fact in facts.items()
        }
        whole: dict[str, object] = {}
        if self._keep:
            whole = dict(observed) if isinstance(observed, Mapping) else {OWN: observed}
        whole.update((name, each[0]) for name, each in values.items())
        return (flatten(self._space, whole) if self._flat else whole), info


def _find_or_none(find: Callable[[Any], Simulation], env: object) -> Simulation | None:
    try:
        return find(env)
    except (RigError, AttributeError):
        return None


def _sense_each(env: VectorEnv[Any, Any, Any], *args: Any, **kwargs: Any) -> SyncVectorEnv:
    """Return a vector of the same environments with senses."""
    if not isinstance(env, SyncVectorEnv):
        raise RigError(
            f'{type(env).__name__} keeps its environments out of reach; wrap each '
            f'before it is made a vector: AsyncVectorEnv([lambda: '
            f'SenseWrapper(gymnasium.make(...), rig)] * n)'
        )
    return SyncVectorEnv(
        [partial(SenseWrapper, each, *args, **kwargs) for each in env.envs],
        copy=env.copy,
        autoreset_mode=env.autoreset_mode,
    )
