"""Latency models: their distributions, their correlation, stalls and order, drawn by index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.transits import arrivals, latencies_ns, transit

from rig_common.errors import RigError
from rig_common.validation import validated
from sim_sensors.timing.config import TimingConfig

MS = 1e-3
MODELS: dict[str, dict[str, Any]] = {
    'uniform': {'min_s': 2 * MS, 'max_s': 10 * MS},
    'normal': {'mean_s': 8 * MS, 'sigma_s': 2 * MS, 'min_s': 3 * MS, 'max_s': 12 * MS},
    'gamma': {'min_s': 2 * MS, 'mean_s': 5 * MS, 'sigma_s': 3 * MS},
    'lognormal': {'min_s': 2 * MS, 'mean_s': 5 * MS, 'sigma_s': 2 * MS, 'max_s': 40 * MS},
    'mixture': {
        'weights': [0.7, 0.3],
        'means_s': [5 * MS, 20 * MS],
        'sigmas_s': [0.5 * MS, 2 * MS],
    },
    'empirical': {
        'quantiles_s': [1 * MS, 2 * MS, 4 * MS, 30 * MS],
        'probabilities': [0.0, 0.5, 0.9, 1.0],
    },
}


def config(model: str, **keys: Any) -> dict[str, Any]:
    return {'latency': {'model': model, **MODELS[model], **keys}}


def reference(model: str) -> Any:
    """Return the distribution function (s) as scipy has it, made without our tables."""
    keys = MODELS[model]
    if model == 'uniform':
        return stats.uniform(2 * MS, 8 * MS).cdf
    if model == 'normal':
        return stats.truncnorm(-2.5, 2.0, 8 * MS, 2 * MS).cdf
    if model == 'gamma':
        return stats.gamma(1.0, 2 * MS, 3 * MS).cdf  # (mean / sigma)^2 = 1
    if model == 'lognormal':
        width = np.sqrt(np.log1p((2 / 3) ** 2))
        whole = stats.lognorm(width, 2 * MS, 3 * MS * np.exp(-(width**2) / 2))
        return lambda x: np.minimum(whole.cdf(x) / whole.cdf(40 * MS), 1.0)
    if model == 'mixture':
        return lambda x: (
            0.7 * stats.norm(5 * MS, 0.5 * MS).cdf(x) + 0.3 * stats.norm(20 * MS, 2 * MS).cdf(x)
        )
    return lambda x: np.interp(x, keys['quantiles_s'], keys['probabilities'])


@pytest.mark.parametrize('model', MODELS)
def test_distribution(model: str) -> None:
    latency = latencies_ns(config(model), 50, num_envs=400).ravel() / 1e9
    assert stats.kstest(latency, reference(model)).pvalue > 0.01


@pytest.mark.parametrize('model', MODELS)
@pytest.mark.parametrize('correlation', [-0.2, 0.3, 0.8])
def test_correlation_is_that_of_the_latency(model: str, correlation: float) -> None:
    latency = latencies_ns(config(model, correlation=correlation), 100, num_envs=1000)
    found = np.corrcoef(latency[:-1].ravel(), latency[1:].ravel())[0, 1]
    assert found == pytest.approx(correlation, abs=0.03)
    apart = latency[::50].ravel() / 1e9  # neighbours are not independent, these are
    assert stats.kstest(apart, reference(model)).pvalue > 0.005


def test_correlations_give_each_lag_and_go_on_as_an_autoregression() -> None:
    wanted = [-0.2, -0.2, -0.2, 0.6]
    latency = latencies_ns(config('gamma', correlations=wanted), 400, num_envs=500)
    centred = latency - latency.mean()
    found = [float((centred[k:] * centred[:-k]).mean() / centred.var()) for k in range(1, 9)]
    np.testing.assert_allclose(found[:4], wanted, atol=0.03)
    assert found[7] == pytest.approx(0.36, abs=0.04)


@pytest.mark.parametrize(
    ('model', 'given', 'said'),
    [
        ('gamma', {'correlations': [0.2, 0.1, 0.99]}, 'contradict each other from lag 3'),
        ('normal', {'correlations': [0.5376, -0.412]}, 'last for more than 256 samples'),
        ('gamma', {'correlation': 0.2, 'correlations': [0.2, 0.1]}, 'they mean the same'),
        ('gamma', {'correlations': [-0.9]}, 'can be -0.'),
    ],
)
def test_correlations_that_no_series_has_are_refused(
    model: str, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(RigError, match=said):
        validated(TimingConfig, config(model, **given), 'sensors.imu')


def test_unreachable_correlation_is_refused_with_the_range() -> None:
    exponential = config('gamma', correlation=-0.7)
    with pytest.raises(RigError, match=r'correlation is -0\.7; .* can be -0\.64 to 1\.00'):
        validated(TimingConfig, exponential, 'sensors.imu')
    validated(TimingConfig, config('gamma', correlation=-0.64), 'sensors.imu')
    validated(TimingConfig, config('uniform', correlation=-0.99), 'sensors.imu')


@pytest.mark.parametrize(
    'keys',
    [
        config('gamma', correlation=0.6),
        {**config('gamma', correlation=0.6), 'order': 'fifo', 'delay_range_s': [0.0, 0.02]},
        {
            **config('mixture', stalls={'probability': 0.02, 'duration_range_s': [0.02, 0.2]}),
            'loss': {'probability': 0.2, 'burst_mean': 3.0, 'bad_probability': 0.7},
        },
    ],
    ids=['drawn', 'fifo', 'stalls'],
)
def test_same_bits_for_any_environments_and_any_skipping(keys: dict[str, Any]) -> None:
    alone, _ = arrivals(transit(keys, 1), 300)
    many, lost = arrivals(transit(keys, 70), 300)
    assert np.array_equal(many[:, :1], alone)
    assert not np.array_equal(many[:, 0], many[:, 33])
    for begin, every in ((0, 3), (117, 1), (250, 7)):
        some, few_lost = arrivals(transit(keys, 70), 300, range(begin, 300, every))
        assert np.array_equal(some, many[begin::every])
        assert np.array_equal(few_lost, lost[begin::every])


def test_arrival_is_known_before_the_capture() -> None:
    keys = {
        **config(
            'gamma', correlation=0.6, stalls={'probability': 0.05, 'duration_range_s': [0.02, 0.2]}
        ),
        'order': 'fifo',
    }
    made = transit(keys, 3)
    for k in range(200):
        ahead = [made.capture(j) for j in (k, k + 5)]
        expected = [made.transit.arrival_of(each) for each in ahead]
        assert np.array_equal(made.transit.send(ahead[0]).arrival_ns, expected[0])
        if k < 195:
            later = transit(keys, 3)
            assert np.array_equal(later.transit.arrival_of(ahead[1]), expected[1])


def test_nothing_overtakes_in_fifo_order() -> None:
    keys = config('uniform', min_s=0.0, max_s=0.1)
    loose, _ = arrivals(transit(keys, 1), 500)
    assert (np.diff(loose[:, 0]) < 0).any()
    strict, _ = arrivals(transit({**keys, 'order': 'fifo'}, 1), 500)
    assert (np.diff(strict[:, 0]) >= 0).all()
    assert np.array_equal(strict, np.maximum.accumulate(loose))


def test_what_piles_up_behind_a_stall_comes_in_a_burst_in_order() -> None:
    stalls = {'probability': 0.01, 'duration_range_s': [0.1, 0.1]}
    keys = {'latency': {'model': 'delay', 'stalls': stalls}, 'delay_range_s': [0.005, 0.005]}
    found, _ = arrivals(transit(keys, 1), 2000)
    latency = (found[:, 0] - 10_000_000 * np.arange(2000)) / 1e6
    assert latency.min() == 5.0
    starts = np.flatnonzero(latency == 105.0)
    assert 5 < len(starts) < 40
    for k in starts[starts < 1980]:
        burst = found[k : k + 10, 0]
        assert (burst >= burst[0]).all()  # the nine behind it wait for its end
        assert latency[k + 1] >= 95.0


def test_an_episode_begins_anew() -> None:
    keys = {
        **config('gamma', correlation=0.9),
        'order': 'fifo',
        'clock': {'white_fm': 1e-6, 'servo': {'kind': 'ntp', 'period_s': 0.1}},
    }
    again = transit(keys, 2)
    arrivals(again, 50)
    again.streams.reset(slice(None))
    again.transit.reset(slice(None))
    fresh = transit(keys, 2, episode=1)
    for k in range(50):
        here, there = (each.transit.send(each.capture(k)) for each in (again, fresh))
        assert np.array_equal(here.arrival_ns, there.arrival_ns)
        assert np.array_equal(here.stamp_ns, there.stamp_ns)


# ---- traces ----------------------------------------------------------------------------------


def test_a_trace_is_played_in_a_loop_or_in_blocks(tmp_path: Path) -> None:
    file = tmp_path / 'latency.txt'
    values = [0.001 * (k + 1) for k in range(50)]
    file.write_text('\n'.join(map(str, values)))
    keys: dict[str, Any] = {'model': 'trace', 'file': str(file), 'playback': 'loop'}
    looped = latencies_ns({'latency': keys}, 120)[:, 0]
    assert looped.tolist() == [round(values[k % 50] * 1e9) for k in range(120)]
    keys.update(playback='blocks', block_length=10)
    drawn = latencies_ns({'latency': keys}, 4000).reshape(-1, 10)
    steps = np.diff(drawn, axis=1)
    assert set(np.unique(steps).tolist()) == {1_000_000, -49_000_000}  # it goes on at the start
    starts = np.unique(drawn[:, 0])
    assert len(starts) == 50


def test_a_trace_of_two_stamps(tmp_path: Path) -> None:
    file = tmp_path / 'stamps.txt'
    file.write_text(
        'recv_stamp,msg_stamp\n1588362894189941429,1588362894185874061\n'
        '1588362894290363036,1588362894286213250\n'
    )
    keys = {'latency': {'model': 'trace', 'file': str(file), 'playback': 'loop'}}
    assert latencies_ns(keys, 2)[:, 0].tolist() == [4067368, 4149786]


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('0.1\nx\n0.2\n', r'line 2: .x. is no row of numbers'),
        ('0.1\n', '1 rows of numbers'),
        ('0.1\n0.2 0.3\n', 'line 2 has 2 columns'),
        ('1 2 3\n1 2 3\n', '3 columns'),
        ('-0.1\n0.2\n', 'they must be 0 to 60 s'),
        ('1.5 2\n2.5 3\n', 'whole nanoseconds'),
    ],
)
def test_a_bad_trace_is_a_sentence(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / 'bad.txt'
    file.write_text(text)
    with pytest.raises(RigError, match=problem):
        transit({'latency': {'model': 'trace', 'file': str(file)}}, 1)


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('keys', 'problem'),
    [
        ({'model': 'uniform', 'min_s': 0.1}, 'max_s is missing'),
        ({'model': 'uniform', 'min_s': 0.1, 'max_s': 0.05}, 'larger than min_s'),
        ({'model': 'uniform', 'max_s': 0.1, 'mean_s': 0.1}, 'mean_s is not a key of the model'),
        ({'model': 'normal', 'mean_s': 0.1}, 'sigma_s is missing'),
        ({'model': 'gamma', 'mean_s': 0.1, 'min_s': 0.2, 'sigma_s': 0.1}, 'larger than min_s'),
        (
            {'model': 'lognormal', 'mean_s': 0.1, 'sigma_s': 0.1, 'max_s': 0.1},
            'smaller than max_s',
        ),
        ({'model': 'mixture', 'weights': [1.0], 'means_s': [0.1]}, 'one of each for every mode'),
        (
            {'model': 'mixture', 'weights': [1.0], 'means_s': [0.1], 'sigmas_s': [0.0]},
            'greater than 0',
        ),
        ({'model': 'empirical', 'quantiles_s': [0.1]}, 'needs two or more'),
        ({'model': 'empirical', 'quantiles_s': [0.2, 0.1]}, 'must rise'),
        (
            {'model': 'empirical', 'quantiles_s': [0.1, 0.2], 'probabilities': [0.1, 1.0]},
            'from 0 to 1',
        ),
        ({'model': 'trace'}, 'file is missing'),
        ({'model': 'trace', 'file': 'x', 'correlation': 0.5}, 'has that of its file'),
        ({'model': 'delay', 'correlation': 0.5}, 'draws independent jitter'),
        ({'stalls': {'probability': 0.1}}, 'a stall needs both above 0'),
        ({'model': 'gamma', 'mean_s': 70.0, 'sigma_s': 1.0}, 'less than or equal to 60'),
    ],
)
def test_contradictions_are_refused(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(RigError, match=problem):
        validated(TimingConfig, {'latency': keys}, 'sensors.imu')


def test_jitter_and_a_model_exclude_each_other() -> None:
    keys = {**config('gamma'), 'delay_range_s': [0.1, 0.1], 'jitter_s': 0.05}
    with pytest.raises(RigError, match='only the model delay has jitter_s'):
        validated(TimingConfig, keys, 'sensors.imu')
