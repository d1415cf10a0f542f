"""Carries out tasks on the cores of this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, cast

from sensor_rig.sweep.running.experiment import Experiment, Task
from sensor_rig.sweep.running.local import TICK_S, LocalWorker
from sensor_rig.sweep.running.outcome import RunOutcome

if TYPE_CHECKING:
    from typing_extensions import Self


class Executor(Protocol):
    """Carries out tasks, in any order."""

    name: str

    @property
    def slots(self) -> int:
        """Tasks that it carries out at a time."""

    def run(self, tasks: Iterable[Task]) -> Iterator[RunOutcome]:
        """Yield an outcome for every task as it ends; who breaks off ends what is under way."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Pool:
    """Worker processes, one BLAS thread each."""

    name = 'pool'

    def __init__(self, experiment: Experiment, workers: int, folder: Path) -> None:
        """Prepare `workers` processes; `folder` is for what they write while they run."""
        self.slots = workers
        self._workers = [
            LocalWorker(experiment, folder / f'worker{index}') for index in range(workers)
        ]

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.close()

    @property
    def pids(self) -> list[int]:
        """Of the worker processes that run."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    def begin(self, waiting: Iterator[Task]) -> None:
        """Give a task to every worker that has none."""
        for worker in self._workers:
            if not worker.is_busy:
                with suppress(StopIteration):
                    worker.begin(next(waiting))

    def run(self, tasks: Iterable[Task]) -> Iterator[RunOutcome]:
        """Yield the outcome of every task as it ends."""
        waiting = iter(tasks)
        while True:
            self.begin(waiting)
            busy = [worker for worker in self._workers if worker.is_busy]
            if not busy:
                return
            wait(cast('list[Connection]', [worker.connection for worker in busy]), TICK_S)
            for worker in busy:
                outcome = worker.check()
                if outcome is not None:
                    yield outcome
