"""What a run came to: typed facts until they are printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

VERSION = 1
"""Of the keys of `rig run --json`; see docs/ci.md."""


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
    """Wall time that the machine was too slow for; None where no world was heard."""
    resets: int
    sensors: Mapping[str, SensorSummary]
    bundles: int | None
    """None where nothing was synchronised."""
    inputs: Mapping[str, InputSummary]
    warnings: list[str] = field(default_factory=list)

    def ledger_keys(self) -> list[str]:
        """Return the counters that are not zero everywhere, in their order."""
        keys = next((list(each.ledger) for each in self.inputs.values()), [])
        return [key for key in keys if any(each.ledger[key] for each in self.inputs.values())]

    def as_json(self) -> dict[str, Any]:
        """Return it as `rig run --json` prints it; what is not known is null."""
        plain: dict[str, Any] = _plain({'version': VERSION, **asdict(self)})
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value
