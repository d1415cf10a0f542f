"""The results of a run, as typed values until they are printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from math import isfinite, isnan
from typing import Any, TypeAlias, TypeVar

from rig_common.jsonable import JsonObject, jsonable
from sync_engine.streams.ledger import USED

VERSION = 1
"""Of the keys of `rig run --json`; see docs/sweep.md."""


Cell: TypeAlias = 'str | Callable[[Any], object]'
"""How a cell is shown: the format of the field's value, or a text made of the whole row."""


def column(cells: Mapping[str, Cell], source: str = '', default: object = MISSING) -> Any:
    """Return a field of the summary that fills table columns: heading -> how it is shown.

    Its value is what the node reports under the same name, or under `source`.
    """
    return field(default=default, metadata={'cells': cells, 'source': source})


@dataclass(frozen=True)
class SensorSummary:
    """One simulated sensor; a field is a column, in `rig run --json` and in the table."""

    rate_hz: float = column({'rate (Hz)': '.1f'})
    achieved_hz: float = column({'achieved': '.3f'})
    latency_p50_ms: float = column({'latency p50 (ms)': '.2f'})
    latency_p99_ms: float = column({'p99': '.2f'})
    published: int = column({'published': ''})
    lost: int = column({'lost': lambda s: f'{s.lost} ({100 * (s.lost_fraction or 0.0):.1f} %)'})
    lost_fraction: float | None = column({})
    capture_ms: float = column({}, default=0.0)
    """How long a capture lasts (a sweep, an exposure)."""


@dataclass(frozen=True)
class InputSummary:
    """One input of the sync engine; offsets are to the reference's clock. A field is a column."""

    offset_ms: float = column({'offset (ms)': '.3f'}, 'offset_to_reference_ms')
    true_offset_ms: float | None = column(
        {'true': '.3f', 'error': lambda i: figure(i.error_ms, '+.3f')}
    )
    """Known of simulated sensors only."""
    sigma_ms: float = column({'sigma': '.3f'}, 'sigma_to_reference_ms')
    state: str = column({'state': ''}, 'offset_state')
    ledger: Mapping[str, int] = column({})
    """Messages received, and where they went."""

    @property
    def error_ms(self) -> float | None:
        """Estimated minus true offset."""
        return None if self.true_offset_ms is None else self.offset_ms - self.true_offset_ms


RowT = TypeVar('RowT', SensorSummary, InputSummary)


def summarised(kind: type[RowT], reported: object, **known: object) -> RowT:
    """Return a row of the summary: `known` values, and the others as a node reported them."""
    sources = {each.name: each.metadata['source'] or each.name for each in fields(kind)}
    found = {
        name: getattr(reported, source)
        for name, source in sources.items()
        if hasattr(reported, source)
    }
    return kind(**{**found, **known})


def headings(kind: type[RowT]) -> list[str]:
    """Return the headings of the table of such rows."""
    return [heading for each in fields(kind) for heading in each.metadata['cells']]


def cells(row: SensorSummary | InputSummary) -> list[object]:
    """Return the cells of one row of the table."""
    return [
        shown(row) if callable(shown) else figure(getattr(row, each.name), shown)
        for each in fields(row)
        for shown in each.metadata['cells'].values()
    ]


def figure(value: object, form: str) -> object:
    """Return a value as it is shown; what is not known is a dash."""
    if value is None or (isinstance(value, float) and isnan(value)):
        return '-'
    return format(value, form) if form else value


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
