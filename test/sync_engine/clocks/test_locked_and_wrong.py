"""Locked and wrong: what must not happen when clocks step, latencies lie or turns jump."""

from __future__ import annotations

import numpy as np
import pytest
from support.lone_clock import offset_fix
from support.step_watch import drawn, unstepped, watch
from support.sync_runs import make_config, run_engine
from support.sync_streams import Scenario

from sync_engine.clocks.channel import GateResult
from sync_engine.clocks.clock_filter import ClockFilter, ClockPrior
from sync_engine.config.sync_config import AdaKFConfig

MS = 1e-3


def _wrong(count: int) -> list[tuple[int, str]]:
    """Return how long streams were locked and wrong after a step above their limit."""
    found = []
    for stream in drawn(count):
        if abs(stream.step_ms) > stream.limit_ms:
            seen = watch(stream.received, stream.at, stream.step_ms)
            if seen.wrong > 3:
                found.append((seen.wrong, stream.name))
    return found


def test_a_step_leaves_locked_within_three_messages() -> None:
    """Whole periods of streams that lose frames, with a slow message right at the step, too."""
    assert all(messages <= 4 for messages, _ in _wrong(48))


@pytest.mark.long
def test_a_step_leaves_locked_within_three_messages_of_a_thousand_streams() -> None:
    found = _wrong(1000)
    assert len(found) <= 3 and all(messages <= 4 for messages, _ in found), found


@pytest.mark.long
def test_doubts_are_rare_where_nothing_steps() -> None:
    grid, gridless = [], []
    for habits, received in unstepped(200):
        seen = watch(received, len(received), 0.0)
        (gridless if habits.vary else grid).append(seen.doubtful)
    assert np.mean(grid) <= 0.005
    assert np.mean(gridless) <= 0.02


@pytest.mark.parametrize('from_s', [0.0, 20.0])
def test_a_declared_latency_that_is_wrong_widens_and_does_not_win(from_s: float) -> None:
    """The IMU's messages take 300 ms, declared are 2.5 +- 2: from the start, or later on."""
    plain = Scenario(3, duration_s=40.0)
    config = make_config(plain)
    imu = config.inputs['imu'].model_copy(update={'latency_s': 0.0025, 'latency_sigma_s': 0.002})
    config = config.model_copy(update={'inputs': {**config.inputs, 'imu': imu}})
    slow = (
        plain.with_sensor('imu', latency_step=(from_s, 0.2975))
        if from_s
        else plain.with_sensor('imu', latency_s=0.3)
    )
    run = run_engine(slow, config)
    late = run.times > 8.0
    for key in ('camera', 'lidar', 'camera/host', 'lidar/host'):
        assert np.abs(run.errors[key] / run.sigmas[key])[late].max() < 4.0, key
    assert np.abs(run.errors['camera'][late]).max() < 5 * MS


def test_two_wrong_pieces_that_agree_are_not_locked_on_before_others_confirm_them() -> None:
    prior = ClockPrior(0.0, 0.001, 0.02, 0.008, 3e-5, 0.001, False, True, 0.02)
    clock = ClockFilter(prior, AdaKFConfig())
    rng = np.random.default_rng(1)

    def told(offset_s: float) -> GateResult:
        clock.predict(clock.time_s + 1.0)
        clock.observe_arrival(-0.02 + rng.normal(0.0, 0.3 * MS))
        return clock.observe_motion(offset_fix(offset_s, MS), clock.time_s, 0.0)

    for _ in range(30):
        told(rng.normal(0.0, MS))
    assert not clock.is_unproven
    outcomes = [told(6.2 * MS), told(6.0 * MS)]
    assert outcomes == [GateResult.REJECTED, GateResult.JUMP]
    assert clock.is_unproven
    assert clock.sigma_s > 4 * MS  # what was known for 30 s, and two pieces: either may be right
    for _ in range(6):
        told(rng.normal(0.0, MS))
    assert abs(clock.offset_s - clock.state[3]) < 3.0 * clock.sigma_s
