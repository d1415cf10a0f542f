"""Streams that behave badly, as real ones do: no clock step where there is none, and the real ones
are found and leave `locked` at once."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.bad_habits import HABITS, MS, Habits, Pairs, frames_of, pairs, spread_ms
from support.sync_feeder import S, config

from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.steps import JUMPS, StepDetector, Verdict
from sync_engine.engine import SyncEngine


def judged(received: Pairs) -> list[tuple[int, Verdict, float]]:
    """Return (index, verdict, size in ms) of every jump."""
    detector, jumps = StepDetector(S), []
    for k, (stamp_ns, arrival_ns) in enumerate(received):
        verdict = detector.observe(stamp_ns, arrival_ns)
        if verdict in JUMPS:
            jumps.append((k, verdict, detector.step_ns / MS))
    return jumps


@pytest.mark.parametrize('name', HABITS)
def test_no_step_is_seen_where_there_is_none(name: str) -> None:
    for seed in range(8):
        assert not judged(pairs(HABITS[name], 600, seed)), seed


@settings(max_examples=200, deadline=None, derandomize=True)
@example(0.0, 4, 0.0625, 2.0, 0, 320, 20.0)  # few messages: usual value and grid are hardly known
@example(0.4284, 2, 0.0, 1.0634, 1, 642701, 30.0)  # no grid, two late by chance
@example(0.1665, 1, 0.0, 1.3855, 1, 268076, 5.0)  # a stamp just beside the grid, two late
@example(0.15625, 4, 0.0, 0.0, 2, 1438, 5.0)  # one message a second, and some of them late
@example(0.5, 4, 0.3, 2.0, 2, 214, 30.0)  # the first message is a slow one
@example(0.0, 3, 0.3, 0.8149111827313686, 4, 56, 30.0)  # it is held up for 0.3 s
@example(0.046875, 3, 0.0, 1.328125, 4, 857468, 20.0)  # a frame lost from a grid just found
@given(
    loss=st.floats(0.0, 0.5),
    keep_every=st.integers(1, 4),
    vary=st.floats(0.0, 0.3),
    stamp_jitter_ms=st.floats(0.0, 2.0),
    stalls=st.integers(0, 4),
    seed=st.integers(0, 10**6),
    rate_hz=st.sampled_from([5.0, 10.0, 20.0, 30.0]),
)
def test_no_mixture_of_habits_is_a_step(
    loss: float,
    keep_every: int,
    vary: float,
    stamp_jitter_ms: float,
    stalls: int,
    seed: int,
    rate_hz: float,
) -> None:
    """Drawn alike in every run: of some 30,000 such streams one has two late messages just where
    a lost frame leaves the grid, which nothing tells from a step."""
    habits = Habits(rate_hz, loss, keep_every, vary, stamp_jitter_ms, stalls=stalls)
    assert not judged(pairs(habits, 400, seed))


@pytest.mark.parametrize('name', ['plain', 'half is lost', 'slow', 'correlated', 'early outliers'])
@pytest.mark.parametrize('spreads', [-8.0, -6.0, 6.0, 8.0])
def test_a_real_step_is_found_with_its_size(name: str, spreads: float) -> None:
    habits = HABITS[name]
    for seed in range(5):
        plain = pairs(habits, 400, seed)
        at = len(plain) // 2
        step_ms = spreads * max(1.25, spread_ms(plain))
        jumps = judged(pairs(habits, 400, seed, {at: step_ms}))
        assert jumps and at <= jumps[0][0] <= at + 3, (seed, step_ms, jumps)
        assert jumps[0][1] is Verdict.STEP
        assert jumps[0][2] == pytest.approx(step_ms, abs=2.0 * spread_ms(plain))


@pytest.mark.parametrize(
    'name',
    [
        'plain',
        'half is lost',
        'throttled',
        'varying rate',
        'stamps jitter by 2 ms',
        'batches',
        'correlated',
    ],
)
def test_a_step_just_above_the_limit_is_doubted_until_it_is_found(name: str) -> None:
    """Slow messages after it look as usual, and late ones before it like a part of it."""
    frames = frames_of(HABITS[name])
    for seed in range(6):
        plain = pairs(HABITS[name], frames, seed)
        limit_ms, at = max(5.0, 4.0 * spread_ms(plain)), len(plain) // 2
        for step_ms in (1.2 * limit_ms, -1.2 * limit_ms):
            detector, doubts, found = StepDetector(S), [], False
            for k, pair in enumerate(pairs(HABITS[name], frames, seed, {at: step_ms})):
                found |= detector.observe(*pair) in JUMPS
                if k >= at:
                    doubts.append(found or detector.in_doubt)
            assert found, (seed, step_ms)
            assert any(doubts[:3]), (seed, step_ms)
            assert all(doubts[3:]), (seed, step_ms)


@pytest.mark.parametrize('name', HABITS)
def test_doubts_are_rare_where_nothing_happens(name: str) -> None:
    doubts = []
    for seed in range(4):
        detector = StepDetector(S)
        for pair in pairs(HABITS[name], 600, seed):
            detector.observe(*pair)
            doubts.append(detector.in_doubt)
    assert sum(doubts) < 0.03 * len(doubts)


def test_the_period_is_learnt_again_when_the_loss_ends() -> None:
    detector = StepDetector(S)
    lossy, clean = pairs(Habits(loss=0.5, keep_every=2), 200, 1), pairs(Habits(), 300, 1)
    for stamp_ns, arrival_ns in lossy + clean[200:]:
        detector.observe(stamp_ns, arrival_ns)
    assert detector.period_ns == pytest.approx(1e9 / 30.0, rel=0.01)


@pytest.mark.parametrize('name', ['plain', 'half is lost', 'varying rate', 'slow'])
@pytest.mark.parametrize('periods', [-2.4, -1.0, 1.0, 1.7])
def test_after_a_step_the_state_is_not_locked(name: str, periods: float) -> None:
    """Also where nobody can tell at once, as with whole periods of a stream that loses frames."""
    habits = HABITS[name]
    plain = pairs(habits, 400, 3)
    at = len(plain) // 2
    received = pairs(habits, 400, 3, {at: periods * 1e3 / habits.rate_hz})
    engine = SyncEngine(config({'a': {'latency_s': 0.02, 'latency_sigma_s': 1e-3}}, 'a'))
    states = []
    for stamp_ns, arrival_ns in received:
        engine.push('a', stamp_ns, None, arrival_ns)
        states.append(engine.offset_to_host('a').state)
    assert states[at - 1] is OffsetState.LOCKED
    assert OffsetState.CONVERGING in states[at : at + 3]
