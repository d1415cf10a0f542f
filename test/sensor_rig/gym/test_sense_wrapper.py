"""A rig's sensors in Gymnasium's own environments, unchanged."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from sensor_rig.gym import SenseWrapper
from sim_sensors.world.foreign.attached_world import AttachedWorld

pytest.importorskip('gymnasium', reason='gymnasium is not installed')

import gymnasium
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode

pytest.importorskip('imageio', reason="Gymnasium's MuJoCo environments need imageio")

SENSES: dict[str, Any] = {
    'seed': 4,
    'sensors': {
        'imu': {
            'type': 'imu',
            'rate_hz': 100.0,
            'mount': {'body': 'torso'},
            'noise': 0.1,
            'delay_range_s': [0.01, 0.03],
        },
        'lidar': {
            'type': 'lidar2d',
            'rate_hz': 20.0,
            'num_rays': 16,
            'no_hit': 'max',
            'mount': {'body': 'torso', 'pos_m': [0.0, 0.0, 0.4]},
        },
    },
}
EXACT: dict[str, Any] = {
    'sensors': {'tracker': {'type': 'pose', 'rate_hz': 0.0, 'mount': {'body': 'torso'}}}
}


def rolled(env: Any, steps: int, seed: int = 3) -> list[Any]:
    env.action_space.seed(seed)
    observed = [env.reset(seed=seed)[0]]
    for _ in range(steps):
        observed.append(env.step(env.action_space.sample())[0])
    return observed


@pytest.mark.parametrize('name', ['Ant-v5', 'HalfCheetah-v5', 'Humanoid-v5'])
@pytest.mark.parametrize('flat', [False, True])
def test_gymnasiums_checker_passes(name: str, flat: bool) -> None:
    env = SenseWrapper(gymnasium.make(name), SENSES, flat=flat)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')  # -inf .. inf of the environment's own observations
        check_env(env, skip_render_check=True)


def test_an_environments_own_observation_and_reward_are_as_without_senses() -> None:
    env = SenseWrapper(gymnasium.make('Ant-v5'), SENSES)
    bare = gymnasium.make('Ant-v5')
    with_senses, without = rolled(env, 15), rolled(bare, 15)
    for one, other in zip(with_senses, without, strict=True):
        np.testing.assert_array_equal(one['env'], other)
    assert env.rig.world.mismatch == 0.0


def test_a_sensor_sees_where_the_environment_is() -> None:
    env = SenseWrapper(gymnasium.make('Walker2d-v5'), EXACT, keep=False)
    env.reset(seed=1)
    for _ in range(10):
        observed, *_ = env.step(env.action_space.sample())
        bare = env.unwrapped
        np.testing.assert_allclose(observed['tracker'][0], bare.data.qpos[0], atol=1e-9)


@pytest.mark.parametrize(
    ('keys', 'walked'),
    [
        ({'rate_hz': 20.0}, 0),
        ({'rate_hz': 100.0}, 0),
        ({'rate_hz': 20.0, 'delay_range_s': [0.01, 0.03]}, 0),
        ({'rate_hz': 100.0, 'delay_range_s': [0.01, 0.03]}, 4 * 10),
        ({'rate_hz': 100.0, 'history_length': 3}, 4 * 10),
    ],
)
def test_substeps_are_walked_only_where_a_capture_in_between_is_kept(
    keys: dict[str, Any], walked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    imu = {'type': 'imu', 'mount': {'body': 'torso'}, **keys}
    env = SenseWrapper(gymnasium.make('Ant-v5'), {'sensors': {'imu': imu}})  # 5 steps of 10 ms
    steps, walk = [], AttachedWorld._walk
    monkeypatch.setattr(AttachedWorld, '_walk', lambda self: steps.append(walk(self)))
    rolled(env, 10)
    assert walked <= len(steps) <= walked * 5 / 4
    truth = env.rig.read_ground_truth('imu')
    assert truth.capture_ns == env.rig.time_ns
    sensor = mujoco_gyro(env)
    np.testing.assert_allclose(truth.values[0, 3:6], sensor, atol=0.2)


def mujoco_gyro(env: Any) -> Any:
    """Return the turn rate of the torso that the environment itself has, rad/s in its axes."""
    return env.unwrapped.data.qvel[3:6]


def test_readings_are_late_and_say_how_late() -> None:
    env = SenseWrapper(gymnasium.make('HalfCheetah-v5'), SENSES)
    _, info = env.reset(seed=1)
    assert not info['senses']['imu']['valid']
    ages = []
    for _ in range(10):
        *_, info = env.step(env.action_space.sample())
        ages.append(info['senses']['imu']['age_s'])
    assert 0.01 <= min(ages) <= max(ages) <= 0.05


def test_a_seed_repeats_the_noise_and_no_seed_goes_on() -> None:
    env = SenseWrapper(gymnasium.make('HalfCheetah-v5'), SENSES)
    first, again, other = rolled(env, 5), rolled(env, 5), rolled(env, 5, seed=4)
    np.testing.assert_array_equal(first[-1]['imu'], again[-1]['imu'])
    assert not np.array_equal(first[-1]['imu'], other[-1]['imu'])
    env.reset(seed=3)
    env.reset()
    assert env.rig.episode == 1


@pytest.mark.parametrize('mode', list(AutoresetMode))
def test_every_environment_of_a_vector_is_as_it_is_alone(mode: AutoresetMode) -> None:
    envs = SenseWrapper(
        gymnasium.make_vec(
            'Hopper-v5', 2, vectorization_mode='sync', vector_kwargs={'autoreset_mode': mode}
        ),
        SENSES,
    )
    assert envs.metadata['autoreset_mode'] == mode
    assert envs.observation_space['imu'].shape == (2, 6)
    alone = SenseWrapper(gymnasium.make('Hopper-v5'), SENSES)
    observed, _ = envs.reset(seed=5)
    expected, _ = alone.reset(seed=5)
    ended = is_over = 0
    for step in range(40):
        actions = np.full((2, 3), np.sin(step), np.float32)
        observed, _, terminations, truncations, info = envs.step(actions)
        if is_over and mode == AutoresetMode.NEXT_STEP:
            expected, _ = alone.reset()
            is_over = False
        else:
            expected, _, terminated, truncated, _ = alone.step(actions[0])
            is_over = terminated or truncated
        if is_over and mode == AutoresetMode.SAME_STEP:
            np.testing.assert_array_equal(info['final_obs'][0]['imu'], expected['imu'])
            expected, _ = alone.reset()
            is_over, ended = False, ended + 1
        ended += is_over
        done = terminations | truncations
        if mode == AutoresetMode.DISABLED and done.any():
            observed, _ = envs.reset(options={'reset_mask': done})
            if is_over:
                expected, _ = alone.reset()
                is_over = False
        np.testing.assert_array_equal(observed['imu'][0], expected['imu'])
    assert ended, 'no episode ended, so no reset was compared'


def test_a_vector_in_other_processes_is_wrapped_before() -> None:
    envs = AsyncVectorEnv([lambda: gymnasium.make('Hopper-v5')])
    try:
        with pytest.raises(RigError, match='wrap each before it is made a vector'):
            SenseWrapper(envs, SENSES)
    finally:
        envs.close()


@pytest.mark.parametrize(
    ('mount', 'text'),
    [
        ({'body': 'tors'}, "did you mean 'torso'"),
        ({'site': 'imu'}, "mount.site is 'imu', which the model does not have.*mount: {body"),
    ],
)
def test_a_mount_that_is_not_there_says_what_to_do(mount: dict[str, Any], text: str) -> None:
    with pytest.raises(RigError, match=text):
        SenseWrapper(
            gymnasium.make('Ant-v5'), {'sensors': {'imu': {'type': 'imu', 'mount': mount}}}
        )


def test_an_environment_without_mujoco_is_refused() -> None:
    with pytest.raises(RigError, match='keeps no MjModel and MjData'):
        SenseWrapper(gymnasium.make('CartPole-v1'), SENSES)


def test_a_name_that_the_environment_observes_already_is_refused() -> None:
    bare = gymnasium.make('HalfCheetah-v5')
    dressed = gymnasium.wrappers.TransformObservation(
        bare, lambda seen: {'imu': seen}, gymnasium.spaces.Dict({'imu': bare.observation_space})
    )
    with pytest.raises(RigError, match="observes 'imu' already"):
        SenseWrapper(dressed, SENSES)


def test_a_history_is_a_stack() -> None:
    rig = {'sensors': {'imu': {**SENSES['sensors']['imu'], 'history_length': 4}}}
    env = SenseWrapper(gymnasium.make('HalfCheetah-v5'), rig, keep=False)
    assert env.observation_space['imu'].shape == (4, 6)
    observed = rolled(env, 5)[-1]['imu']
    assert observed.shape == (4, 6) and len(np.unique(observed[:, 0])) == 4
