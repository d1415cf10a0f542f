"""Ranges that many config keys share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from rig_common.paramfile.events import NULL

NonNegative = Annotated[float, Field(ge=0.0)]
Positive = Annotated[float, Field(gt=0.0)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Latency = Annotated[float, Field(ge=0.0, le=60.0)]
"""s; what is under way is kept in memory, so it has a limit."""
Moment = Annotated[float, Field(ge=0.0, le=1e9)]
"""s since the start of the run; 30 years."""
ClockTime = Annotated[float, Field(ge=-2.1e9, le=2.1e9)]
"""s; what a stamp's int32 seconds hold, with a year and a half to spare."""
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


def rising(limits: tuple[float, float]) -> tuple[float, float]:
    """Refuse limits of which the first is larger."""
    low, high = limits
    if low > high:
        raise ValueError(f'it is [{low}, {high}]; the first must not be larger')
    return limits


def _zero_if_none(value: object) -> object:
    return (0.0, 0.0) if value is None or (isinstance(value, str) and value in NULL) else value


Limits = Annotated[tuple[float, float], AfterValidator(rising)]
"""The least and the largest of something."""
Span = Annotated[tuple[Latency, Latency], BeforeValidator(_zero_if_none), AfterValidator(rising)]
"""Least and largest latency, s; null is none."""
