"""The type of what the engine carries without looking inside."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Payload: TypeAlias = Any
"""A message as its caller handed it in: bytes in the nodes, decoded messages in `filters`. It is
`Any` and not `object`, because the caller gets it back as what it was."""
MessageSet: TypeAlias = list[Payload]
"""One message of every input, in the order of the inputs; None or a list where one is missing or
collected."""
CueValues: TypeAlias = Mapping[str, Any]
"""What a cue reads of a message: arrays and numbers by the names that the cue asks for."""
PayloadReader: TypeAlias = Callable[[Payload], CueValues]
"""Decodes a payload for a cue."""
