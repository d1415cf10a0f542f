"""How to install a missing package into the very Python that misses it."""

from __future__ import annotations

import os
import sys


def pip_install(*packages: str) -> str:
    """Return the command line: by the script `rig` where it was used, else by this interpreter."""
    program = os.environ.get('RIG_PROGRAM')
    python = f'{program} python' if program else sys.executable
    return f'{python} -m pip install {" ".join(packages)}'


def install_extra(extra: str) -> str:
    """Return the command line that brings an extra of this project."""
    program = os.environ.get('RIG_PROGRAM')
    return f'{program} setup {extra}' if program else pip_install(f'"sensor_rig[{extra}]"')
