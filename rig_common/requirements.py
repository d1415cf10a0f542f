"""Says in one sentence where a library that comes first on the path is too old.

Distributions ship older ones: Ubuntu 24.04 has pydantic 1.10 and websockets 10.4.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

from rig_common.errors import RigError

NEEDED = {
    'pydantic': ('2.5', '_internal'),
    'websockets': ('13.1', 'asyncio/server.py'),
}
"""Library -> the least version, and a file that older ones lack: a look imports nothing."""
HELP = 'run `./rig ros-env` in the folder of sensor_rig and load what it prints, then start again'


def require(library: str) -> None:
    """Raise where `library` is missing or too old for this package."""
    least, file = NEEDED[library]
    spec = find_spec(library)
    folders = (spec.submodule_search_locations or ()) if spec else ()
    if any(os.path.exists(os.path.join(folder, file)) for folder in folders):
        return
    from importlib.metadata import PackageNotFoundError, version  # takes longer than the look

    try:
        found = f'{library} {version(library)} is too old for sensor_rig'
    except PackageNotFoundError:
        found = f'{library} is not installed'
    raise RigError(f'{found}; it needs {library} {least} or newer: {HELP}')
