"""What came of one run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum

from pydantic import TypeAdapter


class RunStatus(str, Enum):
    """How a run ended; all but `ok` are results, too."""

    OK = 'ok'
    FAILED = 'failed'
    """The system under test raised an exception or ended with another exit code than 0."""
    REFUSED = 'refused'
    """The values of this run make no valid rig, or its answer cannot be read."""
    TIMEOUT = 'timeout'
    """Ended at `time_limit_s`."""
    MEMORY = 'memory'
    """Ended at `memory_limit_mb`."""
    CRASHED = 'crashed'
    """Its process died, each time it was tried."""


@dataclass(frozen=True)
class RunResult:
    """What is known of one run."""

    status: RunStatus
    measures: Mapping[str, float] = field(default_factory=dict)
    exit_code: int | None = None


@dataclass(frozen=True)
class RunOutcome:
    """One attempt at a run."""

    id: str
    status: RunStatus
    measures: Mapping[str, float] = field(default_factory=dict)
    exit_code: int | None = None
    """Of the command, or of the process where that died (negative: the signal)."""
    reason: str = ''
    """Why it is not ok, one sentence."""
    seconds: float = 0.0
    """Wall time."""
    host: str = ''
    log: str = ''
    """The end of what the run wrote to stdout and stderr."""
    of_plan: bool = False
    """Whether it was refused for a mistake of the plan, which every run would meet."""
    lost: bool = False
    """Whether it was lost with its worker through no fault of its own, and should be repeated."""

    def to_json(self) -> bytes:
        """Return it as JSON for another machine; reading JSON runs no code."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> RunOutcome:
        """Return the outcome that another machine sent; raise ValueError for anything else."""
        return TypeAdapter(cls).validate_json(text)
