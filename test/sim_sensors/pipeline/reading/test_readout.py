"""Reads at other times, in other ways, of a past that was given; captures that nobody aligned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.toy_sensors import Plain, config

from rig_common.errors import RigError
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup

MS = 1_000_000


def ramp(num_envs: int = 3, ticks: int = 40, **keys: Any) -> Pipeline:
    """Return a pipeline that was given its time in ms, plus 100 times the environment."""
    pipeline = Pipeline(
        Plain('toy', config(**keys)), RunSetup(num_envs=num_envs, seed=4, dt_ns=MS)
    )
    width = pipeline.sensor.truth_layout.width
    for tick in range(ticks):
        drive(pipeline, tick * MS, width)
    return pipeline


def drive(pipeline: Pipeline, now_ns: int, width: int) -> None:
    def supply(lanes: Any, out: Any) -> None:
        out[:] = (now_ns / MS + 100.0 * np.asarray(lanes))[:, None] * np.ones(width)

    pipeline.supplier = supply
    pipeline.update(now_ns)


@pytest.mark.parametrize('jitter_s', [0.0, 0.002])
def test_every_environment_is_read_at_a_time_of_its_own(jitter_s: float) -> None:
    pipeline = ramp(delay_range_s=(0.003, 0.003), jitter_s=jitter_s, history_length=20)
    times_ns = np.array([39, 35, 30]) * MS
    together = pipeline.read(times_ns)
    stack = pipeline.read(times_ns, history_length=3)
    for env, time_ns in enumerate(times_ns.tolist()):
        alone = pipeline.read(time_ns, [env])
        assert np.array_equal(together.values[env], alone.values[0])
        assert together.capture_ns[env] == alone.capture_ns[0] <= time_ns - 3 * MS
        assert np.array_equal(stack.values[env], pipeline.read(time_ns, [env], 3).values[0])


def test_one_time_for_each_environment_or_one_for_all() -> None:
    with pytest.raises(RigError, match='at 2 times in 3 environments'):
        ramp(history_length=4).read([0, 1])


def test_a_read_chooses_its_interpolation() -> None:
    pipeline = ramp(1, rate_hz=100.0, delay_range_s=(0.003, 0.003), history_length=4)
    held, straight = pipeline.read(), pipeline.read(interpolation='linear')
    assert held.values[0, 0] == 30.0
    assert straight.values[0, 0] == 30.0  # nothing after it has been captured yet
    earlier = pipeline.read(28 * MS, interpolation='linear')
    assert earlier.values[0, 0] == pytest.approx(25.0)
    assert np.array_equal(pipeline.read().values, held.values)
    with pytest.raises(RigError, match='only zoh'):
        ramp(1, delay_range_s=(0.003, 0.003), jitter_s=0.001).read(interpolation='linear')


def test_a_phase_is_drawn_for_every_environment_and_episode() -> None:
    pipeline = ramp(16, rate_hz=50.0, phase_range_s=(0.0, 0.02), eager=True)
    phases = pipeline.progress.origin_ns.copy()
    assert len(set(phases.tolist())) > 5
    assert (phases % MS == 0).all() and (phases >= 0).all() and (phases <= 20 * MS).all()
    reading = pipeline.read()
    assert ((reading.capture_ns - phases) % (20 * MS) == 0)[reading.valid].all()
    pipeline.reset([3], 40 * MS)
    moved = pipeline.progress.origin_ns - phases
    assert moved[3] != 0 and np.count_nonzero(moved) == 1


@pytest.mark.parametrize('keys', [{}, {'jitter_s': 0.002}])
def test_a_past_is_read_before_the_episode_has_one(keys: dict[str, Any]) -> None:
    pipeline = ramp(3, 1, rate_hz=100.0, delay_range_s=(0.025, 0.025), history_length=4, **keys)
    assert not pipeline.read().valid.any()
    width = pipeline.sensor.truth_layout.width
    past = np.arange(9.0).reshape(3, 3, 1) * np.ones(width)
    pipeline.start_history(np.array([-30, -20, -10]) * MS, past)
    reading = pipeline.read()
    assert reading.valid.all()
    assert reading.values[:, 0].tolist() == [0.0, 3.0, 6.0]
    assert reading.capture_ns.tolist() == [-30 * MS] * 3
    for tick in range(1, 26):
        drive(pipeline, tick * MS, width)
    assert pipeline.read(15 * MS).values[:, 0].tolist() == [2.0, 5.0, 8.0]
    pipeline.reset([1], 25 * MS)
    assert pipeline.read().valid.tolist() == [True, False, True]


def test_a_past_with_a_phase_begins_an_episode_there() -> None:
    pipeline = ramp(2, 30, rate_hz=100.0, delay_range_s=(0.005, 0.005), history_length=4)
    width = pipeline.sensor.truth_layout.width
    pipeline.start_history(
        np.array([[14, 24], [13, 23]]) * MS, np.ones((2, 2, width)), np.array([34, 33]) * MS
    )
    for tick in range(30, 60):
        drive(pipeline, tick * MS, width)
    assert pipeline.read(34 * MS).values[:, 0].tolist() == [1.0, 1.0]
    assert pipeline.read().capture_ns.tolist() == [54 * MS, 53 * MS]


def test_a_past_off_the_schedule_is_refused() -> None:
    pipeline = ramp(2, 1, rate_hz=100.0, history_length=4)
    width = pipeline.sensor.truth_layout.width
    with pytest.raises(RigError, match='captures of its schedule'):
        pipeline.start_history([-15 * MS], np.zeros((2, 1, width)))
    with pytest.raises(RigError, match='it keeps 1 to'):
        pipeline.start_history(-10 * MS * np.arange(99, 0, -1), np.zeros((2, 99, width)))


def test_a_plain_read_gives_the_stack_where_asked() -> None:
    pipeline = ramp(2, history_length=3, stack_history=True)
    assert np.array_equal(pipeline.read().values, pipeline.read(history_length=3).values)
    assert pipeline.read(history_length=1).values.shape[1] == 1
    with pytest.raises(ValueError, match='stacks nothing'):
        config(stack_history=True)


def test_none_is_no_delay() -> None:
    assert config(delay_range_s=None, phase_range_s=None).delay_range_s == (0.0, 0.0)
