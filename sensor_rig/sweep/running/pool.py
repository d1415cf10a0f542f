"""Carries out tasks on the cores of this machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sensor_rig.sweep.running.experiment import Experiment, Task
from sensor_rig.sweep.running.local import TICK_S, LocalWorker
from sensor_rig.sweep.running.outcome import RunOutcome

if TYPE_CHECKING:
    from typing_extensions import Self


class Executor(ABC):
    """Carries out tasks, in any order, inside a `with` block."""

    name: str
    """As the results name it."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """Tasks that it carries out at a time."""

    @abstractmethod
    def run(self, tasks: Iterable[Task]) -> Iterator[RunOutcome]:
        """Yield an outcome for every task as it ends."""

    @abstractmethod
    def close(self) -> None:
        """End what is under way."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Pool(Executor):
    """Worker processes, one BLAS thread each."""

    name = 'pool'

    def __init__(self, experiment: Experiment, workers: int, folder: Path) -> None:
        """Prepare `workers` processes; `folder` is for what they write while they run."""
        self._workers = [
            LocalWorker(experiment, folder / f'worker{index}') for index in range(workers)
        ]

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.close()

    @property
    def slots(self) -> int:
        """The processes."""
        return len(self._workers)

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
