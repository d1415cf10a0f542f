"""A worker process of this machine, with the limits of a run."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

import psutil

from sensor_rig.sweep.running.experiment import Experiment, Task
from sensor_rig.sweep.running.outcome import RunOutcome, RunStatus
from sensor_rig.sweep.running.worker import BEGUN, end_of

TICK_S = 0.1
"""Between two looks at the limits."""
ONE_THREAD = dict.fromkeys(
    (
        'OMP_NUM_THREADS',
        'OPENBLAS_NUM_THREADS',
        'MKL_NUM_THREADS',
        'NUMEXPR_NUM_THREADS',
        'VECLIB_MAXIMUM_THREADS',
    ),
    '1',
)
"""A worker has a core; threads of the linear algebra beside busy cores cost more than they bring.
"""


class LocalWorker:
    """Starts the process, gives it one task at a time, and ends it where a limit is passed."""

    def __init__(self, experiment: Experiment, folder: Path) -> None:
        """Prepare; `folder` is this worker's own and is emptied at its end."""
        self._experiment, self._folder = experiment, folder
        self._process: subprocess.Popen[bytes] | None = None
        self._task: Task | None = None
        self._begun = self._looked = 0.0
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def is_busy(self) -> bool:
        """Whether a task is under way."""
        return self._task is not None

    @property
    def pid(self) -> int | None:
        """Of its process; None before the first task."""
        return None if self._process is None else self._process.pid

    def begin(self, task: Task) -> None:
        """Start a task."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._task, self._begun = task, math.inf
        with suppress(OSError):  # it died just now, which `check` finds
            self.connection.send((task, self._folder / 'run', self._log))

    def check(self) -> RunOutcome | None:
        """Return the outcome of the task where it has ended, by itself or at a limit."""
        if self._task is None:
            return None
        try:
            while self.connection.poll():
                told = self.connection.recv()
                if told != BEGUN:
                    self._task = None
                    return cast('RunOutcome', told)
                self._begun = time.monotonic()
        except (EOFError, OSError):
            return self._ended(RunStatus.CRASHED, lost=True)
        now = time.monotonic()
        plan = self._experiment.plan
        if now - self._begun > plan.time_limit_s:
            return self._ended(RunStatus.TIMEOUT, f'it ran longer than {plan.time_limit_s:g} s')
        if plan.memory_limit_mb is not None and now - self._looked >= TICK_S:
            self._looked = now
            if self._memory_mb() > plan.memory_limit_mb:
                return self._ended(
                    RunStatus.MEMORY, f'it held more than {plan.memory_limit_mb:g} MB'
                )
        return None

    def run(self, task: Task) -> RunOutcome:
        """Carry out one task, and wait for it."""
        self.begin(task)
        while (outcome := self.check()) is None:
            self.connection.poll(TICK_S)
        return outcome

    def close(self) -> None:
        """End the process and all it started; a task under way is lost."""
        self._kill()
        self._task = None
        shutil.rmtree(self._folder, ignore_errors=True)

    # ---- the process ----------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        return self._folder / 'log.txt'

    def _start(self) -> None:
        self._kill()
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'sensor_rig.sweep.running.worker', str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._log.open('wb'),
            env={
                **os.environ,
                **ONE_THREAD,
                'PYTHONHASHSEED': '0',
                'PYTHONPATH': os.pathsep.join(filter(None, sys.path)),
            },
        )
        theirs.close()
        self.connection = Connection(ours.detach())
        self.connection.send(self._experiment)

    def _ended(self, status: RunStatus, reason: str = '', *, lost: bool = False) -> RunOutcome:
        """Kill the process and return the outcome of its task."""
        task, process = self._task, self._process
        if task is None or process is None:
            raise RuntimeError('no task is under way')
        self._kill()
        self._task = None
        code = process.returncode
        died = (
            f'its process died with exit code {code}'
            if code >= 0
            else (f'its process died of {_signal_name(-code)}')
        )
        seconds = max(time.monotonic() - self._begun, 0.0)
        return RunOutcome(
            task.id,
            status,
            {},
            code if lost else None,
            reason or died,
            seconds,
            socket.gethostname(),
            end_of(self._log),
            lost=lost,
        )

    def _kill(self) -> None:
        process = self._process
        if process is None:
            return
        for each in family(process.pid):
            with suppress(psutil.Error):
                each.kill()  # those that left the group, too
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.connection.close()
        self._process = None

    def _memory_mb(self) -> float:
        """Return the resident memory of the process and all it started, MB."""
        total = 0
        for each in family(self._process.pid) if self._process is not None else ():
            with suppress(psutil.Error):
                total += each.memory_info().rss
        return total / 1e6


def family(pid: int) -> list[psutil.Process]:
    """Return a process and all that it started, and they; none where it is gone."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f'signal {number}'
