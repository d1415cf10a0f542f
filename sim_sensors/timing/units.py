"""Ranges that many config keys share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

NonNegative = Annotated[float, Field(ge=0.0)]
Latency = Annotated[float, Field(ge=0.0, le=60.0)]
"""s; what is under way is kept in memory, so it has a limit."""
Moment = Annotated[float, Field(ge=0.0, le=1e9)]
"""s since the start of the run; 30 years."""
ClockTime = Annotated[float, Field(ge=-2.1e9, le=2.1e9)]
"""s; what a stamp's int32 seconds hold, with a year and a half to spare."""
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]
