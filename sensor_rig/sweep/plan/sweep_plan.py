"""The plan of a sweep: one plain YAML file, read and validated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from rig_common.errors import RigError
from rig_common.validation import Strict, validated
from sensor_rig.measures.claims import Claim
from sensor_rig.sweep.plan.plain_yaml import lines_of, read_yaml

MAX_RUNS = 1_000_000
SYSTEM_KEY = 'system.'
"""Keys of a plan that begin so are parameters of the system under test, not of the rig."""
Scalar: TypeAlias = bool | int | float | str
Value: TypeAlias = Scalar | list[Scalar]
Method = Literal['grid', 'random', 'lhs', 'sobol', 'saltelli', 'morris']
Positive = Annotated[float, Field(gt=0.0)]
Probability = Annotated[float, Field(gt=0.0, lt=1.0)]


class Factor(Strict):
    """One thing that varies: a list of values, or a range."""

    keys: tuple[str, ...] = ()
    """Keys that all get its value; by default its own name is the one key."""
    values: tuple[Value, ...] = ()
    """The values, for a list."""
    low: float | None = Field(default=None, alias='from')
    """First value of a range."""
    high: float | None = Field(default=None, alias='to')
    """Last value of a range."""
    count: int | None = Field(default=None, ge=2, le=100_000)
    """Values of a range in a grid, evenly spaced."""
    step: Positive | None = None
    """Distance of the values of a range in a grid, instead of `count`."""
    scale: Literal['linear', 'log'] = 'linear'
    """How a range is divided and sampled."""

    @model_validator(mode='after')
    def _is_list_or_range(self) -> Factor:
        given = (self.low is not None) + (self.high is not None)
        if bool(self.values) == bool(given) or given == 1:
            raise ValueError('a factor is a list of values, or a range with from and to')
        if self.low is not None and self.high is not None:
            if self.low >= self.high:
                raise ValueError(
                    f'from is {self.low:g} and to is {self.high:g}; to should be more'
                )
            if self.scale == 'log' and self.low <= 0.0:
                raise ValueError(
                    f'from is {self.low:g}; with scale: log it should be more than zero'
                )
            if self.step is not None and (self.count is not None or self.scale == 'log'):
                raise ValueError('step goes with neither count nor scale: log')
        elif self.count is not None or self.step is not None:
            raise ValueError('count and step belong to a range with from and to')
        if len({repr(value) for value in self.values}) < len(self.values):
            raise ValueError('a value stands twice in the list')
        return self

    @property
    def is_range(self) -> bool:
        """Whether it may take any value between two."""
        return not self.values


class Sampling(Strict):
    """Which points of the factors' space are run."""

    method: Method = 'grid'
    """grid: all combinations; random, lhs (Latin hypercube), sobol: points that fill the space;
    saltelli, morris: points for indices of sensitivity."""
    count: int = Field(default=64, ge=1, le=MAX_RUNS)
    """Points; of saltelli the base count (times factors + 2), of morris the trajectories."""
    seed: int = Field(default=0, ge=0, le=2**32 - 1)
    """Of the points; the seeds of the runs are `seeds`."""
    levels: int = Field(default=4, ge=2, le=100)
    """Of morris: levels of its grid; an even number."""

    @model_validator(mode='after')
    def _fits_the_method(self) -> Sampling:
        if self.method in ('sobol', 'saltelli') and self.count & (self.count - 1):
            raise ValueError(
                f'count is {self.count}; {self.method} points are balanced for '
                f'powers of two only, such as {1 << self.count.bit_length()}'
            )
        if self.method == 'morris' and self.levels % 2:
            raise ValueError(f'levels is {self.levels}; it should be an even number')
        return self


class System(Strict):
    """The system under test; without a key it is the sync engine of the rig itself."""

    python: str = ''
    """`module:function`, which gets the rig or the recording and returns numbers."""
    command: tuple[str, ...] = ()
    """A program and its arguments; {bag}, {synced}, {out}, {seed} are filled in."""
    input: Literal['auto', 'rig', 'recording'] = 'auto'
    """What a python function gets; auto: the rig where one is simulated and has no streams:."""
    result: str = 'result.json'
    """Of a command: the file in {out} with its numbers."""
    trajectory: str = 'trajectory.tum'
    """Of a command: the file in {out} with its poses, in TUM's format."""

    @model_validator(mode='after')
    def _is_one(self) -> System:
        if self.python and self.command:
            raise ValueError('python and command are both given; a plan has one system')
        if self.python and (self.python.count(':') != 1 or not all(self.python.split(':'))):
            raise ValueError(f'python is {self.python!r}; it should be module:function')
        if self.input != 'auto' and not self.python:
            raise ValueError('input is for a python function')
        return self

    @property
    def kind(self) -> Literal['none', 'python', 'command']:
        """Which of the three it is."""
        return 'python' if self.python else 'command' if self.command else 'none'


class Requirement(Strict):
    """What must hold: up to (or from) a value of a factor, a run is good so often."""

    factor: str
    """Name of the factor."""
    up_to: float | None = None
    """Largest value at which it must hold."""
    down_to: float | None = None
    """Smallest value at which it must hold."""
    success: Probability = 0.5
    """Fraction of runs that must be good, as far as the seeds can tell."""
    confidence: Probability | None = None
    """Of the exact binomial interval; by default the plan's."""

    @model_validator(mode='after')
    def _has_an_end(self) -> Requirement:
        if self.up_to is None and self.down_to is None:
            raise ValueError('up_to or down_to must be given')
        return self


class Refine(Strict):
    """Bisecting: further runs where a limit is crossed."""

    factors: tuple[str, ...] = ()
    """Factors whose boundary is looked for; by default all that have numbers."""
    to: Positive | None = None
    """Width at which a boundary is known well enough; by default 1/50 of the factor's span."""
    max_runs: int = Field(default=1000, ge=1, le=MAX_RUNS)
    """Most further runs."""


def _factor(given: object) -> Any:
    return {'values': given} if isinstance(given, list) else given


def _system(given: object) -> object:
    return {} if given in (None, 'none') else given


def _refine(given: object) -> object:
    return {} if given is True else None if given is False else given


class Plan(Strict):
    """One experiment."""

    title: str = ''
    """Headline of the page; by default the plan's file name."""
    rig: str
    """Rig file, beside the plan, or the name of a shipped one."""
    recordings: tuple[str, ...] = ()
    """Recordings to degrade as the rig's streams: say, instead of a simulation."""
    seconds: Positive = 10.0
    """Simulated time of a run, s."""
    set: dict[str, Value] = {}
    """Keys of the rig that have another value in all runs."""
    vary: dict[str, Annotated[Factor, BeforeValidator(_factor)]] = {}
    """Factors by name: a dotted key of the rig file, or a name of your own with `keys`."""
    sample: Sampling = Sampling()
    seeds: tuple[int, ...] = (0,)
    """Seeds of the rig; a number n stands for 0 ... n - 1."""
    system: Annotated[System, BeforeValidator(_system)] = System()
    sync: Literal['live', 'smoothed'] = 'live'
    """How recordings are synced: like a live node, or in two passes."""
    truth: str = '/truth/odom'
    """Odometry topic with the true poses that a trajectory is scored against."""
    measures: tuple[str, ...] = ('*',)
    """Patterns of the measures that go into the table."""
    limits: tuple[str, ...] = ()
    """What a good run is: claims about measures."""
    require: tuple[Requirement, ...] = ()
    """What `rig tolerance` must find, or it ends with exit code 1."""
    confidence: Probability = 0.95
    """Of intervals and boundaries."""
    refine: Annotated[Refine | None, BeforeValidator(_refine)] = None
    code: tuple[str, ...] = ()
    """Files and folders of the system under test: part of a run's digest, taken to workers."""
    time_limit_s: Positive = 3600.0
    """Wall time after which a run is ended."""
    memory_limit_mb: Positive | None = None
    """Resident memory of a run and what it starts, at which it is ended."""
    ship_recordings: bool = True
    """Take recordings to Ray's workers; without it they must be at the same path there."""

    @field_validator('seeds', mode='before')
    @classmethod
    def _count_of_seeds(cls, given: object) -> object:
        if isinstance(given, int) and not isinstance(given, bool):
            if not 1 <= given <= MAX_RUNS:
                raise ValueError(f'seeds is {given}; a number of seeds should be 1 or more')
            return tuple(range(given))
        return given

    @field_validator('seeds')
    @classmethod
    def _seeds_differ(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) >= 2**63:
            raise ValueError('seeds should be different whole numbers from 0 to 2^63 - 1')
        return seeds

    @model_validator(mode='after')
    def _names_exist(self) -> Plan:
        for where, names in (
            ('require', [each.factor for each in self.require]),
            ('refine.factors', self.refine.factors if self.refine else ()),
        ):
            for name in names:
                if name not in self.vary:
                    raise ValueError(
                        f'{where} names {name!r}, which does not vary; the factors '
                        f'are {", ".join(self.vary) or "none"}'
                    )
        if (self.require or self.refine) and not self.limits:
            raise ValueError('require and refine need limits: what a good run is')
        for name, factor in self.vary.items():
            self._check_factor(name, factor)
        keys = [key for name, factor in self.vary.items() for key in factor.keys or (name,)]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f'the key {key} varies twice')
            if key == 'seed':
                raise ValueError('seed is not a factor; write seeds')
        return self

    def _check_factor(self, name: str, factor: Factor) -> None:
        if self.sample.method == 'grid':
            if factor.is_range and factor.count is None and factor.step is None:
                raise ValueError(
                    f'vary.{name} is a range without count or step, which a grid needs'
                )
        elif factor.count is not None or factor.step is not None:
            raise ValueError(
                f'vary.{name} has count or step, which belong to a grid; '
                f'sample.count says how many points {self.sample.method} has'
            )

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The limits, read."""
        return tuple(Claim.parse(text, 'limits: ') for text in self.limits)


def load_plan(path: str | Path) -> Plan:
    """Read and validate a plan."""
    file = Path(path)
    try:
        plan = plan_of(read_yaml(file), file.name)
    except RigError as error:
        raise RigError(located(file, str(error))) from None
    if plan.sample.method != 'grid' and not plan.vary:
        raise RigError(f'{file.name}: sample.method is {plan.sample.method}, but nothing varies')
    if plan.refine is not None and plan.sample.method != 'grid':
        raise RigError(
            f'{file.name}: refine bisects between the values of a grid; sample.method '
            f'is {plan.sample.method}'
        )
    return plan


def located(file: Path, sentence: str) -> str:
    """Return a sentence about a plan with the line of the key that it names first."""
    told = sentence.removeprefix(f'{file.name}:').lstrip(' .')
    if str(file) in told:
        return told
    lines = lines_of(file)
    named = [
        (place.start(), -len(key), key)
        for key in lines
        if (place := re.search(rf'(?<![\w.]){re.escape(key)}(?![\w])', told)) is not None
    ]
    where = f'{file.name}:{lines[min(named)[2]]}' if named else file.name
    return f'{where}: {told}'


def plan_of(values: Mapping[str, object], name: str = 'plan') -> Plan:
    """Return the plan of YAML values; `name` stands in front of what is wrong with it."""
    plan = validated(Plan, values, f'{name}:')
    _ = plan.claims  # a limit that cannot be read is refused now
    return plan
