"""Stages in order, laziness that changes nothing, resets that touch nobody else."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_sensors import MS, Clockwork, Counter, LowPass, Plain, config, make

from rig_common.errors import RigError
from sim_sensors.interface.batch import Batch, Timeline
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.timing.arrays.layout import Array, Layout
from sim_sensors.timing.faults import FaultConfig

# ---- stages ----------------------------------------------------------------------------------


class Recorder(LowPass):
    """Writes down which stage saw what."""

    def __init__(self, name: str, keys: Any) -> None:
        super().__init__(name, keys)
        self.log: list[tuple[str, bool, float]] = []

    def _note(self, stage: str, values: Array, batch: Batch) -> None:
        self.log.append((stage, batch.is_measured, float(values[0, 0])))

    def physics_imperfections(self, values: Array, batch: Batch) -> None:
        values += 100.0
        self._note('physics', values, batch)

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        super().respond(values, timeline, batch)
        self._note('respond', values, batch)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        values += 0.25
        self._note('hardware', values, batch)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        self._note('post', values, batch)
        return values > 50.0

    returns = Layout({'above': (2,)}, np.bool_)


def test_stages_run_in_order_on_both_branches() -> None:
    pipeline = make(1, Recorder, rate_hz=500.0)
    log = pipeline.sensor.log
    for t, x in enumerate([1.0, 2.0, 4.0]):
        pipeline.tick(None, t * MS, np.full((1, 2), x))
    assert log == [
        # a capture: both branches, hardware noise only on the working copy
        ('physics', True, 101.0),
        ('respond', True, 101.0),
        ('respond', False, 1.0),
        ('hardware', True, 101.25),
        ('post', True, 101.25),
        ('post', False, 1.0),
        # a truth tick between captures feeds the response only; 101.5 = (101 + 102) / 2
        ('physics', True, 102.0),
        ('respond', True, 101.5),
        ('respond', False, 1.5),
        # the response never sees the 0.25 of the hardware: 102.75 = (101.5 + 104) / 2
        ('physics', True, 104.0),
        ('respond', True, 102.75),
        ('respond', False, 2.75),
        ('hardware', True, 103.0),
        ('post', True, 103.0),
        ('post', False, 2.75),
    ]
    assert pipeline.read(2 * MS).values.tolist() == [[True, True]]
    assert pipeline.read_ground_truth().values.tolist() == [[False, False]]


def test_the_truth_rows_handed_in_are_left_alone() -> None:
    for kind in (Plain, LowPass, Recorder):
        pipeline = make(1, kind, noise=1.0)
        rows = np.full((1, 2), 3.0)
        pipeline.tick(None, 0, rows)
        assert (rows == 3.0).all()


def test_a_longer_timeline() -> None:
    class Echo(Plain):
        stateful = True
        timeline_length = 3

        def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
            old = timeline.at(3)[:, 1]
            values[:, 0] = old

    pipeline = make(2, Echo)
    seen = []
    for t in range(9):
        pipeline.tick(None, t * MS, np.array([[0.0, t], [0.0, 10 + t]]))
        seen.append(pipeline.read(t * MS).values[:, 0].tolist())
    assert seen[3:] == [[t - 3.0, t + 7.0] for t in range(3, 9)]
    with pytest.raises(ValueError, match='keeps 3 earlier ticks, not 4'):
        pipeline.stages._sensed_line.at(4)


def test_post_process_may_remember_its_output() -> None:
    pipeline = make(2, Counter, rate_hz=500.0)
    for t in range(11):
        pipeline.tick(None, t * MS, np.zeros((2, 2)))
        if t == 6:
            pipeline.reset([0], t * MS)
            pipeline.tick([0], t * MS, np.zeros((1, 2)))
    assert pipeline.read(10 * MS).values.tolist() == [[2], [5]]


def test_ground_truth_is_projected_when_it_is_read() -> None:
    projected: list[int] = []

    class Product(Plain):
        returns = Layout({'product': (1,)}, np.int32)

        def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
            if not batch.is_measured:
                projected.append(len(values))
            return (values[:, :1] * values[:, 1:] + 1.0).astype(np.int32)

    pipeline = make(2, Product, rate_hz=1000.0, history_length=3)
    for t in range(2):
        pipeline.tick(None, t * MS, np.array([[t, 2.0], [t, 3.0]]))
    assert pipeline.read(MS).values.tolist() == [[3], [4]]
    assert not projected
    truth = pipeline.read_ground_truth(history_length=3)
    assert truth.values[..., 0].tolist() == [[3, 1, 0], [4, 1, 0]]
    assert truth.values.dtype == np.int32
    assert pipeline.read_ground_truth([1]).values.tolist() == [[4]]
    assert pipeline.read_ground_truth([]).values.shape == (0, 1)
    assert projected == [6, 1, 0]


def test_state_of_the_branches_is_apart_and_zeroed_on_reset() -> None:
    class Sum(Plain):
        stateful = True
        state_shapes = {'sum': (2,)}

        def physics_imperfections(self, values: Array, batch: Batch) -> None:
            values += 1.0

        def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
            batch.state['sum'][batch.envs] += values
            values[:] = batch.state['sum'][batch.envs]

    pipeline = make(2, Sum)
    for t in range(4):
        if t == 2:
            pipeline.reset([1], t * MS)
        pipeline.tick(None, t * MS, np.ones((2, 2)))
    assert pipeline.read(3 * MS).values[:, 0].tolist() == [8.0, 4.0]
    assert pipeline.read_ground_truth().values[:, 0].tolist() == [4.0, 2.0]


def test_a_sensor_may_make_what_is_sensed_in_one_pass() -> None:
    class Fused(Plain):
        def sense(self, truth: Array, batch: Batch) -> Array:
            return 2.0 * truth

    pipeline = make(2, Fused)
    pipeline.tick(None, 0, np.ones((2, 2)))
    assert pipeline.read(0).values.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert pipeline.read_ground_truth().values.tolist() == [[1.0, 1.0], [1.0, 1.0]]


# ---- laziness --------------------------------------------------------------------------------


def test_nobody_reads_nothing_is_computed() -> None:
    clock = Clockwork(num_envs=4, rate_hz=100.0, noise=0.1)
    for t in range(100):
        clock.at(t)
    assert clock.calls == []
    assert clock.pipeline.outdated.all()


def test_only_the_environments_that_are_read_and_outdated_are_computed() -> None:
    clock = Clockwork(num_envs=4, rate_hz=100.0)
    clock.at(20).read(envs=[1, 3])
    assert clock.calls == [(20 * MS, [1, 3])]
    assert clock.pipeline.outdated.tolist() == [True, False, True, False]
    clock.at(25).read()
    clock.at(25).read_ground_truth()
    assert clock.calls[1:] == [(25 * MS, [0, 2])]
    values = clock.at(29).read().values
    assert values.tolist() == [[25.0, 0.0], [20.0, 1.0], [25.0, 2.0], [20.0, 3.0]]
    assert len(clock.calls) == 2


@pytest.mark.parametrize(
    'keys',
    [
        {'eager': True},
        {'history_length': 2},
        {'delay_range_s': (0.01, 0.01)},
        {'sensor': LowPass},
        {'loss': {'probability': 0.1}},
        {'faults': {'late': {'kind': 'dead', 'at_s': 9.0}}},
    ],
)
def test_what_must_not_starve_is_captured_on_schedule(keys: dict[str, Any]) -> None:
    clock = Clockwork(num_envs=2, rate_hz=100.0, truth_rate_hz=100.0, **keys)
    for t in range(35):
        clock.at(t)
    assert [time // MS for time, _ in clock.calls] == [0, 10, 20, 30]


def test_environments_by_number_mask_or_slice() -> None:
    clock = Clockwork(num_envs=4, rate_hz=100.0)
    for envs, asked in (
        ([2, 0, 2], [0, 2]),
        (np.array([False, True, False, False]), [1]),
        (slice(3, None), [3]),
    ):
        before = len(clock.calls)
        values = clock.at(0).read(envs=envs).values
        assert [call[1] for call in clock.calls[before:]] == [asked]
        assert values[:, 1].tolist() == np.arange(4.0)[envs].tolist()
    clock.pipeline.reset([])
    assert len(clock.calls) == 3


def test_a_watched_sensor_is_captured_while_it_is_watched() -> None:
    clock = Clockwork(rate_hz=100.0)
    for t in range(50):
        clock.pipeline.watched = 15 <= t <= 35
        clock.at(t)
    assert [time // MS for time, _ in clock.calls] == [15, 20, 30]


@settings(deadline=None, max_examples=25)
@given(st.sets(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 5))
def test_laziness_changes_no_sample(captures: set[int], num_envs: int) -> None:
    keys: dict[str, Any] = {
        'num_envs': num_envs,
        'rate_hz': 100.0,
        'noise': 0.1,
        'random_walk': 0.2,
        'bias': 1.0,
    }
    lazy, eager = Clockwork(**keys), Clockwork(eager=True, **keys)
    for t in range(0, 401, 10):
        lazy.at(t), eager.at(t)
        if t // 10 in captures:
            for one, other in zip(lazy.pipeline.read(), eager.pipeline.read(), strict=True):
                assert np.array_equal(one, other)
    assert len(lazy.calls) == len(captures) and len(eager.calls) == 41


# ---- environments and resets -----------------------------------------------------------------

RICH: dict[str, Any] = {
    'rate_hz': 100.0,
    'noise': 0.1,
    'random_walk': 0.05,
    'history_length': 2,
    'delay_range_s': (0.004, 0.03),
    'jitter_s': 0.004,
    'loss': {'probability': 0.2, 'burst_mean': 2.0},
}


def stream(
    pipeline: Pipeline, env: int, steps: int, resets: dict[int, list[int]] | None = None
) -> list[tuple[bool, bytes, int]]:
    """Return what `env` reads at every step."""
    out = []
    for t in range(steps):
        if resets and t in resets:
            pipeline.reset(resets[t], t * MS)
        rows = np.full((pipeline.num_envs, 2), float(t))
        pipeline.tick(None, t * MS, rows)
        reading = pipeline.read(t * MS, envs=[env], history_length=2)
        out.append(
            (bool(reading.valid[0, 0]), reading.values.tobytes(), int(reading.stamp_ns[0, 0]))
        )
    return out


@pytest.mark.parametrize('sensor', [Plain, LowPass])
def test_a_stream_does_not_depend_on_how_many_others_there_are(sensor: type[Plain]) -> None:
    alone = stream(make(1, sensor, **RICH), 0, 120)
    assert alone == stream(make(50, sensor, **RICH), 0, 120)
    assert stream(make(4, sensor, **RICH), 3, 120) == stream(make(9, sensor, **RICH), 3, 120)
    assert alone != stream(make(4, sensor, **RICH), 3, 120)


@pytest.mark.parametrize('sensor', [Plain, LowPass, Counter])
def test_a_partial_reset_leaves_the_others_bit_identical(sensor: type[Plain]) -> None:
    keys = {**RICH, 'rate_hz': 200.0}
    resets = {33: [0], 34: [2, 3], 77: [0, 2]}
    for env in (1, 4):
        assert stream(make(5, sensor, **keys), env, 120) == stream(
            make(5, sensor, **keys), env, 120, resets
        )


def test_after_a_reset_nothing_of_before_is_read() -> None:
    pipeline = make(2, rate_hz=100.0, delay_range_s=(0.015, 0.015), history_length=4)
    for t in range(90):
        if t == 57:
            pipeline.reset([1], t * MS)
        pipeline.tick(None, t * MS, np.full((2, 2), float(t)))
        reading = pipeline.read(t * MS, history_length=4)
        if t >= 57:
            kept = reading.values[1, reading.valid[1], 0]
            assert (kept >= 57).all()
            # the schedule begins again with the episode: 57, 67, ... readable 15 ms later
            assert reading.valid[1].sum() == max(0, (t - 72) // 10 + 1)


def test_a_partial_reset_forgets_the_response_in_both_branches() -> None:
    pipeline = make(2, LowPass, rate_hz=0.0)
    for tick in range(2):
        pipeline.tick(None, tick * MS, np.full((2, 2), 8.0))
    pipeline.reset([0], 2 * MS)
    pipeline.tick(None, 2 * MS, np.zeros((2, 2)))
    for reading in (pipeline.read(2 * MS), pipeline.read_ground_truth()):
        # environment 0 starts at the value it sees first; 1 keeps half of the 8 before
        np.testing.assert_array_equal(reading.values, [[0.0, 0.0], [4.0, 4.0]])


def test_a_partial_reset_forgets_the_last_output_in_both_branches() -> None:
    pipeline = make(2, Counter, rate_hz=0.0)
    for tick in range(3):
        pipeline.tick(None, tick * MS, np.zeros((2, 2)))
    pipeline.reset([1], 3 * MS)
    pipeline.tick(None, 3 * MS, np.zeros((2, 2)))
    for reading in (pipeline.read(3 * MS), pipeline.read_ground_truth()):
        assert reading.values[:, 0].tolist() == [3, 0]


def test_a_pipeline_made_for_an_episode_is_one_that_was_reset_so_often() -> None:
    keys = {
        'rate_hz': 100.0,
        'noise': 1.0,
        'random_walk': 0.1,
        'delay_range_s': (0.01, 0.03),
        'jitter_s': 0.01,
        'loss': {'probability': 0.3, 'burst_mean': 3.0},
    }
    fresh = Pipeline(
        Plain('plain', config(**keys)), RunSetup(num_envs=3, seed=5, dt_ns=MS, episode=4)
    )
    reset = Pipeline(Plain('plain', config(**keys)), RunSetup(num_envs=3, seed=5, dt_ns=MS))
    for _ in range(4):
        reset.reset(time_ns=0)
    for step in range(60):
        for each in (fresh, reset):
            each.tick(None, 10 * MS * step, np.full((3, 2), float(step)))
        a, b = (each.read(10 * MS * step) for each in (fresh, reset))
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.valid, b.valid)
    assert fresh.counts == reset.counts
    assert a.valid.all()


def test_a_new_episode_draws_its_own_noise_and_delay() -> None:
    pipeline = make(3, noise=1.0, delay_range_s=(0.001, 0.02))
    before = pipeline.transit.latency_ns.copy()
    pipeline.reset([1], 0)
    changed = before != pipeline.transit.latency_ns
    assert changed.tolist() == [False, True, False]


def test_a_reset_captures_at_once_where_captures_must_not_be_missed() -> None:
    clock = Clockwork(num_envs=3, rate_hz=10.0, history_length=2)
    for t in range(35):
        clock.at(t)
    clock.pipeline.reset([2])
    assert clock.calls[-1] == (34 * MS, [2])
    assert clock.pipeline.read().values[2].tolist() == [34.0, 2.0]
    clock.at(133), clock.at(134)
    assert [c for c in clock.calls if c[0] > 34 * MS] == [(133 * MS, [0, 1]), (134 * MS, [2])]


def test_same_seed_same_bits_other_seed_other_bits() -> None:
    def run(seed: int) -> list[Any]:
        return stream(make(3, seed=seed, **RICH), 1, 60)

    assert run(4) == run(4) != run(5)


# ---- use -------------------------------------------------------------------------------------


@pytest.mark.parametrize('key', ['rate_hz', 'random_walk'])
def test_what_cannot_change_at_run_time_is_refused(key: str) -> None:
    pipeline = make(1, rate_hz=100.0)
    with pytest.raises(RigError, match=f"{key} of 'toy' cannot change while it runs"):
        pipeline.reconfigure(config(**{'rate_hz': 100.0, key: 50.0}))


def test_what_would_change_the_shape_of_things_is_refused() -> None:
    class Moody(Plain):
        def __init__(self, name: str, keys: Any) -> None:
            super().__init__(name, keys)
            self.stateful = keys.bias > 0.0

    pipeline = make(1, Moody)
    pipeline.reconfigure(config(noise=1.0))
    with pytest.raises(RigError, match=r'cannot take noise 0.0 and bias 1.0 while it runs'):
        pipeline.reconfigure(config(bias=1.0))
    native = make(1, delay_range_s=(0.01, 0.01), delay_backend='mujoco')
    with pytest.raises(RigError, match='delay_range_s'):
        native.reconfigure(config(delay_range_s=(0.02, 0.02), delay_backend='mujoco'))
    smooth = make(1, delay_range_s=(0.01, 0.01), interpolation='linear')
    with pytest.raises(RigError, match='only zoh knows latencies'):
        smooth.reconfigure(
            config(delay_range_s=(0.01, 0.01), interpolation='linear', jitter_s=0.001)
        )


def test_nothing_grows_with_time() -> None:
    pipeline = make(8, sensor=LowPass, pipeline={'messages': True}, **RICH)
    truth = np.zeros((8, 2))

    def run(start: int, stop: int) -> None:
        for t in range(start, stop):
            pipeline.tick(None, t * MS, truth)
            pipeline.read(t * MS, history_length=2)
            pipeline.due(t * MS)

    tracemalloc.start()
    run(0, 700)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    run(700, 1700)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000  # one forgotten sample a capture would be some 300 kB


def test_a_read_is_of_the_newest_time_it_was_told() -> None:
    pipeline = make(1)
    for t in range(5):
        pipeline.tick(None, t * MS, np.full((1, 2), float(t)))
    assert pipeline.read().values[0, 0] == 4.0


def test_new_noise_holds_from_the_next_capture_on() -> None:
    clock = Clockwork(rate_hz=100.0, delay_range_s=(0.01, 0.01))
    for t in range(31):
        clock.at(t)
    clock.pipeline.reconfigure(config(rate_hz=100.0, delay_range_s=(0.01, 0.01), bias=1000.0))
    assert [clock.at(t).read().values[0, 0] for t in (35, 39)] == [20.0, 20.0]
    assert clock.at(40).read().values[0, 0] == 30.0
    clock.at(50)
    assert clock.pipeline.read().values[0, 0] == 1040.0


def test_faults_of_a_new_config_replace_the_old_ones_and_keep_the_injected() -> None:
    dead = {'kind': 'dead', 'at_s': 0.0}
    pipeline = make(1, faults={'f': dead})
    pipeline.inject(FaultConfig(kind='wrong', offset=100.0))
    pipeline.tick(None, 0, np.ones((1, 2)))
    assert not pipeline.read(0).valid.any()
    pipeline.reconfigure(config())
    pipeline.tick(None, MS, np.ones((1, 2)))
    assert pipeline.read(MS).values[0, 0] == 101.0


def test_changing_the_delay_again_and_again_needs_no_more_room() -> None:
    pipeline = make(2, delay_range_s=(0.01, 0.01))
    sizes = []
    for t in range(200):
        delay_s = 0.01 + 0.01 * (t % 2)
        pipeline.reconfigure(config(delay_range_s=(delay_s, delay_s)))
        pipeline.tick(None, t * MS, np.full((2, 2), float(t)))
        sizes.append(pipeline._readout._samples.cursor.slots)
    assert sizes[-1] == sizes[2]


def test_an_interpolated_line_follows_a_changed_delay() -> None:
    keys = {'interpolation': 'linear', 'rate_hz': 200.0}
    pipeline = make(1, delay_range_s=(0.01, 0.01), **keys)
    for t in range(100):
        if t == 50:
            pipeline.reconfigure(config(delay_range_s=(0.023, 0.023), **keys))
        pipeline.tick(None, t * MS, np.full((1, 2), float(t)))
    assert pipeline.read().values[0, 0] == pytest.approx(99.0 - 23.0)


def test_asking_for_more_history_than_is_kept() -> None:
    pipeline = make(1, history_length=3)
    with pytest.raises(RigError, match='history of 4; its history_length allows 1 to 3'):
        pipeline.read(0, history_length=4)


def test_nothing_before_the_first_sample() -> None:
    pipeline = make(2, phase_s=0.01, history_length=2)
    pipeline.tick(None, 0, np.ones((2, 2)))
    assert not pipeline.read(0).valid.any()
    assert not pipeline.read_ground_truth().valid.any()
    assert pipeline.counts.total() == 0


class Summed(Plain):
    """The sum of all ticks so far, tick by tick."""

    stateful = True

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        values += np.where(timeline.filled[:, None], timeline.at(1), 0.0)


class SummedTogether(Plain):
    """The same for all ticks since the last capture at once."""

    stateful = True

    def integrate(self, values: Array, timeline: Timeline, tick_s: float) -> None:
        assert tick_s == pytest.approx(0.001)
        values[0] += np.where(timeline.filled[:, None], timeline.at(1), 0.0)
        np.cumsum(values, axis=0, out=values)


@pytest.mark.parametrize('rate_hz', [100.0, 2.0])
def test_integrating_between_captures_gives_what_every_tick_would(rate_hz: float) -> None:
    """At 2 Hz more ticks pass between captures than are kept; one environment is reset alone."""

    def samples(sensor: type[Plain]) -> list[tuple[int, int, list[float], list[float]]]:
        pipeline, found = make(2, sensor, rate_hz=rate_hz, pipeline={'messages': True}), []
        for t in range(1200):
            if t == 623:
                pipeline.reset(np.array([1]), t * MS)
            pipeline.tick(None, t * MS, np.array([[t, 1.0], [2.0 * t, 1.0]]))
            if t == 801:  # one environment ahead of the other
                pipeline.tick(np.array([0]), 802 * MS, np.array([[5.0, 5.0]]))
                pipeline.tick(np.array([1]), 802 * MS, np.array([[7.0, 7.0]]))
            found += pipeline.due(t * MS)
        return [
            (each.env, each.capture_ns, each.values.tolist(), each.truth.tolist())
            for each in found
        ]

    expected = samples(Summed)
    assert len(expected) >= 2 * int(1.2 * rate_hz)
    assert samples(SummedTogether) == expected
