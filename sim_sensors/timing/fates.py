"""What may become of a capture on its way to the host."""

from __future__ import annotations

from enum import Enum


class CaptureFate(Enum):
    """What became of a capture."""

    CAPTURED = 'captured'
    DELIVERED = 'delivered'
    LOST = 'lost on the way'
    DUPLICATED = 'arrived twice'
    QUEUE_FULL = 'dropped by a full link'
    FAULT_LOSS = 'lost in a loss_burst fault'
    DEAD = 'sensor dead'
    FLUSHED = 'on its way at a reset'

    __hash__ = object.__hash__  # every capture is counted; Enum's own hashes the name in Python


LOSSES = (CaptureFate.LOST, CaptureFate.QUEUE_FULL, CaptureFate.FAULT_LOSS, CaptureFate.DEAD)
"""What never arrives, by the reason."""
