"""A finding: one sentence with a number in it, how bad it is, what it does and what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import IntEnum

from rig_common.errors import RigError
from rig_common.jsonable import JsonObject

VERSION = 1
"""Of the keys that `rig inspect --json` prints; see docs/inspect.md."""

Evidence = Mapping[str, float]


class Severity(IntEnum):
    """How bad a finding is; `wrong` means that fusion with these stamps gives wrong results."""

    INFO = 0
    WARNING = 1
    WRONG = 2

    @property
    def word(self) -> str:
        """As options, JSON and tables write it."""
        return self.name.lower()

    @classmethod
    def of(cls, word: str) -> Severity:
        """Return the severity called `word`."""
        for each in cls:
            if each.word == word:
                return each
        raise RigError(
            f'severity is {word!r}; it should be one of {", ".join(each.word for each in cls)}'
        )


@dataclass(frozen=True)
class Finding:
    """Something about the times of one or more topics."""

    code: str
    """Stable name, snake_case; docs/inspect.md lists them all."""
    severity: Severity
    topics: tuple[str, ...]
    what: str
    """The finding with its number, without the topic's name in front."""
    effect: str = ''
    """What it does to fusion."""
    change: str = ''
    """What to change."""
    evidence: Evidence = field(default_factory=dict)
    """Figures it rests on, with units in their names."""

    @property
    def sentence(self) -> str:
        """One line: who, what, what to do."""
        advice = f'; {self.change}' if self.change else ''
        return f'{", ".join(self.topics)}: {self.what}{advice}'

    def as_json(self) -> JsonObject:
        """Return it as plain values."""
        return {
            **asdict(self),
            'severity': self.severity.word,
            'topics': list(self.topics),
            'sentence': self.sentence,
        }


def times(count: int) -> str:
    """Return how often, in words: "once", "3 times"."""
    return 'once' if count == 1 else f'{count} times'


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Return the findings in the order in which they are shown."""
    return sorted(findings, key=lambda each: (-each.severity, each.code, each.topics))
