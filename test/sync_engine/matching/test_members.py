"""What a bundle has in the place of a missing frame."""

from __future__ import annotations

import pytest
from support.sync_feeder import MS, T0, Feeder, exact, stamps_ms

from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import MissingReason


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
