"""What the world and the emulators report on /diagnostics."""

from __future__ import annotations

from dataclasses import dataclass

from rig_common.diagnostic_fields import fact


@dataclass(frozen=True)
class WorldFacts:
    """How the simulated time goes."""

    simulated_s: float = fact('simulated time (s)', '.3f')
    factor_wanted: float | None = fact('real-time factor wanted', 'g', none='unlimited')
    factor_achieved: float | None = fact('real-time factor achieved', '.3f')
    slowed_s: float = fact('clock slowed by (s)', '.3f')
    """Wall time that the machine was too slow for."""
    resets: int = fact('resets')
    lockstep: bool = fact('lockstep')
    nodes: str = fact('nodes')
    """Names of the nodes that follow the world's time."""


@dataclass(frozen=True)
class SensorFacts:
    """What one sensor of an emulator did since the last reset; nan where nothing is known yet."""

    rate_hz: float = fact('configured rate (Hz)', 'g')
    achieved_hz: float = fact('achieved rate (Hz)', '.3f')
    latency_p50_ms: float = fact('latency p50 (ms)', '.3f')
    latency_p95_ms: float = fact('latency p95 (ms)', '.3f')
    latency_p99_ms: float = fact('latency p99 (ms)', '.3f')
    late_p99_ms: float = fact('published late by p99 (ms)', '.3f')
    """Published after the arrival time by up to this much simulated time."""
    captured: int = fact('captured')
    published: int = fact('published')
    lost: int = fact('lost')
    in_flight: int = fact('in flight')
    """Captured and not arrived."""
