"""What moved arrival - stamp, by the spacing of the stamps: the table of step_cause.py."""

from __future__ import annotations

import pytest
from support.sync_feeder import MS

from sync_engine.clocks.spacings import Spacings
from sync_engine.clocks.step_cause import Cause, CauseFinder
from sync_engine.clocks.usual_delay import UsualDelay

CLOCK, UNCLEAR, LATENCY = Cause.CLOCK, Cause.UNCLEAR, Cause.LATENCY


def finder(spacings_ms: list[int], delay_ms: float = 20.0) -> CauseFinder:
    """Return what has seen these spacings, of messages that took `delay_ms`."""
    usual, spacings = UsualDelay(), Spacings()
    usual.begin(round(delay_ms * MS))
    stamp_ns = 0
    spacings.add(stamp_ns)
    for spacing in spacings_ms:
        stamp_ns += spacing * MS
        spacings.add(stamp_ns)
        usual.learn(round(delay_ms * MS), spacing * MS)
    return CauseFinder(usual, spacings)


STEADY = [33] * 48
LOSSY = [33, 66, 33, 33] * 12
VARYING = [20, 31, 47, 26, 38, 55, 23, 41] * 6


@pytest.mark.parametrize(
    ('seen', 'spacing_ms', 'step_ms', 'cause', 'size_ms'),
    [
        (STEADY, 83, 50, CLOCK, 50),  # an odd spacing: the clock stepped
        (STEADY, -17, -50, CLOCK, -50),
        (STEADY, 33, -50, LATENCY, None),  # the usual one: messages were held up
        (STEADY, 66, 33, CLOCK, 33),  # a whole period: the clock, more likely
        (LOSSY, 66, 33, UNCLEAR, 33),  # where frames get lost, nobody can say
        (STEADY, 58, 50, UNCLEAR, None),  # the grid moved by 25, arrival - stamp by 50
        (STEADY, 66, 20, UNCLEAR, None),  # a lost frame, and a delay lower than any before
        (VARYING, 90, 50, CLOCK, None),  # 90 was never seen, 40 was: no grid gives a size
        (VARYING, 31, -300, UNCLEAR, None),  # without a grid nobody can say
        (
            VARYING,
            47,
            300,
            UNCLEAR,
            None,
        ),  # the first message after a step may have been a slow one
    ],
)
def test_the_spacing_shows_what_moved(
    seen: list[int], spacing_ms: int, step_ms: int, cause: Cause, size_ms: int | None
) -> None:
    found, size = finder(seen).judge(spacing_ms * MS, step_ms * MS)
    assert found is cause
    assert size == (None if size_ms is None else pytest.approx(size_ms * MS))


def test_before_any_spacing_is_known_only_stamps_far_back_are_a_step() -> None:
    new = finder([])
    assert new.judge(40 * MS, -150 * MS) == (LATENCY, None)
    assert new.judge(-40 * MS, -150 * MS) == (CLOCK, None)  # stamps went back
    assert new.judge(0, -100 * MS) == (CLOCK, None)
    assert new.judge(-40 * MS, -99 * MS) == (LATENCY, None)


def test_what_was_late_already_is_no_part_of_the_step() -> None:
    """30 ms of latency were there; the clock then goes back by 20, not by 50."""
    steady = finder(STEADY)
    cause, size = steady.judge(13 * MS, -50 * MS, -30 * MS)
    assert (cause, size) == (CLOCK, pytest.approx(-20 * MS))
