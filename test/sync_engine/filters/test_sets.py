"""Sets by `queue_size, slop`: complete, nearest, in order, and late frames are waited for."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sync_engine.filters.sets import PATIENCE_NS, SetMatcher

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000
Event = tuple[int, int, int]
"""Arrival, input, stamp (ns)."""


def play(
    events: Iterable[Event], streams: int = 2, queue_size: int = 10, slop_ns: int = 5 * MS
) -> tuple[list[list[int]], SetMatcher]:
    """Return the sets as lists of stamps, without a flush."""
    matcher = SetMatcher([str(index) for index in range(streams)], queue_size, slop_ns)
    sets: list[list[int]] = []
    for arrival_ns, index, stamp_ns in sorted(events):
        sets += matcher.push(index, stamp_ns, stamp_ns, arrival_ns) or []
    return sets, matcher


def stream(index: int, *stamps_ms: float) -> list[Event]:
    return [(START_NS + round(ms * MS), index, START_NS + round(ms * MS)) for ms in stamps_ms]


def regular(index: int, period_ms: float, count: int, phase_ms: float = 0.0) -> list[Event]:
    return stream(index, *(phase_ms + k * period_ms for k in range(count)))


def late_streams(share: float, late_ns: int, seed: int, streams: int = 2) -> list[Event]:
    """1000 frames of 50 Hz on every input, a share of them late."""
    rng = np.random.default_rng(seed)
    return [
        (arrival + late_ns * int(rng.random() < share), index, stamp)
        for index in range(streams)
        for arrival, _, stamp in regular(index, 20.0, 1000)
    ]


def assert_sound(sets: list[list[int]], matcher: SetMatcher) -> None:
    """Every message is accounted for, every input is in order, nothing is used twice."""
    assert matcher.ledger.imbalance(matcher.buffered()) == {}
    for before, after in pairwise(sets):
        assert all(a < b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize('streams', [2, 4])
@pytest.mark.parametrize('share', [0.02, 0.1, 0.3])
@pytest.mark.parametrize('seed', range(3))
def test_late_frames_lose_no_set(share: float, seed: int, streams: int) -> None:
    sets, matcher = play(late_streams(share, 25 * MS, seed, streams), streams)
    sets += matcher.flush()
    assert_sound(sets, matcher)
    assert [set(stamps) for stamps in sets] == [{START_NS + k * 20 * MS} for k in range(1000)]


def test_the_wait_is_reported_and_is_the_disorder_once_that_is_known() -> None:
    sets, matcher = play(late_streams(0.1, 25 * MS, 1))
    waits = matcher.waits
    assert waits.sets == len(sets) >= 998
    assert 0 < waits.waited < 500
    assert 0.0 < waits.mean_s < 0.005
    assert waits.max_s <= 0.06
    assert waits.allowance_s == pytest.approx(0.04, abs=0.002)  # 20 ms of disorder, one period


def test_streams_in_order_wait_for_nothing_late_any_more() -> None:
    events = regular(0, 20.0, 1000) + regular(1, 20.0, 1000, 3.0)
    lost = START_NS + 900 * 20 * MS + 3 * MS
    sets, matcher = play([event for event in events if event[2] != lost])
    assert len(sets) == 999
    assert matcher.waits.allowance_s == 0.0
    assert matcher.waits.max_s <= 0.02


def test_a_lost_frame_at_the_start_delays_no_longer_than_the_queue() -> None:
    events = regular(0, 20.0, 100) + regular(1, 20.0, 100)
    lost = (1, START_NS + 50 * 20 * MS)
    sets, matcher = play([event for event in events if event[1:] != lost], queue_size=6)
    assert len(sets) == 99
    assert matcher.waits.max_s <= 6 * 0.02


@pytest.mark.parametrize(('events', 'expected_ms'), [
    (stream(0, 100) + stream(1, 60, 80, 100, 120), [(100, 100)]),
    (regular(0, 100, 6) + regular(1, 100, 6, -3), [(100 * k, 100 * k - 3) for k in range(6)]),
    (stream(0, 100, 200) + stream(1, 55, 104, 140, 210), [(100, 104)]),
    (stream(0, *range(60, 106, 5)) + stream(1, 99, 120), [(100, 99)]),
])  # fmt: skip
def test_small_cases(events: list[Event], expected_ms: list[tuple[int, int]]) -> None:
    sets, matcher = play(events, slop_ns=8 * MS)
    sets += matcher.flush()
    assert_sound(sets, matcher)
    assert [tuple((stamp - START_NS) // MS for stamp in found) for found in sets] == expected_ms


def test_a_partner_that_cannot_be_bettered_is_not_waited_for() -> None:
    """Behind the reference by 3 of 100 ms: the next one would be 97 ms away."""
    sets, _ = play(regular(0, 100, 10) + regular(1, 100, 10, -3), slop_ns=50 * MS)
    assert len(sets) == 10


@pytest.mark.parametrize('seed', range(20))
def test_in_order_every_set_is_the_nearest(seed: int) -> None:
    """Against a loop over all frames: each partner goes to the reference it is nearest to."""
    rng = np.random.default_rng(seed)
    slop_ns = 8 * MS
    reference = regular(0, 50.0, 100, rng.uniform(0, 10))
    partner = regular(1, float(rng.choice([20.0, 50.0, 100.0])), 300, rng.uniform(0, 10))
    sets, matcher = play(reference + partner, queue_size=20, slop_ns=slop_ns)
    sets += matcher.flush()
    assert_sound(sets, matcher)
    stamps = [event[2] for event in partner]
    expected = [
        [head, near]
        for _, _, head in reference
        if abs((near := min(stamps, key=lambda s, head=head: abs(s - head))) - head) < slop_ns
    ]
    assert sets == expected


def test_time_that_goes_back_starts_over() -> None:
    made = 0
    matcher = SetMatcher(['a', 'b'], 10, 5 * MS)
    for loop in range(3):
        for arrival_ns, index, stamp_ns in sorted(regular(0, 100, 30) + regular(1, 100, 30)):
            made += len(matcher.push(index, stamp_ns, None, arrival_ns + loop * 3_000 * MS) or [])
        assert made >= (loop + 1) * 26
    assert matcher.ledger.imbalance(matcher.buffered()) == {}


def test_sets_that_wait_when_time_goes_back_leave_first() -> None:
    """A lost reference frame: those behind it wait for it until the bag begins again."""
    bag = regular(1, 100, 30) + [
        event for event in regular(0, 100, 30) if event[2] != START_NS + 2_700 * MS
    ]
    sets, matcher = play(bag)
    assert len(sets) == 27
    for arrival_ns, index, stamp_ns in sorted(stream(0, 0, 100)):
        sets += matcher.push(index, stamp_ns, stamp_ns, arrival_ns + 3_000 * MS) or []
    assert [found[0] - START_NS for found in sets[27:]] == [2_800 * MS, 2_900 * MS]
    assert matcher.ledger.imbalance(matcher.buffered()) == {}


@pytest.mark.parametrize(('partner_ms', 'slop_ms'), [(0.0, 5), (3.0, 5), (-7.0, 40)])
@pytest.mark.parametrize('queue_size', [2, 10])
def test_a_looped_bag_loses_no_set(partner_ms: float, slop_ms: int, queue_size: int) -> None:
    bag = regular(0, 100, 20, 10.0) + regular(1, 100, 20, 10.0 + partner_ms)
    matcher = SetMatcher(['a', 'b'], queue_size, slop_ms * MS)
    sets: list[list[int]] = []
    for loop in range(3):
        for arrival_ns, index, stamp_ns in sorted(bag):
            arrival_ns += loop * 2_100 * MS
            sets += matcher.push(index, stamp_ns, stamp_ns, arrival_ns) or []
    sets += matcher.flush()
    once = [[START_NS + (10 + k * 100) * MS] * 2 for k in range(20)]
    assert sets == 3 * [[a, b + round(partner_ms * MS)] for a, b in once]
    assert matcher.ledger.imbalance(matcher.buffered()) == {}


class ExactQueues:
    """The plainest definition: of each input the `size` latest stamps that are in no set yet."""

    def __init__(self, streams: int, size: int) -> None:
        self.held: list[set[int]] = [set() for _ in range(streams)]
        self.size = size

    def push(self, index: int, stamp_ns: int) -> bool:
        """Take a stamp; return whether it is then in all queues together."""
        self.held[index].add(stamp_ns)
        if len(self.held[index]) > self.size:
            self.held[index].remove(min(self.held[index]))
        if not all(stamp_ns in held for held in self.held):
            return False
        for held in self.held:
            held.remove(stamp_ns)
        return True


def scrambled(data: st.DataObject, streams: int) -> list[tuple[int, int]]:
    """Frames on a grid, most of them on all inputs, in any order of arrival: (input, stamp)."""
    step_ns = data.draw(st.sampled_from([20, 100, 700])) * MS
    ticks = data.draw(st.lists(st.integers(0, 60), min_size=1, max_size=24, unique=True))
    lost = data.draw(st.sets(st.tuples(st.integers(0, streams - 1), st.sampled_from(ticks))))
    frames = [(i, START_NS + k * step_ns) for k in ticks for i in range(streams)]
    frames = [(i, stamp) for i, stamp in frames if (i, (stamp - START_NS) // step_ns) not in lost]
    reach = data.draw(st.sampled_from([0, 2, 8, 1000]))
    places = [index + data.draw(st.integers(0, reach)) for index in range(len(frames))]
    return [frame for _, frame in sorted(zip(places, frames, strict=True), key=lambda x: x[0])]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_exact_partners_that_are_in_their_queues_together_come(data: st.DataObject) -> None:
    streams = data.draw(st.integers(2, 3))
    size = data.draw(st.integers(1, 24))
    plain = ExactQueues(streams, size)
    names = [str(index) for index in range(streams)]
    matcher = SetMatcher(names, size, 10 * MS, data.draw(st.integers(0, streams - 1)))
    sets: list[list[int]] = []
    expected: list[int] = []
    for arrival_ns, (index, stamp_ns) in enumerate(scrambled(data, streams)):
        sets += matcher.push(index, stamp_ns, stamp_ns, START_NS + arrival_ns) or []
        if plain.push(index, stamp_ns):
            expected.append(stamp_ns)
        assert matcher.ledger.imbalance(matcher.buffered()) == {}
    sets += matcher.flush()
    assert all(len(set(stamps)) == 1 for stamps in sets)
    assert len(sets) == len({stamps[0] for stamps in sets})
    assert {stamps[0] for stamps in sets} >= set(expected)


def test_patience_ends() -> None:
    sets, matcher = play(stream(0, 100) + stream(1, 98), slop_ns=50 * MS)
    assert sets == []
    assert matcher.poll(START_NS + 100 * MS + PATIENCE_NS + 1) == [
        [START_NS + 100 * MS, START_NS + 98 * MS]
    ]


@given(st.data())
def test_whatever_comes_is_accounted_for(data: st.DataObject) -> None:
    streams = data.draw(st.integers(2, 4))
    events = data.draw(
        st.lists(st.tuples(st.integers(0, streams - 1), st.integers(0, 60)), max_size=120)
    )
    queue_size, slop = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 8))
    matcher = SetMatcher(
        [str(index) for index in range(streams)],
        queue_size,
        slop,
        data.draw(st.integers(0, streams - 1)),
    )
    sets: list[list[int]] = []
    for arrival_ns, (index, stamp_ns) in enumerate(events):
        sets += matcher.push(index, stamp_ns, stamp_ns, arrival_ns) or []
        assert max(matcher.buffered().values()) <= queue_size + 1
        assert matcher.ledger.imbalance(matcher.buffered()) == {}
    sets += matcher.flush()
    assert_sound([found for found in sets if len(set(found)) > 1], matcher)
    for found in sets:
        assert max(found) - min(found) < 2 * slop
