"""Says in one sentence where a library that comes first on the path is too old.

Distributions ship older ones: Ubuntu 24.04 has pydantic 1.10 and websockets 10.4.
"""

from __future__ import annotations

from importlib.util import find_spec

from rig_common.errors import RigError

NEEDED = {
    'pydantic': ('2.5', 'pydantic._internal'),
    'websockets': ('13.1', 'websockets.asyncio.server'),
}
"""Library -> the least version, and a module that older ones lack: a look is quicker than a
version."""
HELP = 'run `./rig ros-env` in the folder of sensor_rig and load what it prints, then start again'


def require(library: str) -> None:
    """Raise where `library` is missing or too old for this package."""
    least, module = NEEDED[library]
    try:
        if find_spec(module) is not None:
            return
    except ModuleNotFoundError:
        pass
    from importlib.metadata import PackageNotFoundError, version  # takes longer than the look

    try:
        found = f'{library} {version(library)} is too old for sensor_rig'
    except PackageNotFoundError:
        found = f'{library} is not installed'
    raise RigError(f'{found}; it needs {library} {least} or newer: {HELP}')
