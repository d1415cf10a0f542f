"""Single cases of the step detector, on streams without any jitter: what it says, and how much."""

from __future__ import annotations

import numpy as np
import pytest
from support.sync_feeder import MS, T0, S

from rig_common.times import LONG_AGO_NS
from sync_engine.clocks.steps import JUMPS, StepDetector, Verdict

PERIOD = 33 * MS
DELAY = 20 * MS
KNOWN = 60
"""Frames after which period, usual delay and spread are known."""


class Exact:
    """A stream at exactly 30.3 Hz whose messages take exactly 20 ms."""

    def __init__(self, frames: int = KNOWN, period_ns: int = PERIOD) -> None:
        self.detector = StepDetector(S)
        self.period_ns, self.frame = period_ns, 0
        self.clock_ns = self.late_ns = 0
        assert self.play(frames) == [Verdict.FINE] * frames
        self.detector.left_grid_ns = LONG_AGO_NS  # before, there was no grid

    def play(self, frames: int = 1, skip: int = 0) -> list[Verdict]:
        """Send frames with the present errors of clock and latency, after `skip` lost ones."""
        self.frame += skip
        found = []
        for _ in range(frames):
            capture_ns = T0 + self.frame * self.period_ns
            self.frame += 1
            self.arrival_ns = capture_ns + DELAY + self.late_ns
            found.append(self.detector.observe(capture_ns + self.clock_ns, self.arrival_ns))
        return found


def test_period_and_grid_are_known_after_a_few_frames() -> None:
    stream = Exact(10)
    assert stream.detector.period_ns == PERIOD
    assert stream.detector.left_grid_ns == LONG_AGO_NS and not stream.detector.in_doubt
    assert stream.detector.arrival_ns == stream.arrival_ns
    stream.play(skip=3)
    assert stream.detector.left_grid_ns == LONG_AGO_NS  # lost frames leave no grid
    stream = Exact()
    stream.clock_ns = stream.late_ns = 4 * MS
    stream.play()
    assert stream.detector.left_grid_ns == stream.arrival_ns


@pytest.mark.parametrize('late_ms', [20, 60, 400])
def test_a_stream_that_begins_with_a_slow_message_has_not_stepped(late_ms: int) -> None:
    stream = Exact(0)
    stream.late_ns = late_ms * MS
    stream.play()
    stream.late_ns = 0
    assert not set(stream.play(2)) & JUMPS
    assert stream.play(80) == [Verdict.FINE] * 80
    assert not stream.detector.in_doubt


@pytest.mark.parametrize('step_ms', [50, -50, 8, -8, 12, 80])
def test_a_step_is_confirmed_by_the_second_message_and_its_size_is_exact(step_ms: int) -> None:
    stream = Exact()
    stream.clock_ns = step_ms * MS
    (first,) = stream.play()
    assert first is Verdict.ODD
    assert stream.detector.in_doubt
    since_ns = stream.arrival_ns
    assert stream.play() == [Verdict.STEP]
    detector = stream.detector
    assert detector.step_ns == step_ms * MS
    assert detector.step_since_ns == since_ns
    assert detector.step_spread_ns < 0.1 * MS
    assert not detector.in_doubt
    assert stream.play(20) == [Verdict.FINE] * 20
    stream.clock_ns = 0
    assert stream.play(2) == [Verdict.ODD, Verdict.STEP]
    assert detector.step_ns == -step_ms * MS


@pytest.mark.parametrize('moved_ms', [-2, -1, 1, 2])
def test_a_few_milliseconds_are_left_to_the_filter(moved_ms: int) -> None:
    stream = Exact()
    stream.clock_ns = moved_ms * MS
    assert stream.play(40) == [Verdict.FINE] * 40


def test_a_step_far_ahead_is_held_until_it_is_confirmed() -> None:
    stream = Exact()
    stream.clock_ns = 150 * MS
    assert stream.play(3) == [Verdict.HOLD, Verdict.STEP, Verdict.FINE]
    assert stream.detector.step_ns == 150 * MS
    stream = Exact()
    stream.clock_ns = -150 * MS  # one that is behind hides nothing
    assert stream.play(3) == [Verdict.ODD, Verdict.STEP, Verdict.FINE]


@pytest.mark.parametrize('late_ms', [10, 50, 300])
def test_messages_that_are_held_up_are_no_question_of_the_clock(late_ms: int) -> None:
    stream = Exact()
    stream.late_ns = late_ms * MS
    assert stream.play(4) == [Verdict.FINE] * 4
    assert not stream.detector.in_doubt
    assert stream.play(100) == [Verdict.FINE] * 100
    stream.clock_ns = -50 * MS  # and on the new level a step is seen as before
    assert Verdict.STEP in stream.play(3)
    assert stream.detector.step_ns == pytest.approx(-50 * MS, abs=0.5 * MS)


def test_a_short_congestion_leaves_no_doubt_behind() -> None:
    stream = Exact()
    stream.late_ns = 50 * MS
    assert stream.play() == [Verdict.FINE]
    assert stream.detector.arrival_ns == stream.arrival_ns  # a slow message is believed, too
    assert stream.play(9) == [Verdict.FINE] * 9
    stream.late_ns = 0
    for _ in range(10):
        assert stream.play() == [Verdict.FINE]
        assert not stream.detector.in_doubt


def test_a_slow_first_message_keeps_the_period_from_nobody() -> None:
    stream = Exact(0)
    stream.late_ns = 4 * MS
    stream.play()
    stream.late_ns = 0
    assert stream.play(10) == [Verdict.FINE] * 10
    assert stream.detector.period_ns == PERIOD


def test_messages_that_are_late_now_and_then_are_part_of_the_spread() -> None:
    stream = Exact()
    before = stream.detector.spread_ns
    for _ in range(20):
        for late_ms in (0, 0, 0, 0, 12):
            stream.late_ns = late_ms * MS
            assert stream.play() == [Verdict.FINE]
    assert stream.detector.spread_ns > max(1 * MS, 2.0 * before)


def test_one_message_that_is_late_changes_nothing() -> None:
    stream = Exact()
    stream.late_ns = 25 * MS
    assert stream.play() == [Verdict.FINE]
    stream.late_ns = 0
    assert stream.play(20) == [Verdict.FINE] * 20
    stream.clock_ns = 50 * MS
    assert Verdict.STEP in stream.play(3)
    assert stream.detector.step_ns == 50 * MS


def test_lost_frames_and_a_step_together_are_told_apart() -> None:
    stream = Exact()
    stream.clock_ns = -50 * MS
    assert stream.play(skip=2) == [Verdict.ODD]
    assert stream.play(skip=1) == [Verdict.STEP]
    assert stream.detector.step_ns == -50 * MS


def test_a_step_that_hid_behind_a_slow_message_is_doubted_until_motion_has_told() -> None:
    """The slow message's arrival - stamp was as usual; those behind it keep to their grid."""
    stream = Exact()
    stream.clock_ns = stream.late_ns = 9 * MS
    assert stream.play() == [Verdict.FINE]
    stream.late_ns = 0
    for _ in range(58):
        assert not set(stream.play()) & JUMPS
        assert stream.detector.in_doubt
    assert Verdict.UNSURE in stream.play(6)


def test_a_stamp_that_is_odd_once_is_doubted_and_forgotten() -> None:
    stream = Exact()
    stream.clock_ns = 14 * MS
    assert stream.play() == [Verdict.ODD]
    assert stream.detector.in_doubt
    stream.clock_ns = 0
    assert stream.play() == [Verdict.FINE]
    assert (
        stream.detector.in_doubt
    )  # it left the grid: one as usual may be a slow one after a step
    assert stream.play(5) == [Verdict.FINE] * 5
    assert not stream.detector.in_doubt
    assert stream.detector.step_ns == 0


def test_two_messages_that_disagree_confirm_nothing() -> None:
    stream = Exact()
    for step_ms in (14, -14, 40, -40):
        stream.clock_ns = step_ms * MS
        assert not set(stream.play()) & JUMPS
    stream.clock_ns = 0
    assert stream.play(10) == [Verdict.FINE] * 10


def test_stamps_out_of_order_move_nothing() -> None:
    stream = Exact()
    late = T0 + (stream.frame - 2) * PERIOD + MS
    assert stream.detector.observe(late, late + DELAY) is Verdict.FINE
    assert stream.play(5) == [Verdict.FINE] * 5
    assert stream.detector.left_grid_ns == LONG_AGO_NS


@pytest.mark.parametrize('jump_s', [-3.0, 2.0, 1e5])
def test_a_new_clock_needs_two_stamps_that_agree(jump_s: float) -> None:
    stream = Exact()
    stream.clock_ns = round(jump_s * S)
    assert stream.play() == [Verdict.HOLD]
    assert stream.detector.in_doubt
    stream.clock_ns = round(3 * jump_s * S)  # another one: not confirmed
    assert stream.play() == [Verdict.HOLD]
    assert stream.play() == [Verdict.RESTART]
    assert stream.detector.period_ns == 0.0 and not stream.detector.in_doubt
    assert stream.detector.arrival_ns == stream.arrival_ns
    assert stream.play(20) == [Verdict.FINE] * 20
    assert stream.detector.period_ns == PERIOD


def test_a_reset_forgets_the_stream() -> None:
    stream = Exact()
    stream.detector.left_grid_ns = stream.arrival_ns
    stream.detector.reset()
    assert (stream.detector.period_ns, stream.detector.arrival_ns) == (0.0, None)
    assert stream.detector.left_grid_ns == LONG_AGO_NS
    stream.clock_ns = 100 * S
    assert stream.play(10) == [Verdict.FINE] * 10


@pytest.mark.parametrize('sigma_ms', [0.5, 2.0])
def test_the_spread_is_that_of_the_arrivals(sigma_ms: float) -> None:
    rng, stream, found = np.random.default_rng(2), Exact(), []
    for k in range(1500):
        stream.late_ns = round(rng.normal(0.0, sigma_ms) * MS)
        assert not set(stream.play()) & JUMPS
        if k > 300:
            found.append(stream.detector.spread_ns)
    assert np.mean(found) == pytest.approx(sigma_ms * MS, rel=0.1)


def test_where_there_is_no_grid_the_size_of_a_step_is_the_mean_of_its_messages() -> None:
    stream = Exact(4)
    stream.clock_ns, stream.late_ns = -700 * MS, 3 * MS
    assert stream.play() == [Verdict.ODD]
    stream.late_ns = 0
    assert stream.play() == [Verdict.STEP]
    assert stream.detector.step_ns == pytest.approx(-701.5 * MS, abs=0.01 * MS)


def test_one_late_message_of_a_lossy_stream_is_no_reason_to_doubt_but_two_are() -> None:
    """Its stamps are 33 or 66 ms apart, so that a period more or less may be anything."""
    stream = Exact()
    for _ in range(30):
        stream.play(2, skip=1)
    stream.late_ns = PERIOD
    assert stream.play() == [Verdict.FINE]
    assert not stream.detector.in_doubt
    stream.late_ns = 0
    assert stream.play(6) == [Verdict.FINE] * 6
    stream.late_ns = PERIOD
    stream.play(2)
    doubts = [stream.detector.in_doubt]
    stream.late_ns = 0
    for _ in range(3):
        stream.play()
        doubts.append(stream.detector.in_doubt)
    assert doubts == [True, True, True, False]


def test_a_long_queue_that_drains_is_no_new_clock() -> None:
    stream = Exact()
    stream.late_ns = 3 * S
    stream.play(150)  # long enough to be usual
    for late_ms in range(2900, -1, -100):
        stream.late_ns = late_ms * MS
        assert not set(stream.play()) & {Verdict.HOLD, Verdict.RESTART}
    assert not set(stream.play(50)) & {Verdict.HOLD, Verdict.RESTART}


def test_slow_messages_of_a_stream_without_a_rate_are_no_steps() -> None:
    """Nothing is known of its latency, and no grid shows what changed."""
    rng, detector = np.random.default_rng(3), StepDetector(S)
    stamp_ns = T0
    for k in range(300):
        stamp_ns += round(rng.exponential(40.0) * MS)
        late_ns = round((20.0 + rng.uniform(0.0, 8.0) + 60.0 * (k % 50 in (10, 11))) * MS)
        assert detector.observe(stamp_ns, stamp_ns + late_ns) not in JUMPS


def test_a_far_stamp_that_comes_twice_is_no_second_witness() -> None:
    stream = Exact()
    stream.clock_ns = 10 * S
    assert stream.play() == [Verdict.HOLD]
    stamp_ns = stream.arrival_ns - DELAY + 10 * S
    assert stream.detector.observe(stamp_ns, stream.arrival_ns + MS) is Verdict.HOLD
    assert stream.play() == [Verdict.RESTART]


class Varying:
    """A stream without a rate whose messages take 20 +- 3 ms: the example of steps.py."""

    def __init__(self) -> None:
        self.detector = StepDetector(S)
        self.rng = np.random.default_rng(5)
        self.stamp_ns = T0
        for delay_ms in self.rng.normal(20.0, 2.4, 400):
            self.send(delay_ms)
        assert self.detector.spread_ns == pytest.approx(2.85 * MS, rel=0.25)

    def send(self, delay_ms: float, after_ms: float | None = None) -> Verdict:
        """Send the next message; it is captured 20 to 60 ms after the last."""
        after_ms = self.rng.uniform(20.0, 60.0) if after_ms is None else after_ms
        self.stamp_ns += round(after_ms * MS)
        return self.detector.observe(self.stamp_ns, self.stamp_ns + round(delay_ms * MS))

    def doubts(self, *delays_ms: float) -> list[bool]:
        """Return after each message whether the clock may have stepped."""
        found = []
        for delay_ms in delays_ms:
            self.send(delay_ms)
            found.append(self.detector.in_doubt)
        return found


def test_one_message_as_usual_does_not_end_a_doubt_and_three_do() -> None:
    stream = Varying()
    assert stream.doubts(21, 19, 7, 11, 9, 18, 8) == [False, False, *[True] * 5]
    stream = Varying()
    assert stream.doubts(7, 9, 8) == [True] * 3
    assert stream.doubts(20, 21, 19) == [True, True, False]
    stream = Varying()
    assert stream.doubts(7, 9, 20, 21, 8, 20, 21, 20) == [True] * 7 + [False]


def test_messages_out_of_a_queue_raise_no_doubt() -> None:
    """A stall of 120 ms: what waited comes within a millisecond, each less late."""
    stream = Varying()
    late_ms = 140.0
    assert not stream.doubts(late_ms)[0]
    for _ in range(3):
        late_ms -= 29.5
        stream.send(late_ms, after_ms=30.0)
        assert not stream.detector.in_doubt
    assert stream.doubts(20, 19, 21) == [False] * 3


def test_a_change_that_nothing_explains_is_believed_after_two_seconds() -> None:
    """11 ms earlier, but no lower than some messages before: it may be either."""
    stream = Varying()
    stream.doubts(13, 20, 21, 19, 20)
    begun_ns = stream.stamp_ns
    for _ in range(200):
        verdict = stream.send(9.5)
        if verdict in JUMPS:
            break
    assert verdict is Verdict.UNSURE
    assert 2.0 * S <= stream.stamp_ns - begun_ns <= 2.2 * S
    assert stream.detector.step_ns == pytest.approx(10.5 * MS, abs=1.0 * MS)


def test_messages_that_come_early_in_a_row_are_no_step_before_they_last() -> None:
    """Six in a row as in a measured trace, earlier than any before; a second later as usual."""
    stream = Varying()
    early = [stream.send(delay_ms) for delay_ms in (5, 11, 10, 2, 5, 13)]
    assert not set(early) & JUMPS
    assert stream.detector.in_doubt
    assert stream.doubts(20, 21, 19) == [True, True, False]
    assert not {stream.send(20.0) for _ in range(100)} & JUMPS


def test_a_clock_ahead_of_all_that_was_seen_has_stepped_once_it_lasts() -> None:
    stream = Varying()
    begun_ns = stream.stamp_ns
    for _ in range(200):
        verdict = stream.send(2.0)
        if verdict in JUMPS:
            break
        assert stream.detector.in_doubt
    assert verdict is Verdict.STEP
    assert 2.0 * S <= stream.stamp_ns - begun_ns <= 2.2 * S
    assert stream.detector.step_ns == pytest.approx(18.0 * MS, abs=1.0 * MS)
