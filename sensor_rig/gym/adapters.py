"""`RigVectorEnv` for the libraries that have vector environments of their own.

skrl takes it as it is: `skrl.envs.wrappers.torch.wrap_env(env, wrapper='gymnasium')`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode

from rig_common.errors import RigError
from rig_common.times import seconds_to_ns
from sensor_rig.gym.vector import RigVectorEnv

if TYPE_CHECKING:
    from rsl_rl.env import VecEnv as RslVecEnv
    from stable_baselines3.common.vec_env import VecEnv as Sb3VecEnv


def _require_same_step(env: RigVectorEnv, library: str) -> None:
    if env.autoreset_mode != AutoresetMode.SAME_STEP:
        raise RigError(
            f'{library} expects that an environment begins again in the step that ends '
            f'it; make the RigVectorEnv with autoreset_mode=AutoresetMode.SAME_STEP'
        )


def _facts_of(info: dict[str, Any], env: int) -> dict[str, Any]:
    """Return what `info['senses']` of all environments says of one."""
    return {
        name: {key: each[env] for key, each in facts.items()}
        for name, facts in info['senses'].items()
    }


def to_sb3(env: RigVectorEnv) -> Sb3VecEnv:
    """Return `env` as a vector environment of Stable-Baselines3."""
    from stable_baselines3.common.vec_env import VecEnv

    _require_same_step(env, 'Stable-Baselines3')

    class Sb3Rig(VecEnv):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)
            self._actions: object = None

        def reset(self) -> Any:
            seed = next((each for each in self._seeds if each is not None), None)
            self._reset_seeds()
            return env.reset(seed=seed)[0]

        def step_async(self, actions: object) -> None:
            self._actions = actions

        def step_wait(self) -> object:
            observed, reward, terminated, truncated, info = env.step(self._actions)
            infos: list[dict[str, Any]] = [
                {'senses': _facts_of(info, each)} for each in range(env.num_envs)
            ]
            for each in np.flatnonzero(terminated | truncated).tolist():
                infos[each] = {
                    'senses': _facts_of(info['final_info'], each),
                    'terminal_observation': info['final_obs'][each],
                    'TimeLimit.truncated': bool(truncated[each]),
                }
            return observed, reward.astype(np.float32), terminated | truncated, infos

        def close(self) -> None:
            env.close()

        def get_attr(self, attr_name: str, indices: object = None) -> list[object]:
            return [getattr(env, attr_name)] * len(list(self._get_indices(indices)))

        def set_attr(self, attr_name: str, value: object, indices: object = None) -> None:
            setattr(env, attr_name, value)

        def env_method(
            self,
            method_name: str,
            *method_args: object,
            indices: object = None,
            **method_kwargs: object,
        ) -> list[object]:
            found = getattr(env, method_name)(*method_args, **method_kwargs)
            return [found] * len(list(self._get_indices(indices)))

        def env_is_wrapped(self, wrapper_class: object, indices: object = None) -> list[bool]:
            return [False] * len(list(self._get_indices(indices)))

    return Sb3Rig()


def to_rsl_rl(env: RigVectorEnv, device: str = 'cpu') -> RslVecEnv:
    """Return `env` as a vector environment of rsl_rl; its observation group is `policy`."""
    import torch
    from rsl_rl.env import VecEnv
    from tensordict import TensorDict

    _require_same_step(env, 'rsl_rl')
    period_ns = seconds_to_ns(env.control_period_s)

    class RslRig(VecEnv):  # type: ignore[misc, unused-ignore]
        def __init__(self) -> None:
            self.num_envs, self.device = env.num_envs, device
            self.num_actions = int(np.prod(env.single_action_space.shape or (1,)))
            self.max_episode_length = round(env.episode_s / env.control_period_s)
            self.cfg: dict[str, object] = {
                'episode_s': env.episode_s,
                'control_period_s': env.control_period_s,
            }
            self._observed = self._tensors(env.reset()[0])

        @property
        def episode_length_buf(self) -> Any:
            """Steps of each environment in its episode; a learner may set them apart."""
            steps = (env.rig.time_ns - env.started_ns) // period_ns
            return torch.as_tensor(steps, device=device)

        @episode_length_buf.setter
        def episode_length_buf(self, steps: Any) -> None:
            env.started_ns[:] = env.rig.time_ns - steps.cpu().numpy() * period_ns

        def _tensors(self, observed: object) -> object:
            rows = {'policy': observed} if not isinstance(observed, dict) else observed
            return TensorDict(
                {name: torch.as_tensor(each, device=device) for name, each in rows.items()},
                batch_size=[env.num_envs],
            )

        def get_observations(self) -> object:
            return self._observed

        def step(self, actions: Any) -> Any:
            observed, reward, terminated, truncated, _ = env.step(actions.cpu().numpy())
            done = torch.as_tensor(terminated | truncated, device=device)
            self._observed = self._tensors(observed)
            return (
                self._observed,
                torch.as_tensor(reward, dtype=torch.float32, device=device),
                done,
                {'time_outs': torch.as_tensor(truncated, device=device)},
            )

    return RslRig()
