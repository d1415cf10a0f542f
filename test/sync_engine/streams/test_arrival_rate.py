"""How often messages come, and when they have stopped."""

from __future__ import annotations

import pytest

from sync_engine.streams.arrival_rate import Arrivals

MS = 1_000_000


def test_the_period_follows_the_gaps() -> None:
    arrivals = Arrivals()
    assert arrivals.rate_hz == 0.0
    for k in range(3):
        arrivals.see(k * 20 * MS)
    assert arrivals.rate_hz == pytest.approx(50.0)
    for k in range(200):
        arrivals.see((60 + k * 10) * MS)
    assert arrivals.rate_hz == pytest.approx(100.0, rel=0.01)


def test_a_stream_is_silent_after_the_deadline_and_two_periods() -> None:
    arrivals = Arrivals()
    assert not arrivals.are_silent(1000 * MS, 100 * MS)  # the wait begins with the question
    assert not arrivals.are_silent(1100 * MS, 100 * MS)
    assert arrivals.are_silent(1101 * MS, 100 * MS)
    for k in range(3):
        arrivals.see((2000 + k * 20) * MS)
    assert not arrivals.are_silent(2180 * MS, 100 * MS)
    assert arrivals.are_silent(2181 * MS, 100 * MS)
