"""Faults with a start and an end: what is wrong at a given time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rig_common.times import NEVER_NS, seconds_to_ns
from sim_sensors.timing.config import FaultConfig


@dataclass(slots=True)
class Condition:
    """Everything that is wrong with a sensor at one moment, all active faults together."""

    dead: bool = False
    stuck: bool = False
    wrong: tuple[tuple[float, float], ...] = ()
    """(scale, offset) of every `wrong` fault, in the order they were given."""
    noise_gain: float = 1.0
    latency_ns: int = 0
    clock_step_ns: int = 0
    loss: float = 0.0
    """Fraction lost on top of the channel's own losses."""


HEALTHY = Condition()


class Faults:
    """The faults of one sensor; `at` says which of them hold."""

    def __init__(self, faults: Iterable[FaultConfig] = ()) -> None:
        """Start with the faults of the rig file."""
        self._faults: list[tuple[int, int, FaultConfig]] = []
        for fault in faults:
            self.add(fault)

    def add(self, fault: FaultConfig) -> None:
        """Add a fault; it may already have begun."""
        start = seconds_to_ns(fault.at_s)
        length = seconds_to_ns(fault.duration_s)
        self._faults.append((start, start + length if length else NEVER_NS, fault))

    def with_one(self, fault: FaultConfig) -> Faults:
        """Return these faults and one more."""
        return Faults([*(each for _, _, each in self._faults), fault])

    def __bool__(self) -> bool:
        """Whether there are any faults, active or not."""
        return bool(self._faults)

    def has(self, kind: str) -> bool:
        """Whether a fault of that kind is known, active or not."""
        return any(fault.kind == kind for _, _, fault in self._faults)

    @property
    def most_latency_ns(self) -> int:
        """The most that `slow` faults add at any one time, ns."""
        return max((self.at(start).latency_ns for start, _, _ in self._faults), default=0)

    @property
    def step_times_ns(self) -> list[int]:
        """When a clock jumps, there or back, ns."""
        return [
            time_ns
            for start, end, fault in self._faults
            if fault.kind == 'clock_step'
            for time_ns in (start, end)
            if time_ns != NEVER_NS
        ]

    def at(self, time_ns: int) -> Condition:
        """Return what is wrong with a sample captured at `time_ns`."""
        active = [f for start, end, f in self._faults if start <= time_ns < end]
        if not active:
            return HEALTHY
        found = Condition()
        passing = 1.0
        for fault in active:
            if fault.kind == 'dead':
                found.dead = True
            elif fault.kind == 'stuck':
                found.stuck = True
            elif fault.kind == 'wrong':
                found.wrong += ((fault.scale, fault.offset),)
            elif fault.kind == 'noisy':
                found.noise_gain *= fault.scale
            elif fault.kind == 'slow':
                found.latency_ns += max(seconds_to_ns(fault.offset), 0)
            elif fault.kind == 'clock_step':
                found.clock_step_ns += seconds_to_ns(fault.offset)
            else:
                passing *= 1.0 - min(max(fault.scale, 0.0), 1.0)
        found.loss = 1.0 - passing
        return found
