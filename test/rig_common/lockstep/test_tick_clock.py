"""The world's time by ticks that may be heard late."""

from __future__ import annotations

import pytest

from rig_common.lockstep.messages import Tick
from rig_common.lockstep.tick_clock import TickClock

MS, S = 1_000_000, 1_000_000_000
HOST = 1_700_000_000 * S
"""What the host's clock of the world shows at time 0."""


def heard(pace: float = 1.0, until_s: float = 10.0, ahead_s: float = 0.0) -> TickClock:
    """Return the clock after ticks every 50 ms that took 1 to 3 ms on their way."""
    clock = TickClock()
    for k in range(int(until_s / 0.05) + 1):
        sent_ns = HOST + k * 50 * MS
        tick = Tick(int(k * 50 * MS * pace), sent_ns, run='a')
        clock.hear(tick, sent_ns + int(ahead_s * S) + (1 + k % 3) * MS)
    return clock


@pytest.mark.parametrize('ahead_s', [0.0, -40.0, 3600.0])
def test_it_is_the_last_tick_while_ticks_come(ahead_s: float) -> None:
    clock = heard(ahead_s=ahead_s)
    for later_ms in (0, 1, 60, 150):
        assert clock.now_ns(HOST + int((10 + ahead_s) * S) + later_ms * MS) == 10 * S


@pytest.mark.parametrize('ahead_s', [0.0, -40.0, 3600.0])
@pytest.mark.parametrize('pace', [1.0, 7.0])
def test_a_late_tick_counts_with_its_age(pace: float, ahead_s: float) -> None:
    """The clocks of two hosts may differ; the world may be fast."""
    clock = heard(pace, ahead_s=ahead_s)
    now_ns = HOST + int((15 + ahead_s) * S)
    assert clock.now_ns(now_ns) == pytest.approx(15 * pace * S, abs=5 * MS * pace)
    old = Tick(int(10.3 * pace * S), HOST + int(10.3 * S), run='a')
    clock.hear(old, now_ns)  # from the queue
    assert clock.now_ns(now_ns) == pytest.approx(15 * pace * S, abs=5 * MS * pace)


def test_a_new_run_and_a_barrier() -> None:
    clock = heard()
    clock.hear(Tick(99 * S, 0, run='a'), HOST + 10 * S)
    assert clock.now_ns(HOST + 10 * S) == 10 * S
    clock.hear(Tick(0, HOST + 20 * S, run='b'), HOST + 20 * S)
    assert clock.now_ns(HOST + 20 * S) == 0


def test_before_the_first_tick_it_is_zero() -> None:
    assert TickClock().now_ns(HOST) == 0


def test_a_slow_world_may_have_gone_on_in_real_time() -> None:
    """Five seconds in which it had the processor for itself: never too early."""
    assert heard(0.6).now_ns(HOST + 15 * S) >= (6 + 5) * S - 5 * MS
