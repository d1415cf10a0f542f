"""JSON, written strictly: the one way from values of this project to a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from math import isfinite
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A document for `--json`, a report or a file. `Any`, because one that is read back is known by
its `version` only; what is computed stays in typed objects until it becomes such a document."""

UNITS = ('_s', '_ms', '_hz')


def jsonable(value: object) -> Any:
    """Return `value` as maps, lists, texts and numbers; NaN and infinity become None.

    Enums become their values, arrays lists, everything else its text.
    """
    if hasattr(value, 'tolist'):  # numpy arrays and scalars
        value = value.tolist()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def json_text(document: object, indent: int | None = None) -> str:
    """Return `document` as strict JSON; numpy values become plain ones, NaN becomes null."""
    return json.dumps(jsonable(document), indent=indent, allow_nan=False)


def with_nan(value: Any, key: str = '') -> Any:
    """Return a document of ours that was read back, with NaN where a number is not known.

    Such a null stands in a list of numbers, or under a key that ends in a unit.
    """
    if isinstance(value, Mapping):
        return {each: with_nan(item, each) for each, item in value.items()}
    if isinstance(value, list):
        return [with_nan(item, '_s') for item in value]
    return float('nan') if value is None and key.endswith(UNITS) else value
