"""A thread that does jobs in order, for truth that takes long to make."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue


class Worker:
    """One thread per sensor: a renderer belongs to the thread that made it.

    `_open` belongs to whoever holds `_idle`; `_error` is written once, by the worker, and read by
    the caller.
    """

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._idle = threading.Condition()
        self._open = 0
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], None]) -> None:
        """Have `job` done after all earlier ones."""
        with self._idle:
            self._open += 1
        self._jobs.put(job)

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until every job is done; False if that takes longer than `timeout_s`."""
        with self._idle:
            done = self._idle.wait_for(lambda: not self._open, timeout_s)
        self.raise_error()
        return done

    def raise_error(self) -> None:
        """Raise in the caller what a job raised."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Finish the jobs and end."""
        self._jobs.put(None)
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                if self._error is None:
                    job()
            except BaseException as error:  # raised again in the caller's thread
                self._error = error
            finally:
                with self._idle:
                    self._open -= 1
                    self._idle.notify_all()
