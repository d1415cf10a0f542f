"""Starts processes for a test and ends each of them, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from rig_common.early import PARENT_VARIABLE
from support.waiting import wait_until

GRACE_S = {signal.SIGINT: 5.0, signal.SIGTERM: 3.0, signal.SIGKILL: 5.0}


class Process:
    """One started process in its own process group, its output in a file."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: str | None) -> None:
        self.command = command
        self._log = tempfile.TemporaryFile(mode='w+b')  # noqa: SIM115 - closed in stop()
        self._closed_output = ''
        self._popen = subprocess.Popen(
            command,
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.pid = self._popen.pid

    @property
    def output(self) -> str:
        """Return everything it has written so far, stdout and stderr together."""
        if self._log.closed:
            return self._closed_output
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode(errors='replace')

    @property
    def exit_code(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout: float = 60.0) -> int:
        """Wait for its own end and return the exit code."""
        wait_until(lambda: self.exit_code is not None, timeout, f'the end of {self.command}')
        return self._popen.returncode

    def wait_for_output(self, text: str, timeout: float = 60.0) -> str:
        """Wait until `text` stands in the output and return the output."""

        def there() -> bool:
            if text in self.output:
                return True
            code = self.exit_code
            assert code is None, f'{self.command} ended ({code}) before {text!r}'
            return False

        wait_until(there, timeout, f'{text!r} in the output of {self.command}')
        return self.output

    def interrupt(self) -> None:
        """Send what Ctrl-C sends, to the whole group as a terminal does."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """End the whole group at once, as a power cut would."""
        self._signal(signal.SIGKILL)
        wait_until(lambda: not self.group_alive(), what=f'the end of {self.command}')

    def stop(self) -> int | None:
        """End the group: SIGINT, then SIGTERM, then SIGKILL; return the exit code."""
        for number, grace in GRACE_S.items():
            if not self.group_alive():
                break
            self._signal(number)
            with suppress(AssertionError):
                wait_until(lambda: not self.group_alive(), grace)
        self._closed_output = self.output
        self._log.close()
        return self.exit_code

    def group_alive(self) -> bool:
        """Say whether it or any process it left behind in its group still runs."""
        self._popen.poll()  # reaps it
        found = map(_group_and_state, Path('/proc').glob('[0-9]*'))
        return (self.pid, True) in found

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def _group_and_state(process: Path) -> tuple[int, bool]:
    """Return the process group of /proc/<pid> and whether it runs; a zombie does not."""
    try:
        state, _, group = (process / 'stat').read_text().rpartition(')')[2].split()[:3]
    except OSError:
        return 0, False
    return int(group), state not in 'ZX'


class Processes:
    """The processes of one test."""

    def __init__(self) -> None:
        self.started: list[Process] = []

    def start(
        self,
        *command: str,
        cwd: str | None = None,
        environment: dict[str, str] | None = None,
        **changes: str,
    ) -> Process:
        """Start a command in this environment or the given one; further keywords change it."""
        base = dict(os.environ) if environment is None else environment
        process = Process(list(command), {**base, **changes}, cwd)
        self.started.append(process)
        return process

    def python(self, *arguments: str, cwd: str | None = None, **changes: str) -> Process:
        """Start this Python with `arguments`, unbuffered so that output can be waited for.

        A program of ours also ends when the test is killed.
        """
        if arguments[:1] == ('-m',) and arguments[1].startswith('sensor_rig'):
            changes.setdefault(PARENT_VARIABLE, str(os.getpid()))
        return self.start(sys.executable, '-u', *arguments, cwd=cwd, **changes)

    def rig(self, *arguments: str, cwd: str | None = None, **changes: str) -> Process:
        """Start the command line (`sensor-rig ...`)."""
        return self.python('-m', 'sensor_rig', *arguments, cwd=cwd, **changes)

    def stop_all(self) -> None:
        """End every process, the last started first."""
        for process in reversed(self.started):
            process.stop()
