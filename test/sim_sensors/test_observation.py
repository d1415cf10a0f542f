"""A sensor as an observation term, in an environment that only counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.observation import SensedTerm
from sim_sensors.sensors.imu import Imu, ImuConfig

torch = pytest.importorskip('torch')
pytest.importorskip('array_api_compat')


def environment(num_envs: int = 4) -> SimpleNamespace:
    return SimpleNamespace(
        num_envs=num_envs,
        device=torch.device('cpu'),
        step_dt=0.02,
        common_step_counter=0,
        episode_length_buf=torch.zeros(num_envs, dtype=torch.long),
    )


def step(env: SimpleNamespace, *reset: int) -> None:
    env.common_step_counter += 1
    env.episode_length_buf += 1
    env.episode_length_buf[list(reset)] = 0


def term(**keys: Any) -> SensedTerm:
    def count(env: Any) -> Any:
        return torch.full((env.num_envs, 6), float(env.common_step_counter), dtype=torch.float64)

    return SensedTerm(Imu('imu', ImuConfig(type='imu', rate_hz=0.0, **keys)), count, seed=3)


def test_what_is_observed_is_late() -> None:
    env, late = environment(), term(delay_range_s=(0.04, 0.04))
    seen = []
    for _ in range(6):
        seen.append(late(env)[:, 0].tolist())
        assert late(env)[:, 0].tolist() == seen[-1]  # two calls at one time are equal
        step(env)
    assert [each[0] for each in seen] == [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]
    assert late.reading is not None and late.reading.valid.all()


def test_an_episode_that_begins_has_no_past() -> None:
    env, late = environment(), term(delay_range_s=(0.04, 0.04))
    for _ in range(5):
        late(env)
        step(env)
    late(env)
    step(env, 2)
    assert late(env)[:, 0].tolist() == [4.0, 4.0, 0.0, 4.0]
    assert late.reading is not None and late.reading.valid.tolist() == [True, True, False, True]
    step(env)
    step(env)
    assert late(env)[:, 0].tolist() == [6.0, 6.0, 6.0, 6.0]


def test_turn_on_biases_are_drawn_per_environment_and_episode() -> None:
    env, biased = environment(), term(accel={'turn_on_bias': 1.0})
    first = biased(env).clone()
    assert len(set(first[:, 0].tolist())) == 4
    step(env, 1)
    moved = ((biased(env) - env.common_step_counter - first).abs() > 1e-9).any(1)
    assert moved.tolist() == [False, True, False, False]


def test_a_truth_of_another_shape_is_refused() -> None:
    wrong = SensedTerm(Imu('imu', ImuConfig(type='imu')), lambda env: torch.zeros(4, 3))
    env = environment()
    env.step_dt = 0.005
    with pytest.raises(RigError, match=r'must be \[4, 6\]: linear_acceleration'):
        wrong(env)


def test_a_term_that_joins_later_begins_now() -> None:
    env = environment()
    for _ in range(100):
        step(env)
    assert term()(env)[:, 0].tolist() == [100.0] * 4
    assert np.isfinite(term(delay_range_s=(0.04, 0.04))(env).numpy()).all()


def test_a_manager_says_which_episodes_begin() -> None:
    """mjlab calls a term once before the first reset; that sample is of no episode."""
    env, late = environment(), term(delay_range_s=(0.02, 0.02), gyro={'turn_on_bias': 1.0})
    late(env)
    late.reset(env_ids=torch.tensor([1, 3]))
    step(env)
    first = late(env)
    assert late.reading is not None and late.reading.valid.tolist() == [True, False, True, False]
    late.reset(slice(None))
    late(env)
    assert not late.reading.valid.any()
    step(env)
    assert late(env).abs().sum() > 0.0 and not torch.equal(late(env), first)


def test_observations_have_the_type_of_the_truth() -> None:
    env = environment()
    for dtype in (torch.float32, torch.float64):
        felt = SensedTerm(
            Imu('imu', ImuConfig(type='imu', rate_hz=0.0)),
            lambda env, dtype=dtype: torch.full((env.num_envs, 6), 0.1, dtype=dtype),
        )
        assert felt(env).dtype == dtype and felt(env)[0, 0] == torch.tensor(0.1, dtype=dtype)


def test_latencies_are_told_once_they_are_drawn() -> None:
    env, late = environment(), term(delay_range_s=(0.02, 0.2))
    with pytest.raises(RigError, match='not been observed yet'):
        _ = late.latency_s
    late(env)
    assert ((late.latency_s >= 0.02) & (late.latency_s <= 0.2)).all()
    assert len(late.latency_s.unique()) == env.num_envs


def test_at_physics_rate_delays_are_whole_physics_steps() -> None:
    """Delays of 7 ms where the environment steps by 20 ms and its physics by 5 ms."""
    env = environment()
    env.cfg, env.physics_dt = SimpleNamespace(decimation=4), 0.005
    env.scene = SimpleNamespace(update=lambda dt: None)
    env.time_s = 0.0  # of the state that the truth shows

    def clock(env: Any) -> Any:
        return torch.full((env.num_envs, 6), env.time_s, dtype=torch.float64)

    keys = {'type': 'imu', 'rate_hz': 0.0, 'delay_range_s': (0.007, 0.007), 'history_length': 4}
    late = SensedTerm(Imu('imu', ImuConfig(**keys)), clock, physics_rate=True)
    seen = []
    for k in range(6):
        seen.append(late(env)[0, 0].item())
        for part in range(4):
            env.time_s = 0.02 * k + 0.005 * part  # as MuJoCo's arrays after a step
            env.scene.update(0.005)
        env.time_s = 0.02 * (k + 1)
        step(env, *([2] if k == 3 else []))
    assert seen == pytest.approx([0.0, 0.01, 0.03, 0.05, 0.07, 0.09])
    assert late(env)[:, 0].tolist() == pytest.approx([0.11] * 4)
