"""Makes further runs at the boundary: halves every bracket until it is narrow enough."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sensor_rig.sweep.analysis.boundaries import Boundary, FactorLevel, boundaries, is_good
from sensor_rig.sweep.plan.sampling import levels, numeric, rounded
from sensor_rig.sweep.plan.sweep_plan import Factor, Plan, Value
from sensor_rig.sweep.running.experiment import Task

if TYPE_CHECKING:
    from sensor_rig.sweep.running.outcome import RunResult

DEFAULT_PART = 50
"""A boundary is narrow enough at this part of the factor's span."""


def further_points(
    plan: Plan, tasks: Iterable[Task], results: Mapping[str, RunResult]
) -> Iterator[tuple[Value, ...]]:
    """Yield the points that halve the brackets along every line of the grid."""
    if plan.refine is None:
        return
    every = list(tasks)
    for index, (name, factor) in enumerate(plan.vary.items()):
        given = levels(factor)
        if (plan.refine.factors and name not in plan.refine.factors) or not numeric(given):
            continue
        numbers = [float(value) for value in given]  # type: ignore[arg-type]
        to = plan.refine.to or (max(numbers) - min(numbers)) / DEFAULT_PART
        whole = all(isinstance(value, int) for value in given)
        for others, line in _lines(plan, every, results, index).items():
            for found in boundaries(line, plan.confidence):
                middle = _middle(found, factor, whole, to)
                if middle is not None:
                    yield (*others[:index], middle, *others[index:])


def _lines(
    plan: Plan, tasks: Iterable[Task], results: Mapping[str, RunResult], index: int
) -> dict[tuple[Value, ...], list[FactorLevel]]:
    """Return the levels of one factor, for every combination of the others in the plan."""
    claims = plan.claims
    counts: dict[tuple[Value, ...], dict[float, list[bool]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for task in tasks:
        if task.id not in results:
            continue
        result = results[task.id]
        others = (*task.values[:index], *task.values[index + 1 :])
        counts[_hashable(others)][float(task.values[index])].append(  # type: ignore[arg-type]
            is_good(result.status.value, result.measures, claims)
        )
    return {
        others: [FactorLevel(value, sum(each), len(each)) for value, each in line.items()]
        for others, line in counts.items()
    }


def _hashable(values: tuple[Value, ...]) -> tuple[Value, ...]:
    return tuple(
        tuple(value) if isinstance(value, list) else value  # type: ignore[misc]
        for value in values
    )


def _middle(found: Boundary, factor: Factor, whole: bool, to: float) -> Value | None:
    """Return the value that halves a bracket; None where it is narrow enough."""
    if found.high - found.low <= to * (1.0 + 1e-9):
        return None
    if whole:
        middle = int(found.low + found.high) // 2
        return middle if found.low < middle < found.high else None
    if factor.scale == 'log':
        return rounded(math.sqrt(found.low * found.high))
    return rounded((found.low + found.high) / 2.0)
