"""Claims about measures, as people write them: `camera.offset_error_ms.p95 < 2`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan

from rig_common.errors import RigError
from rig_common.validation import hint

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    '<': operator.lt,
    '<=': operator.le,
    '>': operator.gt,
    '>=': operator.ge,
    '==': operator.eq,
    '!=': operator.ne,
}
CLAIM = re.compile(r'\s*([^\s<>=!]+)\s*(<=|>=|==|!=|<|>)\s*(\S+)\s*\Z')


@dataclass(frozen=True)
class Claim:
    """A measure, a comparison and a number."""

    key: str
    comparison: str
    limit: float

    @classmethod
    def parse(cls, text: str, where: str = '') -> Claim:
        """Return the claim in `text`; `where` stands in front of what is wrong with it."""
        found = CLAIM.match(text)
        try:
            if found is None:
                raise ValueError
            limit = float(found[3])
            if isnan(limit):
                raise ValueError
        except ValueError:
            raise RigError(
                f'{where}{text!r} is not a claim; it should be a measure, one of '
                f'{" ".join(COMPARISONS)} and a number, such as '
                f'"camera.offset_error_ms.p95 < 2"'
            ) from None
        return cls(found[1], found[2], limit)

    def __str__(self) -> str:
        return f'{self.key} {self.comparison} {self.limit:g}'

    def holds(self, value: float) -> bool:
        """Return whether `value` is as claimed; NaN never is."""
        return not isnan(value) and COMPARISONS[self.comparison](value, self.limit)

    def value_in(self, measures: Mapping[str, float]) -> float:
        """Return the number it is about, or say which measures there are."""
        if self.key not in measures:
            raise RigError(
                f'there is no measure {self.key!r} here; {hint(self.key, sorted(measures))}'
            )
        return measures[self.key]
