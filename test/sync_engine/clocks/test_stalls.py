"""Messages that are held up, and come back to their old delay, are no step of a clock."""

from __future__ import annotations

import numpy as np
import pytest
from support.sync_feeder import MS, T0, S, config

from sync_engine.clocks.steps import StepDetector, Verdict
from sync_engine.engine import SyncEngine

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


def test_latencies_that_rise_and_fall_again_move_no_offset():
    """Every 15 s nothing comes for 1 s, then all of it at once, and for 4 s messages take 1.7 s
    more; without a cue nothing else tells of the clock."""
    rng = np.random.default_rng(1)
    engine = SyncEngine(config({'a': {'latency_s': 0.02, 'latency_sigma_s': 0.02}}, 'a'))
    last_s = 0.0
    for k in range(3000):
        capture_s = 0.04 * k
        arrival_s = capture_s + 0.02 + rng.exponential(0.003)
        since_s = (arrival_s + 5.0) % 15.0
        if since_s < 5.0:
            arrival_s += max(1.0 - since_s, 0.0) or 1.7
        last_s = max(last_s + 1e-6, arrival_s)
        engine.push('a', T0 + round(capture_s * S), None, T0 + round(last_s * S))
        found = engine.offset_to_host('a')
        assert abs(found.offset_ns) < 60 * MS
        assert abs(found.offset_ns) < 3e9 * found.sigma_s
    assert engine.status().sensors['a'].latency_steps > 8
