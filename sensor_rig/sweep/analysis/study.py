"""What the table of a sweep says: curves, boundaries, requirements, what matters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rig_common.errors import RigError
from rig_common.validation import hint
from sensor_rig.sweep.analysis.boundaries import Boundary, FactorLevel, boundaries, is_good
from sensor_rig.sweep.analysis.indices import Indices, indices_of
from sensor_rig.sweep.analysis.verdicts import RequirementVerdict, verdict
from sensor_rig.sweep.plan.sweep_plan import Plan, Requirement
from sensor_rig.sweep.running.outcome import RunStatus
from sensor_rig.sweep.running.store import TABLE, kept_plan
from sensor_rig.sweep.running.table import FIXED, read_table

BINS = 10
"""Levels that a sampled factor is divided into."""
CELLS = 6
"""Rows and columns of the interaction of two sampled factors."""
MOST_PAIRS = 10
GOOD = 'good'
"""The measure that every run has: 1 where it is good, else 0."""


@dataclass(frozen=True)
class Row:
    """One run of the table."""

    status: str
    point: int
    values: dict[str, Any]
    """By factor: numbers, or text."""
    measures: dict[str, float]
    good: bool


@dataclass(frozen=True)
class CurvePoint:
    """The runs at one level of a factor; the interval is of the mean, over seeds and others."""

    value: Any
    runs: int
    mean: float
    low: float
    high: float
    least: float
    most: float


@dataclass(frozen=True)
class FactorLine:
    """How often runs are good along one factor, the others fixed (or all together)."""

    factor: str
    others: dict[str, Any]
    levels: tuple[FactorLevel, ...]
    boundaries: tuple[Boundary, ...]


@dataclass(frozen=True)
class Interaction:
    """The fraction of good runs, and the mean of a measure, over two factors."""

    x: str
    y: str
    xs: tuple[Any, ...]
    ys: tuple[object, ...]
    good: tuple[tuple[float | None, ...], ...]
    """[y][x]"""
    measure: str
    means: tuple[tuple[float | None, ...], ...]


class Study:
    """The table of one sweep, looked at."""

    def __init__(self, plan: Plan, name: str, columns: Mapping[str, Sequence[object]]) -> None:
        self.plan, self.name = plan, name
        self.factors = [factor for factor in plan.vary if factor in columns]
        self.measures = [key for key in columns if key not in (*FIXED, *self.factors)]
        self.rows = [self._row(columns, index) for index in range(len(columns['run_id']))]
        self._refuse_unknown_limits()

    def _row(self, columns: Mapping[str, Sequence[Any]], index: int) -> Row:
        measures = {
            key: columns[key][index] for key in self.measures if columns[key][index] is not None
        }
        status = columns['status'][index]
        return Row(
            status,
            columns['point'][index],
            {name: columns[name][index] for name in self.factors},
            measures,
            is_good(status, measures, self.plan.claims),
        )

    def _refuse_unknown_limits(self) -> None:
        if any(row.status == RunStatus.OK.value for row in self.rows):
            for claim in self.plan.claims:
                if claim.key not in self.measures:
                    raise RigError(
                        f'limits: no run has the measure {claim.key!r}; '
                        f'{hint(claim.key, self.measures)}'
                    )

    # ---- levels ---------------------------------------------------------------------------------

    @property
    def is_grid(self) -> bool:
        """Whether factors have levels, rather than a value of their own in every run."""
        return self.plan.sample.method == 'grid'

    @property
    def planned(self) -> list[Row]:
        """The runs of the design; those that bisecting added would weigh some lines more."""
        return [row for row in self.rows if row.point >= 0 or len(self.factors) == 1]

    def numeric(self, factor: str) -> bool:
        """Return whether the values of a factor are numbers."""
        return bool(self.rows) and not isinstance(self.rows[0].values[factor], str)

    def groups(
        self, factor: str, rows: Iterable[Row], bins: int = BINS
    ) -> list[tuple[Any, list[Row]]]:
        """Return (level, its runs) in ascending order; sampled numbers fall into bins."""
        chosen = list(rows)
        if not self.is_grid and self.numeric(factor):
            ordered = sorted(chosen, key=lambda row: float(row.values[factor]))
            parts = [
                part
                for part in np.array_split(
                    np.arange(len(ordered)), min(bins, max(len(ordered), 1))
                )
                if len(part)
            ]
            binned = [[ordered[index] for index in part] for part in parts]
            return [
                (float(np.mean([row.values[factor] for row in part])), part) for part in binned
            ]
        found: dict[Any, list[Row]] = defaultdict(list)
        for row in chosen:
            found[row.values[factor]].append(row)
        if self.numeric(factor):
            return sorted(found.items())
        order = [str(value) for value in self.plan.vary[factor].values]
        return sorted(
            found.items(),
            key=lambda each: order.index(each[0]) if each[0] in order else len(order),
        )

    def levels(self, factor: str, rows: Iterable[Row]) -> tuple[FactorLevel, ...]:
        """Return how many runs are good at each level."""
        return tuple(
            FactorLevel(value, sum(row.good for row in part), len(part))
            for value, part in self.groups(factor, rows)
        )

    # ---- curves ---------------------------------------------------------------------------------

    def curve(self, factor: str, measure: str) -> list[CurvePoint]:
        """Return the mean of a measure along a factor with its interval."""
        points = []
        for value, part in self.groups(factor, self.planned):
            numbers = [row.measures[measure] for row in part if measure in row.measures]
            if numbers:
                mean, low, high = mean_interval(numbers, self.plan.confidence)
                points.append(
                    CurvePoint(value, len(numbers), mean, low, high, min(numbers), max(numbers))
                )
        return points

    @property
    def shown(self) -> list[str]:
        """The measures that are drawn: those of the limits, else the first eight."""
        wanted = list(dict.fromkeys(claim.key for claim in self.plan.claims))
        return wanted or self.measures[:8]

    # ---- boundaries -----------------------------------------------------------------------------

    @cached_property
    def lines(self) -> list[FactorLine]:
        """How often runs are good along every factor that has numbers.

        First all runs together; in a grid of several factors then every line of it.
        """
        found = []
        for factor in self.factors if self.plan.claims else ():
            if not self.numeric(factor):
                continue
            found.append(self._line(factor, {}, self.planned))
            if self.is_grid and len(self.factors) > 1:
                others = [name for name in self.factors if name != factor]
                parts: dict[tuple[object, ...], list[Row]] = defaultdict(list)
                for row in self.rows:
                    parts[tuple(row.values[name] for name in others)].append(row)
                found += [
                    self._line(factor, dict(zip(others, key, strict=True)), rows)
                    for key, rows in parts.items()
                    if len({row.values[factor] for row in rows}) > 1
                ]
        return found

    def _line(self, factor: str, others: dict[str, object], rows: Iterable[Row]) -> FactorLine:
        levels = self.levels(factor, rows)
        return FactorLine(factor, others, levels, tuple(boundaries(levels, self.plan.confidence)))

    # ---- requirements ---------------------------------------------------------------------------

    @cached_property
    def verdicts(self) -> list[RequirementVerdict]:
        """Whether the plan's requirements are met."""
        return [self._verdict(each) for each in self.plan.require]

    def _verdict(self, wanted: Requirement) -> RequirementVerdict:
        low = -np.inf if wanted.down_to is None else wanted.down_to
        high = np.inf if wanted.up_to is None else wanted.up_to
        rows = [
            row
            for row in self.planned
            if self.numeric(wanted.factor) and low <= row.values[wanted.factor] <= high
        ]
        levels = (
            self.levels(wanted.factor, rows)
            if self.is_grid
            else (FactorLevel(float(high), sum(row.good for row in rows), len(rows)),)
        )
        return verdict(
            wanted,
            wanted.confidence or self.plan.confidence,
            levels if rows else (),
            name_level=self.is_grid,
        )

    # ---- sensitivities and interactions ---------------------------------------------------------

    @cached_property
    def indices(self) -> list[Indices]:
        """Indices of sensitivity, for plans that were sampled for them."""
        if self.plan.sample.method not in ('saltelli', 'morris'):
            return []
        found = []
        for measure in [*self.shown, *([GOOD] if self.plan.claims else [])]:
            outputs: dict[int, list[float]] = defaultdict(list)
            for row in self.rows:
                value = float(row.good) if measure == GOOD else row.measures.get(measure)
                if value is not None:
                    outputs[row.point].append(value)
            found.append(
                indices_of(
                    self.plan,
                    measure,
                    {point: float(np.mean(values)) for point, values in outputs.items()},
                )
            )
        return found

    @cached_property
    def interactions(self) -> list[Interaction]:
        """The pairs of factors, as heat maps."""
        pairs = list(combinations(self.factors, 2))[:MOST_PAIRS]
        return [self._interaction(x, y) for x, y in pairs]

    def _interaction(self, x: str, y: str) -> Interaction:
        rows = self.planned
        columns = self.groups(x, rows, CELLS)
        lines = self.groups(y, rows, CELLS)
        measure = self.shown[0] if self.shown else ''
        good, means = [], []
        for _, line in lines:
            of_line = {id(row) for row in line}
            cells = [[row for row in column if id(row) in of_line] for _, column in columns]
            good.append(tuple(_mean([float(row.good) for row in cell]) for cell in cells))
            means.append(
                tuple(
                    _mean([row.measures[measure] for row in cell if measure in row.measures])
                    for cell in cells
                )
            )
        return Interaction(
            x,
            y,
            tuple(value for value, _ in columns),
            tuple(value for value, _ in lines),
            tuple(good),
            measure,
            tuple(means),
        )

    # ---- the whole ------------------------------------------------------------------------------

    @property
    def statuses(self) -> dict[str, int]:
        """How many runs ended in each way."""
        return {
            each.value: count
            for each in RunStatus
            if (count := sum(row.status == each.value for row in self.rows))
        }

    @property
    def met(self) -> bool:
        """Whether every requirement is met."""
        return all(each.met for each in self.verdicts)


def study_of(folder: Path) -> Study:
    """Return the study of a results folder."""
    plan, name = kept_plan(folder)
    table = folder / TABLE
    if not table.is_file():
        raise RigError(
            f'{folder} has no {TABLE} yet; "rig sweep" writes it at its end, also when '
            f'it is interrupted'
        )
    return Study(plan, name, read_table(table))


def mean_interval(numbers: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Return the mean and Student's interval of it; of one number the interval is that number."""
    mean = float(np.mean(numbers))
    if len(numbers) < 2:
        return mean, mean, mean
    from scipy.special import stdtrit

    half = float(
        stdtrit(len(numbers) - 1, 1.0 - (1.0 - confidence) / 2.0)
        * np.std(numbers, ddof=1)
        / np.sqrt(len(numbers))
    )
    return mean, mean - half, mean + half


def _mean(numbers: Sequence[float]) -> float | None:
    return float(np.mean(numbers)) if numbers else None
