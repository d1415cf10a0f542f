"""Settings that change while the engine runs."""

from __future__ import annotations

import pytest
from support.sync_feeder import MS, T0, Feeder, exact

from rig_common.errors import RigError
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import MissingReason


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
