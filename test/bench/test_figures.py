"""What a figure says: its target, when it got worse, and how it reads."""

from __future__ import annotations

import json

import pytest

from bench.figures import Figure, absent, greatest, least, number, shown, worsening


@pytest.mark.parametrize(
    ('value', 'better', 'met'),
    [
        (10.0, 'higher', True),
        (9.9, 'higher', False),
        (10.0, 'lower', True),
        (10.1, 'lower', False),
        (None, 'higher', None),
    ],
)
def test_a_target_is_reached_from_the_better_side(
    value: float | None, better: str, met: bool | None
) -> None:
    assert Figure('speed', value, target=10.0, better=better).met is met


def test_without_a_target_nothing_is_met_or_missed() -> None:
    assert Figure('speed', 3.0).met is None


def test_a_figure_survives_json() -> None:
    figure = Figure('speed', 3.5, 'x', 2.0, 'lower', 'accuracy', (3.0, 4.0), 'of ten')
    assert Figure.from_dict(json.loads(json.dumps(figure.to_dict()))) == figure


def test_cases_become_the_worst_of_them() -> None:
    assert least('speed', iter([3.0, 2.0, 5.0])) == Figure('speed', 2.0, spread=(2.0, 5.0))
    worst = greatest('cost', [3.0, 2.0, 5.0], target=4.0)
    assert (worst.value, worst.better, worst.met) == (5.0, 'lower', False)


@pytest.mark.parametrize(
    ('before', 'now', 'better', 'worse'),
    [
        (10.0, 8.4, 'higher', False),
        (10.0, 8.3, 'higher', True),
        (10.0, 20.0, 'higher', False),
        (1.0, 1.19, 'lower', False),
        (1.0, 1.21, 'lower', True),
        (1.0, 0.1, 'lower', False),
    ],
)
def test_a_ratio_may_move_by_a_fifth(before: float, now: float, better: str, worse: bool) -> None:
    found = worsening(Figure('r', before, better=better), Figure('r', now, better=better))
    assert (found is not None) == worse


def test_what_the_machine_decides_is_not_compared() -> None:
    slow, fast = (Figure('t', value, 'us', 10.0, 'lower', 'absolute') for value in (90.0, 9.0))
    assert worsening(fast, slow) is None


def test_a_target_that_was_met_and_is_not_any_more_counts() -> None:
    before, now = (Figure('e', value, 'ms', 0.5, 'lower', 'accuracy') for value in (0.49, 0.52))
    assert worsening(before, now) == 'is 0.52 ms and misses its target of 0.5, was 0.49 ms'
    assert worsening(now, before) is None
    assert worsening(now, now) is None, 'it was missed before'


def test_a_peer_that_is_gone_is_noticed_and_one_that_came_is_not() -> None:
    known, gone = Figure('r', 3.0, 'x'), absent('r', 'no torch', unit='x')
    assert worsening(known, gone) == 'was 3x and is absent: no torch'
    assert worsening(gone, known) is None


@pytest.mark.parametrize(
    ('value', 'text'),
    [
        (0.0, '0'),
        (1.234, '1.23'),
        (123.4, '123'),
        (20123.4, '20,123'),
        (1.5e-5, '1.50e-05'),
        (float('inf'), 'inf'),
        (None, ''),
    ],
)
def test_numbers_read_well(value: float | None, text: str) -> None:
    assert number(value) == text


def test_units_stand_behind_the_number() -> None:
    assert shown(Figure('a', 2.0, 'x')) == '2x'
    assert shown(Figure('a', 2.0, 'ms')) == '2 ms'
    assert shown(Figure('a', 2.0)) == '2'
    assert shown(absent('a', 'no peer')) == 'absent: no peer'
