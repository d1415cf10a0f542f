"""What a read returns, against a naive search through everything that was ever captured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_sensors import MS, Plain, config, make

from rig_common.errors import RigError
from sim_sensors.interface.sensor import Sample
from sim_sensors.pipeline.pipeline import Pipeline
from sim_sensors.timing.arrays.layout import Layout

DELAYS = st.sampled_from([(0.0, 0.0), (0.004, 0.004), (0.0105, 0.031), (0.0, 0.02), (0.05, 0.05)])


@st.composite
def rigs(draw: st.DrawFn) -> dict[str, Any]:
    """Any mix of rate, delay, jitter, loss and faults."""
    low, high = draw(DELAYS)
    keys: dict[str, Any] = {
        'rate_hz': draw(st.sampled_from([0.0, 400.0, 100.0, 29.97])),
        'phase_s': draw(st.sampled_from([0.0, 0.003])),
        'delay_range_s': (low, high),
        'jitter_s': draw(st.sampled_from([0.0, low / 3, low])),
        'loss': {'probability': draw(st.sampled_from([0.0, 0.4])), 'burst_mean': 3.0},
        'history_length': draw(st.sampled_from([0, 1, 5])),
    }
    if draw(st.booleans()):
        keys['faults'] = {
            'slow': {'kind': 'slow', 'at_s': 0.04, 'duration_s': 0.03, 'offset': 0.02},
            'dead': {'kind': 'dead', 'at_s': 0.1, 'duration_s': 0.02},
        }
    return keys


class Oracle:
    """Keeps every sample of every environment and searches them all, one by one."""

    def __init__(self, num_envs: int) -> None:
        self.samples: list[list[Sample]] = [[] for _ in range(num_envs)]

    def newest(self, env: int, now_ns: int, not_after: int | None = None) -> Sample | None:
        best = None
        for sample in self.samples[env]:
            if sample.arrival_ns <= now_ns and (not_after is None or sample.index <= not_after):
                if best is None or sample.index > best.index:
                    best = sample
        return best

    def top(self, env: int, now_ns: int, last_sent: int) -> int:
        """Return the capture of history entry 0; a lost one stands for the sample before it."""
        for k in range(last_sent, -1, -1):
            held = [sample for sample in self.samples[env] if sample.index <= k]
            if held and max(held, key=lambda sample: sample.index).arrival_ns <= now_ns:
                return k
        return -1


def play(
    pipeline: Pipeline, oracle: Oracle, start: int, stop: int, resets: dict[int, list[int]]
) -> None:
    """Run the steps `start` to `stop`, comparing every read with the oracle's answer."""
    num_envs = pipeline.num_envs
    truth = np.zeros((num_envs, 2))
    for step in range(start, stop):
        now = step * MS
        if step in resets:
            pipeline.reset(resets[step], now)
            for env in resets[step]:
                oracle.samples[env].clear()
        truth[:, 0], truth[:, 1] = step, np.arange(num_envs)
        pipeline.tick(None, now, truth)
        for _, env, _, *_, sample in pipeline.in_flight._heap:  # type: ignore[union-attr]
            if sample.capture_ns == now:
                oracle.samples[env].append(sample)
        check(pipeline, oracle, now)
        for sample in pipeline.due(now):
            assert sample.arrival_ns <= now


def check(pipeline: Pipeline, oracle: Oracle, now: int) -> None:
    reading = pipeline.read(now)
    for env in range(pipeline.num_envs):
        best = oracle.newest(env, now)
        assert reading.valid[env] == (best is not None)
        if best is None:
            assert (reading.values[env] == 0).all()
        else:
            assert reading.capture_ns[env] == best.capture_ns
            assert reading.stamp_ns[env] == best.stamp_ns
            assert np.array_equal(reading.values[env], best.values)
    length = pipeline.config.history_length
    if length and now // MS % 5 == 0:
        check_history(pipeline, oracle, now, length)


def check_history(pipeline: Pipeline, oracle: Oracle, now: int, length: int) -> None:
    history = pipeline.read(now, history_length=length)
    for env in range(pipeline.num_envs):
        sent = now - int(pipeline._lags.least_ns[env])
        top = oracle.top(env, now, pipeline.schedule.index_before(sent))
        for i in range(length):
            old = oracle.newest(env, now, top - i)
            assert history.valid[env, i] == (old is not None)
            if old:
                assert np.array_equal(history.values[env, i], old.values)


@settings(deadline=None, max_examples=40)
@given(
    rigs(),
    st.dictionaries(
        st.integers(5, 110),
        st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True),
        max_size=3,
    ),
)
def test_reads_give_the_newest_sample_that_has_arrived(
    keys: dict[str, Any], resets: dict[int, list[int]]
) -> None:
    pipeline = make(3, pipeline={'messages': True}, **keys)
    play(pipeline, Oracle(3), 0, 130, resets)


@settings(deadline=None, max_examples=20)
@given(rigs(), DELAYS)
def test_a_changed_delay_holds_from_the_next_capture_on(
    keys: dict[str, Any], delay: tuple[float, float]
) -> None:
    pipeline = make(3, pipeline={'messages': True}, **keys)
    oracle = Oracle(3)
    play(pipeline, oracle, 0, 60, {})
    pipeline.reconfigure(
        config(**{**keys, 'delay_range_s': delay, 'jitter_s': min(keys['jitter_s'], delay[0])})
    )
    play(pipeline, oracle, 60, 130, {80: [1]})


@settings(deadline=None, max_examples=30)
@given(rigs(), st.integers(20, 120))
def test_two_reads_in_a_step_are_equal(keys: dict[str, Any], steps: int) -> None:
    pipeline = make(2, noise=0.1, **keys)
    for step in range(steps):
        pipeline.tick(None, step * MS, np.full((2, 2), float(step)))
    first, second = pipeline.read(step * MS), pipeline.read(step * MS)
    for one, other in zip(first, second, strict=True):
        assert np.array_equal(one, other)
    first.values[:] = -1  # the caller's own: changing it changes no later read
    assert np.array_equal(pipeline.read(step * MS).values, second.values)


def test_the_trace_of_a_fixed_delay() -> None:
    """100 Hz, 12 ms: what is read at t was captured at the last ten before t - 12 ms."""
    pipeline = make(1, rate_hz=100.0, delay_range_s=(0.012, 0.012))
    seen = {}
    for t in range(50):
        pipeline.tick(None, t * MS, np.full((1, 2), float(t)))
        reading = pipeline.read(t * MS)
        seen[t] = int(reading.values[0, 0]) if reading.valid[0] else None
    assert [seen[t] for t in (0, 11, 12, 21, 22, 31, 32, 42)] == [None, None, 0, 0, 10, 10, 20, 30]


def test_the_ring_is_right_long_after_it_has_wrapped() -> None:
    pipeline = make(
        4, rate_hz=400.0, delay_range_s=(0.02, 0.045), jitter_s=0.013, history_length=3
    )
    for t in range(3000):
        pipeline.tick(None, t * MS, np.full((4, 2), float(t)))
    reading = pipeline.read(2999 * MS, history_length=3)
    age = 2999 * MS - reading.capture_ns
    assert reading.valid.all()
    assert (age[:, 0] >= 20 * MS).all() and (age[:, 0] <= 61 * MS).all()
    assert (np.diff(reading.capture_ns, axis=1) <= 0).all()


def test_delays_lie_in_their_range_and_differ() -> None:
    latency = make(500, delay_range_s=(0.01, 0.02)).transit.latency_ns
    assert latency.min() >= 10 * MS and latency.max() <= 20 * MS
    assert latency.std() > 2 * MS
    assert np.array_equal(latency[:7], make(7, delay_range_s=(0.01, 0.02)).transit.latency_ns)


# ---- between captures ------------------------------------------------------------


def wave(t_ms: float) -> float:
    return float(np.sin(t_ms / 17.0))


@pytest.mark.parametrize(('kind', 'tolerance'), [('linear', 0.05), ('cubic', 0.005)])
def test_interpolation_follows_a_smooth_signal(kind: str, tolerance: float) -> None:
    pipeline = make(1, rate_hz=100.0, delay_range_s=(0.0234, 0.0234), interpolation=kind)
    errors = []
    for t in range(200):
        pipeline.tick(None, t * MS, np.full((1, 2), wave(t)))
        reading = pipeline.read(t * MS)
        if t > 60:
            assert reading.capture_ns[0] == t * MS - 23_400_000
            errors.append(abs(reading.values[0, 0] - wave(t - 23.4)))
    assert max(errors) < tolerance


def test_interpolated_history_steps_by_captures() -> None:
    pipeline = make(
        2, rate_hz=100.0, delay_range_s=(0.02, 0.034), interpolation='linear', history_length=3
    )
    for t in range(100):
        pipeline.tick(None, t * MS, np.full((2, 2), float(t)))
    reading = pipeline.read(99 * MS, history_length=3)
    np.testing.assert_allclose(np.diff(reading.values[..., 0], axis=1), -10.0)
    np.testing.assert_allclose(reading.values[..., 0], reading.capture_ns / MS)


def test_slerp_keeps_orientations_on_the_sphere() -> None:
    class Attitude(Plain):
        truth_layout = Layout({'quat_wxyz': (4,), 'height': (1,)}, np.float64)

    pipeline = make(1, Attitude, rate_hz=20.0, delay_range_s=(0.12, 0.12), interpolation='slerp')
    for t in range(400):
        half = 60.0 * t * 1e-3 / 2.0
        sign = 1.0 if (t // 50) % 2 else -1.0  # q and -q are one rotation
        row = [sign * np.cos(half), sign * np.sin(half), 0.0, 0.0, t]
        pipeline.tick(None, t * MS, np.array([row]))
        if t > 200:
            values = pipeline.read(t * MS).values[0]
            assert abs(np.linalg.norm(values[:4]) - 1.0) < 1e-12
            angle = 60.0 * (t - 120) * 1e-3 / 2.0
            assert abs(abs(values[0] * np.cos(angle) + values[1] * np.sin(angle)) - 1.0) < 1e-9
            assert abs(values[4] - (t - 120)) < 1e-9


def test_interpolation_where_it_makes_no_sense_is_refused() -> None:
    class Touch(Plain):
        returns = Layout({'touch': (2,)}, np.bool_)

    with pytest.raises(RigError, match='returns bool values; only zoh'):
        make(1, Touch, interpolation='linear')
    with pytest.raises(RigError, match='returns no orientation'):
        make(1, interpolation='slerp')
    with pytest.raises(RigError, match='only zoh knows latencies'):
        make(1, interpolation='linear', delay_range_s=(0.01, 0.01), jitter_s=0.001)
