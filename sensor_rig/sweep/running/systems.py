"""The systems under test: the sync engine itself, a Python function, a program."""

from __future__ import annotations

import importlib
import inspect
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import sensor_rig
from rig_common.errors import RigError
from rig_common.validation import hint
from sensor_rig.inprocess import InProcessRig
from sensor_rig.measures.keys import Measures
from sensor_rig.measures.simulated import simulated_measures
from sensor_rig.sweep.plan.sweep_plan import SYSTEM_KEY
from sensor_rig.sweep.running.experiment import Experiment, Task
from sensor_rig.sweep.running.material import Material, WatchedRig
from sensor_rig.sweep.running.trajectory_error import scored, tum_file, tum_rows

TRAJECTORY = 'trajectory'
"""What a function returns under this name is scored against the truth."""
MOST_NUMBERS = 10_000


class PlanError(RigError):
    """A mistake of the plan that every run would meet, not a result of one run."""


class ProgramError(Exception):
    """A program ended with an exit code that is not 0."""

    def __init__(self, code: int, measures: Measures) -> None:
        super().__init__(f'the command ended with exit code {code}')
        self.code, self.measures = code, measures


def measured(experiment: Experiment, task: Task, scratch: Path) -> Measures:
    """Carry out one run and return its measures; `scratch` is an empty folder of its own."""
    material = Material(experiment, task, scratch)
    run = {'none': _engine, 'python': _function, 'command': _program}[experiment.plan.system.kind]
    return {
        key: value
        for key, value in run(experiment, task, material, scratch).items()
        if any(fnmatchcase(key, pattern) for pattern in experiment.plan.measures)
    }


def _engine(experiment: Experiment, task: Task, material: Material, scratch: Path) -> Measures:
    if material.gives_rig:
        return simulated_measures(
            InProcessRig(material.rig, arrays=False), experiment.plan.seconds
        )
    return material.sync_measures()


# ---- Python -------------------------------------------------------------------------------------


def _function(experiment: Experiment, task: Task, material: Material, scratch: Path) -> Measures:
    function = imported(experiment)
    rig = WatchedRig(material.rig) if material.gives_rig else None
    offered: dict[str, Callable[[], object]] = {
        'seconds': lambda: experiment.plan.seconds,
        'seed': lambda: task.seed,
        'values': lambda: experiment.named(task.values),
        'out': lambda: scratch,
        'recording': lambda: material.recording,
        'source': lambda: material.source,
        'synced': lambda: material.synced,
        'config': lambda: material.rig,
        **{
            name: (lambda value=value: value)  # type: ignore[misc]
            for name, value in experiment.system_values(task.values).items()
        },
    }
    given = _arguments(function, offered, experiment.system_values(task.values))
    answer = function(material.recording if rig is None else rig, **given)
    found = dict(material.measures)
    if rig is not None and rig.elapsed_ns > 0:
        found |= rig.watch.measures()
    if isinstance(answer, Mapping) and answer.get(TRAJECTORY) is not None:
        found |= scored(tum_rows(answer[TRAJECTORY], TRAJECTORY), material.truth).measures
        answer = {key: value for key, value in answer.items() if key != TRAJECTORY}
    return found | numbers(answer, experiment.plan.system.python)


def imported(experiment: Experiment) -> Callable[..., object]:
    """Return the plan's function; modules beside the plan and among its `code` are found."""
    address = experiment.plan.system.python
    module, _, name = address.partition(':')
    places = [
        experiment.folder,
        *(path if path.is_dir() else path.parent for path in experiment.code),
    ]
    for place in reversed(places):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    try:
        function = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise PlanError(f'system.python is {address!r}; it cannot be imported: {error}') from None
    if not callable(function):
        raise PlanError(f'system.python is {address!r}; the module has no function {name!r}')
    return function  # type: ignore[no-any-return]


def _arguments(
    function: Callable[..., Any],
    offered: Mapping[str, Callable[[], Any]],
    system_values: Mapping[str, object],
) -> dict[str, object]:
    """Return what a function asks for by the names of its parameters, after the first."""
    _, *wanted = inspect.signature(function).parameters.values()
    names = [each.name for each in wanted]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in wanted)
    for name in () if takes_any else system_values:
        if name not in names:
            raise PlanError(
                f'vary.{SYSTEM_KEY}{name}: {function.__name__} has no parameter {name!r}; '
                f'{hint(name, names)}'
            )
    given = {}
    for parameter in wanted:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.name in offered:
            given[parameter.name] = offered[parameter.name]()
        elif parameter.default is parameter.empty:
            raise PlanError(
                f'{function.__name__} asks for {parameter.name!r}; '
                f'{hint(parameter.name, list(offered), "offered are")}'
            )
    return given


# ---- a program ----------------------------------------------------------------------------------


def _program(experiment: Experiment, task: Task, material: Material, scratch: Path) -> Measures:
    system = experiment.plan.system
    out = scratch / 'out'
    out.mkdir()
    fields: dict[str, Callable[[], object]] = {
        'bag': lambda: material.recording,
        'synced': lambda: material.synced,
        'out': lambda: out,
        'seed': lambda: task.seed,
        **{
            name: (lambda value=value: value)  # type: ignore[misc]
            for name, value in experiment.system_values(task.values).items()
        },
    }
    for name in experiment.system_values(task.values):
        if not any(f'{{{name}}}' in part for part in system.command):
            raise PlanError(
                f'vary.{SYSTEM_KEY}{name}: system.command has no {{{name}}} for its value'
            )
    command = [_filled(part, fields) for part in system.command]
    try:
        code = subprocess.run(
            command,
            cwd=experiment.folder,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **_python_path(experiment)},
            check=False,
        ).returncode
    except OSError as error:
        raise PlanError(
            f'system.command: {command[0]} cannot be started: {error.strerror}'
        ) from None
    found = dict(material.measures)
    result, poses = _written(out, system.result), _written(out, system.trajectory)
    if result is not None:
        found |= numbers(_json(result), result.name)
    if poses is not None:
        found |= scored(tum_file(poses), material.truth).measures
    if code != 0:
        raise ProgramError(code, found)
    if result is None and poses is None:
        raise RigError(
            f'system.command wrote neither {system.result} nor {system.trajectory} into {{out}}'
        )
    return found


def _python_path(experiment: Experiment) -> dict[str, str]:
    """Let a Python program find this package, wherever it was started from."""
    root = str(Path(sensor_rig.__file__).resolve().parents[1])
    before = os.environ.get('PYTHONPATH', '')
    return {'PYTHONPATH': os.pathsep.join(filter(None, [before, root]))}


def _filled(part: str, fields: Mapping[str, Callable[[], Any]]) -> str:
    for name, value in fields.items():
        if f'{{{name}}}' in part:
            part = part.replace(f'{{{name}}}', str(value()))
    return part


def _written(out: Path, name: str) -> Path | None:
    """Return the file that a program wrote: in {out}, or as {out}.json and {out}.tum."""
    for place in (out / name, out.with_suffix(Path(name).suffix)):
        if place.is_file():
            return place
    return None


def _json(file: Path) -> object:
    try:
        return json.loads(file.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise RigError(f'{file.name} is no JSON: {error}') from None


# ---- numbers ------------------------------------------------------------------------------------


def numbers(answer: object, who: str) -> Measures:
    """Return the numbers of an answer by dotted names; NaN and null are left out."""
    if answer is None:
        return {}
    if not isinstance(answer, Mapping):
        answer = {'value': answer}
    found = dict(_numbers(answer, '', who))
    if len(found) > MOST_NUMBERS:
        raise RigError(f'{who} gave {len(found)} numbers; at most {MOST_NUMBERS} are allowed')
    return found


def _numbers(answer: Mapping[Any, Any], prefix: str, who: str) -> Iterator[tuple[str, float]]:
    for key, value in answer.items():
        name = f'{prefix}{key}'
        if isinstance(value, Mapping):
            yield from _numbers(value, f'{name}.', who)
            continue
        if value is None:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise RigError(f'{who} gave {value!r} for {name!r}; it should be a number') from None
        if not math.isnan(number):
            yield name, number
