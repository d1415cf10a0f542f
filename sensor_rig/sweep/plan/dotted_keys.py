"""Sets dotted keys in the nested parameters of a rig file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from rig_common.errors import RigError
from rig_common.paramfile.events import Parameters
from sensor_rig.sweep.plan.sweep_plan import SYSTEM_KEY, Factor, Value

PAIR = '_range_'
"""In the name of a key whose value is a pair, such as delay_range_s."""


def with_values(
    parameters: Mapping[str, Any],
    changes: Iterable[tuple[str, Value]],
) -> Parameters:
    """Return a copy of nested `parameters` with (dotted key, value) set.

    A number for a key that is a list there, or is called a range, sets every element of it. Maps
    that are not there are made; whether the key exists is said when the rig is validated.
    """
    changed = deepcopy(dict(parameters))
    for key, value in changes:
        *path, last = key.split('.')
        place = changed
        for part in path:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise RigError(f'vary: {key} leads through {part!r}, which is not a map')
        place[last] = _fitting(last, place.get(last), value)
    return changed


def _fitting(name: str, before: object, value: Value) -> object:
    if isinstance(value, (list, str, bool)):
        return value
    if isinstance(before, list):
        return [float(value)] * len(before)
    return [float(value)] * 2 if PAIR in name else _like(before, value)


def _like(before: Any, value: Any) -> object:
    """Return a number as the file has it: rcl distinguishes 1 from 1.0."""
    return float(value) if isinstance(before, float) else value


def settings(
    factors: Mapping[str, Factor], values: Iterable[Value]
) -> tuple[list[tuple[str, Value]], dict[str, Value]]:
    """Return (key, value) of the rig, and the parameters of the system, for one point."""
    rig: list[tuple[str, Value]] = []
    system: dict[str, Value] = {}
    for (name, factor), value in zip(factors.items(), values, strict=True):
        for key in factor.keys or (name,):
            if key.startswith(SYSTEM_KEY):
                system[key.removeprefix(SYSTEM_KEY)] = value
            else:
                rig.append((key, value))
    return rig, system
