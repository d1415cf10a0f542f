"""A number depends on its index alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_sensors import config

from sim_sensors.interface.batch import NoiseSource, ReadoutErrors
from sim_sensors.timing.randomness.lanes import Lanes
from sim_sensors.timing.randomness.noise_stream import NoiseStream
from sim_sensors.timing.randomness.processes import DriftSpec, DriftStream, MarkovStream


def stream(
    num_envs: int = 1, width: int = 3, name: str = 'white', seed: int = 5, **keys: Any
) -> NoiseStream:
    return NoiseStream(Lanes(seed, ('imu',), num_envs), name, width, **keys)


def walk(num_envs: int, decay: float = 0.9) -> MarkovStream:
    one = np.ones(2)
    return MarkovStream(
        Lanes(3, ('imu',), num_envs), 'walk', decay=one * decay, gain=one * 0.5, start=one * 2.0
    )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5000)), min_size=1, max_size=30),
    st.sampled_from([1, 3, 40, 2000]),
)
def test_order_batching_and_other_environments_change_nothing(
    wanted: list[tuple[int, int]], width: int
) -> None:
    many = stream(7, width)
    for env, k in wanted:
        alone = stream(env + 1, width).at(np.array([env]), np.array([k]))
        assert np.array_equal(many.at(np.array([env]), np.array([k])), alone)
    k = np.array([7 * index for _, index in wanted[:1]] * 7)
    together = many.at(slice(None), k)
    assert all(
        np.array_equal(together[e], stream(7, width).at(np.array([e]), k[:1])[0]) for e in range(7)
    )


def test_the_first_environment_is_the_only_one_of_a_small_rig() -> None:
    single, first = stream(1), stream(64)
    for k in (0, 1, 170, 171, 100_000):
        assert np.array_equal(
            single.at(slice(None), np.array([k])), first.at(np.array([0]), np.array([k]))
        )


def test_every_part_of_the_address_matters() -> None:
    def number(**keys: Any) -> float:
        return float(stream(2, **keys).at(np.array([1]), np.array([4]))[0, 0])

    lanes = Lanes(5, ('imu',), 2)
    lanes.episode[:] = [0, 1]
    later = NoiseStream(lanes, 'white', 3).at(np.array([1]), np.array([4]))[0, 0]
    other_sensor = NoiseStream(Lanes(5, ('gyro',), 2), 'white', 3)
    numbers = {
        number(),
        number(seed=6),
        number(name='bias'),
        float(later),
        float(other_sensor.at(np.array([1]), np.array([4]))[0, 0]),
        float(stream(2).at(np.array([0]), np.array([4]))[0, 0]),
        float(stream(2).at(np.array([1]), np.array([5]))[0, 0]),
    }
    assert len(numbers) == 7


def test_normals_are_normal_and_uniforms_uniform() -> None:
    k = np.arange(5000)
    white, flat = stream(width=4), stream(width=1, kind='uniform')
    normal = np.concatenate([white.at(slice(None), k[i : i + 1]) for i in k])
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1.0) < 0.03
    assert abs(np.corrcoef(normal[:-1].ravel(), normal[1:].ravel())[0, 1]) < 0.03
    uniform = np.array([flat.at(slice(None), k[i : i + 1])[0, 0] for i in k])
    assert uniform.min() >= 0.0 and uniform.max() < 1.0 and abs(uniform.mean() - 0.5) < 0.02


@pytest.mark.parametrize('decay', [1.0, 0.9])
def test_a_walk_is_the_plain_recurrence(decay: float) -> None:
    normals = stream(5, 2, name='walk', seed=3)
    x = np.zeros((5, 2))
    process = walk(5, decay)
    for k in range(700):
        normal = normals.at(slice(None), np.full(5, k))
        x = 2.0 * normal if k == 0 else decay * x + 0.5 * normal
        np.testing.assert_allclose(process.at(slice(None), np.full(5, k)), x, rtol=0, atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(1, 300), min_size=1, max_size=6), st.sampled_from([1.0, 0.97]))
def test_skipping_does_not_change_a_walk(gaps: list[int], decay: float) -> None:
    lazy, eager = walk(3, decay), walk(3, decay)
    asked = set(np.cumsum(gaps).tolist())
    for k in range(sum(gaps) + 1):
        dense = eager.at(slice(None), np.full(3, k))
        if k in asked:
            assert np.array_equal(lazy.at(slice(None), np.full(3, k)), dense)
    alone = walk(1, decay).at(slice(None), np.array([k]))
    assert np.array_equal(alone[0], dense[0])


def drift(num_envs: int) -> DriftStream:
    spec = DriftSpec(
        20,
        decay=np.array([0.9, 1.0]),
        gain=np.array([0.4, 0.1]),
        start=np.array([1.0, 0.0]),
        width=3,
    )
    return DriftStream(Lanes(3, ('imu',), num_envs), 'bias', spec)


WEIGHTS = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])


@settings(deadline=None, max_examples=25)
@given(st.sets(st.integers(0, 1000), min_size=1, max_size=12))
def test_a_drift_is_straight_between_knots_and_the_same_when_skipped(asked: set[int]) -> None:
    dense, lazy = drift(3), drift(3)
    last = max(asked)
    seen = np.array([dense.at(slice(None), np.full(3, k), WEIGHTS) for k in range(last + 1)])
    for k in sorted(asked):
        assert np.array_equal(lazy.at(slice(None), np.full(3, k), WEIGHTS), seen[k])
    alone = drift(1).at(slice(None), np.array([last]), WEIGHTS)
    assert np.array_equal(alone[0], seen[last, 0])
    bend = np.abs(np.diff(seen, 2, axis=0)).max(axis=2)
    for env in range(3):
        inner = [k for k in range(len(bend)) if (k + 1) % 20]
        assert len(inner) == 0 or bend[inner, env].max() < 1e-12


def test_a_reset_begins_another_episode_of_those_environments_only() -> None:
    source = NoiseSource(1, 'imu', 4, readout_errors=ReadoutErrors(config()))
    before = source.constant('turn_on', slice(None), 3).copy()
    source.reset(np.array([1, 3]))
    after = source.constant('turn_on', slice(None), 3)
    same = (before == after).all(axis=1)
    assert same.tolist() == [True, False, True, False]
    assert source.lanes.episode.tolist() == [0, 1, 0, 1]
