from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sync_engine.matching.buffer import Packet, SensorBuffer

stamps = st.lists(st.integers(0, 60), max_size=40)


def filled(values: list[int], **bounds: int) -> SensorBuffer:
    limits = {'max_size': 1000, 'timeout_ns': 10**9, 'max_bytes': 10**9, **bounds}
    buffer = SensorBuffer(**limits)
    for sequence, stamp in enumerate(values):
        buffer.push(Packet(stamp, sequence, None, sequence, 1))
    return buffer


def order(buffer: SensorBuffer) -> list[tuple[int, int]]:
    return [(p.stamp_ns, p.sequence) for p in iter(buffer.pop, None)]


@given(stamps)
def test_pops_like_a_heap_with_the_sequence_as_tie_breaker(values: list[int]) -> None:
    expected = sorted((stamp, sequence) for sequence, stamp in enumerate(values))
    assert order(filled(values)) == expected


@given(stamps, st.integers(-5, 65), st.integers(0, 30))
def test_closest_is_what_a_scan_finds(values: list[int], target: int, window: int) -> None:
    near = [(abs(v - target), v) for v in values if abs(v - target) <= window]
    found = filled(values).closest(target, window)
    assert (None if found is None else found.stamp_ns) == (min(near)[1] if near else None)


@given(stamps, st.integers(-5, 65))
def test_neighbours_are_what_a_scan_finds(values: list[int], target: int) -> None:
    buffer = filled(values)
    before, after = buffer.before(target), buffer.after(target)
    through = buffer.last_through(target)
    assert getattr(before, 'stamp_ns', None) == max(
        (v for v in values if v < target), default=None
    )
    assert getattr(after, 'stamp_ns', None) == min(
        (v for v in values if v >= target), default=None
    )
    assert getattr(through, 'stamp_ns', None) == max(
        (v for v in values if v <= target), default=None
    )


@given(stamps, st.integers(-5, 65))
def test_taking_splits_without_loss(values: list[int], at: int) -> None:
    buffer = filled(values)
    taken = [p.stamp_ns for p in buffer.take_through(at)]
    assert taken == sorted(v for v in values if v <= at)
    assert buffer.stamps == sorted(v for v in values if v > at)
    assert buffer.nbytes == len(buffer)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=30), st.integers(0, 99)
)
def test_expiry_is_by_arrival_and_from_the_front(pairs: list[tuple[int, int]], now: int) -> None:
    buffer = SensorBuffer(1000, 20, 10**9)
    for sequence, (stamp, arrival) in enumerate(pairs):
        buffer.push(Packet(stamp, sequence, None, arrival, 1))
    gone = buffer.evict_expired(now)
    assert all(p.arrival_ns < now - 20 for p in gone)
    front = buffer.peek()
    assert front is None or front.arrival_ns >= now - 20
    assert len(gone) + len(buffer) == len(pairs)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(2, 8), st.integers(1, 20))
def test_bounds_hold_and_the_oldest_goes(sizes: list[int], count: int, total: int) -> None:
    buffer = SensorBuffer(count, 10**9, total)
    for sequence, size in enumerate(sizes):
        over = buffer.push(Packet(sequence, sequence, None, 0, size))
        gone = buffer.evict_overflow()
        assert over == bool(gone)
        assert len(buffer) <= count
        assert buffer.nbytes <= total
        if gone and buffer.stamps:
            assert gone[-1].stamp_ns < buffer.stamps[0]


def test_push_out_of_order_lands_where_it_belongs() -> None:
    buffer = filled([10, 30, 20, 20])
    assert order(buffer) == [(10, 0), (20, 2), (20, 3), (30, 1)]


def test_contains() -> None:
    buffer = filled([10, 20])
    assert 10 in buffer
    assert 15 not in buffer
