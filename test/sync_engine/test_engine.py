from __future__ import annotations

import pytest
from support.sync_feeder import MS, T0, Feeder, S, exact, stamps_ms

from rig_common.errors import RigError
from sync_engine.engine import SyncEngine
from sync_engine.state.machine import SyncState


def test_a_bundle_leaves_with_the_message_that_settles_it() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    assert not feeder.push('a', 100, 105)
    assert not feeder.push('b', 95, 106)  # a later one may be nearer
    (bundle,) = feeder.push('b', 128, 139)
    assert stamps_ms(bundle) == {'a': 100, 'b': 95}
    member = bundle.members['b']
    assert member.time_delta_ns == -5 * MS
    assert member.corrected_timestamp_ns == T0 + 95 * MS
    assert bundle.stamp_ns == T0 + 100 * MS
    assert bundle.emitted_ns == T0 + 139 * MS
    assert bundle.complete


def test_unknown_sensor_is_one_sentence() -> None:
    engine = SyncEngine(exact('a b'))
    with pytest.raises(RigError, match=r"sensor 'c' is not an input of the sync engine \(a, b\)"):
        engine.push('c', 1, None, 1)


def test_collect_hands_over_everything_since_the_last_bundle() -> None:
    config = exact('a b', inputs={'b': {'collect': True}})
    feeder = Feeder(SyncEngine(config))
    for k in range(41):
        if k % 10 == 0:
            feeder.push('a', 10 * k)
        feeder.push('b', 10 * k + 1, 10 * k + 2)
    collected = [
        [(p.stamp_ns - T0) / MS for p in bundle.members['b'].collected]
        for bundle in feeder.bundles
    ]
    assert collected[0] == [10 * k + 1 for k in range(10)]
    flat = [stamp for part in collected for stamp in part]
    assert flat == [10 * k + 1 for k in range(len(flat))]
    assert feeder.engine.ledger['b'].collected == len(flat)


def test_a_stream_for_window_or_cues_only_is_consumed() -> None:
    config = exact('a b', required_sensors=['a'], inputs={'b': {'member': False}})
    feeder = Feeder(SyncEngine(config))
    feeder.push('b', 5)
    (bundle,) = feeder.push('a', 10)
    assert set(bundle.members) == {'a'}
    assert feeder.engine.ledger['b'].consumed == 1
    assert feeder.engine.state is SyncState.IDLE


def test_output_stamps_never_go_back_with_references_out_of_order() -> None:
    feeder = Feeder(SyncEngine(exact('a b', required_sensors=['a'])))
    for stamp, arrival in ((0, 1), (50, 51), (30, 52), (100, 101), (80, 102), (150, 151)):
        feeder.push('b', stamp, arrival)
        feeder.push('a', stamp, arrival)
    feeder.poll(1000)
    out = [bundle.stamp_ns for bundle in feeder.bundles]
    assert out == sorted(set(out))
    assert len(out) + feeder.engine.ledger['a'].late == 6


def test_memory_is_bounded_under_a_dead_reference() -> None:
    config = exact('a b', buffer={'max_size': 50, 'max_bytes': 300, 'timeout_s': 60.0})
    feeder = Feeder(SyncEngine(config))
    for k in range(200):
        feeder.push('b', k)
    status = feeder.engine.status().sensors['b']
    assert status.bytes_held == 300
    assert status.counts.overflow == 170
    feeder.poll(100_000)
    assert feeder.engine.status().sensors['b'].bytes_held == 0
    assert feeder.engine.state is SyncState.IDLE


def test_reset_flushes_and_begins_an_epoch() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('a', 100)
    feeder.push('b', 90, 101)
    feeder.engine.reset('asked to')
    assert feeder.engine.ledger['a'].flushed == feeder.engine.ledger['b'].flushed == 1
    assert feeder.engine.state is SyncState.IDLE
    feeder.push('a', 10, 10)
    (bundle,) = feeder.push('b', 10, 11)
    assert bundle.epoch == 1
    assert feeder.engine.status().epochs == [(1, T0 + 101 * MS, 'asked to')]


def test_host_time_going_back_is_a_new_epoch_of_everything() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('a', 5000)
    feeder.push('b', 100, 100)
    assert feeder.engine.epochs.number == 1
    (bundle,) = feeder.push('a', 100, 101)
    assert bundle.epoch == 1
    assert feeder.engine.ledger['a'].flushed == 1
    feeder.poll(-1000)
    assert feeder.engine.epochs.number == 2


def test_arrivals_a_little_out_of_order_are_no_epoch() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('a', 100, 150)
    feeder.push('b', 100, 110)
    assert len(feeder.bundles) == 1
    assert feeder.engine.epochs.number == 0


def test_ten_years_of_uptime() -> None:
    start = 10 * 365 * 86400 * S
    engine = SyncEngine(exact('a b'))
    made = []
    for k in range(50):
        made += engine.push('b', start + k * 33 * MS, None, start + k * 33 * MS + 2 * MS)
        made += engine.push('a', start + k * 33 * MS + 1, None, start + k * 33 * MS + 3 * MS)
    assert [b.members['b'].time_delta_ns for b in made] == [-1] * len(made)
    assert len(made) >= 48
