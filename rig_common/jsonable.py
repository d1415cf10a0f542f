"""Values as JSON knows them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import isfinite
from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]
"""A document for `--json`, a report or a file. `Any`, because one that is read back is known by
its `version` only; what is computed stays in typed objects until it becomes such a document."""


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
