"""Small engines and streams for the tests of the sync engine."""

from __future__ import annotations

from typing import Any

from sync_engine.config import SyncConfig, load_config
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import Bundle

MS = 1_000_000
S = 1_000_000_000
T0 = 1000 * S


def config(inputs: dict[str, dict[str, Any]], reference: str, **more: Any) -> SyncConfig:
    values = {'inputs': inputs, 'reference_sensor_id': reference, **more}
    return load_config(values)


def exact(names: str, reference: str = 'a', **more: Any) -> SyncConfig:
    """Inputs whose stamps are the host's, so that offsets play no part."""
    per_input = more.pop('inputs', {})
    inputs = {name: {'stamp_source': 'ptp', **per_input.get(name, {})} for name in names.split()}
    more.setdefault('required_sensors', names.split())
    return config(inputs, reference, estimator='none', **more)


class Feeder:
    """Pushes messages with stamps in ms after T0, checks the ledger after each, keeps bundles."""

    def __init__(self, engine: SyncEngine) -> None:
        self.engine = engine
        self.bundles: list[Bundle] = []

    def push(self, name: str, stamp_ms: float, arrival_ms: float | None = None) -> list[Bundle]:
        arrival = stamp_ms if arrival_ms is None else arrival_ms
        return self.push_ns(name, T0 + round(stamp_ms * MS), T0 + round(arrival * MS))

    def push_ns(self, name: str, stamp_ns: int | None, arrival_ns: int) -> list[Bundle]:
        made = self.engine.push(name, stamp_ns, f'{name}@{stamp_ns}', arrival_ns, 10)
        return self._keep(made)

    def poll(self, now_ms: float) -> list[Bundle]:
        return self._keep(self.engine.poll(T0 + round(now_ms * MS)))

    def _keep(self, made: list[Bundle]) -> list[Bundle]:
        assert not self.engine.ledger.imbalance(self.engine.buffered())
        self.bundles += made
        return made


def stamps_ms(bundle: Bundle) -> dict[str, float]:
    """Return the members' stamps in ms after T0, without the missing ones."""
    return {
        name: (member.stamp_ns - T0) / MS
        for name, member in bundle.members.items()
        if not member.missing
    }
