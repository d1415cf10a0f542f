"""What every run of a sweep shares, ready to be sent to a worker."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sensor_rig
from rig_common.errors import RigError
from rig_common.paramfile.events import Parameters
from rig_common.validation import hint
from sensor_rig.rigfile import RigConfig, read_parameters, resolve_rig, rig_from_parameters
from sensor_rig.sweep.plan.dotted_keys import settings, with_values
from sensor_rig.sweep.plan.sampling import extremes
from sensor_rig.sweep.plan.sweep_plan import Plan, Value
from sensor_rig.sweep.running.files import Digests, inside, named_files, rig_files

MOST_CHECKED = 200
"""Values that are tried on the rig before anything runs; of long lists only some."""
ID_DIGITS = 16
PARTS = ('sensors', 'streams', 'links')
"""Sections of a rig file whose parts have names."""


@dataclass(frozen=True)
class Task:
    """One run."""

    id: str
    values: tuple[Value, ...]
    """Of the plan's factors, in their order."""
    seed: int
    recording: int
    """Index into the experiment's recordings; -1 where there is none."""
    point: int = 0
    """Index of the point in the design; -1 of one that bisecting added."""


@dataclass(frozen=True)
class Experiment:
    """Plan, rig and files; picklable, and the same on every machine but for where files are."""

    plan: Plan
    parameters: Parameters
    """Of the rig file, with what it extends."""
    rig_path: Path
    folder: Path
    """The plan's."""
    recordings: tuple[Path, ...] = ()
    code: tuple[Path, ...] = ()
    """Files and folders of the system under test."""
    root: Path | None = None
    """Below this the files are, at the paths they had; None where they are at these paths."""

    def rig(self, values: tuple[Value, ...] | None = None, seed: int = 0) -> RigConfig:
        """Return the rig of one run; without `values` that of the file."""
        changes = [] if values is None else settings(self.plan.vary, values)[0]
        changed = with_values(self.parameters, [*changes, ('seed', seed)])
        if self.root is not None:
            changed = _moved_values(changed, self.root)
        return rig_from_parameters(changed, self.rig_path)

    def system_values(self, values: tuple[Value, ...]) -> dict[str, Value]:
        """Return the parameters of the system under test in one run."""
        return settings(self.plan.vary, values)[1]

    def named(self, values: tuple[Value, ...]) -> dict[str, Value]:
        """Return the values of a run by the names of the factors."""
        return dict(zip(self.plan.vary, values, strict=True))


def experiment_of(plan: Plan, folder: Path) -> Experiment:
    """Return the experiment of a plan in `folder`, or say what is wrong with it."""
    beside = folder / plan.rig
    rig_path = beside.absolute() if beside.is_file() else resolve_rig(plan.rig)
    parameters = with_values(read_parameters(rig_path), plan.set.items())
    made = Experiment(
        plan,
        parameters,
        rig_path,
        folder.absolute(),
        tuple(named_files(plan.recordings, folder, 'recordings')),
        tuple(named_files(plan.code, folder, 'code')),
    )
    _check(made, made.rig())
    return made


def _check(made: Experiment, rig: RigConfig) -> None:
    plan = made.plan
    if made.recordings and not rig.streams and rig.sync is None:
        raise RigError(
            f'{made.rig_path.name} has neither streams: nor sync:, so there is nothing '
            f'to do with recordings'
        )
    if not made.recordings and rig.world is None:
        raise RigError(
            f'{made.rig_path.name} has no world: section, so there is nothing to '
            f'simulate; name recordings to degrade'
        )
    if plan.system.kind == 'none' and rig.sync is None:
        raise RigError(
            f'system is none, which measures the sync engine, but '
            f'{made.rig_path.name} has no sync: section'
        )
    if plan.system.input == 'rig' and (made.recordings or rig.streams):
        raise RigError(
            'system.input is rig, but there are recordings or streams:, so there is a '
            'recording to be read'
        )
    wants = [claim.key for claim in plan.claims if claim.key.startswith(('ate_m.', 'rpe_'))]
    if wants:
        from sensor_rig.sweep.running.trajectory_error import require_evo

        require_evo(f'limits name {wants[0]}')


def variants(made: Experiment) -> Iterator[RigConfig]:
    """Yield the rig with every value of a factor in turn, the others at their first.

    That finds a key that does not exist, and a value out of its range, before anything runs.
    """
    first = tuple(extremes(factor)[0] for factor in made.plan.vary.values())
    yield made.rig()
    for index, (name, factor) in enumerate(made.plan.vary.items()):
        for key in factor.keys or (name,):
            _require_part(made, name, key)
        values = extremes(factor)
        for value in values[:: len(values) // MOST_CHECKED + 1]:
            try:
                yield made.rig((*first[:index], value, *first[index + 1 :]))
            except RigError as error:
                raise RigError(f'vary.{name}: with {value!r}, {error}') from None


def _require_part(made: Experiment, name: str, key: str) -> None:
    """Refuse a key of a sensor, stream or link that the rig does not have."""
    section, *path = key.split('.')
    if section in PARTS and path:
        known = made.parameters.get(section, {})
        if path[0] not in known:
            raise RigError(
                f'vary.{name}: {made.rig_path.name} has no {section[:-1]} {path[0]!r}; '
                f'{hint(path[0], sorted(known))}'
            )


def files_of(made: Experiment) -> list[Path]:
    """Return every file that a run may read, but recordings."""
    found: set[Path] = {each for path in made.code for each in inside(path)}
    for rig in variants(made):
        found |= rig_files(rig)
    return sorted(found)


def identity(made: Experiment, files: list[Path], digests: Digests) -> str:
    """Return the digest of all that every run shares."""
    plan = made.plan
    facts = {
        'version': sensor_rig.__version__,
        'rig': made.parameters,
        'seconds': plan.seconds,
        'system': plan.system.model_dump(mode='json'),
        'sync': plan.sync,
        'truth': plan.truth,
        'measures': plan.measures,
        'keys': {name: factor.keys or (name,) for name, factor in plan.vary.items()},
        'files': digests.of_files(files, made.folder),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def run_id(shared: str, named: dict[str, Value], seed: int, recording: str) -> str:
    """Return the digest of one run; `recording` is that of its input."""
    facts = json.dumps([shared, named, seed, recording], sort_keys=True)
    return hashlib.sha256(facts.encode()).hexdigest()[:ID_DIGITS]


def moved(made: Experiment, root: Path) -> Experiment:
    """Return the experiment with its files below `root`, at the paths they had."""

    def there(path: Path) -> Path:
        return Path(f'{root}{os.path.abspath(path)}')

    return replace(
        made,
        rig_path=there(made.rig_path),
        folder=there(made.folder),
        recordings=tuple(there(path) for path in made.recordings),
        code=tuple(there(path) for path in made.code),
        root=root,
    )


def _moved_values(value: object, root: Path) -> Any:
    """Return parameters in which absolute paths of copied files are below `root`."""
    if isinstance(value, dict):
        return {key: _moved_values(each, root) for key, each in value.items()}
    if isinstance(value, list):
        return [_moved_values(each, root) for each in value]
    if isinstance(value, str) and value.startswith('/') and Path(f'{root}{value}').exists():
        return f'{root}{value}'
    return value
