"""The usual arrival - stamp of a stream: level, spread, threshold, and how low it may be."""

from __future__ import annotations

import pytest
from support.sync_feeder import MS, S

from sync_engine.clocks.usual_delay import UsualDelay


def learnt(*delays_ms: float, every_ns: int = 33 * MS) -> UsualDelay:
    usual = UsualDelay()
    usual.begin(round(delays_ms[0] * MS))
    for delay_ms in delays_ms[1:]:
        usual.learn(round(delay_ms * MS), every_ns)
    return usual


def test_the_first_messages_are_averaged_and_later_ones_move_the_level_by_a_twentieth() -> None:
    assert learnt(20, 26).level_ns == pytest.approx(23 * MS)
    assert learnt(20, 26, 29).level_ns == pytest.approx(25 * MS)
    usual = learnt(*[20] * 100)
    usual.learn(21 * MS, 33 * MS)
    assert usual.level_ns == pytest.approx(20.05 * MS)


def test_the_spread_is_a_standard_deviation_and_the_threshold_three_and_a_half_of_it() -> None:
    wide = learnt(*[17, 23] * 300)
    assert wide.spread_ns == pytest.approx(1.25 * 3 * MS, rel=0.03)
    assert wide.threshold_ns == pytest.approx(3.5 * wide.spread_ns, rel=1e-3)
    few = learnt(*[17, 23] * 5)
    assert few.threshold_ns == pytest.approx(3.5 * (1 + 1.0) * few.spread_ns, rel=0.3)
    calm = learnt(*[20] * 400)
    assert calm.spread_ns < 0.01 * MS
    assert calm.threshold_ns == 5 * MS
    before = calm.spread_ns
    calm.learn(30 * MS, 33 * MS)
    assert calm.spread_ns == pytest.approx(0.98 * before + 0.02 * 1.25 * 10 * MS)


def test_before_anything_is_known_the_spread_is_two_milliseconds() -> None:
    usual = learnt(20)
    assert (usual.spread_ns, usual.threshold_ns) == (2 * MS, 14 * MS)
    usual.learn(22 * MS, 33 * MS)
    assert usual.spread_ns == pytest.approx(2 * MS + (1.25 * 2 * MS - 2 * MS) / 9)


def test_a_delay_is_a_new_low_half_a_threshold_below_all_before() -> None:
    usual = learnt(*[20] * 400)
    assert not usual.is_new_low(17.51 * MS)
    assert usual.is_new_low(17.49 * MS)
    usual.learn(19 * MS, 33 * MS)
    assert not usual.is_new_low(16.51 * MS)
    for _ in range(10):  # a clock may drift by 50 ppm: 0.5 ms in 10 s
        usual.learn(20 * MS, S)
    low_ms = 19.5 - usual.threshold_ns / 2 / MS
    assert usual.is_new_low((low_ms - 0.01) * MS) and not usual.is_new_low((low_ms + 0.01) * MS)


def test_messages_that_came_back_widen_the_spread_as_a_few_thresholds_at_most() -> None:
    usual, same = learnt(*[20] * 400), learnt(*[20] * 400)
    usual.widen(-S, 3, 20 * MS, by_chance=False)
    same.widen(-10 * MS, 3, 20 * MS, by_chance=False)
    expected = 1.25 * 10 * MS * (1.0 - 0.98**3)
    assert same.spread_ns == pytest.approx(expected, rel=0.01)
    # beyond two thresholds a stall counts as these, the second and third of a wider threshold
    assert usual.spread_ns == pytest.approx(same.spread_ns, rel=0.3)
    assert usual.level_ns == pytest.approx(20 * MS)


def test_what_came_early_by_chance_moves_the_level_and_how_low_it_may_be() -> None:
    usual = learnt(*[20] * 400)
    usual.widen(4 * MS, 2, 14 * MS, by_chance=True)
    assert usual.level_ns == pytest.approx(20 * MS - 2 * 0.05 * 4 * MS)
    assert not usual.is_new_low(14 * MS - 0.49 * usual.threshold_ns)
    assert usual.is_new_low(14 * MS - 0.51 * usual.threshold_ns)


@pytest.mark.parametrize('floor_by_ms', [-8, 0, 8])
def test_the_usual_value_and_how_low_it_may_be_are_moved_apart(floor_by_ms: int) -> None:
    usual = learnt(*[20] * 400)
    usual.shift(8 * MS, floor_by_ms * MS)
    assert usual.level_ns == pytest.approx(28 * MS)
    assert usual.is_new_low((20 + floor_by_ms - 2.51) * MS)
    assert not usual.is_new_low((20 + floor_by_ms - 2.49) * MS)
