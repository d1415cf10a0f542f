"""Single cases of the offset filter, without noise: its prior, its walk, jumps and dumps."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from support.lone_clock import offset_fix

from sync_engine.clocks.channel import GateResult
from sync_engine.clocks.clock_filter import ClockFilter, ClockPrior
from sync_engine.clocks.smoothing import Tape
from sync_engine.config import AdaKFConfig

CONFIG = AdaKFConfig()
PRIOR = ClockPrior(
    offset_s=0.005,
    offset_sigma_s=0.001,
    latency_s=0.02,
    latency_sigma_s=0.008,
    skew_sigma=3e-5,
    anchor_sigma_s=0.002,
    is_anchor=False,
    tied=True,
    wander_chance=0.02,
)
LEVEL = PRIOR.offset_s - PRIOR.latency_s
"""o - l, which arrivals show."""


def settled(seconds: int = 60, prior: ClockPrior = PRIOR) -> ClockFilter:
    """Return a filter that saw arrivals for a while, all at one level."""
    clock = ClockFilter(prior, CONFIG)
    for second in range(1, seconds + 1):
        clock.predict(float(second))
        assert clock.observe_arrival(LEVEL) is GateResult.ACCEPTED
    return clock


def test_before_anything_is_measured_the_filter_is_its_prior() -> None:
    tied, loose = ClockFilter(PRIOR, CONFIG), ClockFilter(replace(PRIOR, tied=False), CONFIG)
    imu = ClockFilter(replace(PRIOR, is_anchor=True), CONFIG)
    assert tied.state == pytest.approx([0.005, 0.0, 0.02, *[0.0] * 9])
    known = (tied.offset_s, tied.latency_s, tied.known().skew, tied.state[3])
    assert known == pytest.approx((0.005, 0.02, 0.0, 0.0))
    # an offset that was set from an arrival is as unsure as the latency, and in step with it
    assert tied.known().offset_var == pytest.approx(0.001**2 + 0.008**2)
    assert tied.arrival_var == pytest.approx(0.001**2)
    assert tied.known().anchored_var == pytest.approx(0.001**2 + 0.008**2 + 0.002**2)
    assert tied.sigma_s == pytest.approx(np.hypot(0.001, 0.008))
    assert (loose.known().offset_var, loose.arrival_var) == pytest.approx(
        (0.001**2, 0.001**2 + 0.008**2)
    )
    assert imu.known().anchored_var == imu.arrival_var == pytest.approx(0.001**2)
    assert imu.sigma_s == pytest.approx(0.001)


def test_time_carries_the_offset_by_the_skew_and_widens_it() -> None:
    clock = ClockFilter(PRIOR, CONFIG)
    for second in range(1, 100):
        clock.predict(float(second))
        clock.observe_arrival(LEVEL + 2e-5 * second)
    before, sure = clock.state, clock.covariance
    clock.predict(50.0)  # back in time: ignored
    assert clock.time_s == 99.0 and np.array_equal(clock.state, before)
    clock.predict(109.0)
    assert clock.time_s == 109.0
    assert clock.state[0] == pytest.approx(before[0] + 10.0 * before[1], rel=1e-4)
    assert clock.state[1:4] == pytest.approx(before[1:4], rel=1e-4)
    assert (np.diag(clock.covariance) > np.diag(sure))[:4].all()


def test_a_skew_that_changes_for_minutes_is_followed() -> None:
    """As a clock that warms up: 1 ppm more every second."""
    clock, rng = settled(), np.random.default_rng(0)
    for second in range(1, 180):
        clock.predict(60.0 + second)
        true = LEVEL + 0.5e-6 * second**2
        clock.observe_arrival(true + rng.normal(0.0, 2e-4))
        if second > 120:
            assert abs(clock.offset_s - clock.latency_s - true) < 0.0006
    assert clock.known().skew == pytest.approx(179e-6, rel=0.25)


def jump(clock: ClockFilter, size_s: float, clock_held: bool) -> None:
    """Let arrivals be at another level from now on."""
    outcomes = []
    for _ in range(6):
        clock.predict(clock.time_s + 1.0)
        outcomes.append(clock.observe_arrival(LEVEL + size_s, 0.0 if clock_held else inf))
    assert outcomes[:3] == [GateResult.REJECTED, GateResult.JUMP, GateResult.ACCEPTED]
    assert clock.offset_s - clock.latency_s == pytest.approx(LEVEL + size_s, abs=0.0005)


def test_arrivals_that_jump_while_the_stamps_keep_their_grid_are_latency() -> None:
    clock = settled()
    jump(clock, -0.03, clock_held=True)
    assert clock.offset_s == pytest.approx(PRIOR.offset_s, abs=0.001)
    assert clock.latency_s == pytest.approx(PRIOR.latency_s + 0.03, abs=0.001)
    assert clock.sigma_s == pytest.approx(0.008, rel=0.1)


def test_where_nothing_shows_what_jumped_both_may_have() -> None:
    clock = settled()
    jump(clock, -0.03, clock_held=False)
    assert clock.offset_s == pytest.approx(PRIOR.offset_s - 0.015, abs=0.003)
    assert clock.latency_s == pytest.approx(PRIOR.latency_s + 0.015, abs=0.003)
    assert clock.sigma_s > 0.015


def test_a_latency_that_would_be_negative_is_a_clock_that_jumped() -> None:
    clock = settled()
    jump(clock, 0.06, clock_held=True)  # 20 ms of latency cannot become 60 ms less
    assert clock.offset_s == pytest.approx(PRIOR.offset_s + 0.06, abs=0.002)
    assert clock.latency_s == pytest.approx(PRIOR.latency_s, abs=0.002)


def test_a_step_of_known_size_moves_the_offset_by_it() -> None:
    clock = settled()
    before = clock.covariance
    clock.step_clock(-0.25, 0.004)
    assert clock.offset_s == pytest.approx(PRIOR.offset_s - 0.25, abs=1e-4)
    assert clock.latency_s == pytest.approx(PRIOR.latency_s, abs=1e-4)
    assert clock.known().offset_var == pytest.approx(before[0, 0] + 0.004**2)
    assert clock.covariance[2, 2] == before[2, 2]
    clock.open_either(0.01)
    assert clock.known().offset_var == pytest.approx(before[0, 0] + 0.004**2 + 0.01**2)
    assert clock.covariance[2, 2] == pytest.approx(before[2, 2] + 0.01**2)


def test_motion_is_counted_and_moves_offset_and_latency_together() -> None:
    clock = settled()
    for _ in range(10):
        clock.predict(clock.time_s + 1.0)
        assert (
            clock.observe_motion(offset_fix(PRIOR.offset_s + 0.006, 0.001), clock.time_s, 0.0)
            is GateResult.ACCEPTED
        )
    assert clock.motion_count == 10
    assert clock.offset_s - clock.state[3] == pytest.approx(PRIOR.offset_s + 0.006, abs=0.0005)
    assert clock.offset_s - clock.latency_s == pytest.approx(LEVEL, abs=0.0005)
    assert clock.sigma_s < 0.001
    other = ClockFilter(PRIOR, CONFIG)
    other.load(clock.dump())
    assert np.array(other.dump()['p']) == pytest.approx(np.array(clock.dump()['p']))
    assert (other.time_s, other.motion_count) == (0.0, 10)
    assert other.sigma_s == pytest.approx(clock.sigma_s)


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('x', [0.0, float('inf'), 0.0, 0.0]),
        ('p', [[float('nan')] * 4] * 4),
        ('p', np.diag([1.0, 1.0, -1.0, 1.0]).tolist()),
    ],
)
def test_a_dump_that_cannot_be_is_refused(key: str, value: list[object]) -> None:
    with pytest.raises(ValueError, match='finite and positive'):
        ClockFilter(PRIOR, CONFIG).load({**settled(5).dump(), key: value})


def played(errors_s: list[float]) -> ClockFilter:
    """Return a filter that saw an arrival with each of these errors, 20 a second."""
    clock = ClockFilter(PRIOR, CONFIG)
    for index, error_s in enumerate(errors_s):
        clock.predict(0.05 * (index + 1))
        clock.observe_arrival(LEVEL + error_s)
    return clock


def test_after_a_jump_the_smoother_looks_back_no_further_than_the_jump() -> None:
    clock = ClockFilter(PRIOR, CONFIG)
    clock.tape = Tape(is_anchor=False)
    clock.tape.begin(0, 0, 0)
    for second in range(1, 121):
        clock.predict(float(second))
        if second == 61:
            clock.step_clock(0.25, 0.001)
        clock.observe_arrival(LEVEL + (0.25 if second > 60 else 0.0))
    clock.finish_tape()
    track = clock.tape.smoothed()
    for second, offset_s in (
        (30, PRIOR.offset_s),
        (58, PRIOR.offset_s),
        (63, PRIOR.offset_s + 0.25),
        (110, PRIOR.offset_s + 0.25),
    ):
        known = track.at(second * 10**9)
        assert known is not None
        assert known.offset_ns / 1e9 == pytest.approx(offset_s, abs=0.002)


def test_a_wander_that_motion_shows_is_part_of_the_skew() -> None:
    """Turns that run ahead of the stamps by 200 us a second while arrivals stay where they are."""
    clock = settled(prior=replace(PRIOR, wander_chance=0.9))
    for second in range(1, 90):
        clock.predict(60.0 + second)
        clock.observe_arrival(LEVEL)
        clock.observe_motion(offset_fix(PRIOR.offset_s + 2e-4 * second, 0.0003), clock.time_s, 0.0)
    assert clock.known().skew > clock.state[1]
    skew, before = clock.known().skew, clock.offset_s
    clock.predict(clock.time_s + 1.0)
    assert clock.offset_s - before == pytest.approx(skew, rel=0.2)
