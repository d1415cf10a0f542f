"""A few steps of training with the libraries that a rig's vector environment is adapted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from sensor_rig.gym import RigVectorEnv
from sensor_rig.gym.adapters import to_rsl_rl, to_sb3

pytest.importorskip('gymnasium', reason='gymnasium is not installed')

from gymnasium.vector import AutoresetMode

RIG: dict[str, Any] = {
    'seed': 1,
    'world': {'model': 'rover_yard.xml', 'timestep_s': 0.002},
    'sensors': {
        'imu': {
            'type': 'imu',
            'rate_hz': 100.0,
            'mount': {'site': 'imu_mount'},
            'delay_range_s': [0.005, 0.03],
        },
        'tracker': {'type': 'pose', 'rate_hz': 25.0, 'mount': {'body': 'rover'}},
    },
}
RSL = {
    'seed': 1,
    'num_steps_per_env': 8,
    'save_interval': 100,
    'obs_groups': {'actor': ['policy'], 'critic': ['policy']},
    'algorithm': {
        'class_name': 'PPO',
        'num_learning_epochs': 1,
        'num_mini_batches': 2,
        'clip_param': 0.2,
        'gamma': 0.99,
        'lam': 0.95,
        'value_loss_coef': 1.0,
        'entropy_coef': 0.0,
        'learning_rate': 1e-3,
        'max_grad_norm': 1.0,
        'schedule': 'adaptive',
        'desired_kl': 0.01,
        'use_clipped_value_loss': True,
        'rnd_cfg': None,
        'symmetry_cfg': None,
    },
    'actor': {
        'class_name': 'MLPModel',
        'hidden_dims': [32],
        'activation': 'elu',
        'distribution_cfg': {'class_name': 'GaussianDistribution', 'init_std': 1.0},
    },
    'critic': {'class_name': 'MLPModel', 'hidden_dims': [32], 'activation': 'elu'},
}


class Forward(RigVectorEnv):
    """Rewards the way driven along x."""

    def reward(self, actions: Any) -> Any:
        return self.rig.world.base_poses()[:, 0]


def env_of(mode: AutoresetMode) -> Forward:
    return Forward(RIG, 4, episode_s=0.2, autoreset_mode=mode)


@pytest.mark.parametrize('adapt', [to_sb3, to_rsl_rl])
def test_libraries_that_reset_in_the_same_step_say_so(adapt: Any) -> None:
    pytest.importorskip('stable_baselines3' if adapt is to_sb3 else 'rsl_rl')
    with pytest.raises(RigError, match=r'autoreset_mode=AutoresetMode\.SAME_STEP'):
        adapt(env_of(AutoresetMode.NEXT_STEP))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_stable_baselines3_trains() -> None:
    stable_baselines3 = pytest.importorskip('stable_baselines3')
    env = to_sb3(env_of(AutoresetMode.SAME_STEP))
    env.seed(3)
    observed = env.reset()
    assert env.observation_space.contains(observed[0])
    ends = 0
    for _ in range(11):
        observed, _, done, infos = env.step(np.zeros((4, 2), np.float32))
        for each, info in zip(done, infos, strict=True):
            assert each == ('terminal_observation' in info)
            assert set(info['senses']) == set(RIG['sensors'])
            assert info['senses']['tracker']['valid'] and info['senses']['tracker']['age_s'] < 0.04
            ends += each
    assert ends == 4
    model = stable_baselines3.PPO(
        'MlpPolicy', env, n_steps=16, batch_size=32, n_epochs=1, seed=0, device='cpu'
    )
    model.learn(128)
    assert model.num_timesteps >= 128


@pytest.mark.long
@pytest.mark.timeout(600)
def test_skrl_takes_it_as_it_is() -> None:
    pytest.importorskip('skrl')
    torch = pytest.importorskip('torch')
    from skrl.envs.wrappers.torch import wrap_env

    env = wrap_env(env_of(AutoresetMode.NEXT_STEP), wrapper='gymnasium')
    observed, _ = env.reset()
    assert observed.shape == (4, env.observation_space.shape[0]) and env.num_envs == 4
    for _ in range(12):
        observed, reward, terminated, truncated, _ = env.step(torch.zeros(4, 2))
    assert torch.isfinite(observed).all() and reward.shape == (4, 1)
    assert terminated.shape == truncated.shape == (4, 1)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_rsl_rl_trains() -> None:
    pytest.importorskip('rsl_rl')
    torch = pytest.importorskip('torch')
    from rsl_rl.runners import OnPolicyRunner

    env = to_rsl_rl(env_of(AutoresetMode.SAME_STEP))
    env.episode_length_buf = torch.tensor([0, 3, 8, 9])  # as runners do, to set episodes apart
    ends = [env.step(torch.zeros(4, 2))[2].tolist() for _ in range(3)]
    assert ends == [[False, False, False, True], [False, False, True, False], [False] * 4]
    assert env.episode_length_buf.tolist() == [3, 6, 1, 2]
    runner = OnPolicyRunner(env, RSL, log_dir=None, device='cpu')
    runner.learn(2)
    assert env.episode_length_buf.max() <= env.max_episode_length
