from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st
from support.sync_feeder import Feeder, exact, stamps_ms

from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import MissingReason
from sync_engine.matching.selection import choose, choose_again
from sync_engine.streams.buffer import Packet, SensorBuffer

frames = st.lists(st.integers(0, 14), unique=True, max_size=6)
"""A short axis of time, so that ties and the edges of the window are usual."""


def buffer_of(values: list[int]) -> SensorBuffer:
    buffer = SensorBuffer(1000, 10**9, 10**9)
    for sequence, stamp in enumerate(values):
        buffer.push(Packet(stamp, sequence, None, 0, 0))
    return buffer


def oracle(
    values: list[int], target: int, window: int, following: int
) -> tuple[int | None, MissingReason]:
    """The nearest frame of all that are not nearer to the next reference frame.

    Frames behind the second-nearest are not considered: only the nearest may belong to the next.
    """
    near = sorted(
        (v for v in values if abs(v - target) <= window), key=lambda v: (abs(v - target), v)
    )
    if not near:
        return None, MissingReason.OUT_OF_WINDOW
    best = near[0]
    if best <= target or abs(following - best) >= best - target:
        return best, MissingReason.NONE
    earlier = [v for v in near if v < target]
    return (max(earlier), MissingReason.NONE) if earlier else (None, MissingReason.TAKEN_BY_NEXT)


@example([7, 12], 10, 5, 3)  # 12 belongs to the next one, at 13
@example([5, 12], 10, 5, 3)
@example([4, 12], 10, 5, 3)  # and 4 is too far away
@given(frames, st.integers(0, 14), st.integers(0, 8), st.integers(1, 8))
def test_choice_with_the_next_reference_known(
    values: list[int], target: int, window: int, gap: int
) -> None:
    choice = choose(buffer_of(values), target, window, target + gap, gap // 2, may_wait=True)
    found = None if choice.packet is None else choice.packet.stamp_ns
    assert (found, choice.reason) == oracle(values, target, window, target + gap)
    assert not choice.wait


@given(frames, st.integers(0, 14), st.integers(0, 8), st.integers(0, 5))
def test_waiting_only_for_a_frame_past_half_a_period(
    values: list[int], target: int, window: int, half: int
) -> None:
    buffer = buffer_of(values)
    waiting = choose(buffer, target, window, None, half, may_wait=True)
    final = choose(buffer, target, window, None, half, may_wait=False)
    nearest = choose_again(buffer, target, window)
    assert final == nearest
    near = [v for v in values if abs(v - target) <= window]
    assert nearest.reason is (MissingReason.NONE if near else MissingReason.OUT_OF_WINDOW)
    late = nearest.packet is not None and nearest.packet.stamp_ns - target > half
    assert waiting.wait == late
    assert late or waiting == nearest


def test_the_best_partner_is_taken_not_the_first_inside_the_window() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    for stamp in (55, 100):
        feeder.push('b', stamp, 101)
    feeder.push('a', 100, 102)
    assert [stamps_ms(bundle) for bundle in feeder.bundles] == [{'a': 100, 'b': 100}]


def test_a_slow_partner_goes_to_the_reference_it_is_nearest_to() -> None:
    feeder = Feeder(SyncEngine(exact('a b', inputs={'b': {'deadline_s': 1.0}})))
    for k in range(12):
        feeder.push('a', 33 * k, 33 * k + 5)
        if k % 3 == 1:
            feeder.push('b', 33 * k, 33 * k + 6)
    pairs = [stamps_ms(bundle) for bundle in feeder.bundles]
    assert pairs
    assert all(pair['a'] == pair['b'] for pair in pairs)


def test_a_frame_is_used_once_unless_reuse() -> None:
    for reuse, expected in ((False, 1), (True, 3)):
        config = exact('a b', inputs={'b': {'reuse': reuse, 'deadline_s': 0.1}})
        feeder = Feeder(SyncEngine(config))
        feeder.push('b', 40)
        for stamp in (20, 40, 60):
            feeder.push('a', stamp, 60 + stamp / 10)
        feeder.poll(500)
        used = [stamps_ms(bundle)['b'] for bundle in feeder.bundles]
        assert used == [40] * expected
        if not reuse:
            assert stamps_ms(feeder.bundles[0])['a'] == 40
        feeder.poll(5000)
        assert feeder.engine.ledger['b'].bundled == 1
