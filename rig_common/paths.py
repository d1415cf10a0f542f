"""Finds the shipped files (worlds, configs, launch files) wherever the package is installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from rig_common.errors import RigError

PACKAGE = 'sensor_rig'


@lru_cache(maxsize=1)
def share_dir() -> Path:
    """Return the folder that holds `worlds/`, `config/`, `launch/` and `package.xml`."""
    for folder in _candidates():
        if (folder / 'package.xml').is_file() and (folder / 'worlds').is_dir():
            return folder
    raise RigError(
        f'the files shipped with {PACKAGE} (worlds, configs) were not found; install the package '
        f'with pip or colcon, or run it from its source tree'
    )


def find_shared(*parts: str) -> Path | None:
    """Return a shipped file such as ('config', 'demo.yaml'), or None if there is no such file.

    Parts that lead out of the shared folder find nothing.
    """
    root = share_dir()
    path = root.joinpath(*parts)
    inside = Path(os.path.normpath(path)).is_relative_to(root)
    return path if inside and path.is_file() else None


def shared_names(folder: str, suffix: str) -> list[str]:
    """Return the sorted stems of the shipped files in `folder` that end in `suffix`."""
    return sorted(path.stem for path in (share_dir() / folder).glob(f'*{suffix}'))


def _candidates() -> Iterator[Path]:
    """Yield where the shared folder may be: source tree, beside the code, ament index, prefix."""
    here = Path(__file__).resolve()
    yield here.parents[1]
    for parent in here.parents:
        yield parent / 'share' / PACKAGE
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        if prefix:
            yield Path(prefix) / 'share' / PACKAGE
    yield Path(sys.prefix) / 'share' / PACKAGE
