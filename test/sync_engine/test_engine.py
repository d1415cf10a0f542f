from __future__ import annotations

import json

import pytest
from support.sync_feeder import MS, T0, Feeder, S, exact, stamps_ms

from rig_common.errors import RigError
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import MissingReason
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


def test_states_as_in_the_design_notes() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    engine = feeder.engine
    assert engine.state is SyncState.IDLE
    feeder.push('a', 100)
    assert engine.state is SyncState.BUFFERING
    feeder.push('b', 100, 101)
    steps = [(old.value, new.value) for old, new in engine.machine.recent]
    assert steps == [
        ('idle', 'buffering'),
        ('buffering', 'syncing'),
        ('syncing', 'output_ready'),
        ('output_ready', 'idle'),
    ]
    feeder.push('b', 130)
    feeder.push('a', 131)
    feeder.push('b', 132)
    feeder.push('b', 160)
    assert engine.state is SyncState.BUFFERING
    assert engine.machine.recent[-1] == (SyncState.OUTPUT_READY, SyncState.BUFFERING)


def test_no_partner_goes_back_to_buffering() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('a', 100)
    feeder.push('b', 400, 150)
    assert not feeder.bundles
    assert (SyncState.SYNCING, SyncState.BUFFERING) in feeder.engine.machine.recent
    status = feeder.engine.status()
    assert status.bundles_dropped == {'b: out_of_window': 1}
    assert feeder.engine.ledger['a'].unmatched == 1


def test_forbidden_transition_is_a_bug() -> None:
    engine = SyncEngine(exact('a b'))
    with pytest.raises(RuntimeError, match='no transition from idle to output_ready'):
        engine.machine.enter(SyncState.OUTPUT_READY)


@pytest.mark.parametrize(('strategy', 'bundles'), [('drop', 0), ('empty', 1), ('interpolate', 0)])
def test_a_missing_partner_at_the_deadline(strategy: str, bundles: int) -> None:
    config = exact('a b', missing_strategy=strategy, inputs={'b': {'deadline_s': 0.1}})
    feeder = Feeder(SyncEngine(config))
    feeder.push('b', 40, 60)
    feeder.push('a', 150)
    assert feeder.engine.next_deadline_ns == T0 + 250 * MS
    assert not feeder.poll(249)
    made = feeder.poll(250)
    assert len(made) == bundles
    for bundle in made:
        member = bundle.members['b']
        assert member.missing
        assert member.payload is None
        assert member.reason is MissingReason.DEADLINE
        assert not bundle.complete
    if strategy == 'drop':
        assert feeder.engine.status().bundles_dropped == {'b: deadline': 1}
    if strategy == 'interpolate':
        assert feeder.engine.status().bundles_dropped == {'b: not_interpolable': 1}


def test_strategy_per_sensor_overrides_the_rigs() -> None:
    config = exact('a b c', missing_strategy='drop', inputs={'b': {'missing_strategy': 'empty'}})
    feeder = Feeder(SyncEngine(config))
    feeder.push('c', 100)
    feeder.push('a', 100)
    (bundle,) = feeder.poll(400)
    assert bundle.members['b'].missing
    assert stamps_ms(bundle) == {'a': 100, 'c': 100}


def test_each_stream_is_given_up_at_its_own_deadline() -> None:
    config = exact(
        'a b c',
        missing_strategy='empty',
        inputs={'b': {'deadline_s': 0.05}, 'c': {'deadline_s': 0.2}},
    )
    feeder = Feeder(SyncEngine(config))
    feeder.push('b', 0)
    feeder.push('c', 0)
    feeder.push('a', 40)
    assert feeder.engine.next_deadline_ns == T0 + 90 * MS
    assert not feeder.poll(90)
    assert feeder.engine.next_deadline_ns == T0 + 240 * MS
    (bundle,) = feeder.push('c', 40, 95)
    assert bundle.members['b'].stamp_ns == T0  # within the window, and the best there is
    assert stamps_ms(bundle)['c'] == 40


def test_a_dead_optional_stream_does_not_delay_bundles() -> None:
    config = exact('a b c', required_sensors=['a', 'b'], inputs={'c': {'deadline_s': 0.2}})
    feeder = Feeder(SyncEngine(config))
    for k in range(30):
        feeder.push('a', 100 * k)
        feeder.push('b', 100 * k + 1)
    delays = [(bundle.emitted_ns - bundle.stamp_ns) / MS for bundle in feeder.bundles]
    assert len(delays) == 30
    assert max(delays[:4]) <= 201.0  # it may still come
    assert max(delays[4:]) == 1.0
    assert feeder.bundles[-1].members['c'].reason is MissingReason.NO_DATA


def test_a_late_joiner_joins() -> None:
    feeder = Feeder(SyncEngine(exact('a b', required_sensors=['a'])))
    for k in range(20):
        if k >= 10:
            feeder.push('b', 100 * k - 1)
        feeder.push('a', 100 * k)
        if k >= 10:
            feeder.push('b', 100 * k + 1)
    assert feeder.bundles[3].members['b'].missing
    assert not feeder.bundles[-1].members['b'].missing


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


def test_parameters_change_at_run_time_and_mistakes_are_sentences() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.engine.set_parameter('window.max_ms', 25.0)
    feeder.engine.set_parameter('inputs.b.deadline_s', 0.5)
    feeder.engine.set_parameter('missing_strategy', 'empty')
    feeder.push('b', 50)
    feeder.push('a', 100)
    assert feeder.engine.next_deadline_ns == T0 + 600 * MS
    (bundle,) = feeder.push('b', 130)
    assert bundle.members['b'].reason is MissingReason.OUT_OF_WINDOW
    with pytest.raises(RigError, match=r'sync\.reference_sensor_id cannot be changed'):
        feeder.engine.set_parameter('reference_sensor_id', 'b')
    with pytest.raises(RigError, match=r'sync\.inputs\.b\.deadline_s'):
        feeder.engine.set_parameter('inputs.b.deadline_s', -1.0)


def test_status_is_plain_json() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('a', 10)
    values = json.loads(json.dumps(feeder.engine.status().as_dict(), allow_nan=False))
    assert values['state'] == 'buffering'
    assert values['sensors']['a']['counts']['received'] == 1


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
