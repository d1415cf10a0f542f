"""Carries out a plan: what is missing of it, and then what bisecting asks for.

sweep = SweepJob.of('plan.yaml', Path('results'))
with sweep, Pool(sweep.experiment, 2, sweep.scratch) as executor:
    for outcome in sweep.run(executor): ...
sweep.finish()
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from rig_common.errors import RigError
from rig_common.jsonable import json_text
from rig_common.validation import hint
from sensor_rig.sweep.analysis.binomial import runs_needed
from sensor_rig.sweep.bisecting import further_points
from sensor_rig.sweep.plan.sampling import points
from sensor_rig.sweep.plan.sweep_plan import MAX_RUNS, Plan, Value, load_plan, located
from sensor_rig.sweep.running.experiment import (
    Experiment,
    Task,
    experiment_of,
    files_of,
    identity,
    run_id,
)
from sensor_rig.sweep.running.files import Digests, inside
from sensor_rig.sweep.running.outcome import RunOutcome, RunStatus
from sensor_rig.sweep.running.pool import Executor
from sensor_rig.sweep.running.store import Store

SCRATCH, DIGESTS = '.scratch', '.digests.json'
MOST_ATTEMPTS = {'pool': 2, 'ray': 6}
"""A run whose process died is tried again; on a cluster machines come and go."""


@dataclass
class SweepJob:
    """A plan, its runs and its results folder."""

    name: str
    file: Path
    """The plan's."""
    experiment: Experiment
    store: Store
    files: list[Path]
    """What a run reads, besides recordings."""
    shared: str
    """Digest of what all runs share."""
    recordings: list[str]
    """Digest of every recording; one empty text where there is none."""
    tasks: list[Task] = field(default_factory=list)
    """The runs of the plan, and those that bisecting added."""
    again: set[str] = field(default_factory=set)
    """Ids of those that are still to be run again."""

    @classmethod
    def of(
        cls,
        plan_file: str | Path,
        folder: Path,
        *,
        rerun_failed: bool = False,
        writes: bool = True,
    ) -> SweepJob:
        """Read a plan and what its results folder holds; without `writes` nothing is made."""
        file = Path(plan_file)
        plan, experiment = checked_plan(file)
        store = Store(folder)
        known = _known_digests(folder)
        digests = Digests(known)
        try:
            files = files_of(experiment)
        except RigError as error:
            raise RigError(located(file, str(error))) from None
        shared = identity(experiment, files, digests)
        recordings = [
            digests.of_files(inside(path), path.parent) for path in experiment.recordings
        ] or ['']
        made = cls(file.stem, file, experiment, store, files, shared, recordings)
        made.tasks = made._planned()
        if writes:
            store.open()
            store.keep_plan(plan, file.stem)
            if digests.known:
                (folder / DIGESTS).write_text(json_text(digests.known), encoding='utf-8')
        else:
            store.read()
        if rerun_failed:
            made.again = {
                task.id
                for task in made.tasks
                if task.id in store.results and store.results[task.id].status is not RunStatus.OK
            }
        return made

    # ---- which runs -----------------------------------------------------------------------------

    def _planned(self) -> list[Task]:
        plan = self.experiment.plan
        each = len(plan.seeds) * len(self.recordings)
        tasks: list[Task] = []
        for index, values in enumerate(points(plan)):
            if (index + 1) * each > MAX_RUNS:
                raise RigError(
                    f'{self.name}: the plan has more than {MAX_RUNS} runs; take fewer '
                    f'values or seeds, or sample'
                )
            tasks += self._tasks(values, index)
        return tasks

    def _tasks(self, values: tuple[Value, ...], point: int) -> Iterator[Task]:
        named = self.experiment.named(values)
        has_recordings = bool(self.experiment.recordings)
        for recording, seed in product(range(len(self.recordings)), self.experiment.plan.seeds):
            known_as = run_id(self.shared, named, seed, self.recordings[recording])
            yield Task(known_as, values, seed, recording if has_recordings else -1, point)

    @property
    def todo(self) -> list[Task]:
        """The runs that have no result yet, or are to be run again."""
        return [
            task
            for task in self.tasks
            if task.id not in self.store.results or task.id in self.again
        ]

    def refined(self) -> bool:
        """Add the runs that bisecting asks for, once all others are there; say whether it did."""
        plan = self.experiment.plan
        if plan.refine is None or self.todo:
            return False
        have = {task.values for task in self.tasks}
        added = sum(task.point < 0 for task in self.tasks)
        before = len(self.tasks)
        for values in further_points(plan, self.tasks, self.store.results):
            new = [] if values in have else list(self._tasks(values, -1))
            if not new or added + len(new) > plan.refine.max_runs:
                continue
            have.add(values)
            added += len(new)
            self.tasks += new
        return len(self.tasks) > before

    # ---- running --------------------------------------------------------------------------------

    @property
    def scratch(self) -> Path:
        """Where runs of this machine write."""
        return self.store.folder / SCRATCH

    def __enter__(self) -> SweepJob:
        shutil.rmtree(self.scratch, ignore_errors=True)  # of one that was killed
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.scratch, ignore_errors=True)

    def run(self, executor: Executor) -> Iterator[RunOutcome]:
        """Carry out what is missing, round by round; yield what came of every run.

        One run goes first: a mistake of the plan that every run would meet is said after it.
        """
        for outcome in executor.run(self.todo[:1]):
            self._refuse_mistake(outcome)
            if self._note(outcome, executor):
                yield outcome
        while True:
            tasks = self.todo
            while tasks:
                lost: list[Task] = []
                by_id = {task.id: task for task in tasks}
                for outcome in executor.run(tasks):
                    if self._note(outcome, executor):
                        yield outcome
                    else:
                        lost.append(by_id[outcome.id])
                tasks = lost
            if not self.refined():
                return

    def _refuse_mistake(self, outcome: RunOutcome) -> None:
        """Raise RigError for what the first run shows to be wrong with the plan."""
        if outcome.of_plan:
            raise RigError(located(self.file, outcome.reason))
        if outcome.status is not RunStatus.OK or self.store.results:
            return  # that a system fails is a result
        for claim in self.experiment.plan.claims:
            if claim.key not in outcome.measures:
                text = f'limits name {claim.key!r}, which the first run did not measure; '
                told = hint(claim.key, sorted(outcome.measures), 'it measured')
                raise RigError(located(self.file, f'limits: {text}{told}'))

    def _note(self, outcome: RunOutcome, executor: Executor) -> bool:
        """Write down an attempt; return whether it settles the run."""
        attempt = self._attempts.get(outcome.id, 0) + 1
        self._attempts[outcome.id] = attempt
        again = outcome.lost and attempt < MOST_ATTEMPTS[executor.name]
        self.store.add(outcome, executor.name, attempt, retried=again)
        if not again:
            self.again.discard(outcome.id)
        return not again

    _attempts: dict[str, int] = field(default_factory=dict)

    def finish(self) -> Path:
        """Write the table of what is there and return it; others may write then."""
        while self.refined():
            pass
        names = [path.name for path in self.experiment.recordings]
        table = self.store.write_table(self.experiment.plan, self.tasks, names)
        self.store.close()
        return table


def checked_plan(file: Path) -> tuple[Plan, Experiment]:
    """Read a plan and the rig that it names; RigError says in which line a mistake stands."""
    plan = load_plan(file)
    try:
        return plan, experiment_of(plan, file.parent)
    except RigError as error:
        raise RigError(located(file, str(error))) from None


def warnings_of(plan: Plan) -> list[str]:
    """Return what a plan asks for and its runs cannot show."""
    found = []
    for each in plan.require:
        needed = runs_needed(each.success, each.confidence or plan.confidence)
        runs = len(plan.seeds) * max(len(plan.recordings), 1)
        if plan.sample.method == 'grid' and runs < needed:
            found.append(
                f'require: {each.success:.0%} of good runs at {each.factor} is shown by '
                f'{needed} runs, all of them good; the plan has {runs} at each value'
            )
    return found


def _known_digests(folder: Path) -> dict[str, list[object]]:
    try:
        known = json.loads((folder / DIGESTS).read_text(encoding='utf-8'))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
