"""The results of a run, as typed values until they are printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite

from rig_common.jsonable import JsonObject, jsonable
from sync_engine.streams.ledger import USED

VERSION = 1
"""Of the keys of `rig run --json`; see docs/sweep.md."""


@dataclass(frozen=True)
class SensorSummary:
    """One simulated sensor."""

    rate_hz: float
    achieved_hz: float
    latency_p50_ms: float
    latency_p99_ms: float
    published: int
    lost: int
    lost_fraction: float | None
    capture_ms: float = 0.0
    """How long a capture lasts (a sweep, an exposure)."""


@dataclass(frozen=True)
class InputSummary:
    """One input of the sync engine; offsets are to the reference's clock."""

    offset_ms: float
    sigma_ms: float
    true_offset_ms: float | None
    """Known of simulated sensors only."""
    state: str
    ledger: Mapping[str, int]
    """Messages received, and where they went."""

    @property
    def error_ms(self) -> float | None:
        """Estimated minus true offset."""
        return None if self.true_offset_ms is None else self.offset_ms - self.true_offset_ms


@dataclass(frozen=True)
class Summary:
    """One run of a rig."""

    simulated_s: float
    real_time_factor: float | None
    slowed_s: float | None
    """Wall time lost because the machine was too slow; None where no world was heard."""
    resets: int
    sensors: Mapping[str, SensorSummary]
    bundles: int | None
    """None where nothing was synchronised."""
    inputs: Mapping[str, InputSummary]
    measures: Mapping[str, float] = field(default_factory=dict)
    """By the keys of docs/sweep.md, for `rig assert`."""
    warnings: list[str] = field(default_factory=list)

    def ledger_keys(self) -> list[str]:
        """Return the counters that are not zero everywhere, in their order."""
        keys = next((list(each.ledger) for each in self.inputs.values()), [])
        return [key for key in keys if any(each.ledger[key] for each in self.inputs.values())]

    def as_json(self) -> JsonObject:
        """Return it as `rig run --json` prints it; what is not known is null."""
        plain: JsonObject = jsonable({'version': VERSION, **asdict(self)})
        return plain


def run_measures(
    sensors: Mapping[str, SensorSummary],
    inputs: Mapping[str, InputSummary],
    heard: Mapping[str, float],
) -> dict[str, float]:
    """Return the measures of a run over ROS, from its bundles (`heard`) and its nodes' reports."""
    found: dict[str, float | None] = {}
    for name, sensor in sensors.items():
        found |= {
            f'{name}.latency_ms.p50': sensor.latency_p50_ms,
            f'{name}.latency_ms.p99': sensor.latency_p99_ms,
            f'{name}.received': sensor.published,
            f'{name}.lost_fraction': sensor.lost_fraction,
        }
    for name, each in inputs.items():
        received, used = each.ledger['received'], sum(each.ledger[fate.value] for fate in USED)
        found |= {
            f'{name}.received': received,
            f'{name}.used': used,
            f'{name}.used_fraction': used / received if received else 0.0,
        }
    return {
        key: value
        for key, value in {**found, **heard}.items()
        if value is not None and isfinite(value)
    }
