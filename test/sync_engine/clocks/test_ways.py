"""Several ways to wander side by side: the right one is believed, and sigma holds what it says."""

from __future__ import annotations

import numpy as np
import pytest
from support.lone_clock import offset_fix

from sync_engine.clocks.clock_filter import ClockFilter, ClockPrior
from sync_engine.clocks.ways import declared_cost
from sync_engine.config.sync_config import AdaKFConfig

MS = 1e-3


def followed(true_s: np.ndarray, chance: float, seed: int, clock_too: bool = False) -> ClockFilter:
    """Return a filter that saw one arrival and one piece of motion (1 ms) every second."""
    prior = ClockPrior(0.0, 0.005, 0.02, 0.01, 3e-5, 0.001, False, True, chance)
    clock, rng = ClockFilter(prior, AdaKFConfig()), np.random.default_rng(seed)
    clock.set_arrival_noise((0.3 * MS) ** 2)
    for second, true in enumerate(true_s.tolist(), 1):
        clock.predict(float(second))
        clock.observe_arrival(-0.02 + true * clock_too + rng.normal(0.0, 0.3 * MS))
        clock.observe_motion(offset_fix(true + rng.normal(0.0, MS), MS), clock.time_s, 0.0)
    return clock


@pytest.mark.parametrize(('rate_ppm', 'is_still'), [(0.0, True), (60.0, False)])
def test_belief_goes_to_what_foresees_the_pieces(rate_ppm: float, is_still: bool) -> None:
    true = rate_ppm * 1e-6 * np.arange(1.0, 241.0)
    clock = followed(true, 0.4, 3)
    assert (clock.beliefs[0] > 0.6) is is_still
    assert (clock.beliefs[1] + clock.beliefs[2] > 0.5) is not is_still
    assert clock.known().skew * 1e6 == pytest.approx(rate_ppm, abs=12.0)
    assert abs(clock.offset_s - clock.state[3] - true[-1]) < 3.0 * clock.sigma_s
    assert clock.sigma_s < 0.5 * MS


def test_a_clock_that_swings_is_followed() -> None:
    time = np.arange(1.0, 200.0)
    true = 5.5 * MS * np.sin(2.0 * np.pi * time / 280.0)
    clock = followed(true, 0.02, 1, clock_too=True)
    assert abs(clock.offset_s - clock.state[3] - true[-1]) < 3.0 * clock.sigma_s


@pytest.mark.parametrize('chance', [0.02, 0.5])
def test_sigma_holds_what_it_claims_where_nothing_wanders(chance: float) -> None:
    scaled = []
    for seed in range(24):
        clock = followed(np.zeros(60), chance, seed)
        scaled.append((clock.offset_s - clock.state[3]) / clock.sigma_s)
    assert 0.3 < np.mean(np.square(scaled)) < 1.7


def test_no_wander_at_all_may_be_declared() -> None:
    clock = followed(np.zeros(60), 0.0, 5)
    assert clock.beliefs[0] + clock.beliefs[-1] > 0.999  # both stand still
    assert np.isfinite(clock.sigma_s)


def test_what_was_declared_is_a_normal_near_by_and_decides_little_far_away() -> None:
    near = np.array([0.0, 1.0, 2.0])
    assert declared_cost(near) == pytest.approx(near**2, abs=0.05)
    costs = declared_cost(np.array([4.0, 10.0, 15.0, 1000.0]))
    assert (np.diff(costs) > 0.0).all() and np.isfinite(costs).all()
    assert costs[2] < 16.0
