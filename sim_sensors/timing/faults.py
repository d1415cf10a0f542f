"""Faults with a start and an end: what is wrong with a stream at a given time.

A new kind of fault is one subclass of `FaultKind`: its name, what it does, and its limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from rig_common.times import NEVER_NS, seconds_to_ns
from rig_common.validation import Strict
from sim_sensors.timing.units import Moment


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
    passing: float = 1.0
    """Fraction that faults let pass, on top of the channel's own losses."""


HEALTHY = Condition()


class FaultKind:
    """One kind of fault: what it does to a stream, and how people are told."""

    name: ClassVar[str]
    meaning: ClassVar[str]
    """What it does with the keys `offset` and `scale`, for the documentation."""
    example: ClassVar[Mapping[str, float]] = {}
    """Keys of a fault that can be seen, for a button on the page."""
    most_s: ClassVar[float] = inf
    """Largest `offset`, s, where it is a time."""
    repeats_value: ClassVar[bool] = False
    """Whether the last value must be kept for it."""
    changes_value: ClassVar[bool] = False
    steps_clock: ClassVar[bool] = False

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Add this fault to what is wrong already."""
        raise NotImplementedError

    @classmethod
    def in_words(cls, offset: float = 0.0, scale: float = 1.0) -> str:
        """Say in a few words what a fault of this kind does."""
        return cls.name


class Dead(FaultKind):
    """No messages."""

    name, meaning = 'dead', 'no messages'

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Send nothing."""
        condition.dead = True


class Stuck(FaultKind):
    """The same value again and again."""

    name, meaning, repeats_value = 'stuck', 'the last value is repeated', True

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Repeat the last value."""
        condition.stuck = True


class Wrong(FaultKind):
    """Scaled and shifted values."""

    name, meaning, changes_value = 'wrong', 'values become scale * value + offset', True
    example = {'scale': 1.1}

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Change the values after the faults before."""
        condition.wrong += ((scale, offset),)

    @classmethod
    def in_words(cls, offset: float = 0.0, scale: float = 1.0) -> str:
        """Say the factor and, where there is one, the shift."""
        return f'values times {scale:g}' + (f', {offset:+g}' if offset else '')


class Noisy(FaultKind):
    """More noise."""

    name, meaning, changes_value = 'noisy', 'white noise is multiplied by `scale`', True
    example = {'scale': 10.0}

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Multiply the noise."""
        condition.noise_gain *= scale

    @classmethod
    def in_words(cls, offset: float = 0.0, scale: float = 1.0) -> str:
        """Say the factor."""
        return f'{scale:g} times the noise'


class Slow(FaultKind):
    """More latency."""

    name, meaning, most_s = 'slow', '`offset` seconds more latency', 60.0
    example = {'offset': 0.03}

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Add latency, never take any away."""
        condition.latency_ns += max(seconds_to_ns(offset), 0)

    @classmethod
    def in_words(cls, offset: float = 0.0, scale: float = 1.0) -> str:
        """Say how much later messages are."""
        return f'{1e3 * offset:.4g} ms slower'


class ClockStep(FaultKind):
    """A jump of the sensor's clock."""

    name, most_s, steps_clock = 'clock_step', 2.1e9, True
    meaning = 'the clock jumps by `offset` seconds, and back when the fault ends'
    example = {'offset': 0.053}

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Shift the clock."""
        condition.clock_step_ns += seconds_to_ns(offset)

    @classmethod
    def in_words(cls, offset: float = 0.0, scale: float = 1.0) -> str:
        """Say by how much the clock jumps."""
        return f'clock step {1e3 * offset:+.4g} ms'


class LossBurst(FaultKind):
    """Lost messages."""

    name, meaning = 'loss_burst', 'a fraction `scale` of the messages is lost'
    example = {'scale': 0.5}

    @classmethod
    def apply(cls, condition: Condition, offset: float, scale: float) -> None:
        """Lose a fraction of what other faults let pass."""
        condition.passing *= 1.0 - min(max(scale, 0.0), 1.0)

    @classmethod
    def in_words(cls, offset: float = 0.0, scale: float = 1.0) -> str:
        """Say how many are lost."""
        return f'{100.0 * scale:g} % lost'


KINDS: Mapping[str, type[FaultKind]] = {kind.name: kind for kind in FaultKind.__subclasses__()}
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
    def what(self) -> type[FaultKind]:
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
        active = [f for start, end, f in self._faults if start <= time_ns < end]
        if not active:
            return HEALTHY
        found = Condition()
        for fault in active:
            fault.what.apply(found, fault.offset, fault.scale)
        return found
