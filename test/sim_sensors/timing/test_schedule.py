"""Capture times are exact whatever the rate, the step and the length of the run."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.toy_sensors import MS, config

from rig_common.errors import RigError
from sim_sensors.pipeline.assembly import refuse_drawn_phases, schedules_of
from sim_sensors.timing.schedule import Schedule

STEPS_NS = st.sampled_from([MS // 2, MS, 2 * MS, 5 * MS, 1_234_567, 16_666_667])
RATES = st.one_of(
    st.sampled_from([0.0, 0.1, 1.0, 7.0, 10.0, 29.97, 30.0, 33.3333333, 59.94]),
    st.integers(1, 599).map(lambda n: n / 10),
)


def nearest_step(k: int, rate: Fraction, dt_ns: int) -> int:
    """Round k / rate to whole steps, half up, the slow and obvious way."""
    steps = k / rate * 1_000_000_000 / dt_ns
    whole = steps.numerator // steps.denominator
    return whole + (steps - whole >= Fraction(1, 2))


def test_400_hz_on_1_ms_steps() -> None:
    schedule = Schedule(400.0, MS)
    assert [schedule.time_of(k) // MS for k in range(7)] == [0, 3, 5, 8, 10, 13, 15]
    assert [schedule.index_at(t * MS) for t in range(6)] == [0, None, None, 1, None, 2]


@given(RATES, STEPS_NS, st.integers(0, 10**8), st.sampled_from([0.0, 0.0123, 0.4]))
def test_capture_k_is_k_over_rate_on_the_grid(
    rate: float, dt_ns: int, k: int, phase_s: float
) -> None:
    schedule = Schedule(rate, dt_ns, phase_s)
    time_ns = schedule.time_of(k)
    expected = nearest_step(k, schedule.rate, dt_ns) * dt_ns + schedule.phase_ns
    assert time_ns == expected
    assert schedule.index_at(time_ns) == k
    assert schedule.index_before(time_ns) == k
    assert schedule.index_before(time_ns - 1) == k - 1
    assert schedule.next_time(time_ns - 1) == time_ns


@given(
    RATES, STEPS_NS, st.lists(st.integers(0, 10**7), min_size=1, max_size=20), st.integers(-2, 2)
)
def test_arrays_agree_with_single_times(
    rate: float, dt_ns: int, ks: list[int], off_ns: int
) -> None:
    schedule = Schedule(rate, dt_ns, 0.05)
    times = schedule.times_of(np.array(ks))
    assert times.tolist() == [schedule.time_of(k) for k in ks]
    around = times + off_ns
    assert schedule.indices_before(around).tolist() == [
        schedule.index_before(t) for t in around.tolist()
    ]
    assert schedule.indices_at(around).tolist() == [
        -1 if schedule.index_at(t) is None else schedule.index_at(t) for t in around.tolist()
    ]


def test_no_drift_in_ten_million_steps() -> None:
    schedule = Schedule(29.97, MS)
    last = schedule.index_before(10**7 * MS)
    assert last == int(Fraction(2997, 100) * 10**4)
    assert abs(schedule.time_of(last) - last / 29.97 * 1e9) <= MS / 2


def test_nothing_before_the_phase() -> None:
    schedule = Schedule(100.0, MS, phase_s=0.0042)
    assert schedule.time_of(0) == 4 * MS
    assert schedule.index_before(4 * MS - 1) == -1
    assert schedule.indices_before(np.array([-5 * MS, 0, 4 * MS])).tolist() == [-1, -1, 0]


@given(RATES, STEPS_NS, st.integers(0, 10**9), st.integers(0, 10**5))
def test_a_window_never_holds_more_captures_than_told(
    rate: float, dt_ns: int, window_ns: int, k: int
) -> None:
    schedule = Schedule(rate, dt_ns)
    start = schedule.time_of(k)
    held = schedule.index_before(start + window_ns) - k + 1
    assert held <= schedule.captures_in(window_ns) <= held + 2


def test_a_schedule_can_be_followed_into_the_time_before_its_start() -> None:
    for rate, steps in ((100.0, 10), (1000.0, 1), (0.0, 1)):
        schedule = Schedule(rate, MS, phase_s=0.004)
        times = (4 + steps * np.array([-3, -2, 0, 1])) * MS
        assert schedule.indices_before(times, least=-9).tolist() == [-3, -2, 0, 1]
        assert schedule.indices_before(times, least=-2).tolist() == [-2, -2, 0, 1]
        assert schedule.indices_before(times).tolist() == [-1, -1, 0, 1]
    uneven = Schedule(400.0, MS)
    before = uneven.indices_before(np.arange(-6, 1) * MS, least=-9)
    assert before.tolist() == [-3, -2, -2, -2, -1, -1, 0]  # captures at -5, -2 and 0 ms


def test_rate_and_period() -> None:
    schedule = Schedule(40.0, MS)
    assert (schedule.rate_hz, schedule.period_s) == (40.0, 0.025)
    assert Schedule(0.0, 2 * MS).rate_hz == 500.0
    assert Schedule(1000.0, MS).rate_hz == 1000.0  # as fast as the physics, not faster


def test_a_phase_that_is_drawn_is_refused_over_ros() -> None:
    refuse_drawn_phases({'imu': config(phase_s=0.01)})
    with pytest.raises(RigError, match=r'sensors.cam.phase_range_s is \[0.0, 0.01\]'):
        refuse_drawn_phases(
            {'imu': config(), 'cam': config(rate_hz=10.0, phase_range_s=(0.0, 0.01))}
        )


def test_a_rate_above_the_physics_is_refused() -> None:
    with pytest.raises(RigError, match=r"rate_hz of 'imu' is 1001.*1000 Hz"):
        Schedule(1001.0, MS, name='imu')


def test_truth_ticks_contain_every_capture() -> None:
    captures = Schedule(200.0, MS, 0.003)
    for rate in (0.0, 400.0, 1000.0):
        ticks = captures.finer(rate)
        assert all(ticks.index_at(captures.time_of(k)) is not None for k in range(50))
        assert ticks.time_of(0) == captures.time_of(0)
        assert ticks.rate_hz == (rate or 1000.0)
    with pytest.raises(RigError, match='whole multiple of its rate, 200 Hz'):
        captures.finer(500.0)


def test_a_trigger_gives_its_schedule() -> None:
    rig = {
        'flash': config(trigger='camera', trigger_delay_s=0.0021),
        'camera': config(rate_hz=30.0, phase_s=0.01),
        'lamp': config(trigger='flash', trigger_delay_s=0.001),
    }
    schedules = schedules_of(rig, MS)
    for k in range(40):
        camera = schedules['camera'].time_of(k)
        assert schedules['flash'].time_of(k) == camera + 2 * MS
        assert schedules['lamp'].time_of(k) == camera + 3 * MS


def test_triggers_that_cannot_be() -> None:
    with pytest.raises(RigError, match="'nobody', which is no sensor"):
        schedules_of({'a': config(trigger='nobody')}, MS)
    with pytest.raises(RigError, match='in a circle'):
        schedules_of({'a': config(trigger='b'), 'b': config(trigger='a')}, MS)
