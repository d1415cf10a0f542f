"""The process that carries out runs, one after the other.

Started as `python -m sensor_rig.sweep.running.worker FD`.

It gets the experiment and then tasks through a socket, and answers each with an outcome. Its
parent enforces the limits by killing its process group; when the parent ends, this process ends.
"""

from __future__ import annotations

import importlib
import os
import queue
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from rig_common.errors import RigError
from sensor_rig.sweep.running.experiment import Experiment, Task
from sensor_rig.sweep.running.outcome import RunOutcome, RunStatus

BEGUN = 'begun'
"""Sent when a task is taken up; its time counts from here."""
LOG_BYTES = 64 * 1024
"""Of what a run writes, the end that is kept."""


def serve(connection: Connection) -> None:
    """Carry out what comes until the other end closes."""
    incoming: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_listen, args=(connection, incoming), daemon=True).start()
    experiment: Experiment = incoming.get()
    importlib.import_module(
        'sensor_rig.sweep.running.systems'
    )  # takes a second, which is not counted for a run
    while True:
        task, scratch, log = incoming.get()
        connection.send(BEGUN)
        connection.send(carried_out(experiment, task, scratch, log))


def _listen(connection: Connection, incoming: queue.Queue[Any]) -> None:
    """Hand on what comes; when the other end is gone, end this process and all it started."""
    try:
        while True:
            incoming.put(connection.recv())
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)


def carried_out(experiment: Experiment, task: Task, scratch: Path, log: Path) -> RunOutcome:
    """Return the outcome of one run; everything that it writes goes into `log`."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    _write_into(log)
    begun = time.monotonic()
    outcome = _tried(experiment, task, scratch)
    seconds = time.monotonic() - begun
    sys.stdout.flush()
    sys.stderr.flush()
    _end_children()
    shutil.rmtree(scratch, ignore_errors=True)
    return replace(outcome, seconds=seconds, host=socket.gethostname(), log=end_of(log))


def _tried(experiment: Experiment, task: Task, scratch: Path) -> RunOutcome:
    from sensor_rig.sweep.running.systems import PlanError, ProgramError, measured

    try:
        return RunOutcome(task.id, RunStatus.OK, measured(experiment, task, scratch), 0)
    except RigError as error:
        of_plan = isinstance(error, PlanError)
        return RunOutcome(task.id, RunStatus.REFUSED, reason=str(error), of_plan=of_plan)
    except ProgramError as error:
        return RunOutcome(task.id, RunStatus.FAILED, error.measures, error.code, str(error))
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        reason = f'{type(error).__name__}: {error}'.splitlines()[0]
        return RunOutcome(task.id, RunStatus.FAILED, reason=reason)


def _write_into(log: Path) -> None:
    """Let stdout and stderr, also of programs that are started, go into a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def _end_children() -> None:
    """End what a program left running."""
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            child.kill()


def end_of(log: Path) -> str:
    """Return the end of a log."""
    try:
        with log.open('rb') as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - LOG_BYTES))
            return stream.read().decode(errors='replace')
    except OSError:
        return ''


if __name__ == '__main__':
    serve(Connection(int(sys.argv[1])))
