"""Carries out tasks on a Ray cluster, whose machines need none of the files.

Every machine needs this package in the same version. The rig, its model, meshes, code and, unless
the plan says otherwise, recordings go through Ray's object store, once a machine.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import shutil
import socket
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import sensor_rig
from rig_common.errors import RigError, why
from rig_common.installing import pip_install
from sensor_rig.sweep.running.experiment import Experiment, Task, moved
from sensor_rig.sweep.running.files import inside
from sensor_rig.sweep.running.local import LocalWorker
from sensor_rig.sweep.running.outcome import RunOutcome, RunStatus
from sensor_rig.sweep.running.pool import Executor

AHEAD = 4
"""Tasks for each core that are handed to Ray at a time; what waits there can be moved."""
LOCAL_ONLY = {'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER': '0'}
"""Ray's switch for a node that listens on 127.0.0.1 only, whatever the system; read when Ray is
imported. Anyone who reaches the ports of Ray can run code."""
PREFIX = 'sensor_rig_sweep_'


class RayCluster(Executor):
    """Hands tasks to Ray and takes their outcomes as they come."""

    name = 'ray'

    def __init__(
        self,
        experiment: Experiment,
        files: Iterable[Path],
        address: str | None,
        most: int | None = None,
    ) -> None:
        """Connect to the cluster at `address`, or start Ray on this machine; `most` at a time."""
        if address is None:
            os.environ.update(LOCAL_ONLY)
        self._ray = _imported()
        self._connect(address)
        taken = {str(path): path.read_bytes() for path in files}
        if experiment.plan.ship_recordings:
            for recording in experiment.recordings:
                taken |= {os.path.abspath(path): path.read_bytes() for path in inside(recording)}
        given = pickle.dumps((experiment, taken))
        self._digest = hashlib.sha256(given).hexdigest()[:16]
        self._given = self._ray.put(given)
        self._most = most
        self._run = self._ray.remote(num_cpus=1, max_retries=0)(on_worker)

    def _connect(self, address: str | None) -> None:
        quiet: dict[str, Any] = {
            'log_to_driver': False,
            'logging_level': 'ERROR',
            'include_dashboard': False if address is None else None,
        }
        os.environ.setdefault('RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO', '0')
        _require_listener(address)
        try:
            self._ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            where = f'Ray at {address!r} does not answer' if address else 'Ray does not start'
            raise RigError(
                f'{where}: {str(error).splitlines()[0] if str(error) else error!r}'
            ) from None

    @property
    def slots(self) -> int:
        """Cores of the cluster, as it is now."""
        cores = int(self._ray.cluster_resources().get('CPU', 1))
        return max(1, cores if self._most is None else min(cores, self._most))

    def close(self) -> None:
        """Leave the cluster, or end Ray on this machine."""
        self._ray.shutdown()

    def run(self, tasks: Iterable[Task]) -> Iterator[RunOutcome]:
        """Yield the outcome of every task as it ends."""
        waiting = iter(tasks)
        under_way: dict[Any, Task] = {}
        while True:
            room = (self._most or self.slots * AHEAD) - len(under_way)
            for _, task in zip(range(room), waiting, strict=False):
                under_way[
                    self._run.remote(self._given, self._digest, task, sensor_rig.__version__)
                ] = task
            if not under_way:
                return
            ended, _ = self._ray.wait(list(under_way), timeout=1.0)
            for reference in ended:
                yield self._outcome(reference, under_way.pop(reference))

    def _outcome(self, reference: object, task: Task) -> RunOutcome:
        """Return what came of a task; one whose machine or worker died is lost."""
        errors = self._ray.exceptions
        try:
            return RunOutcome.from_json(self._ray.get(reference))
        except errors.RayTaskError as error:
            raise RigError(
                f'a worker of Ray cannot carry out runs: {str(error.cause).splitlines()[0]}'
            ) from None
        except errors.RayError as error:
            why = str(error).strip().splitlines() or [type(error).__name__]
            return RunOutcome(task.id, RunStatus.CRASHED, {}, None, why[0], lost=True)


def _require_listener(address: str | None) -> None:
    """Raise RigError where nothing listens at host:port, for which Ray would wait minutes."""
    host, _, port = (address or '').rpartition(':')
    if not port.isdecimal() or '//' in host:
        return
    try:
        socket.create_connection((host.strip('[]'), int(port)), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        raise RigError(f'Ray at {address!r} does not answer: {why(error)}') from None


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise RigError(f'--ray needs Ray: {pip_install("ray")}') from None
    return ray


# ---- on a worker --------------------------------------------------------------------------------

_WORKERS: dict[str, LocalWorker] = {}
"""The process of this Ray worker that carries out runs, by the experiment's digest."""


def on_worker(given: bytes, digest: str, task: Task, version: str) -> bytes:
    """Carry out a task in a process of its own, kept for the next; return the outcome as JSON."""
    if sensor_rig.__version__ != version:
        raise RigError(
            f'it has sensor_rig {sensor_rig.__version__}, but the sweep was started '
            f'by {version}; install the same on all machines'
        )
    if digest not in _WORKERS:
        for other in _WORKERS.values():
            other.close()
        _WORKERS.clear()
        experiment, files = pickle.loads(given)
        root = unpacked(files, digest)
        there = moved(experiment, root)
        there.folder.mkdir(parents=True, exist_ok=True)
        if not experiment.plan.ship_recordings:
            there = replace(there, recordings=experiment.recordings)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        _WORKERS[digest] = LocalWorker(there, folder)
    return _WORKERS[digest].run(task).to_json()


def unpacked(files: Mapping[str, bytes], digest: str) -> Path:
    """Return the folder of this machine with the files, at the paths they had; made once."""
    root = Path(tempfile.gettempdir()) / f'{PREFIX}{os.getuid()}_{digest}'
    if root.is_dir() and root.stat().st_uid == os.getuid():
        return root
    made = Path(tempfile.mkdtemp(prefix=PREFIX))
    for name, data in files.items():
        target = Path(f'{made}{name}')
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    try:
        made.rename(root)  # another worker may have been first; its files are the same
    except OSError:
        shutil.rmtree(made)
    return root
