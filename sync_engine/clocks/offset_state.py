"""How far a clock offset can be believed."""

from __future__ import annotations

from enum import Enum


class OffsetState(str, Enum):
    """How far a clock offset can be believed."""

    UNOBSERVABLE = 'unobservable'
    """No measurement determines it; it corrects nothing."""
    CONVERGING = 'converging'
    """Known to its sigma, which is still wide."""
    LOCKED = 'locked'
    """Sigma below `adakf.lock_sigma_s`."""
