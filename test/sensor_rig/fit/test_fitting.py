"""Streams of known timing are recorded and fitted: what went in comes out, or is not claimed."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.round_trips import CASES, estimates, recorded, truths

from rig_common.errors import RigError
from sensor_rig.cli.main import main
from sensor_rig.fit.choosing import CLOSE, TAIL_MISFIT, choose, tail_misfit
from sensor_rig.fit.clock import resolution, unwrapped, without_steps
from sensor_rig.fit.fit_page import allan
from sensor_rig.fit.fitting import KnownClock, fit_stream
from sensor_rig.fit.models import CANDIDATES
from sensor_rig.fit.output import as_json, datasheet
from sensor_rig.fit.simulating import simulated_latencies
from sensor_rig.fit.statistics import Estimate, lag_one
from sensor_rig.fit.times import StreamTimes, of_trace
from sensor_rig.rigfile import load_rig

FIXED = ('normal', 'gamma', 'mixture_2', 'random_walk_fm', 'loss')


@pytest.mark.parametrize('name', FIXED)
def test_round_trip(name: str) -> None:
    """Five fixed cases; bench/timing_fit.py counts the coverage over 200 draws of each."""
    model = name if name in ('normal', 'gamma', 'mixture_2') else 'normal'
    fit = fit_stream(recorded(CASES[name], 600, seed=11), model=model)
    found = estimates(fit)
    for key, true in truths(name).items():
        estimate = found[key]
        width = estimate.high - estimate.low
        assert estimate.low - 0.3 * width <= true <= estimate.high + 0.3 * width, key
        assert estimate.low <= estimate.value <= estimate.high


def test_the_likeliest_model_is_chosen() -> None:
    for name in ('uniform', 'mixture_2'):
        choice = fit_stream(recorded(CASES[name], 400, seed=3)).choice
        assert choice is not None
        assert choice.fitted.name == name
        assert choice.scores[name] == max(choice.scores.values())


def test_of_models_that_are_about_as_likely_one_with_the_measured_tail_is_taken() -> None:
    random = np.random.default_rng(4)
    passed = 0
    for _ in range(2):  # a normal with a faint late shoulder, which the likelihood hardly sees
        x = random.normal(0.03, 0.001, 300) + 0.004 * (random.random(300) < 0.015)
        choice = choose(x)
        passed += len(choice.passed_over)
        best = max(choice.scores.values())
        assert choice.scores[choice.fitted.name] > best - CLOSE
        for name in choice.passed_over:
            assert choice.scores[name] >= choice.scores[choice.fitted.name]
            assert tail_misfit(CANDIDATES[name](x), x) > TAIL_MISFIT
            assert tail_misfit(choice.fitted, x) <= TAIL_MISFIT
    assert passed
    alone = choose(x, 'normal')  # asked for by name: taken as it is
    assert (alone.fitted.name, alone.passed_over) == ('normal', ())


def test_the_fitted_stream_is_like_the_measured_one() -> None:
    fit = fit_stream(recorded(CASES['gamma'], 500, seed=5), model='gamma')
    modelled = simulated_latencies(fit.config(), 500, 40)
    for p in (0.05, 0.5, 0.95):
        assert np.quantile(modelled, p) == pytest.approx(np.quantile(fit.latency_s, p), rel=0.05)
    found = np.corrcoef(modelled[:-1].ravel(), modelled[1:].ravel())[0, 1]
    assert found == pytest.approx(fit.correlation.value, abs=0.03)


def test_an_offset_that_nobody_knows_is_said_and_one_that_is_known_is_used() -> None:
    keys = {'latency': CASES['normal']['latency'], 'clock': {'offset_s': -5000.0}}
    times = recorded(keys, 300, seed=2)
    blind = fit_stream(times, model='normal')
    assert any('cannot be told from latency' in note for note in blind.notes)
    assert blind.offset_s == pytest.approx(-5000.0, abs=0.05)
    told = fit_stream(times, model='normal', known=KnownClock(-5000.0, 0.001, 'a friend'))
    assert told.offset_s == -5000.0
    assert told.parameters['mean_s'].value == pytest.approx(0.03, abs=0.001)


def test_steps_resolution_and_counters() -> None:
    times = recorded({**CASES['normal'], 'clock': {'stamp_jitter_s': 1e-4}}, 400, seed=4)
    stamp_ns = times.stamp_ns.copy()
    stamp_ns[250:] += 200_000_000
    fit = fit_stream(dataclasses.replace(times, stamp_ns=stamp_ns // 1000 * 1000), model='normal')
    assert fit.clock.resolution_s == 1e-6
    (step,) = fit.clock.steps
    assert step.offset_s == pytest.approx(0.2, abs=0.005)
    assert step.at_s == pytest.approx(25.0, abs=0.2)
    assert fit.keys()['faults']['step_1']['kind'] == 'clock_step'
    assert fit.parameters['sigma_s'].value == pytest.approx(0.003, rel=0.15)
    wrapped = (np.arange(4_294_960, 4_294_980) * 1000 % (2**32 * 1000)) * 1000 % (2**32 * 1000)
    whole, bits = unwrapped(wrapped, 1e-6)
    assert bits == 32
    assert np.all(np.diff(whole) == 1_000_000)
    assert resolution(np.arange(10) * 100_000_000) == 0.0  # equally far apart: nothing is told
    assert without_steps(np.arange(10.0), np.zeros(10))[0] == ()


def test_without_neighbours_nothing_is_known_of_the_correlation() -> None:
    """As with stamps in whole seconds at 100 Hz, which were a traceback."""
    none = np.zeros(10, dtype=np.bool_)
    assert lag_one(np.arange(10.0), none) == Estimate(0.0, -1.0, 1.0)


def test_a_link_is_told_by_sizes() -> None:
    times = recorded(CASES['normal'], 600, seed=6)
    sizes = np.random.default_rng(1).uniform(1e4, 1e6, len(times))
    late_ns = np.rint(sizes * 8.0 / 100e6 * 1e9).astype(np.int64)
    fit = fit_stream(
        dataclasses.replace(times, receive_ns=times.receive_ns + late_ns, sizes=sizes),
        model='normal',
    )
    assert fit.bandwidth_bps is not None
    assert fit.bandwidth_bps.low <= 100e6 <= fit.bandwidth_bps.high
    assert fit.parameters['mean_s'].value == pytest.approx(0.03, abs=0.002)
    alike = dataclasses.replace(times, sizes=sizes)
    assert fit_stream(alike, model='normal').bandwidth_bps is None


def test_host_stamps_tell_no_latency() -> None:
    fit = fit_stream(dataclasses.replace(recorded(CASES['normal'], 100, 1), host_stamped=True))
    assert fit.choice is None
    assert fit.keys()['clock'] == {'stamp_at': 'arrival'}


def test_allan_deviation_of_the_page_is_that_of_allantools() -> None:
    allantools = pytest.importorskip('allantools', reason='allantools is not installed')
    phase = np.cumsum(np.random.default_rng(3).normal(size=2000)) * 1e-6
    taus, ours = allan(phase, 0.1)
    _, theirs, _, _ = allantools.oadev(phase, rate=10.0, data_type='phase', taus=taus)
    assert ours == pytest.approx(theirs, rel=1e-9)


# ---- files -----------------------------------------------------------------------------------


def write_trace(folder: Path, times: StreamTimes) -> Path:
    file = folder / 'trace.txt'
    rows = zip(times.receive_ns.tolist(), times.stamp_ns.tolist(), strict=True)
    file.write_text('recv_stamp,msg_stamp\n' + '\n'.join(f'{a},{b}' for a, b in rows))
    return file


def test_a_trace_becomes_a_datasheet_that_loads(tmp_path: Path, capsys: Any) -> None:
    file = write_trace(tmp_path, recorded(CASES['gamma'], 300, seed=8))
    sheet, page = tmp_path / 'sheet.yaml', tmp_path / 'page.html'
    assert main(['fit', str(file), '--write', str(sheet), '--html', str(page), '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['version'] == 1
    topic = found['topics']['trace']
    assert topic['latency']['correlation']['value'] == pytest.approx(0.5, abs=0.25)
    rig = tmp_path / 'rig.yaml'
    rig.write_text(
        '/**:\n  ros__parameters:\n    world: {model: rover_yard.xml}\n    sensors:\n'
        '      imu: {type: imu, extends: sheet.yaml}\n'
    )
    latency = load_rig(rig).sensors['imu'].latency
    assert latency.model == topic['latency']['model']
    text = page.read_text()
    assert all(word in text for word in ('quantiles', 'autocorrelation', 'Allan deviation'))
    assert main(['fit', str(file), '--write', str(sheet)]) == 2
    assert 'exists already' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('1 2 3\n4 5 6\n', 'no trace of two columns'),
        ('', '0 rows of numbers'),
        ('5 3\n6 4\n', 'a fit needs 30 or more'),
    ],
)
def test_what_is_no_trace_is_a_sentence(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / 'bad.txt'
    file.write_text(text)
    with pytest.raises(RigError, match=problem):
        fit_stream(of_trace(file))


def test_an_unknown_model_is_a_sentence(tmp_path: Path) -> None:
    times = recorded(CASES['normal'], 100, 1)
    with pytest.raises(RigError, match="did you mean 'gamma'"):
        fit_stream(times, model='gama')
    fit = fit_stream(times, model='normal')
    assert 'normal' in datasheet(fit, 'x')
    assert as_json([fit], 'x')['topics']['stream']['keys'] == fit.keys()


def test_a_message_of_another_century_is_left_out() -> None:
    receive_ns = 1_700_000_000 * 10**9 + np.arange(100) * 10_000_000
    stamp_ns = receive_ns - 2_000_000 - np.arange(100) % 7 * 10_000
    receive_ns[0], receive_ns[99], stamp_ns[50] = 0, 2**63 - 1, -(2**62)
    fit = fit_stream(StreamTimes('x', receive_ns, stamp_ns))
    assert fit.gaps.rate_hz.value == pytest.approx(100.0, rel=0.01)
    assert any(note.startswith('3 messages with times more than a year') for note in fit.notes)


def test_latencies_without_noise_are_a_point() -> None:
    receive_ns = 1_700_000_000 * 10**9 + np.arange(200) * 10_000_000
    fit = fit_stream(StreamTimes('x', receive_ns, receive_ns - 2_000_000))
    assert np.median(fit.latency_s) == pytest.approx(0.002)


def test_equal_times_tell_nothing() -> None:
    times_ns = np.full(50, 7)
    with pytest.raises(RigError, match='received and stamped at different times'):
        fit_stream(StreamTimes('x', times_ns, np.arange(50)))
    with pytest.raises(RigError, match='received and stamped at different times'):
        fit_stream(StreamTimes('x', np.arange(50), times_ns))
