"""The states of the engine, and the ways between them."""

from __future__ import annotations

import pytest
from support.sync_feeder import Feeder, exact

from sync_engine.engine import SyncEngine
from sync_engine.state.machine import SyncState


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
