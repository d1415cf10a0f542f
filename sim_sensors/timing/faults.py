"""Faults with a start and an end: what is wrong with a stream at a given time.

A new kind of fault is one `FaultKind` in `KINDS`: what it does, and its limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pydantic import Field, model_validator

from rig_common.times import NEVER_NS, seconds_to_ns
from rig_common.validation import Strict
from sim_sensors.timing.units import Moment


@dataclass(frozen=True, slots=True)
class Condition:
    """Everything that is wrong with a sensor at one moment, all active faults together."""

    dead: bool = False
    stuck: bool = False
    wrong: tuple[tuple[float, float], ...] = ()
    """(scale, offset) of every `wrong` fault, in the order they were given."""
    noise_gain: float = 1.0
    latency_ns: int = 0
    clock_step_ns: int = 0
    passing: float = 1.0
    """Fraction that faults let pass, on top of the channel's own losses."""


HEALTHY = Condition()


class FaultKind(NamedTuple):
    """One kind of fault: what it does to a stream, and how people are told."""

    meaning: str
    """What it does with the keys `offset` and `scale`, for the documentation."""
    applied: Callable[[Condition, float, float], Condition]
    """From what is wrong already, `offset` and `scale` to what is wrong with this one too."""
    words: Callable[[float, float], str]
    """What a fault with this `offset` and `scale` does, in a few words."""
    example: Mapping[str, float] = MappingProxyType({})
    """Keys of a fault that can be seen, for a button on the page."""
    most_s: float = inf
    """Largest `offset`, s, where it is a time."""
    repeats_value: bool = False
    """Whether the last value must be kept for it."""
    changes_value: bool = False
    steps_clock: bool = False

    def in_words(self, offset: float = 0.0, scale: float = 1.0) -> str:
        """Say in a few words what a fault of this kind does."""
        return self.words(offset, scale)


KINDS: Mapping[str, FaultKind] = {
    'dead': FaultKind('no messages', lambda now, *_: replace(now, dead=True), lambda *_: 'dead'),
    'stuck': FaultKind(
        'the last value is repeated',
        lambda now, *_: replace(now, stuck=True),
        lambda *_: 'stuck',
        repeats_value=True,
    ),
    'wrong': FaultKind(
        'values become scale * value + offset',
        lambda now, offset, scale: replace(now, wrong=(*now.wrong, (scale, offset))),
        lambda offset, scale: f'values times {scale:g}' + (f', {offset:+g}' if offset else ''),
        {'scale': 1.1},
        changes_value=True,
    ),
    'noisy': FaultKind(
        'white noise is multiplied by `scale`',
        lambda now, _, scale: replace(now, noise_gain=now.noise_gain * scale),
        lambda _, scale: f'{scale:g} times the noise',
        {'scale': 10.0},
        changes_value=True,
    ),
    'slow': FaultKind(
        '`offset` seconds more latency',
        lambda now, offset, _: replace(
            now, latency_ns=now.latency_ns + max(seconds_to_ns(offset), 0)
        ),
        lambda offset, _: f'{1e3 * offset:.4g} ms slower',
        {'offset': 0.03},
        60.0,
    ),
    'clock_step': FaultKind(
        'the clock jumps by `offset` seconds, and back when the fault ends',
        lambda now, offset, _: replace(
            now, clock_step_ns=now.clock_step_ns + seconds_to_ns(offset)
        ),
        lambda offset, _: f'clock step {1e3 * offset:+.4g} ms',
        {'offset': 0.053},
        2.1e9,
        steps_clock=True,
    ),
    'loss_burst': FaultKind(
        'a fraction `scale` of the messages is lost',
        lambda now, _, scale: replace(
            now, passing=now.passing * (1.0 - min(max(scale, 0.0), 1.0))
        ),
        lambda _, scale: f'{100.0 * scale:g} % lost',
        {'scale': 0.5},
    ),
}
"""Every kind of fault by its name."""
if TYPE_CHECKING:
    KindName: TypeAlias = str
else:
    KindName = Literal[tuple(KINDS)]


class FaultConfig(Strict):
    """One fault: what, from when, for how long."""

    kind: KindName = Field(
        description='; '.join(f'{name}: {kind.meaning}' for name, kind in KINDS.items()) + '.'
    )
    at_s: Moment = 0.0
    """Start, s since the start of the run."""
    duration_s: Moment = 0.0
    """Length, s; 0 means until the end."""
    offset: float = 0.0
    """wrong: what is added, in the sensor's unit. slow, clock_step: s. Not used by the others."""
    scale: float = 1.0
    """wrong, noisy: a factor. loss_burst: a fraction, 0 to 1. Not used by the others."""

    @property
    def what(self) -> FaultKind:
        """The kind of this fault."""
        return KINDS[self.kind]

    @model_validator(mode='after')
    def _stamps_stay_possible(self) -> FaultConfig:
        if abs(self.offset) > self.what.most_s:
            raise ValueError(
                f'offset is {self.offset} s; {self.kind} takes at most {self.what.most_s:g} s'
            )
        return self


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

    @property
    def repeat_values(self) -> bool:
        """Whether any of them, active or not, repeats the last value."""
        return any(fault.what.repeats_value for _, _, fault in self._faults)

    @property
    def most_latency_ns(self) -> int:
        """The most that `slow` faults add at any one time, ns."""
        return max((self.at(start).latency_ns for start, _, _ in self._faults), default=0)

    @property
    def step_times_ns(self) -> list[int]:
        """When a clock jumps, forward or back, ns; empty where no fault steps it."""
        return [
            time_ns
            for start, end, fault in self._faults
            if fault.what.steps_clock
            for time_ns in (start, end)
            if time_ns != NEVER_NS
        ]

    def at(self, time_ns: int) -> Condition:
        """Return what is wrong with a sample captured at `time_ns`."""
        found = HEALTHY
        for start, end, fault in self._faults:
            if start <= time_ns < end:
                found = fault.what.applied(found, fault.offset, fault.scale)
        return found
