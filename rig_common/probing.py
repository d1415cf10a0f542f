"""Tries in another process what can crash or hang one: a graphics driver, a middleware."""

from __future__ import annotations

import os
import subprocess
import sys

TIMEOUT_S = 60.0


def run_python(code: str, **environment: str) -> tuple[int, str]:
    """Run `code` in another Python; return its exit code and its most informative line."""
    try:
        result = subprocess.run([sys.executable, '-c', code], env=dict(os.environ, **environment),
                                capture_output=True, text=True, timeout=TIMEOUT_S,
                                check=False)
    except subprocess.TimeoutExpired:
        return 1, f'no answer within {TIMEOUT_S:g} s'
    lines = (result.stdout if result.returncode == 0 else result.stderr).strip().splitlines()
    if result.returncode < 0 and not lines:
        return result.returncode, f'ended by signal {-result.returncode}'
    # Clean-up that fails after the error (an unusable GL context) hides it behind "ignored in".
    errors = [line for line in lines if 'Error' in line.split(':')[0] and line[0] != ' ']
    return result.returncode, (errors or lines or ['no output'])[0 if errors else -1]
