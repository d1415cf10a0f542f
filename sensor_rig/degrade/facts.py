"""What a degraded live stream reports on /diagnostics."""

from __future__ import annotations

from dataclasses import dataclass

from rig_common.diagnostic_fields import fact


@dataclass(frozen=True)
class StreamFacts:
    """What became of a stream's messages so far; nan where nothing is known yet."""

    topics: str = fact('topics')
    """Names of the topics that are degraded."""
    read: int = fact('read')
    published: int = fact('published')
    lost_by_loss: int = fact('lost by loss')
    lost_by_fault: int = fact('lost by fault')
    thinned: int = fact('thinned')
    duplicated: int = fact('duplicated')
    in_flight: int = fact('in flight')
    delay_p50_ms: float = fact('delay p50 (ms)', '.3f')
    delay_p99_ms: float = fact('delay p99 (ms)', '.3f')
    late_p99_ms: float = fact('published late by p99 (ms)', '.3f')
    """Published after the arrival time by up to this much."""
