"""A stamp is the sum of all errors of a clock; and how the clock counts it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.transits import stamps, transit

from rig_common.errors import RigError
from rig_common.validation import validated
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.faults import Condition
from sim_sensors.timing.randomness.correlated import ClockWander
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.transit import CaptureNumbers, Transit


def errors_s(clock: dict[str, Any], count: int) -> NDArray[np.float64]:
    """Return stamp minus capture at 10 Hz, s [count]."""
    made = transit({'clock': clock}, rate_hz=10.0)
    found = stamps(made, range(count))[:, 0]
    return np.asarray((found - made.schedule.times_of(np.arange(count))) / 1e9)


def test_offset_drift_step_and_stamp_point_add_up_to_the_nanosecond() -> None:
    made = transit(
        {'clock': {'offset_s': -0.25, 'drift_ppm': 40.0, 'tai_utc_s': 37, 'stamp_point': 'end'}},
        rate_hz=10.0,
        stamp_points_ns={'end': 100_000_000},
    )
    passage = made.transit.send(made.capture(9), Condition(clock_step_ns=7))
    # the instant is 0.9 + 0.1 s; 40 us of drift at 1 s
    assert passage.stamp_ns == 1_000_000_000 - 250_000_000 + 40_000 + 37_000_000_000 + 7


def test_temperature_is_that_of_the_stamped_instant_and_adds_to_wander() -> None:
    warm = {'coefficient_ppm_per_k': 1.0, 'swing_k': 5.0, 'swing_period_s': 20.0}
    found = {}
    for point_ns in (0, 5_000_000_000):
        made = transit(
            {'clock': {'temperature': warm, 'stamp_point': 'middle'}},
            rate_hz=1.0,
            stamp_points_ns={'middle': point_ns},
        )
        found[point_ns] = stamps(made, range(20))[:, 0] - np.arange(20) * 1_000_000_000 - point_ns
    assert found[0][5:].tolist() == found[5_000_000_000][:15].tolist()
    both = errors_s({'temperature': warm, 'white_fm': 1e-6}, 100)
    alone = errors_s({'white_fm': 1e-6}, 100), errors_s({'temperature': warm}, 100)
    assert both == pytest.approx(sum(alone), abs=2e-9)


def test_wander_is_the_phase_of_the_process_behind_it() -> None:
    wander = ClockWander(
        RandomStreams(1, 'test').lanes, white_fm=1e-5, random_walk_fm=1e-5, period_s=0.1
    )
    expected = [float(wander.at(slice(None), np.array([k]))[0, 1]) for k in range(60)]
    assert errors_s({'white_fm': 1e-5, 'random_walk_fm': 1e-5}, 60) == pytest.approx(
        expected, abs=1e-9
    )


def test_a_counter_counts_from_what_a_true_clock_shows_at_the_start() -> None:
    clock = {'clock': {'resolution_s': 1e-3, 'counter_bits': 8}}
    made = transit(clock, rate_hz=10.0, start_ns=1_000_000_100)
    # shown: 1000.0001 ms, rounded down, modulo 256; a stamp counts from the start of the run
    assert (stamps(made, [0, 1])[:, 0] + 1_000_000_100).tolist() == [232_000_000, 76_000_000]
    whole = transit({'clock': {'resolution_s': 1e-3}}, rate_hz=10.0, start_ns=1_000_000_100)
    assert stamps(whole, [1])[0, 0] == 100_000_000 - 100


def test_the_same_config_again_changes_nothing_and_another_holds_from_then_on() -> None:
    keys: dict[str, Any] = {
        'rate_hz': 10.0,
        'clock': {'white_fm': 1e-5, 'stamp_jitter_s': 1e-4, 'offset_s': 1.0},
    }
    plain, taken = transit(keys, rate_hz=10.0), transit(keys, rate_hz=10.0)
    before = stamps(plain, range(20))
    assert np.array_equal(stamps(taken, range(10)), before[:10])
    taken.transit.take(validated(TimingConfig, keys, 'test'))
    assert np.array_equal(stamps(taken, range(10, 15)), before[10:15])
    keys['clock'].update(offset_s=3.0, stamp_jitter_s=0.0, white_fm=0.0)
    taken.transit.take(validated(TimingConfig, keys, 'test'))
    assert stamps(taken, [15])[0, 0] == 1_500_000_000 + 3_000_000_000


def test_one_environment_is_stamped_as_the_first_of_several_also_where_noise_is_float32() -> None:
    config = validated(TimingConfig, {'clock': {'stamp_jitter_s': 2e-4}}, 'test')
    found = []
    for num_envs in (1, 3):
        sent = Transit(config, RandomStreams(1, 'test', num_envs, np.float32))
        every = [
            CaptureNumbers(np.arange(num_envs), np.full(num_envs, k), np.zeros(num_envs, int))
            for k in range(2000)
        ]
        found.append([np.ravel(sent.send(each).stamp_ns)[0] for each in every])
    assert found[0] == found[1]


def test_clock_noise_needs_a_rate() -> None:
    config = validated(TimingConfig, {'clock': {'random_walk_fm': 1e-6}}, 'test')
    with pytest.raises(RigError, match="clock noise of 'imu' needs its rate_hz"):
        Transit(config, RandomStreams(1, 'imu'))
    config = validated(TimingConfig, {'rate_hz': 10.0, 'clock': {'white_fm': 1e-6}}, 'test')
    recorded = Transit(config, RandomStreams(1, 'test'))
    same = transit({'clock': {'white_fm': 1e-6}}, rate_hz=10.0)
    for k in range(50):
        assert (
            recorded.send(same.capture(k)).stamp_ns == same.transit.send(same.capture(k)).stamp_ns
        )


def test_a_servo_corrects_the_drift_of_the_stamped_clock() -> None:
    clock = {
        'offset_s': 0.01,
        'drift_ppm': 50.0,
        'tai_utc_s': 37,
        'servo': {'kind': 'ptp', 'sigma_s': 0.0, 'start_s': 0.0, 'period_s': 1.0},
    }
    error = errors_s(clock, 60) - 37.0
    assert np.abs(error[10:]).max() < 1e-6


@pytest.mark.parametrize('kind', ['ntp', 'ptp'])
def test_after_a_reset_a_corrected_clock_begins_as_in_a_new_run(kind: str) -> None:
    keys = {
        'clock': {
            'offset_s': 0.02,
            'drift_ppm': 80.0,
            'white_fm': 1e-6,
            'servo': {'kind': kind, 'period_s': 1.0, 'sigma_s': 1e-4},
        }
    }
    made = transit(keys, 2, rate_hz=10.0)
    first = stamps(made, range(60))
    for envs in (np.array([1]), slice(None)):
        made.streams.reset(envs)
        made.transit.reset(envs)
    fresh = stamps(transit(keys, 2, rate_hz=10.0, episode=1), range(60))
    again = stamps(made, range(60))
    assert np.array_equal(again[:, 0], fresh[:, 0])
    assert not np.array_equal(again[:, 1], first[:, 1])
    assert np.abs(again[0] - first[0]).max() < 3_000_000  # at the offset, not where it had ended
