"""A sensor as an observation term of a learning framework: `obs(env) -> tensor`.

    imu = SensedTerm(Imu('imu', ImuConfig(...)), truth=lambda env: felt_and_turned(env))
    ObservationTermCfg(func=imu)             # mjlab, and managers like IsaacLab's
    imu(env)                                 # [num_envs, width], as late and wrong as the sensor

The truth is any tensor of the simulation; rate, delay, jitter, loss, noise and history are those
of the sensor's config. Time is the environment's count of steps. A new episode gets new numbers;
it begins where the manager says so (`reset`), or where the count of steps went back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sim_sensors.interface import AnySensor
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.pipeline.reading.readout import Reading
from sim_sensors.timing.arrays import Array


class SteppedEnv(Protocol):
    """What a term asks of an environment; mjlab's and IsaacLab's have it."""

    num_envs: int
    device: Any
    step_dt: float
    """Time of one step, s."""
    common_step_counter: int
    """Steps of all environments so far."""
    episode_length_buf: object
    """Steps of each environment in its episode, [num_envs]; 0 where one has just begun."""


class SensedTerm:
    """One sensor between the truth of a simulation and the observations of a policy."""

    def __init__(
        self,
        sensor: AnySensor,
        truth: Callable[[Any], Array],
        *,
        seed: int = 0,
        physics_rate: bool = False,
    ) -> None:
        """Measure `truth(env)` [num_envs, width of the sensor's truth] with `sensor`.

        Steps of the environment are the finest time: a `rate_hz` above their rate is refused at
        the first call. With `physics_rate` it is a physics step, of which mjlab makes
        `env.cfg.decimation` a step: truth is then also looked at whenever `env.scene.update` says
        that one was made, and is that of its beginning.
        """
        self._sensor, self._truth, self._seed = sensor, truth, seed
        self._physics_rate, self._per_step, self._passed = physics_rate, 1, 0
        self._pipeline: Pipeline | None = None
        self._step_ns, self._now_ns = 0, -1
        self._lengths: Array = np.zeros(0, np.int64)
        """Steps of each environment in its episode at the last call."""
        self._told: Array = np.zeros(0, np.bool_)
        """Environments that began an episode since, as the manager says."""
        self._dtype: Any = None
        """The type of the truth, which is that of the observations."""
        self.reading: Reading | None = None
        """The last reading, with what of it is valid and when it was captured, ns."""

    def __call__(self, env: SteppedEnv) -> Array:
        """Return what has arrived by now, [num_envs, width]; zeros where nothing has yet.

        With `stack_history` in the sensor's config it is [num_envs, history, width]. It has the
        type of the truth, so that a policy in float32 stays one.
        """
        pipeline = self._pipeline or self._made(env)
        now_ns = env.common_step_counter * self._per_step * self._step_ns
        self._passed = 0
        begun = env.episode_length_buf < self._lengths + (now_ns > self._now_ns)
        begun = begun | self._told
        self._told[:] = False
        self._lengths = pipeline.xp.copy(env.episode_length_buf)
        self._now_ns = now_ns
        if begun.any():
            pipeline.reset(begun, now_ns)
        pipeline.update(now_ns)
        self.reading = pipeline.read(now_ns)
        measured: Any = self.reading.values
        observed: Array = measured.to(self._dtype)
        return observed

    @property
    def latency_s(self) -> Array:
        """The latency of each environment in its present episode, without jitter, s [num_envs]."""
        if self._pipeline is None:
            raise RigError(
                f'{self._sensor.name!r} has not been observed yet; its latencies are '
                'drawn at the first call'
            )
        return self._pipeline.transit.latency_ns / NS_PER_S

    def reset(self, env_ids: Any = None) -> None:
        """Begin new episodes of `env_ids` (numbers or a slice; None is all) with the next call.

        Managers do this. Without it, one that is reset in its first step would go unnoticed:
        mjlab's calls its terms once before the first reset, to know their shapes.
        """
        if self._pipeline is not None:
            self._told[slice(None) if env_ids is None else env_ids] = True

    def _made(self, env: SteppedEnv) -> Pipeline:
        self._step_ns = round(env.step_dt * NS_PER_S)
        if self._physics_rate:
            self._follow_physics(env)
        self._pipeline = Pipeline(
            self._sensor,
            RunSetup(
                num_envs=env.num_envs, seed=self._seed, dt_ns=self._step_ns, device=str(env.device)
            ),
        )

        def supply(lanes: Array, out: Array) -> None:
            out[:] = self._checked(self._truth(env))[lanes]

        self._pipeline.supplier = supply
        self._lengths = self._pipeline.xp.zeros(env.num_envs, np.int64)
        self._told = self._pipeline.xp.zeros(env.num_envs, np.bool_)
        if env.common_step_counter:  # joined later: its time begins now
            now_ns = env.common_step_counter * self._per_step * self._step_ns
            self._pipeline.reset(None, now_ns)
        return self._pipeline

    def _follow_physics(self, env: Any) -> None:
        """Look at the truth after each physics step, too."""
        self._per_step = env.cfg.decimation
        self._step_ns = round(env.physics_dt * NS_PER_S)
        update = env.scene.update

        def seen(dt: float) -> None:
            update(dt)
            assert self._pipeline is not None
            steps = env.common_step_counter * self._per_step + self._passed
            self._pipeline.update(steps * self._step_ns)
            self._passed += 1

        env.scene.update = seen

    def _checked(self, truth: Array) -> Array:
        assert self._pipeline is not None
        wanted = (self._pipeline.num_envs, self._sensor.truth_layout.width)
        if tuple(truth.shape) != wanted:
            raise RigError(
                f'the truth of {self._sensor.name!r} has the shape '
                f'{list(truth.shape)}; it must be {list(wanted)}: '
                f'{", ".join(self._sensor.truth_layout.shapes)}'
            )
        self._dtype = truth.dtype
        return truth
