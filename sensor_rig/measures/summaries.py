"""The measures in a JSON document that a command printed: `rig run`, `rig sync`, a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from rig_common.errors import RigError, why
from rig_common.jsonable import with_nan
from sensor_rig.measures.keys import Measures, measures_of

MAX_BYTES = 1 << 30


def summary_measures(path: Path) -> tuple[Measures, str]:
    """Return the numbers of a document: its measures, and every number by its dotted place.

    Also how its offsets were estimated, `live` or `smoothed`; empty where it does not tell.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise RigError(f'{path} is larger than {MAX_BYTES >> 20} MiB, which no summary is')
        document = json.loads(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise RigError(f'cannot read {path}: {why(error)}') from None
    except (ValueError, RecursionError):
        raise RigError(f'{path} is neither a recording nor the JSON of a run') from None
    if not isinstance(document, dict):
        raise RigError(f'{path} is not the JSON of a run; it should be a map of figures')
    measures = document.pop('measures', None)
    found = dict(_numbers(document, ''))
    if document.get('kind') == 'sync':  # report.json of `rig sync`
        try:
            found |= measures_of(with_nan(document))
        except (KeyError, TypeError):
            raise RigError(f'{path} is not the data of a sync report') from None
    if isinstance(measures, Mapping):
        found |= dict(_numbers(measures, ''))
    causal = document.get('causal')
    return found, '' if causal is None else 'live' if causal else 'smoothed'


def _numbers(part: Mapping[str, object], prefix: str) -> Iterator[tuple[str, float]]:
    for key, value in part.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f'{prefix}{key}.')
        elif isinstance(value, (int, float)):
            yield f'{prefix}{key}', float(value)
