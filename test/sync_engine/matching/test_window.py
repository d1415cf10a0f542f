from __future__ import annotations

import math

import pytest
from support.sync_feeder import T0, Feeder, S, config

from sync_engine.config import WindowConfig
from sync_engine.engine import SyncEngine
from sync_engine.matching.window import AdaptiveWindow, motion_intensity, window_size_s

REST = (0.0, 0.0, 9.8)


@pytest.mark.parametrize(
    ('intensity', 'window_ms'), [(0.0, 100), (0.25, 80), (0.5, 60), (0.75, 40), (1.0, 20)]
)
def test_the_design_notes_table(intensity: float, window_ms: float) -> None:
    assert window_size_s(intensity, WindowConfig()) == pytest.approx(window_ms / 1000)


@pytest.mark.parametrize(
    ('linear', 'angular', 'expected'),
    [
        (9.8, 0.0, 0.0),
        (12.3, 0.0, 0.5),
        (7.3, 0.0, 0.5),
        (9.8, 0.5, 0.5),
        (12.3, 0.25, 0.75),
        (30.0, 3.0, 1.0),
    ],
)
def test_the_design_notes_formula(linear: float, angular: float, expected: float) -> None:
    assert motion_intensity(linear, angular, WindowConfig()) == pytest.approx(expected)


def test_each_kind_of_motion_counts_in_parts_of_its_own_scale() -> None:
    scales = WindowConfig(linear_scale_m_s2=2.0, angular_scale_rad_s=4.0)
    assert motion_intensity(9.8 + 0.5, 0.0, scales) == pytest.approx(0.25)
    assert motion_intensity(9.8, 0.5, scales) == pytest.approx(0.125)


def test_without_an_imu_the_window_is_the_maximum() -> None:
    window = AdaptiveWindow(WindowConfig())
    assert window.half_width_ns(S) == 100_000_000
    assert not window.is_stale(S)


def test_a_silent_imu_widens_the_window_and_says_so() -> None:
    window = AdaptiveWindow(WindowConfig(stale_after_s=0.5))
    window.update(S, (2.0, 0.0, 0.0), REST, S)
    assert window.half_width_ns(S) == 20_000_000
    assert not window.is_stale(S + S // 2)
    assert window.half_width_ns(S + S // 2) == 20_000_000
    assert window.is_stale(S + S // 2 + 1)
    assert window.half_width_ns(S + S // 2 + 1) == 100_000_000


def test_smoothing_follows_an_exponential() -> None:
    window = AdaptiveWindow(WindowConfig(smoothing_s=0.1))
    window.update(S, (0.0, 0.0, 0.0), REST, S)
    for k in range(1, 21):
        window.update(S + k * 5_000_000, (0.8, 0.0, 0.0), REST, S)
    assert window.intensity == pytest.approx(0.8 * (1 - math.exp(-1.0)), rel=1e-6)


def test_all_axes_count_and_the_force_is_smoothed_like_the_rate() -> None:
    window = AdaptiveWindow(WindowConfig(smoothing_s=0.1))
    assert window.intensity == 0.0
    window.update(S, (0.02, 0.03, 0.06), (2.8, 4.2, 8.4), S)  # lengths 0.07 and 9.8
    assert window.intensity == pytest.approx(0.07, abs=1e-9)
    window.update(S + 100_000_000, (0.02, 0.03, 0.06), (3.5, 5.25, 10.5), S)  # 12.25
    assert window.intensity == pytest.approx(0.07 + 0.49 * (1 - math.exp(-1.0)), rel=1e-6)


@pytest.mark.parametrize('back_ns', [0, 1, S // 2])
def test_a_stamp_that_is_not_later_starts_the_average_again(back_ns: int) -> None:
    window = AdaptiveWindow(WindowConfig(smoothing_s=10.0))
    window.update(S, (0.8, 0.0, 0.0), REST, S)
    window.update(S - back_ns, (0.2, 0.0, 0.0), REST, S)
    assert window.intensity == pytest.approx(0.2)


@pytest.mark.parametrize(('smoothing_s', 'expected'), [(0.0, 0.8), (1.0, 0.2 + 0.6 * 0.6321)])
def test_without_smoothing_every_sample_counts_alone(smoothing_s: float, expected: float) -> None:
    window = AdaptiveWindow(WindowConfig(smoothing_s=smoothing_s))
    window.update(S, (0.2, 0.0, 0.0), REST, S)
    window.update(2 * S, (0.8, 0.0, 0.0), REST, S)
    assert window.intensity == pytest.approx(expected, rel=1e-3)


def test_after_a_reset_motion_is_unknown() -> None:
    window = AdaptiveWindow(WindowConfig())
    window.update(S, (2.0, 0.0, 0.0), REST, S)
    assert window.has_seen
    window.reset()
    assert (window.intensity, window.half_width_ns(S)) == (0.0, 100_000_000)
    assert not window.has_seen and not window.is_stale(100 * S)


def test_new_limits_hold_at_once() -> None:
    window = AdaptiveWindow(WindowConfig(stale_after_s=0.5))
    window.configure(WindowConfig(max_ms=80.0, min_ms=10.0, stale_after_s=2.0))
    assert window.half_width_ns(S) == 80_000_000
    window.update(S, (2.0, 0.0, 0.0), REST, S)
    assert window.half_width_ns(2 * S) == 10_000_000
    assert window.half_width_ns(3 * S + 1) == 80_000_000


def test_noise_at_rest_does_not_look_like_motion() -> None:
    window = AdaptiveWindow(WindowConfig(smoothing_s=0.2))
    for k in range(400):
        window.update(S + k * 5_000_000, (0, 0, 0), (0, 0, 9.8 + (2.0 if k % 2 else -2.0)), S)
    assert window.intensity < 0.03


def test_a_broken_sample_changes_nothing() -> None:
    window = AdaptiveWindow(WindowConfig(smoothing_s=0.0))
    window.update(S, (0.5, 0.0, 0.0), REST, S)
    window.update(S + 1, (math.nan, 0.0, 0.0), REST, S)
    window.update(S + 2, (0.0, 0.0, 0.0), (0.0, math.inf, 0.0), 9 * S)
    assert window.intensity == pytest.approx(0.5)
    assert window.is_stale(9 * S)  # nor was the IMU seen by it


def test_the_status_says_how_the_imu_is() -> None:
    inputs = {'a': {'stamp_source': 'ptp'}, 'imu': {'member': False}}
    without = Feeder(SyncEngine(config({'a': inputs['a']}, 'a')))
    assert without.engine.status().imu == 'none'
    feeder = Feeder(
        SyncEngine(config(inputs, 'a', imu_sensor_id='imu', window={'stale_after_s': 0.5}))
    )
    assert feeder.engine.status().imu == 'waiting'
    feeder.poll(0)
    feeder.engine.push_imu(T0, (0.0, 0.0, 0.0), REST)
    assert feeder.engine.status().imu == 'ok'
    feeder.poll(500)
    assert feeder.engine.status().imu == 'ok'
    feeder.poll(501)
    assert feeder.engine.status().imu == 'stale'
    feeder.engine.reset('test')
    assert feeder.engine.status().imu == 'waiting'
