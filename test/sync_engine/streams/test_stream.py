"""What one input keeps of its messages when its clock steps, or seems to."""

from __future__ import annotations

import random

from support.sync_feeder import MS, T0, Feeder, config, exact, stamps_ms

from sync_engine.engine import SyncEngine


def feeder() -> Feeder:
    """Return an engine with a reference `a` and an input `b` of which every message is wanted."""
    inputs = {'a': {'latency_s': 0.002}, 'b': {'latency_s': 0.002, 'collect': True}}
    return Feeder(SyncEngine(config(inputs, 'a')))


def collected_ms(fed: Feeder) -> list[float]:
    return [
        (packet.stamp_ns - T0) / MS
        for bundle in fed.bundles
        for packet in bundle.members['b'].collected
    ]


def test_what_comes_after_a_clock_step_is_kept() -> None:
    """At 1 s the clock of `b` steps by 53 ms; the second message after it shows that."""
    fed = feeder()
    for k in range(200):
        if k % 10 == 5:
            fed.push('a', 10 * k, 10 * k + 2)
        fed.push('b', 10 * k + (53 if k >= 100 else 0), 10 * k + 2.5)
    assert fed.engine.status().sensors['b'].clock_steps == 1
    after = [stamp_ms for stamp_ms in collected_ms(fed) if stamp_ms >= 1053]
    assert after == [10 * k + 53 for k in range(100, 100 + len(after))]
    assert len(after) > 80


def test_a_start_that_is_held_up_costs_no_message() -> None:
    """Messages of 400 Hz come in bunches at first, as on a machine that is still busy starting.

    Two seconds later the usual delay looks like a change for good, which may be the clock's.
    """
    fed, rng, last_ms = feeder(), random.Random(3), 0.0
    arrivals = [(max(100 * k + 2.003, 30.001), 'a', 100.0 * k) for k in range(30)]
    for k in range(1200):
        came_ms = 2.5 * k + 1 + rng.expovariate(0.5)
        for begin_ms, end_ms in ((0, 30), (40, 80), (100, 120)):
            came_ms = end_ms if begin_ms <= came_ms < end_ms else came_ms
        last_ms = max(came_ms, last_ms + 0.001)
        arrivals.append((last_ms, 'b', 2.5 * k))
    for arrival_ms, name, stamp_ms in sorted(arrivals):
        fed.push(name, stamp_ms, arrival_ms)
    found = collected_ms(fed)
    assert found == [2.5 * k for k in range(len(found))]
    assert len(found) > 1150


def test_duplicates_zero_and_negative_stamps() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('b', 10)
    feeder.push('b', 10, 11)
    feeder.push('b', 30)
    feeder.push('b', 10, 31)
    feeder.push_ns('b', 0, T0 + 32 * MS)
    feeder.push_ns('b', -5, T0 + 33 * MS)
    feeder.push_ns('b', 2**63, T0 + 33 * MS)
    counts = feeder.engine.ledger['b']
    assert (counts.duplicate, counts.invalid) == (2, 3)
    assert feeder.engine.buffered()['b'] == 2


def test_zero_stamp_and_headerless_take_the_arrival() -> None:
    feeder = Feeder(SyncEngine(exact('a b', inputs={'b': {'zero_stamp': 'arrival'}})))
    feeder.push_ns('b', 0, T0 + 7 * MS)
    feeder.push_ns('b', None, T0 + 9 * MS)
    feeder.push('a', 8, 10)
    assert [stamps_ms(bundle) for bundle in feeder.bundles] == [{'a': 8, 'b': 7}]


def test_out_of_order_is_sorted_in_and_too_late_is_counted() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('b', 0)
    feeder.push('a', 0)
    feeder.bundles.clear()
    feeder.push('b', 90, 91)
    feeder.push('b', 130, 131)
    feeder.push('b', 98, 132)
    feeder.push('a', 100, 133)
    assert not feeder.bundles  # this stream was 32 ms out of order once
    feeder.push('b', 140, 141)
    assert [stamps_ms(bundle) for bundle in feeder.bundles] == [{'a': 100, 'b': 98}]
    feeder.push('b', 95, 142)
    counts = feeder.engine.ledger['b']
    assert (counts.out_of_order, counts.late) == (2, 1)
