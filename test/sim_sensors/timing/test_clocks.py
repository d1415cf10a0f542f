"""The clock's own errors, its corrections, and how it counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.transits import stamps, transit

from rig_common.errors import RigError
from rig_common.validation import validated
from sim_sensors.timing.config import TimingConfig


def errors_s(
    clock: dict[str, Any], count: int, rate_hz: float = 10.0, num_envs: int = 1, seed: int = 1
) -> NDArray[np.float64]:
    """Return stamp minus capture, s [count, num_envs]."""
    made = transit({'clock': clock}, num_envs, rate_hz=rate_hz, seed=seed)
    found = stamps(made, range(count))
    return np.asarray((found - made.schedule.times_of(np.arange(count))[:, None]) / 1e9)


# ---- wander: against allantools, which knows nothing of this code ------------------------------


@pytest.mark.parametrize(
    ('key', 'value', 'slope', 'factor'),
    [('white_fm', 2e-6, -0.5, 1.0), ('random_walk_fm', 2e-6, 0.5, 3.0**-0.5)],
)
def test_allan_deviation(key: str, value: float, slope: float, factor: float) -> None:
    allantools = pytest.importorskip('allantools', reason='allantools is not installed')
    phase = errors_s({key: value}, 20_000, rate_hz=10.0, seed=3)[:, 0]
    taus, adev, _, counts = allantools.oadev(
        phase, rate=10.0, data_type='phase', taus=[1.0, 4.0, 16.0, 64.0]
    )
    edf_kind = -2 if key == 'random_walk_fm' else 0
    covered = 0
    for tau, found, pairs in zip(taus, adev, counts, strict=True):
        edf = allantools.edf_greenhall(edf_kind, 2, round(tau * 10), len(phase), overlapping=True)
        low, high = allantools.confidence_interval(found, edf, ci=0.99)
        covered += low <= value * factor * tau**slope <= high
        assert pairs > 10
    assert covered == 4
    fitted = np.polyfit(np.log(taus), np.log(adev), 1)[0]
    assert fitted == pytest.approx(slope, abs=0.1)


def test_wander_depends_on_the_index_alone() -> None:
    clock = {'clock': {'white_fm': 1e-6, 'random_walk_fm': 1e-6}}
    every = stamps(transit(clock, 40, rate_hz=10.0), range(1000))
    some = stamps(transit(clock, 40, rate_hz=10.0), range(700, 1000, 7))
    assert np.array_equal(every[700::7], some)
    assert np.array_equal(every[:, :1], stamps(transit(clock, 1, rate_hz=10.0), range(1000)))
    assert len(np.unique(every[999])) == 40


def test_wander_does_not_depend_on_the_rate() -> None:
    for rate_hz in (1.0, 20.0):
        after = errors_s({'white_fm': 1e-6}, round(100 * rate_hz) + 1, rate_hz, num_envs=800)[-1]
        assert after.std() == pytest.approx(1e-6 * 10.0, rel=0.1)
        after = errors_s({'random_walk_fm': 1e-6}, round(100 * rate_hz) + 1, rate_hz, 800)[-1]
        assert after.std() == pytest.approx(1e-6 * np.sqrt(100.0**3 / 3.0), rel=0.1)


# ---- temperature and corrections ----------------------------------------------------------------


def test_warm_up_ends_in_a_steady_drift() -> None:
    error = errors_s(
        {'temperature': {'coefficient_ppm_per_k': 0.5, 'warmup_k': 20.0, 'warmup_s': 10.0}}, 1001
    )[:, 0]
    rate = np.diff(error) * 10.0
    assert rate[0] == pytest.approx(0.0, abs=1e-7)
    assert rate[100] == pytest.approx(10e-6 * (1.0 - np.exp(-1.005)), rel=1e-2)
    assert rate[-1] == pytest.approx(10e-6, rel=1e-3)


def test_a_temperature_swing_comes_back() -> None:
    error = errors_s(
        {'temperature': {'coefficient_ppm_per_k': 1.0, 'swing_k': 5.0, 'swing_period_s': 20.0}},
        401,
    )[:, 0]
    assert error[[200, 400]] == pytest.approx([0.0, 0.0], abs=2e-9)
    assert error[100] == pytest.approx(5e-6 * 20.0 / np.pi, abs=2e-9)


def test_ptp_leaves_a_residual() -> None:
    clock = {
        'offset_s': 5.0,
        'drift_ppm': 100.0,
        'white_fm': 1e-5,
        'tai_utc_s': 37,
        'servo': {'kind': 'ptp', 'sigma_s': 150e-6, 'start_s': 2.0},
    }
    error = errors_s(clock, 101, num_envs=400)
    assert error[:20].mean() == pytest.approx(42.0, abs=1e-3)  # before the first correction
    at_corrections = error[20::10] - 37.0
    assert at_corrections.std() == pytest.approx(150e-6, rel=0.03)
    assert np.corrcoef(at_corrections[:-1].ravel(), at_corrections[1:].ravel())[
        0, 1
    ] == pytest.approx(0.0, abs=0.05)
    between = error[25:35:10] - (error[20:30:10] + error[30:40:10]) / 2.0
    assert np.abs(between).max() < 2e-9


def test_ntp_steps_what_is_large_and_slews_what_is_small() -> None:
    servo = {'kind': 'ntp', 'period_s': 10.0, 'start_s': 10.0, 'slew_ppm': 500.0}
    stepped = errors_s({'offset_s': 0.5, 'servo': servo}, 400)[:, 0]
    assert stepped[:100] == pytest.approx(0.5)
    assert np.abs(stepped[100:]).max() < 1e-6
    slewed = errors_s({'offset_s': 0.02, 'servo': servo}, 1000)[:, 0]
    assert slewed[100] == pytest.approx(0.02)
    assert np.abs(np.diff(slewed)).max() == pytest.approx(500e-6 * 0.1, rel=1e-3)
    assert slewed[500] == pytest.approx(0.0, abs=1e-6)  # 5 ms a poll: four polls


def test_ntp_does_not_depend_on_who_asks() -> None:
    clock = {
        'clock': {
            'drift_ppm': 30.0,
            'random_walk_fm': 1e-6,
            'servo': {'kind': 'ntp', 'period_s': 3.0, 'sigma_s': 1e-3},
        }
    }
    every = stamps(transit(clock, 3, rate_hz=10.0), range(900))
    for begin, step in ((0, 13), (555, 1)):
        some = stamps(transit(clock, 3, rate_hz=10.0), range(begin, 900, step))
        assert np.array_equal(every[begin::step], some)


# ---- counting ----------------------------------------------------------------------------------


def test_resolution_rounds_down_and_a_counter_begins_anew() -> None:
    made = transit(
        {
            'clock': {
                'offset_s': 4294.0,
                'resolution_s': 1e-6,
                'counter_bits': 32,
                'stamp_jitter_s': 1e-4,
            }
        },
        rate_hz=10.0,
    )
    found = stamps(made, range(30))[:, 0]
    assert (found % 1000 == 0).all()
    assert found[0] == pytest.approx(4294e9, abs=1e6)
    assert found[20] == pytest.approx((4296.0 - 4294.967296) * 1e9, abs=1e6)


def test_a_clock_that_counts_from_power_up_days_ago() -> None:
    assert errors_s({'offset_s': -3 * 86400.0 - 0.25}, 3)[:, 0] == pytest.approx(-259200.25)


@pytest.mark.parametrize(
    ('point', 'shift_ms'), [('default', 0), ('start', 0), ('middle', 50), ('end', 100)]
)
def test_stamp_point(point: str, shift_ms: int) -> None:
    made = transit(
        {'clock': {'stamp_point': point}},
        rate_hz=10.0,
        duration_ns=100_000_000,
        stamp_points_ns={'start': 0, 'middle': 50_000_000, 'end': 100_000_000},
    )
    assert stamps(made, [3])[0, 0] == 300_000_000 + shift_ms * 1_000_000


@pytest.mark.parametrize(
    ('clock', 'problem'),
    [
        ({'counter_bits': 32}, 'needs the time of one count'),
        ({'servo': {'sigma_s': 1e-3}}, 'kind none does not read'),
        ({'servo': {'kind': 'ptp', 'step_s': 1.0}}, 'kind ptp does not read'),
        ({'temperature': {'coefficient_ppm_per_k': 1.0}}, 'a coefficient needs a change'),
        ({'stamp_at': 'arrival', 'white_fm': 1e-6}, 'the host stamps these samples'),
        ({'white_fm': 1.0}, 'less than or equal to 0.01'),
        ({'stamp_point': 'last'}, "'default', 'start', 'middle' or 'end'"),
    ],
)
def test_contradictions_are_refused(clock: dict[str, Any], problem: str) -> None:
    with pytest.raises(RigError, match=problem):
        validated(TimingConfig, {'clock': clock}, 'sensors.imu')
