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


@pytest.mark.parametrize(('between_s', 'way_ms'), [(0.0, 1), (3600.0, 0), (-40.0, 0)])
def test_in_real_time_the_host_says_what_is_between_ticks(between_s: float, way_ms: int) -> None:
    """Within a host the way of a tick counts; between two it cannot be told from their clocks."""
    clock, host_ns = TickClock(), HOST + int(between_s * S)
    for k in range(5):
        tick = Tick(k * 10 * MS, HOST + k * 10 * MS, run='a', pace=1.0, ahead_ns=4 * MS)
        clock.hear(tick, host_ns + (k * 10 + 1 + k % 2) * MS)
    host_ns += (40 + 1 - way_ms) * MS
    for later_ms, passed_ms in ((-1, 0), (0, 0), (2, 2), (4, 4), (9, 4)):
        assert clock.now_ns(host_ns + later_ms * MS) == (40 + passed_ms) * MS
        assert clock.between_ns(host_ns + later_ms * MS) == (40 + passed_ms) * MS
    assert clock.until_s(43 * MS, host_ns + 1 * MS) == pytest.approx(0.002)
    assert clock.until_s(41 * MS, host_ns + 2 * MS) == 0.0
    assert clock.until_s(45 * MS, host_ns) == float('inf')
    assert clock.between_ns(host_ns + 5 * S) == 44 * MS, 'no further, however late'
    clock.hear(Tick(44 * MS, HOST + 44 * MS, run='a'), host_ns + 5 * MS)
    assert clock.between_ns(host_ns + 9 * MS) == 44 * MS, 'the world stands'


def test_a_clock_that_was_set_is_followed() -> None:
    clock = TickClock()
    for k in range(400):
        host_ns = HOST + k * 10 * MS + (0 if k < 100 else 5 * S)
        tick = Tick(k * 10 * MS, HOST + k * 10 * MS, run='a', pace=1.0, ahead_ns=4 * MS)
        clock.hear(tick, host_ns)
    assert clock.between_ns(host_ns + 2 * MS) == 3992 * MS


def test_a_new_run_and_a_barrier() -> None:
    clock = heard()
    clock.hear(Tick(99 * S, 0, run='a'), HOST + 10 * S)
    assert clock.now_ns(HOST + 10 * S) == 10 * S
    clock.hear(Tick(-MS, 0, run='b', round=1), HOST + 20 * S)
    assert clock.now_ns(HOST + 20 * S) == -MS, 'nothing of the run before'
    clock.hear(Tick(0, HOST + 20 * S, run='b'), HOST + 20 * S)
    assert clock.now_ns(HOST + 20 * S) == 0


def test_before_the_first_tick_it_is_zero() -> None:
    assert TickClock().now_ns(HOST) == 0


def test_a_slow_world_may_have_gone_on_in_real_time() -> None:
    """Five seconds in which it had the processor for itself: never too early."""
    assert heard(0.6).now_ns(HOST + 15 * S) >= (6 + 5) * S - 5 * MS
