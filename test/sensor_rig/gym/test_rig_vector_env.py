"""A vector environment of a rig file alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from sensor_rig.gym import RigVectorEnv

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
            'noise': 0.01,
            'delay_range_s': [0.005, 0.03],
        },
        'tracker': {'type': 'pose', 'rate_hz': 50.0, 'mount': {'body': 'rover'}},
    },
}


class Forward(RigVectorEnv):
    """Rewards the way driven along x; the first environment ends after 0.1 s."""

    def begin(self, envs: Any) -> None:
        self.begun = [*getattr(self, 'begun', []), *envs.tolist()]

    def reward(self, actions: Any) -> Any:
        return self.rig.world.base_poses()[:, 0]

    def terminated(self) -> Any:
        ended = self.rig.time_ns - self.started_ns >= 100_000_000
        return ended & (np.arange(self.num_envs) == 0)


def env_of(mode: AutoresetMode, **more: Any) -> Forward:
    return Forward(RIG, 3, episode_s=0.2, autoreset_mode=mode, **more)


def test_observations_fit_their_space_and_seeds_repeat() -> None:
    env = env_of(AutoresetMode.NEXT_STEP)
    runs = []
    for _ in range(2):
        env.action_space.seed(2)
        rows = [env.reset(seed=7)[0]]
        for _ in range(12):
            rows.append(env.step(env.action_space.sample())[0])
            assert env.observation_space.contains(rows[-1])
        runs.append(np.array(rows))
    np.testing.assert_array_equal(*runs)
    assert runs[0].std(0).max() > 0


@pytest.mark.parametrize('mode', [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_episodes_end_and_begin_as_the_mode_says(mode: AutoresetMode) -> None:
    env = env_of(mode)
    env.reset(seed=1)
    ends, resets = [], []
    for step in range(1, 13):
        _, reward, terminated, truncated, info = env.step(np.ones((3, 2), np.float32))
        if terminated[0]:
            ends.append(step)
            assert not truncated[0]
        if env.started_ns[0] == env.rig.time_ns:
            resets.append(step)
            assert mode == AutoresetMode.SAME_STEP or reward[0] == 0.0
        assert ('final_obs' in info) == (
            mode == AutoresetMode.SAME_STEP and bool((terminated | truncated).any())
        )
        if step == 10:
            assert truncated[1] and truncated[2] and not terminated[1]
    later = 1 if mode == AutoresetMode.NEXT_STEP else 0
    assert ends[:2] == [5, 10 + later] and resets[0] == 5 + later
    assert env.metadata['autoreset_mode'] == mode


def test_the_last_observation_of_an_episode_is_kept_in_the_same_step_mode() -> None:
    same, next_ = env_of(AutoresetMode.SAME_STEP), env_of(AutoresetMode.NEXT_STEP)
    for env in (same, next_):
        env.reset(seed=4)
    for _ in range(5):
        a = same.step(np.ones((3, 2), np.float32))
        b = next_.step(np.ones((3, 2), np.float32))
    np.testing.assert_array_equal(a[4]['final_obs'][0], b[0][0])
    assert a[4]['final_obs'][1] is None and a[4]['_final_obs'].tolist() == [True, False, False]


def test_without_autoreset_a_finished_environment_must_be_reset() -> None:
    env = env_of(AutoresetMode.DISABLED)
    env.reset(seed=1)
    for _ in range(5):
        _, _, terminated, _, _ = env.step(np.zeros((3, 2), np.float32))
    with pytest.raises(RigError, match=r'environments \[0\] are over; reset them'):
        env.step(np.zeros((3, 2), np.float32))
    env.reset(options={'reset_mask': terminated})
    env.step(np.zeros((3, 2), np.float32))
    assert env.begun == [0, 1, 2, 0]


@pytest.mark.parametrize(('rig', 'width'), [('quadruped', 12), ('arm', 7), ('demo', 2)])
def test_actions_fit_every_robot(rig: str, width: int) -> None:
    env = RigVectorEnv(rig, 2, skip_unavailable=True, flat=False)
    assert env.single_action_space.shape == (width,)
    env.reset(seed=1)
    observed, *_ = env.step(np.zeros((2, width), np.float32))
    assert set(observed) == set(env.rig.sensors)


def test_an_action_moves_the_robot() -> None:
    env = RigVectorEnv(RIG, 2, control_period_s=0.1)
    env.reset(seed=1)
    for _ in range(10):
        env.step(np.array([[1.0, 0.0], [-1.0, 0.0]], np.float32))
    moved = env.rig.world.base_poses()[:, 0]
    assert moved[0] > 0.3 and moved[1] < -0.3


@pytest.mark.parametrize(
    ('keys', 'text'),
    [
        ({'control_period_s': 0.003}, 'whole number of physics steps'),
        ({'num_envs': 0}, 'world.num_envs'),
    ],
)
def test_mistakes_are_named(keys: dict[str, Any], text: str) -> None:
    with pytest.raises(RigError, match=text):
        RigVectorEnv(RIG, **keys)


def test_actions_of_another_shape_are_refused() -> None:
    env = RigVectorEnv(RIG, 2)
    env.reset()
    with pytest.raises(RigError, match=r'shape \[2, 3\]; they should be \[2, 2\]'):
        env.step(np.zeros((2, 3), np.float32))
