"""From reference frames to bundles: stamps, waiting for the next one, what is let go of."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from support.sync_feeder import MS, T0, Feeder, config, exact, stamps_ms

from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.smoothing import ClockTrack, SmoothedClock
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import MissingReason


def feeder_of(names: str, **more: Any) -> Feeder:
    return Feeder(SyncEngine(exact(names, **more)))


def test_a_member_is_the_message_as_it_came() -> None:
    feed = feeder_of('a b')
    feed.push('b', 95, 99)
    feed.push('a', 100, 105)
    (bundle,) = feed.push('b', 130, 139)
    found = {
        name: (each.payload, each.stamp_ns - T0, each.arrival_ns - T0)
        for name, each in bundle.members.items()
    }
    assert found == {
        'a': (f'a@{T0 + 100 * MS}', 100 * MS, 105 * MS),
        'b': (f'b@{T0 + 95 * MS}', 95 * MS, 99 * MS),
    }
    assert bundle.reference_id == 'a'


def test_a_frame_in_the_far_half_of_the_period_waits_for_the_next_reference() -> None:
    feed = feeder_of('a b', inputs={'b': {'deadline_s': 0.08}})
    for k in range(20):
        feed.push('a', 100 * k, 100 * k + 1)
        feed.push('b', 100 * k, 100 * k + 2)
    feed.push('a', 2000, 2001)
    (near,) = feed.push('b', 2048, 2049)  # at most half a period off: nobody is nearer
    assert stamps_ms(near) == {'a': 2000, 'b': 2048}
    feed.push('a', 2100, 2101)
    assert not feed.push('b', 2153, 2154)  # it may belong to the frame at 2200
    assert feed.engine.next_deadline_ns == T0 + 2181 * MS
    assert not feed.poll(2180)
    (late,) = feed.poll(2181)
    assert stamps_ms(late) == {'a': 2100, 'b': 2153}
    feed.push('a', 2200, 2201)
    assert not feed.push('b', 2260, 2261)
    assert not feed.push('a', 2300, 2270)  # it does: nothing is left for the frame at 2200
    assert feed.engine.status().bundles_dropped['b: taken_by_next'] == 1
    (bundle,) = feed.push('b', 2320, 2321)
    assert stamps_ms(bundle) == {'a': 2300, 'b': 2320}


def test_whoever_waits_for_the_next_reference_waits_for_the_latest_deadline() -> None:
    feed = feeder_of('a b c', inputs={'b': {'deadline_s': 0.05}, 'c': {'deadline_s': 0.2}})
    for name in 'bc':
        feed.push(name, 0)
    feed.push('a', 40)
    assert feed.engine.next_deadline_ns == T0 + 90 * MS
    feed.push('c', 40, 45)
    feed.push('b', 45, 50)
    assert feed.engine.next_deadline_ns == T0 + 240 * MS
    assert not feed.poll(239)
    (bundle,) = feed.poll(240)
    assert stamps_ms(bundle) == {'a': 40, 'b': 45, 'c': 40}


def test_bundles_are_numbered_and_their_stamps_rise_while_the_clock_is_corrected() -> None:
    """A burst after a stall looks like a clock that is behind; frames in time correct it."""
    inputs = {'ref': {'latency_s': 0.005, 'latency_sigma_s': 1e-3, 'deadline_s': 0.05}}
    feed = Feeder(SyncEngine(config(inputs, 'ref', required_sensors=['ref'])))
    for k in range(60):
        feed.push('ref', 10 * k, max(185 + 0.01 * k, 10 * k + 5))
    stamps = [bundle.stamp_ns for bundle in feed.bundles]
    assert [bundle.sequence for bundle in feed.bundles] == list(range(1, 61))
    steps = [after - before for before, after in pairwise(stamps)]
    assert min(steps) == 1  # it would have gone back
    assert all(step == 1 or step > 9 * MS for step in steps)
    assert feed.engine.bundles_made == 60


def test_two_reference_frames_of_one_moment_get_stamps_that_differ() -> None:
    """A known clock that jumps by just the time between two frames puts both at one moment."""
    feed = Feeder(SyncEngine(config({'ref': {}}, 'ref', required_sensors=['ref'])))
    pieces = [
        (at_ns, [SmoothedClock(at_ns, offset_ns, 0.0, 0, 1e-8, 1e-8, 0.0)])
        for at_ns, offset_ns in ((T0, 0), (T0 + 105 * MS, 10 * MS))
    ]
    feed.engine.clocks.play({'ref': ClockTrack(pieces)})
    feed.push('ref', 100, 101)
    feed.push('ref', 110, 111)
    feed.push('ref', 140, 141)
    assert [bundle.stamp_ns - T0 for bundle in feed.bundles] == [100 * MS, 100 * MS + 1, 130 * MS]


def test_a_new_epoch_may_begin_before_the_last_one_ended() -> None:
    feed = feeder_of('a b')
    feed.push('b', 5000)
    feed.push('a', 5000)
    feed.push('b', 100)  # host time went back
    (bundle,) = feed.push('a', 100)
    assert (bundle.epoch, bundle.stamp_ns) == (1, T0 + 100 * MS)
    feed.engine.reset('asked to')
    feed.push('b', 60, 110)
    (bundle,) = feed.push('a', 60, 110)
    assert (bundle.epoch, bundle.stamp_ns) == (2, T0 + 60 * MS)


def test_a_reference_that_starts_over_after_output_begins_an_epoch_of_its_own() -> None:
    feed = feeder_of('a b c', required_sensors=['a', 'b'])
    for at in range(5000, 6001, 100):
        for name in 'cba':
            feed.push(name, at, at)
    for at in (6100, 6200):
        feed.push('c', at - 5000, at)  # two that agree: c started over, a and b did not yet
        feed.push('b', at, at)
        feed.push('a', at, at)
    feed.poll(6900)
    for at in (7000, 7100, 7200):
        for name in 'cba':
            feed.push(name, at - 5000, at)
    feed.poll(9000)
    numbered = [(bundle.epoch, (bundle.stamp_ns - T0) // MS) for bundle in feed.bundles]
    assert numbered == [(0, at) for at in range(5000, 6001, 100)] + [
        (1, 6100),
        (1, 6200),
        (2, 2000),
        (2, 2100),
        (2, 2200),
    ]
    reasons = feed.engine.status().epochs
    assert [reason for _, _, reason in reasons] == ['c started over', 'c started over']


def test_a_frame_that_is_reused_is_kept_and_those_before_it_go() -> None:
    feed = feeder_of('a b', inputs={'b': {'reuse': True, 'deadline_s': 0.1}})
    for k in range(11):
        feed.push('b', 10 * k)
    (bundle,) = feed.push('a', 90, 101)
    assert stamps_ms(bundle) == {'a': 90, 'b': 90}
    assert sorted(feed.engine.waiting('b')) == [T0 + 90 * MS, T0 + 100 * MS]
    assert feed.engine.ledger['b'].unmatched == 9
    (bundle,) = feed.push('a', 94, 102)
    assert stamps_ms(bundle) == {'a': 94, 'b': 90}


def test_a_reference_frame_without_its_partner_goes_and_the_next_one_is_served() -> None:
    feed = feeder_of('a b c', required_sensors=['a', 'b'], window={'min_ms': 5.0, 'max_ms': 20.0})
    feed.push('b', 0)
    feed.push('c', 49)
    feed.push('a', 50)
    feed.push('c', 52)
    feed.push('b', 100)
    assert feed.engine.status().bundles_dropped == {'b: out_of_window': 1}
    feed.push('a', 101)
    feed.push('b', 120)
    (bundle,) = feed.push('c', 121)
    assert (bundle.sequence, bundle.window_ns) == (1, 20 * MS)
    assert stamps_ms(bundle) == {'a': 101, 'b': 100, 'c': 121}
    ledger = feed.engine.ledger
    assert (ledger['a'].unmatched, ledger['a'].bundled, ledger['b'].unmatched) == (1, 1, 1)


def test_an_optional_partner_may_be_missing_and_says_why() -> None:
    feed = feeder_of(
        'a b',
        required_sensors=['a'],
        window={'min_ms': 5.0, 'max_ms': 20.0},
        inputs={'b': {'deadline_s': 0.1}},
    )
    feed.push('b', 0)
    feed.push('a', 50)
    (bundle,) = feed.push('b', 100)
    member = bundle.members['b']
    assert (member.missing, member.reason) == (True, MissingReason.OUT_OF_WINDOW)
    assert (member.payload, member.arrival_ns) == (None, 0)
    assert member.stamp_ns == member.target_ns == T0 + 50 * MS
    assert sorted(feed.engine.waiting('b')) == [T0, T0 + 100 * MS]


def test_a_missing_or_collected_partner_teaches_the_pairing_estimator_nothing() -> None:
    inputs = {'ref': {}, 'cam': {'deadline_s': 0.05}, 'imu': {'collect': True}}
    feed = Feeder(
        SyncEngine(
            config(
                inputs,
                'ref',
                required_sensors=['ref'],
                estimator='pairing',
                window={'min_ms': 5.0, 'max_ms': 20.0},
            )
        )
    )
    for k in range(10):
        feed.push('imu', 100 * k - 3, 100 * k)
        feed.push('ref', 100 * k, 100 * k + 1)
        feed.push('imu', 100 * k + 5, 100 * k + 6)
        if k < 5:
            feed.push('cam', 100 * k + 10, 100 * k + 11)
    feed.poll(3000)
    found = feed.engine.offset('cam')
    assert found.offset_ns == pytest.approx(10 * MS, rel=0.1)
    assert feed.bundles[-1].members['cam'].missing
    assert feed.engine.offset('imu').state is OffsetState.CONVERGING
    assert feed.engine.offset('imu').offset_ns == pytest.approx(0, abs=0.1 * MS)


def test_a_collected_stream_never_makes_a_bundle_wait_for_the_next_reference() -> None:
    feed = feeder_of('a b', inputs={'b': {'collect': True, 'deadline_s': 0.08}})
    for k in range(20):
        feed.push('a', 100 * k, 100 * k + 1)
        feed.push('b', 100 * k, 100 * k + 2)
    feed.push('b', 1990, 1991)
    feed.push('a', 2000, 2001)
    (bundle,) = feed.push('b', 2053, 2054)  # in the far half of the reference's period
    assert [packet.stamp_ns - T0 for packet in bundle.members['b'].collected] == [1990 * MS]


def test_a_frame_that_served_several_bundles_counts_as_bundled_once() -> None:
    feed = feeder_of('a b', inputs={'b': {'reuse': True, 'deadline_s': 0.1}})
    feed.push('b', 90)
    feed.push('b', 200)
    feed.push('a', 90, 201)
    feed.push('a', 94, 202)
    feed.push('a', 199, 203)  # takes the one of 200: that of 90 goes
    assert len(feed.bundles) == 3
    counts = feed.engine.ledger['b']
    assert (counts.bundled, counts.unmatched) == (1, 0)


def test_a_reference_that_comes_out_of_order_is_waited_for_as_long_as_it_was_late() -> None:
    feed = feeder_of('a b')
    for stamp in (100, 140, 190, 200, 400):
        feed.push('b', stamp, 90)
    feed.push('a', 100, 101)
    feed.push('a', 140, 103)
    feed.push('a', 120, 104)  # 20 ms behind the latest one
    assert len(feed.bundles) == 2
    feed.push('a', 200, 105)
    feed.push('a', 219, 106)
    assert len(feed.bundles) == 2  # one of 181 may still come
    (bundle,) = feed.push('a', 190, 107)  # 29 ms behind, and still served in its turn
    assert stamps_ms(bundle) == {'a': 190, 'b': 190}
    assert not feed.push('a', 225, 108)
    (bundle,) = feed.push('a', 230, 109)
    assert stamps_ms(bundle) == {'a': 200, 'b': 200}


def known_clocks(offsets_ms: dict[str, int], **inputs: dict[str, Any]) -> Feeder:
    """Return an engine whose clocks are known: each is so far ahead of the host's (ms)."""
    feed = Feeder(
        SyncEngine(
            config(
                {name: {'deadline_s': 0.5, **inputs.get(name, {})} for name in offsets_ms}, 'ref'
            )
        )
    )
    feed.engine.clocks.play(
        {
            name: ClockTrack([(T0, [SmoothedClock(T0, ahead * MS, 0.0, 0, 1e-8, 1e-8, 0.0)])])
            for name, ahead in offsets_ms.items()
        }
    )
    return feed


def test_a_partner_settles_a_frame_on_its_own_clock_and_after_its_disorder() -> None:
    """As the head of waiting.py says: 37 ms ahead, and the more as its stamps were disordered."""
    feed = known_clocks({'ref': 0, 'cam': 37})
    feed.push('ref', 100, 101)
    feed.push('cam', 66, 102)
    feed.push('cam', 136, 103)
    assert not feed.bundles
    (bundle,) = feed.push('cam', 137, 104)
    assert stamps_ms(bundle) == {'ref': 100, 'cam': 137}
