from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sync_engine.streams.buffer import Packet, SensorBuffer

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


packets = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 6), st.integers(1, 4)), min_size=1, max_size=14
)
"""(stamp, arrival, bytes) of packets in the order they come."""


@given(packets, st.integers(0, 12), st.integers(0, 4))
def test_what_is_older_than_the_timeout_leaves_from_the_front(
    values: list[tuple[int, int, int]], now: int, timeout: int
) -> None:
    buffer = SensorBuffer(1000, timeout, 10**9)
    kept: list[Packet] = []
    for sequence, (stamp, arrival, nbytes) in enumerate(values):
        packet = Packet(stamp, sequence, None, arrival, nbytes)
        kept = sorted([*kept, packet], key=lambda p: (p.stamp_ns, p.sequence))
        assert buffer.push(packet) == (kept[0].arrival_ns < arrival - timeout)
    gone = buffer.evict_expired(now)
    expected = []
    while kept and now - kept[0].arrival_ns > timeout:
        expected.append(kept.pop(0))
    assert gone == expected
    assert (buffer.peek(), len(buffer)) == (kept[0] if kept else None, len(kept))
    assert buffer.nbytes == sum(p.nbytes for p in kept)


@given(packets, st.integers(1, 6), st.integers(1, 12))
def test_the_earliest_leave_until_count_and_bytes_fit(
    values: list[tuple[int, int, int]], count: int, total: int
) -> None:
    buffer = SensorBuffer(count, 10**9, total)
    kept: list[Packet] = []
    for sequence, (stamp, _, nbytes) in enumerate(values):
        packet = Packet(stamp, sequence, None, 0, nbytes)
        kept = sorted([*kept, packet], key=lambda p: (p.stamp_ns, p.sequence))
        expected = []
        while len(kept) > count or sum(p.nbytes for p in kept) > total:
            expected.append(kept.pop(0))
        assert buffer.push(packet) == bool(expected)
        assert buffer.evict_overflow() == expected
        assert buffer.stamps == [p.stamp_ns for p in kept]
        assert buffer.nbytes == sum(p.nbytes for p in kept)
        assert buffer.peek_second() is (kept[1] if len(kept) > 1 else None)


def test_what_is_held_is_listed_by_stamp_and_clearing_empties_it() -> None:
    buffer = SensorBuffer(10, 10**9, 10**9)
    for stamp in (20, 10, 30):
        buffer.push(Packet(stamp, stamp, f'at {stamp}', 0, 5))
    assert buffer.payloads() == {10: 'at 10', 20: 'at 20', 30: 'at 30'}
    assert [p.payload for p in buffer.take_before(20)] == ['at 10']
    assert [p.payload for p in buffer.clear()] == ['at 20', 'at 30']
    assert (len(buffer), buffer.nbytes, buffer.peek(), buffer.pop()) == (0, 0, None, None)


def test_push_out_of_order_lands_where_it_belongs() -> None:
    buffer = filled([10, 30, 20, 20])
    assert order(buffer) == [(10, 0), (20, 2), (20, 3), (30, 1)]


def test_contains() -> None:
    buffer = filled([10, 20])
    assert [stamp for stamp in range(30) if stamp in buffer] == [10, 20]
