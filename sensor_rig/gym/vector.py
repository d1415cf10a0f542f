"""A Gymnasium vector environment of a rig file alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from rig_common.arrays import AnyArray, Flags, Floats, Ids
from rig_common.errors import RigError
from rig_common.times import seconds_to_ns
from sensor_rig.gym.acting import Actions
from sensor_rig.gym.observing import SensedSpaces
from sensor_rig.inprocess import config_of
from sensor_rig.rigfile import RigConfig
from sim_sensors.rig import Rig

TASK = 'task'
"""Key of what the policy is told of its task; no sensor of a rig with a task may have it."""
Step = tuple[Any, Floats, Flags, Flags, dict[str, Any]]


class RigVectorEnv(VectorEnv[Any, Any, Any]):
    """`num_envs` copies of a rig, observed by its sensors, each with its own latency and noise.

    A rig knows no task: without one the reward is 0 and episodes end by time. Subclass it and
    write `reward`, `terminated` and, for goals, `begin`, `task_space` and `task`; they may use the
    truth (`self.rig.read_ground_truth`, `self.rig.world`), which the policy does not see.
    """

    task_space: Box | None = None
    """What the policy is told of its task (a goal, a wanted speed), of one environment."""

    def __init__(
        self,
        rig: str | Path | Mapping[str, Any] | RigConfig,
        num_envs: int = 1,
        *,
        control_period_s: float = 0.02,
        episode_s: float = 10.0,
        flat: bool = True,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        **world: object,
    ) -> None:
        """Build the rig; `world` overrides keys of its `world:`.

        `flat` observations are one float32 vector, else a Dict by sensor.
        """
        config = _config(rig, num_envs, world)
        self.rig = Rig(
            config.simulated_world,
            config.make_sensors().values(),
            seed=config.seed,
            base_dir=config.path.parent,
            links=config.links,
        )
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {'autoreset_mode': self.autoreset_mode, 'render_modes': []}
        self.control_period_s, self.episode_s = control_period_s, episode_s
        self._ticks = _ticks(control_period_s, self.rig.world.dt_ns)
        self._episode_ns = seconds_to_ns(episode_s)
        self._senses, self._flat = SensedSpaces(self.rig), flat
        self._actions = Actions(self.rig.world)
        self.single_action_space = self._actions.space
        self.single_observation_space = self._space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.started_ns = np.zeros(num_envs, np.int64)
        """When the present episode of each environment began, ns of simulated time."""
        self._done = np.zeros(num_envs, np.bool_)

    # ---- the task, for subclasses -----------------------------------------------------------

    def begin(self, envs: Ids) -> None:
        """Prepare a new episode of `envs`, which stand at their start."""

    def task(self) -> AnyArray:
        """Return what the policy is told of its task, [num_envs, *task_space.shape]."""
        raise NotImplementedError('task_space says that there is a task; write task()')

    def reward(self, actions: AnyArray) -> Floats:
        """Return the reward of the step just made, [num_envs]."""
        return np.zeros(self.num_envs)

    def terminated(self) -> Flags:
        """Return which environments have come to an end of their own, [num_envs]."""
        return np.zeros(self.num_envs, np.bool_)

    # ---- Gymnasium --------------------------------------------------------------------------

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Begin new episodes: of all, or of those in `options['reset_mask']` [num_envs]."""
        mask = (options or {}).get('reset_mask')
        if mask is not None:
            self._begin(np.flatnonzero(mask))
            return self._observe()
        if isinstance(seed, Sequence):
            raise RigError(
                f'the seed is a list of {len(seed)}; a rig has one seed, and each '
                f'environment its own stream of it'
            )
        super().reset(seed=seed)
        self.rig.reset(seed=seed)
        self.rig.step()
        self.started_ns[:] = self.rig.time_ns
        self._done[:] = False
        self.begin(np.arange(self.num_envs))
        return self._observe()

    def step(self, actions: Any) -> Step:
        """Act for one control period."""
        over = self._done.copy()
        if over.any() and self.autoreset_mode == AutoresetMode.DISABLED:
            raise RigError(
                f'the episodes of environments {np.flatnonzero(over).tolist()} are '
                f'over; reset them with options={{"reset_mask": ...}} first'
            )
        self._actions.apply(actions)
        for _ in range(self._ticks):
            self.rig.step()
        reward, terminated = self.reward(actions), self.terminated()
        truncated = (self.rig.time_ns - self.started_ns >= self._episode_ns) & ~terminated
        if self.autoreset_mode == AutoresetMode.NEXT_STEP and over.any():
            reward, terminated, truncated = (
                np.where(over, np.zeros((), each.dtype), each)
                for each in (reward, terminated, truncated)
            )
            self._begin(np.flatnonzero(over))
        self._done = terminated | truncated
        final: dict[str, object] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and self._done.any():
            final = self._final(self._done.copy())
        observed, info = self._observe()
        return observed, np.asarray(reward, np.float64), terminated, truncated, {**info, **final}

    def _final(self, done: Flags) -> dict[str, Any]:
        """Keep the last observations of what is `done`, and begin it again."""
        observed, info = self._observe()
        rows: AnyArray = np.full(self.num_envs, None, object)
        for env in np.flatnonzero(done):
            rows[env] = (
                {key: each[env] for key, each in observed.items()}
                if isinstance(observed, dict)
                else observed[env]
            )
        self._begin(np.flatnonzero(done))
        return {'final_obs': rows, '_final_obs': done, 'final_info': info, '_final_info': done}

    def _begin(self, envs: Ids) -> None:
        self.rig.reset(envs)
        self.started_ns[envs] = self.rig.time_ns
        self._done[envs] = False
        self.begin(envs)

    # ---- observations -----------------------------------------------------------------------

    def _space(self) -> gymnasium.Space[object]:
        spaces = self._senses.spaces
        if self.task_space is not None:
            spaces = {TASK: self.task_space, **spaces}
        if not self._flat:
            return Dict(spaces)
        low, high = (
            np.concatenate(bounds, dtype=np.float32, casting='unsafe')
            for bounds in zip(*map(_bounds, spaces.values()), strict=True)
        )
        return Box(low, high, low.shape, np.float32)

    def _observe(self) -> tuple[Any, dict[str, Any]]:
        values, facts = self._senses.read()
        info = {'senses': facts}
        if self.task_space is not None:
            values = {TASK: np.asarray(self.task(), self.task_space.dtype), **values}
        if not self._flat:
            return values, info
        return np.concatenate(
            [each.reshape(self.num_envs, -1) for each in values.values()],
            axis=1,
            dtype=np.float32,
            casting='unsafe',
        ), info


def _bounds(space: gymnasium.Space[Any]) -> tuple[AnyArray, AnyArray]:
    """Return the lowest and highest values of a space, [width]."""
    if isinstance(space, Box):
        return space.low.ravel(), space.high.ravel()
    count = int(np.prod(space.shape or (1,)))
    return np.zeros(count), np.ones(count)


def _config(
    rig: str | Path | Mapping[str, Any] | RigConfig, num_envs: int, world: Mapping[str, object]
) -> RigConfig:
    config = config_of(rig)
    given = config.simulated_world.driver
    kind = given if isinstance(given, str) else given.type
    # What drives by itself would fight the learner; a PD layer is part of the robot.
    driver = {} if kind == 'hold' else {'driver': 'none'}
    return config.with_world(**{'num_envs': num_envs, **driver, **world})


def _ticks(control_period_s: float, dt_ns: int) -> int:
    period_ns = seconds_to_ns(control_period_s)
    if period_ns < dt_ns or period_ns % dt_ns:
        raise RigError(
            f'control_period_s is {control_period_s}; it should be a whole number of '
            f'physics steps of {dt_ns / 1e9:g} s'
        )
    return period_ns // dt_ns
