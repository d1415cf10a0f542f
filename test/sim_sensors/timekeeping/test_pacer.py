from __future__ import annotations

import pytest

from rig_common.times import NEVER_NS
from sim_sensors.timekeeping.pacer import MAX_LAG_S, Pacer

S = 1_000_000_000


def test_wall_and_simulated_time_are_each_others_inverse() -> None:
    pacer = Pacer(2.0)
    pacer.start(100.0, 5 * S)
    assert pacer.sim_at(101.0) == 7 * S
    assert pacer.wall_at(7 * S) == 101.0


def test_factor_zero_is_never_early() -> None:
    pacer = Pacer(0.0)
    pacer.start(100.0, 0)
    assert pacer.sim_at(100.0) == NEVER_NS
    assert pacer.wall_at(9 * S) <= 100.0


def test_a_small_lag_is_caught_up() -> None:
    pacer = Pacer(1.0)
    pacer.start(0.0, 0)
    pacer.note(1.0 + 0.9 * MAX_LAG_S, 1 * S)
    assert pacer.slipped_s == 0.0
    assert pacer.wall_at(2 * S) == pytest.approx(2.0)


def test_a_large_lag_slows_the_clock() -> None:
    pacer = Pacer(1.0)
    pacer.start(0.0, 0)
    pacer.note(1.5, 1 * S)
    assert pacer.slipped_s == pytest.approx(0.5)
    assert pacer.wall_at(2 * S) == pytest.approx(2.5)
    assert pacer.sim_at(1.5) == 1 * S


def test_the_achieved_factor_is_that_of_the_last_seconds() -> None:
    pacer = Pacer(0.0)
    pacer.start(0.0, 0)
    assert pacer.achieved is None
    for step in range(100):
        pacer.note(step * 0.1, int(step * 0.1 * (4.0 if step > 50 else 1.0) * S))
    assert pacer.achieved == pytest.approx(4.0, rel=0.01)
