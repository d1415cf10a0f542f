"""Stamps, loss, faults and the order in which samples arrive."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_sensors import MS, Plain, make

from sim_sensors.interface.batch import Batch
from sim_sensors.interface.sensor import Sample
from sim_sensors.pipeline.pipeline import Pipeline
from sim_sensors.timing.arrays.layout import Array
from sim_sensors.timing.fates import CaptureFate
from sim_sensors.timing.faults import FaultConfig


def emulator(num_envs: int = 1, **keys: Any) -> Pipeline:
    return make(num_envs, pipeline={'messages': True, 'arrays': False}, **keys)


def run(pipeline: Pipeline, steps: int, start: int = 0) -> list[Sample]:
    """Return the samples that arrive within `steps` steps of 1 ms."""
    out = []
    for t in range(start, start + steps):
        if pipeline.ticks.index_at(t * MS) is not None:
            pipeline.tick(None, t * MS, np.full((pipeline.num_envs, 2), float(t)))
        out += pipeline.due(t * MS)
    return out


# ---- order and conservation ------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(
    st.floats(0.0, 0.05),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 400.0, 100.0]),
    st.integers(1, 3),
)
def test_every_sample_once_in_order_of_arrival(
    delay_s: float, jitter: float, loss: float, rate: float, num_envs: int
) -> None:
    pipeline = emulator(
        num_envs,
        rate_hz=rate,
        delay_range_s=(delay_s, delay_s),
        jitter_s=delay_s * jitter,
        loss={'probability': loss, 'burst_mean': 2.0},
    )
    samples = run(pipeline, 120)
    arrivals = [sample.arrival_ns for sample in samples]
    assert arrivals == sorted(arrivals)
    keys = [(sample.env, sample.index) for sample in samples]
    assert len(set(keys)) == len(keys)
    for sample in samples:
        latency = sample.arrival_ns - sample.capture_ns
        assert round(delay_s * 1e9) <= latency <= round(delay_s * 1e9 * (1 + jitter)) + 1
        assert sample.values[0] == sample.capture_ns / MS
    counts = pipeline.counts
    assert counts[CaptureFate.DELIVERED] == len(samples)
    under_way = len(pipeline.in_flight or ())
    assert counts[CaptureFate.CAPTURED] == (
        counts[CaptureFate.DELIVERED] + counts[CaptureFate.LOST] + under_way
    )


def test_jitter_lets_a_later_sample_arrive_first() -> None:
    samples = run(emulator(rate_hz=400.0, delay_range_s=(0.02, 0.02), jitter_s=0.02), 400)
    order = [sample.index for sample in samples]
    assert order != sorted(order)
    assert sorted(order)[:100] == list(range(100))


def test_a_sweep_arrives_after_its_end() -> None:
    pipeline = emulator(delay_range_s=(0.01, 0.01))
    type(pipeline.sensor).duration_ns = property(lambda self: 90 * MS)  # type: ignore[assignment]
    try:
        pipeline = emulator(rate_hz=10.0, delay_range_s=(0.01, 0.01))
        sample = run(pipeline, 150)[0]
    finally:
        del type(pipeline.sensor).duration_ns
    assert (sample.capture_ns, sample.arrival_ns) == (0, 100 * MS)


def test_a_reset_drops_what_is_on_its_way() -> None:
    pipeline = emulator(2, rate_hz=100.0, delay_range_s=(0.05, 0.05))
    run(pipeline, 41)
    pipeline.reset([1], 41 * MS)
    assert pipeline.counts[CaptureFate.FLUSHED] == 5
    late = pipeline.due(200 * MS)
    assert {sample.env for sample in late} == {0}
    assert pipeline.counts[CaptureFate.CAPTURED] == len(late) + 5


# ---- clock -----------------------------------------------------------------------------------


def test_stamps_follow_offset_and_drift_to_the_nanosecond() -> None:
    samples = run(emulator(clock={'offset_s': -0.085, 'drift_ppm': 20.0}), 300)
    for sample in samples:
        drift = round(sample.capture_ns * 20.0 * 1e-6)
        assert sample.stamp_ns == sample.capture_ns - 85 * MS + drift


def test_stamp_jitter_has_its_deviation() -> None:
    samples = run(emulator(clock={'stamp_jitter_s': 0.0002}), 3000)
    error = np.array([s.stamp_ns - s.capture_ns for s in samples]) / 1e9
    assert abs(error.mean()) < 2e-5 and abs(error.std() - 2e-4) < 1e-5


def test_a_host_stamped_sensor_says_when_it_arrived() -> None:
    samples = run(
        emulator(
            delay_range_s=(0.02, 0.02),
            jitter_s=0.01,
            clock={'stamp_at': 'arrival', 'offset_s': 5.0},
        ),
        200,
    )
    assert samples and all(s.stamp_ns == s.arrival_ns for s in samples)


# ---- loss ------------------------------------------------------------------------------------


def bursts(lost: np.ndarray) -> np.ndarray:
    edges = np.diff(np.concatenate([[0], lost.astype(int), [0]]))
    return np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)


@pytest.mark.parametrize(
    ('probability', 'burst', 'expected'),
    [(0.1, 5.0, 5.0), (0.3, 1.0, 1.0 / 0.7), (0.02, 3.0, 3.0)],
)
def test_loss_has_its_fraction_and_its_bursts(
    probability: float, burst: float, expected: float
) -> None:
    pipeline = emulator(200, loss={'probability': probability, 'burst_mean': burst})
    lost = np.ones((200, 300), np.bool_)
    for sample in run(pipeline, 300):
        lost[sample.env, sample.index] = False
    # correlated draws: the mean of a run of n has the variance p (1-p) (1+r) / (1-r) / n
    sigma = np.sqrt(probability * (1 - probability) * 2 * expected / lost.size)
    assert abs(lost.mean() - probability) < 4 * sigma
    lengths = np.concatenate([bursts(row) for row in lost])
    assert abs(lengths.mean() - expected) < 4 * lengths.std() / np.sqrt(len(lengths)) + 0.02
    first = lost[:, 0].mean()  # stationary from the start
    assert abs(first - probability) < 4 * np.sqrt(probability * (1 - probability) / 200)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_captures_nobody_made_do_not_change_which_are_lost(gaps: list[int]) -> None:
    keys: dict[str, Any] = {'loss': {'probability': 0.4, 'burst_mean': 6.0}}
    dense = {s.index for s in run(emulator(**keys), sum(gaps) + 1)}
    pipeline, t, kept = emulator(**keys), 0, set()
    for gap in gaps:
        t += gap
        pipeline.tick(None, t * MS, np.zeros((1, 2)))
        kept |= {s.index for s in pipeline.due(t * MS)}
    asked = set(np.cumsum(gaps).tolist())
    assert kept == dense & asked


# ---- faults ----------------------------------------------------------------------------------


def faulty(kind: str, **keys: float) -> dict[str, Any]:
    return {'faults': {'f': {'kind': kind, 'at_s': 0.02, 'duration_s': 0.01, **keys}}}


def times(samples: list[Sample]) -> list[int]:
    return [sample.capture_ns // MS for sample in samples]


def test_dead_is_silent_and_comes_back() -> None:
    pipeline = emulator(**faulty('dead'))
    assert times(run(pipeline, 50)) == [*range(20), *range(30, 50)]
    assert pipeline.counts[CaptureFate.DEAD] == 10


def test_stuck_repeats_the_last_value_under_new_stamps() -> None:
    samples = run(emulator(noise=0.1, **faulty('stuck')), 50)
    values = [float(s.values[0]) for s in samples]
    assert times(samples) == list(range(50))
    assert set(values[20:30]) == {values[19]} and values[30] != values[19]


def test_wrong_scales_and_shifts() -> None:
    samples = run(emulator(**faulty('wrong', scale=2.0, offset=-3.0)), 50)
    assert samples[25].values.tolist() == [47.0, 47.0] and samples[35].values.tolist() == [35, 35]
    assert samples[25].truth.tolist() == [25.0, 25.0]


def test_noisy_multiplies_the_noise_only() -> None:
    clean = run(emulator(noise=0.1, bias=1.0), 50)
    noisy = run(emulator(noise=0.1, bias=1.0, **faulty('noisy', scale=10.0)), 50)
    for t, (one, other) in enumerate(zip(clean, noisy, strict=True)):
        factor = 10.0 if 20 <= t < 30 else 1.0
        np.testing.assert_allclose(other.values - t - 1.0, factor * (one.values - t - 1.0))


def test_noisy_leaves_the_noise_of_the_world_as_it_is() -> None:
    class Gusty(Plain):
        def physics_imperfections(self, values: Array, batch: Batch) -> None:
            values += batch.noise.normal('gusts', batch, 2, per_tick=True)

    samples = run(emulator(sensor=Gusty, noise=1e-6, **faulty('noisy', scale=10.0)), 600)
    gusts = np.array([sample.values - t for t, sample in enumerate(samples)])
    assert gusts.std() == pytest.approx(1.0, rel=0.1)
    assert gusts[20:30].std() == pytest.approx(1.0, rel=0.5)


def test_slow_adds_latency() -> None:
    samples = run(emulator(delay_range_s=(0.005, 0.005), **faulty('slow', offset=0.015)), 100)
    latency = {s.capture_ns // MS: (s.arrival_ns - s.capture_ns) // MS for s in samples}
    assert latency[19] == latency[30] == 5 and latency[20] == latency[29] == 20
    assert times(samples).index(30) < times(samples).index(20) + 10  # overtaken


def test_clock_step_moves_the_stamp_and_stays() -> None:
    fault = {'faults': {'f': {'kind': 'clock_step', 'at_s': 0.02, 'offset': -0.5}}}
    samples = run(emulator(**fault), 40)
    steps = [s.stamp_ns - s.capture_ns for s in samples]
    assert steps == [0] * 20 + [-500 * MS] * 20


def test_loss_burst_loses_its_fraction() -> None:
    pipeline = emulator(100, **faulty('loss_burst', scale=0.5))
    run(pipeline, 50)
    assert abs(pipeline.counts[CaptureFate.FAULT_LOSS] - 500) < 70
    assert pipeline.counts[CaptureFate.DELIVERED] == 5000 - pipeline.counts[CaptureFate.FAULT_LOSS]


def test_a_fault_injected_while_running() -> None:
    pipeline = emulator()
    early = run(pipeline, 20)
    pipeline.inject(FaultConfig(kind='stuck', at_s=0.0))
    late = run(pipeline, 10, start=20)
    assert times(early + late) == list(range(30))
    assert {float(s.values[0]) for s in late} == {20.0}


def test_in_the_bad_state_only_some_are_lost() -> None:
    keys = {'probability': 0.2, 'burst_mean': 20.0, 'bad_probability': 0.5}
    lost = _lost_rows(emulator(200, loss=keys), 300)
    assert lost.mean() == pytest.approx(0.2, abs=0.02)
    after_a_loss = lost[:, 1:][lost[:, :-1]].mean()
    assert after_a_loss == pytest.approx(0.5 * 0.95 + 0.5 * 0.2 * 0.05, abs=0.05)


def test_large_messages_are_lost_more_often() -> None:
    for size, packets in ((1000, 1), (14_720, 10)):
        keys: dict[str, Any] = {'size_bytes': size, 'loss': {'packet_probability': 0.05}}
        lost = _lost_rows(emulator(200, **keys), 100)
        assert lost.mean() == pytest.approx(1.0 - 0.95**packets, abs=0.02)


def test_some_samples_arrive_twice() -> None:
    pipeline = emulator(
        rate_hz=100.0, delay_range_s=(0.01, 0.01), loss={'duplicate_probability': 0.3}
    )
    samples = run(pipeline, 5000)
    indices = [sample.index for sample in samples]
    assert indices == sorted(indices)
    copies = len(indices) - len(set(indices))
    assert copies == pipeline.counts[CaptureFate.DUPLICATED] == pytest.approx(150, abs=40)


def test_more_loss_than_the_bad_state_has_is_refused() -> None:
    with pytest.raises(ValueError, match='must be smaller than bad_probability'):
        emulator(loss={'probability': 0.5, 'bad_probability': 0.4})


def _lost_rows(pipeline: Pipeline, captures: int) -> Any:
    """Return which captures were lost, [num_envs, captures]."""
    found = np.ones((pipeline.num_envs, captures), np.bool_)
    for sample in run(pipeline, captures):
        found[sample.env, sample.index] = False
    return found


def test_the_short_form_keeps_its_bytes() -> None:
    """The digest is that of the version before latency models, links and clock noise came."""
    pipeline = emulator(
        3,
        rate_hz=400.0,
        delay_range_s=(0.01, 0.03),
        jitter_s=0.008,
        clock={'offset_s': 0.25, 'drift_ppm': -40.0, 'stamp_jitter_s': 1e-4},
        loss={'probability': 0.2, 'burst_mean': 3.0},
        faults={
            'slow': {'kind': 'slow', 'at_s': 0.3, 'duration_s': 0.2, 'offset': 0.01},
            'step': {'kind': 'clock_step', 'at_s': 0.5, 'offset': 0.1},
        },
    )
    rows = [
        (sample.env, sample.index, sample.capture_ns, sample.stamp_ns, sample.arrival_ns)
        for sample in run(pipeline, 1000)
    ]
    assert len(rows) == 861
    found = blake2b(np.array(rows, np.int64).tobytes(), digest_size=16).hexdigest()
    assert found == '47f9ad7042a67a91c22e0cc613cb6f8e'
