"""Tries in another process what can crash or hang one: a graphics driver, a middleware."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys

TIMEOUT_S = 60.0
_END_WITH_PARENT = """
import ctypes
set_option = getattr(ctypes.CDLL(None), 'prctl', None)  # on Linux
if set_option:
    set_option(1, 9)  # PR_SET_PDEATHSIG, SIGKILL
"""
"""For a parent that a signal ends: it cannot end its children."""


class Trial:
    """Another Python that runs `code`, beside what this process does meanwhile."""

    def __init__(self, code: str, **environment: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, '-c', _END_WITH_PARENT + code],
            env=dict(os.environ, **environment),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        atexit.register(self._end)

    def result(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and its most informative line."""
        try:
            stdout, stderr = self._process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return 1, f'no answer within {TIMEOUT_S:g} s'
        finally:
            self._end()
        code = self._process.returncode
        lines = (stdout if code == 0 else stderr).strip().splitlines()
        if code < 0 and not lines:
            return code, f'ended by signal {-code}'
        # Clean-up that fails after the error (an unusable GL context) hides it behind "ignored in"
        errors = [line for line in lines if 'Error' in line.split(':')[0] and line[0] != ' ']
        return code, (errors or lines or ['no output'])[0 if errors else -1]

    def _end(self) -> None:
        """Leave no process behind, whether anybody asked for its result or not."""
        atexit.unregister(self._end)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def run_python(code: str, **environment: str) -> tuple[int, str]:
    """Run `code` in another Python; return its exit code and its most informative line."""
    return Trial(code, **environment).result()
