"""The common vocabulary of all benchmarks: a figure, its target, and when it got worse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, Literal

Better = Literal['higher', 'lower']
Kind = Literal['ratio', 'accuracy', 'absolute']

WORSE = 1.2
"""A ratio that is worse than an earlier one by more than this factor is worth a look."""


@dataclass(frozen=True)
class Figure:
    """One headline figure of a benchmark."""

    name: str
    value: float | None
    """None where it could not be measured; `note` then says why."""
    unit: str = ''
    target: float | None = None
    """What it should reach: a least value where higher is better, a greatest where lower is."""
    better: Better = 'higher'
    kind: Kind = 'ratio'
    """ratio: of two things measured in one run, comparable between machines; accuracy: an error or
    a count that no machine changes; absolute: of the machine it was measured on."""
    spread: tuple[float, float] | None = None
    """Where the middle half of the repetitions lay, or the range over cases; see the note."""
    note: str = ''

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; None where there is no target or no value."""
        if self.value is None or self.target is None:
            return None
        return self.value >= self.target if self.better == 'higher' else self.value <= self.target

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**asdict(self), 'met': self.met}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Figure:
        """Return the figure that `to_dict` described."""
        kept = {key: value for key, value in data.items() if key != 'met'}
        if kept.get('spread') is not None:
            kept['spread'] = tuple(kept['spread'])
        return cls(**kept)


def absent(name: str, why: str, **kept: Any) -> Figure:
    """Return a figure that could not be measured, with the reason."""
    return Figure(name, None, note=f'absent: {why}', **kept)


def least(name: str, values: Iterable[float], **kept: Any) -> Figure:
    """Return the smallest of several cases as one figure; the spread is their range."""
    found = list(values)
    return Figure(name, min(found), spread=(min(found), max(found)), **kept)


def greatest(name: str, values: Iterable[float], **kept: Any) -> Figure:
    """Return the largest of several cases as one figure; the spread is their range."""
    found = list(values)
    return Figure(name, max(found), better='lower', spread=(min(found), max(found)), **kept)


def worsening(before: Figure, now: Figure) -> str | None:
    """Return in one sentence how `now` is worse than `before`, or None where it is not.

    Ratios may move by the factor `WORSE`; what depends on the machine is not compared. A target
    that was reached and is not any more counts for everything a machine does not change.
    """
    if now.kind == 'absolute' or before.value is None:
        return None
    if now.value is None:
        return f'was {shown(before)} and is {now.note or "absent"}'
    if now.kind == 'ratio' and min(before.value, now.value) > 0.0:
        factor = before.value / now.value if now.better == 'higher' else now.value / before.value
        if factor > WORSE:
            return f'is {shown(now)}, was {shown(before)} ({100.0 * (factor - 1.0):.0f} % worse)'
    if before.met and now.met is False:
        return (
            f'is {shown(now)} and misses its target of {number(now.target)}, was {shown(before)}'
        )
    return None


def shown(figure: Figure) -> str:
    """Return value and unit as people read them."""
    if figure.value is None:
        return figure.note
    if figure.unit == 'x':
        return f'{number(figure.value)}x'
    return f'{number(figure.value)} {figure.unit}'.strip()


def number(value: float | None) -> str:
    """Return three significant digits, without an exponent where that is readable."""
    if value is None:
        return ''
    if not isfinite(value):
        return str(value)
    if value == 0.0 or 1e-3 <= abs(value) < 1e3:
        return f'{value:.3g}'
    return f'{value:,.0f}' if abs(value) < 1e9 and abs(value) >= 1e3 else f'{value:.2e}'
