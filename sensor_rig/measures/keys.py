"""The measures of a sync run as flat keys: `camera.offset_error_ms.p95`.

Every way to a run (in process, from a recording, over ROS) ends in the document of a `SyncRecord`;
here it becomes numbers. What is not known (no truth, no bundle) has no key.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import TypeAlias

from rig_common.jsonable import JsonObject
from sync_engine.streams.ledger import USED

Measures: TypeAlias = dict[str, float]
QUANTILES = ('p50', 'p95', 'p99', 'max')


def measures_of(document: JsonObject) -> Measures:
    """Return the measures of a sync run's document (see `SyncRecord.document`)."""
    return {key: float(value) for key, value in _all(document) if isfinite(value)}


def quantiles(name: str, figures: JsonObject) -> Iterator[tuple[str, float]]:
    """Yield `<name>.p50` ... in ms of quantiles in s; nothing where nothing was counted."""
    if figures['count']:
        for each in QUANTILES:
            yield f'{name}.{each}', figures[f'{each}_s'] * 1e3


def _all(document: JsonObject) -> Iterator[tuple[str, float]]:
    bundles, sensors = document['bundles'], document['sensors']
    yield 'duration_s', document['duration_s']
    yield 'bundles', bundles
    yield 'complete', document['complete']
    yield 'completeness', document['complete'] / bundles if bundles else 0.0
    wanted = sensors[document['reference']]['counts']['received']
    yield 'coverage', bundles / wanted if wanted else 0.0
    yield from quantiles('waiting_ms', document['waiting'])
    yield from quantiles('latency_ms', document['latency'])
    for name, sensor in sensors.items():
        yield from _input(name, sensor, bundles)


def _input(name: str, sensor: JsonObject, bundles: int) -> Iterator[tuple[str, float]]:
    counts, truth = sensor['counts'], sensor['truth']
    received = counts['received']
    yield f'{name}.received', received
    if USED[0].value in counts:  # not known where only the bundles were received
        used = sum(counts[each.value] for each in USED)
        yield f'{name}.used', used
        yield f'{name}.used_fraction', used / received if received else 0.0
    if bundles:
        yield f'{name}.missing_fraction', sum(sensor['missing'].values()) / bundles
    if sensor['last']:
        yield f'{name}.sigma_ms', sensor['last']['sigma_ms']
    yield from quantiles(f'{name}.offset_error_ms', truth['offset_error'])
    yield from quantiles(f'{name}.pairing_error_ms', truth['pairing'])
    yield from quantiles(f'{name}.pairing_ms', sensor['pairing'])
    yield from quantiles(f'{name}.latency_ms', truth['latency'])
