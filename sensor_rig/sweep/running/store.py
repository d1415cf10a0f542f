"""The results folder: a line for every attempt in runs.jsonl, the table in results.parquet.

plan.json         the plan as it was validated, and how its runs are known
runs.jsonl        one line an attempt, as it ended: status, measures, wall time, host, retries
results.parquet   one row a run, sorted by run id, with nothing that another run would change
logs/<id>.txt     the end of stdout and stderr, of runs that wrote any
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from rig_common.errors import RigError, why
from rig_common.jsonable import JsonObject, json_text
from rig_common.saving import save_text, saving
from sensor_rig.sweep.plan.sweep_plan import Plan, plan_of
from sensor_rig.sweep.running.experiment import Task
from sensor_rig.sweep.running.outcome import RunOutcome, RunResult, RunStatus

VERSION = 1
PLAN, RUNS, TABLE, LOGS, LOCK = 'plan.json', 'runs.jsonl', 'results.parquet', 'logs', '.lock'
RETRIED = 'retried'
"""RunStatus of a line about an attempt that is repeated."""


class Store:
    """Reads and writes a results folder; one program at a time writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results: dict[str, RunResult] = {}
        """By run id."""
        self.retries = 0
        """Attempts that had to be repeated, ever."""
        self._file: IO[bytes] | None = None
        self._lock: IO[str] | None = None

    # ---- opening --------------------------------------------------------------------------------

    def open(self) -> None:
        """Make the folder or take it as it is, and read what is there."""
        try:
            if (
                self.folder.is_dir()
                and any(self.folder.iterdir())
                and not (self.folder / PLAN).is_file()
            ):
                raise RigError(
                    f'{self.folder} is not empty and holds no results of a sweep; '
                    f'choose another folder'
                )
            (self.folder / LOGS).mkdir(parents=True, exist_ok=True)
            self._lock = (self.folder / LOCK).open('w')
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.read()
            self._file = (self.folder / RUNS).open('ab')
            self._cut_torn_line()
        except BlockingIOError:
            raise RigError(f'another sweep is writing into {self.folder}') from None
        except OSError as error:
            raise RigError(f'cannot write {self.folder}: {why(error)}') from None

    def read(self) -> None:
        """Read the runs that are there; a line torn by a sudden end is left out."""
        file = self.folder / RUNS
        if not file.is_file():
            return
        with file.open('rb') as stream:
            for line in stream:
                try:
                    self._take(json.loads(line))
                except (ValueError, KeyError, TypeError):
                    continue

    def _take(self, line: JsonObject) -> None:
        if line['status'] == RETRIED:
            self.retries += 1
            return
        self.results[line['id']] = RunResult(
            RunStatus(line['status']),
            {
                key: float('nan') if value is None else value
                for key, value in line['measures'].items()
            },
            line['exit_code'],
        )

    def _cut_torn_line(self) -> None:
        file = self.folder / RUNS
        with file.open('r+b') as stream:
            data = stream.read()
            stream.truncate(data.rfind(b'\n') + 1)

    def close(self) -> None:
        """Let others write."""
        for each in (self._file, self._lock):
            if each is not None:
                each.close()

    # ---- writing --------------------------------------------------------------------------------

    def keep_plan(self, plan: Plan, name: str) -> None:
        """Write the plan beside the results."""
        document = {
            'version': VERSION,
            'name': name,
            'plan': plan.model_dump(mode='json', by_alias=True, exclude_unset=True),
        }
        save_text(self.folder / PLAN, json_text(document, 1))

    def add(
        self, outcome: RunOutcome, executor: str, attempt: int, *, retried: bool = False
    ) -> None:
        """Write what came of an attempt; after this it survives a sudden end."""
        if self._file is None:
            raise RuntimeError('the folder is not open')
        line = {
            'id': outcome.id,
            'status': RETRIED if retried else outcome.status.value,
            'measures': dict(sorted(outcome.measures.items())),
            'exit_code': outcome.exit_code,
            'reason': outcome.reason,
            'seconds': round(outcome.seconds, 3),
            'host': outcome.host,
            'executor': executor,
            'attempt': attempt,
            'ended': datetime.now(timezone.utc).isoformat(timespec='milliseconds'),
        }
        try:
            if outcome.log:
                (self.folder / LOGS / f'{outcome.id}.txt').write_text(
                    outcome.log, encoding='utf-8'
                )
            self._file.write(json_text(line).encode() + b'\n')
            self._file.flush()
        except OSError as error:
            raise RigError(f'cannot write {self.folder}: {why(error)}') from None
        self._take(line)

    def write_table(self, plan: Plan, tasks: Iterable[Task], recordings: list[str]) -> Path:
        """Write results.parquet of the runs that are there; return it."""
        from sensor_rig.sweep.running.table import table_bytes

        rows = sorted(
            (task for task in tasks if task.id in self.results), key=lambda task: task.id
        )
        target = self.folder / TABLE
        with saving(target) as part:
            part.write_bytes(table_bytes(plan, rows, self.results, recordings))
        return target


def kept_plan(folder: Path) -> tuple[Plan, str]:
    """Return the plan of a results folder, and its name."""
    file = folder / PLAN
    if not folder.is_dir():
        raise RigError(
            f'there is no results folder {folder}; "rig sweep PLAN --out {folder}" makes it'
        )
    try:
        document = json.loads(file.read_text(encoding='utf-8'))
        return plan_of(document['plan'], str(document['name'])), str(document['name'])
    except (OSError, ValueError, KeyError, TypeError):
        raise RigError(
            f'{folder} holds no results of a sweep ({PLAN} is missing or cannot be read)'
        ) from None
