"""A finding: one sentence with a number in it, how bad it is, what it does and what to change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import IntEnum

from rig_common.jsonable import JsonObject

VERSION = 2
"""Of the keys that `rig inspect --json` prints; see docs/inspect.md."""

Evidence = Mapping[str, float]
Span = tuple[int, int]
"""From, to; ns."""


class Severity(IntEnum):
    """How bad a finding is; `wrong` means that fusion with these stamps gives wrong results."""

    INFO = 0
    WARNING = 1
    WRONG = 2

    @property
    def word(self) -> str:
        """As options, JSON and tables write it."""
        return self.name.lower()


INFO, WARNING, WRONG = Severity.INFO, Severity.WARNING, Severity.WRONG


@dataclass(frozen=True)
class Finding:
    """Something about the times of one or more topics."""

    code: str
    """Stable name, snake_case; docs/findings.md has a part for each."""
    severity: Severity
    topics: tuple[str, ...]
    what: str
    """The finding with its number, without the topic's name in front."""
    effect: str = ''
    """What it does to fusion."""
    change: str = ''
    """What to change."""
    rests_on: str = ''
    """What of the recording shows it: stamps, receive times, motion."""
    evidence: Evidence = field(default_factory=dict)
    """Figures it rests on, with units in their names."""
    related: tuple[str, ...] = ()
    """Topics that these were compared with."""
    explains: tuple[str, ...] = ()
    """Codes of what else was seen and follows from it; not said again."""
    spans: tuple[Span, ...] = ()
    """When it happened; empty for what lasts. Not part of the JSON."""

    @property
    def sentence(self) -> str:
        """One line: who, what, what to do."""
        advice = f'; {self.change}' if self.change else ''
        return f'{", ".join(self.topics)}: {self.what}{advice}'

    def as_json(self) -> JsonObject:
        """Return it as plain values."""
        values = asdict(self)
        del values['spans']
        return {
            **values,
            'severity': self.severity.word,
            'topics': list(self.topics),
            'related': list(self.related),
            'explains': list(self.explains),
            'sentence': self.sentence,
        }


def times(count: int) -> str:
    """Return how often, in words: "once", "3 times"."""
    return 'once' if count == 1 else f'{count} times'


def lasting(seconds: float) -> str:
    """Return a time in the unit that people would use.

    >>> lasting(2e-5), lasting(0.0123), lasting(1.5), lasting(3725.0), lasting(1763478016.4)
    ('20 us', '12.3 ms', '1.500 s', '1 h 2 min', '20410 days')
    """
    size = abs(seconds)
    if size < 1e-4:
        return f'{size * 1e6:.0f} us'
    if size < 0.9995:
        return f'{size * 1e3:.1f} ms' if size < 0.1 else f'{size * 1e3:.0f} ms'
    if size < 60.0:
        return f'{size:.3f} s'
    minutes = round(size / 60.0)
    if size < 3600.0:
        return f'{size:.1f} s' if size < 600.0 else f'{minutes} min'
    if size < 2 * 86400.0:
        return f'{minutes // 60} h {minutes % 60} min' if minutes % 60 else f'{minutes // 60} h'
    return f'{round(size / 86400.0)} days'


def date(time_ns: int) -> str:
    """Return a time as people write it; times near 1970 as seconds since a start.

    >>> date(1_763_478_016 * 10**9), date(512_300_000_000)
    ('2025-11-18 15:00:16 UTC', '512.3 s')
    """
    seconds = time_ns / 1e9
    if abs(seconds) < 1e8:
        return f'{seconds:.1f} s'
    try:
        return f'{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC'
    except (ValueError, OverflowError, OSError):
        return f'{seconds:.0f} s'


def listed(topics: Sequence[str], most: int = 6) -> str:
    """Return names for a sentence, the first of many."""
    more = f' and {len(topics) - most} more' if len(topics) > most else ''
    return ', '.join(topics[:most]) + more


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings in the order in which they are shown.

    By severity; of equal ones that which explains most, then that of most topics.
    """
    return sorted(
        findings,
        key=lambda each: (
            -each.severity,
            -len(each.explains),
            -len(each.topics),
            each.code,
            each.topics,
        ),
    )
