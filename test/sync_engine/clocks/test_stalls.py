"""Messages that are held up, and come back to their old delay, are no step of a clock."""

from __future__ import annotations

import pytest

from sync_engine.clocks.steps import StepDetector, Verdict

MS = 1_000_000
PERIOD_NS = 33 * MS


def verdicts(delays_ms, steps_ms=()):
    """Feed a regular stream with these delays; its clock steps by `steps_ms` {index: ms}."""
    detector = StepDetector(restart_jump_ns=1000 * MS)
    shift_ns, seen = 0, []
    for k, delay_ms in enumerate(delays_ms):
        shift_ns += dict(steps_ms).get(k, 0) * MS
        seen.append(
            detector.observe(
                10**12 + k * PERIOD_NS + shift_ns, 10**12 + k * PERIOD_NS + int(delay_ms * MS)
            )
        )
    return seen, detector


@pytest.mark.parametrize('spike_ms', [10, 40, 120, 400])
@pytest.mark.parametrize('length', [1, 2, 5])
def test_a_stall_that_passes_is_no_step(spike_ms, length):
    delays = [20] * 30 + [20 + spike_ms] * length + [20] * 30
    seen, _ = verdicts(delays)
    assert Verdict.STEP not in seen
    assert seen[-1] is Verdict.FINE


def test_a_queue_that_drains_is_no_step():
    """Held up by 300 ms, then message after message catches up."""
    delays = [20] * 30 + [max(320 - 33 * k, 20) for k in range(12)] + [20] * 30
    seen, _ = verdicts(delays)
    assert Verdict.STEP not in seen


@pytest.mark.parametrize('step_ms', [50, -50, 99, 330])
def test_a_clock_that_steps_is_still_seen(step_ms):
    seen, detector = verdicts([20] * 60, {30: step_ms})
    assert seen.count(Verdict.STEP) == 1
    assert detector.step_ns == pytest.approx(step_ms * MS, abs=1 * MS)


def test_a_step_after_a_stall_is_seen_once_the_stall_is_over():
    delays = [20] * 30 + [180] * 3 + [20] * 60
    seen, detector = verdicts(delays, {60: 50})
    assert seen.count(Verdict.STEP) == 1
    assert detector.step_ns == pytest.approx(50 * MS, abs=1 * MS)
