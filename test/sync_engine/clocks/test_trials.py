"""Streams with several faults at once: never `locked` and wrong for more than a few messages.

A step below max(5 ms, 3.5 spreads of arrival - stamp) is left to the filter, which takes some
seconds; how long is in docs/offsets.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.bad_habits import LAWS, Habits, pairs
from support.sync_feeder import S
from support.trials import Claims, Trial, claims, trials

from sync_engine.clocks.steps import JUMPS, StepDetector

FEW = 3
SIGMAS, FLOOR_MS = 5.0, 4.0


def seen(drawn: list[Trial]) -> list[tuple[Trial, Claims]]:
    return [(trial, claims(trial, SIGMAS, FLOOR_MS)) for trial in drawn]


def faults(found: list[tuple[Trial, Claims]]) -> list[tuple[Trial, Claims]]:
    return [each for each in found if each[1].wrong > FEW]


def overtaking(count: int, seed: int) -> list[Trial]:
    """Return streams of 50 to 240 Hz whose delays scatter by 0.3 to 5 periods."""
    return [
        *trials(count // 2, seed, ('overtaking',)),
        *trials(count // 2, seed + 1, ('overtaking', 'batches')),
    ]


def mixed(count: int, seed: int) -> list[Trial]:
    return [trial for trial in trials(count, seed) if 'small step' not in trial.name]


def test_messages_that_overtake_one_another_show_no_step() -> None:
    found = seen(overtaking(12, seed=1))
    assert not faults(found)
    assert sum(each.jumps > 0 for _, each in found) <= 1
    assert np.mean([each.doubtful / each.messages for _, each in found]) < 0.03


def test_no_mixture_of_faults_is_locked_on_a_wrong_offset() -> None:
    assert not faults(seen(mixed(40, seed=1)))


@pytest.mark.parametrize('periods', [-3, -1, 1, 2, 2.3])
def test_a_step_behind_messages_that_became_slow_is_measured_against_them(periods: float) -> None:
    habits = Habits(rate_hz=20.0, jitter_ms=3.0)
    events = ((20e3, 'latency', 20.0), (21.5e3, 'step', 50.0 * periods))
    plain = Trial('slow, then a step', habits, 0, events, latency_sigma_ms=1.0, fix_sigma_ms=0.0)
    assert not faults(seen([replace(plain, seed=seed) for seed in range(4)]))


def test_a_wrong_declared_latency_does_not_win_over_weak_motion() -> None:
    """Wrong by 6 to 8 of its sigmas, and pieces of motion that tell less than it claims."""
    plain = Trial(
        '', Habits(rate_hz=10.0, jitter_ms=1.0), 0, latency_sigma_ms=2.0, fix_sigma_ms=4.0
    )
    found = [
        replace(plain, name=f'{error_ms} ms', seed=seed, latency_error_ms=error_ms)
        for error_ms in (-16.0, -12.0, 12.0, 16.0)
        for seed in range(10)
    ]
    assert sum(each.wrong > 0 for _, each in seen(found)) <= 2


@pytest.mark.parametrize('law', LAWS)
@pytest.mark.parametrize('step_ms', [-63.0, 63.0])
def test_a_step_is_found_where_messages_overtake(law: str, step_ms: float) -> None:
    habits = Habits(rate_hz=100.0, jitter_ms=6.0, law=law, overtaking=True)
    received, detector = pairs(habits, 900, 3, {600: step_ms}), StepDetector(S)
    jumps = [k for k, pair in enumerate(received) if detector.observe(*pair) in JUMPS]
    assert jumps and 600 <= jumps[0] < 615
    assert len(jumps) % 2 == 1  # messages from before it may come after it


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_no_mixture_of_faults_is_locked_on_a_wrong_offset_in_a_thousand_streams() -> None:
    found = faults(seen(mixed(800, seed=2) + overtaking(400, seed=2)))
    assert len(found) <= 4, found
