"""How long a reference frame waits for its partners."""

from __future__ import annotations

from support.sync_feeder import MS, T0, Feeder, exact, stamps_ms

from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import MissingReason


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
