"""The status as plain data."""

from __future__ import annotations

import json

from support.sync_feeder import Feeder, exact

from sync_engine.engine import SyncEngine


def test_status_is_plain_json() -> None:
    feeder = Feeder(SyncEngine(exact('a b')))
    feeder.push('a', 10)
    values = json.loads(json.dumps(feeder.engine.status().as_dict(), allow_nan=False))
    assert values['state'] == 'buffering'
    assert values['sensors']['a']['counts']['received'] == 1
