"""Clock steps are told from slow messages, lost frames, stalls and single glitches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sync_feeder import MS, T0, S

from sync_engine.clocks.steps import JUMPS, StepDetector, Verdict

PERIOD = 33 * MS


def frames(
    count: int,
    seed: int = 0,
    period: int = PERIOD,
    jitter_ms: float = 3.0,
    stamp_jitter_ms: float = 0.1,
) -> list[tuple[int, int]]:
    """(stamp, arrival) of a periodic stream with a clock 50 ms ahead."""
    rng = np.random.default_rng(seed)
    out = []
    for k in range(count):
        capture = T0 + k * period
        stamp = capture + 50 * MS + round(rng.normal(0, stamp_jitter_ms) * MS)
        out.append((stamp, capture + 20 * MS + round(rng.uniform(0, jitter_ms) * MS)))
    return out


def verdicts(pairs: Iterable[tuple[int, int]]) -> list[Verdict]:
    detector = StepDetector(S)
    return [detector.observe(stamp, arrival) for stamp, arrival in pairs]


@pytest.mark.parametrize('step_ms', [-50.0, -20.0, 8.0, 50.0, 120.0])
def test_a_step_is_seen_with_the_second_frame_and_its_size_is_known(step_ms: float) -> None:
    detector, found = StepDetector(S), []
    for k, (stamp, arrival) in enumerate(frames(60)):
        shift = round(step_ms * MS) if k >= 40 else 0
        if detector.observe(stamp + shift, arrival) is Verdict.STEP:
            found.append((k, detector.step_ns / MS))
    assert len(found) == 1
    at, size = found[0]
    assert at <= 42
    assert size == pytest.approx(step_ms, abs=0.5)


@pytest.mark.parametrize('step_ms', [-50.0, -40.0, 24.0])
def test_the_size_of_a_step_does_not_hang_on_the_frame_before_it(step_ms: float) -> None:
    """That frame was slow, so the next ones seem to come after less time than has passed."""
    detector, found = StepDetector(S), []
    for k, (stamp, arrival) in enumerate(frames(60)):
        late, shift = 24 * MS if k == 39 else 0, round(step_ms * MS) if k >= 40 else 0
        if detector.observe(stamp + shift, arrival + late) is Verdict.STEP:
            found.append(detector.step_ns / MS)
    assert found == [pytest.approx(step_ms, abs=0.5)]


@pytest.mark.parametrize(('step_ms', 'period_ms'), [(-700.0, 33), (-150.0, 33), (-700.0, 400)])
def test_a_large_step_is_seen_before_the_period_is_known(step_ms: float, period_ms: int) -> None:
    """A node that starts while a clock is wrong sees it set right a moment later."""
    detector, found = StepDetector(S), []
    for k, (stamp, arrival) in enumerate(frames(30, period=period_ms * MS)):
        shift = round(step_ms * MS) if k >= 4 else 0
        if detector.observe(stamp + shift, arrival) is Verdict.STEP:
            found.append((k, detector.step_ns / MS))
    assert [k for k, _ in found] == [5]
    assert found[0][1] == pytest.approx(step_ms, abs=4.0)


def test_a_whole_period_forward_is_a_step_because_latency_cannot_be_negative() -> None:
    pairs = frames(60)
    stepped = pairs[:40] + [(s + 2 * PERIOD, a) for s, a in pairs[40:]]
    assert verdicts(stepped).count(Verdict.STEP) == 1


@pytest.mark.parametrize('late_ms', [15.0, 33.0, 200.0])
def test_a_latency_step_is_no_clock_step(late_ms: float) -> None:
    pairs = frames(60)
    slower = pairs[:40] + [(s, a + round(late_ms * MS)) for s, a in pairs[40:]]
    assert set(verdicts(slower)) == {Verdict.FINE}


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(12, 58)), st.integers(0, 100))
def test_lost_frames_are_no_step(lost: set[int], seed: int) -> None:
    pairs = [pair for k, pair in enumerate(frames(60, seed)) if k not in lost]
    assert set(verdicts(pairs)) == {Verdict.FINE}


def test_a_stall_and_its_burst_are_no_step() -> None:
    pairs = frames(120)
    held_until = pairs[100][1]
    burst = [(s, max(a, held_until + k * MS // 10)) if 40 <= k < 100 else (s, a)
             for k, (s, a) in enumerate(pairs)]  # fmt: skip
    assert set(verdicts(burst)) == {Verdict.FINE}


def test_one_odd_stamp_is_a_glitch() -> None:
    pairs = frames(60)
    stamp, arrival = pairs[40]
    pairs[40] = (stamp + 14 * MS, arrival)
    seen = verdicts(pairs)
    assert seen[40] is Verdict.ODD
    assert Verdict.STEP not in seen


def test_two_swapped_frames_are_no_step() -> None:
    pairs = frames(60)
    (s1, a1), (s2, a2) = pairs[40], pairs[41]
    pairs[40], pairs[41] = (s2, a1), (s1, a2)
    assert not {Verdict.STEP, Verdict.RESTART, Verdict.HOLD} & set(verdicts(pairs))


@pytest.mark.parametrize('jump_s', [-100.0, -1.5, 5.0, 1e6])
def test_far_away_waits_for_a_second_one_and_then_restarts(jump_s: float) -> None:
    pairs = frames(60)
    jumped = pairs[:40] + [(s + round(jump_s * S), a) for s, a in pairs[40:]]
    seen = verdicts(jumped)
    assert seen[40:42] == [Verdict.HOLD, Verdict.RESTART]
    assert set(seen[42:]) == {Verdict.FINE}


def test_a_single_far_stamp_never_restarts() -> None:
    pairs = frames(60)
    for k in (30, 40, 50):
        pairs[k] = (pairs[k][0] + 1000 * S, pairs[k][1])
    seen = verdicts(pairs)
    assert [k for k, verdict in enumerate(seen) if verdict is Verdict.HOLD] == [30, 40, 50]
    assert Verdict.RESTART not in seen


def test_an_event_driven_stream_has_no_grid_to_break() -> None:
    rng = np.random.default_rng(3)
    times = T0 + np.cumsum(rng.exponential(40.0, 200) * MS).astype(int)
    pairs = [(int(t), int(t) + 20 * MS + int(rng.uniform(0, 8) * MS)) for t in times]
    assert not {Verdict.STEP, Verdict.RESTART, Verdict.HOLD} & set(verdicts(pairs))


def test_a_stamp_a_little_off_the_grid_does_not_make_a_step_of_early_messages() -> None:
    """As in a recording: an exposure moved a stamp by 1.4 ms, then two messages came early."""
    detector = StepDetector(1000 * 1_000_000)
    stamp_ns, verdicts = 10**15, []
    early_ms = {203: 6.2, 204: 6.3}
    for k in range(220):
        stamp_ns += 51_400_000 if k == 200 else 50_000_000
        wobble_ms = (k * 7919 % 11 - 5) * 0.3
        late_ns = 130_000_000 + round(-early_ms[k] * 1e6 if k in early_ms else wobble_ms * 1e6)
        verdicts.append(detector.observe(stamp_ns, stamp_ns + late_ns))
    assert not set(verdicts) & JUMPS
