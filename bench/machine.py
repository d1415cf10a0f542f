"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PEERS = ('mujoco-lidar', 'embreex', 'torch', 'mjlab', 'rosbags', 'message-filters')
OURS = ('numpy', 'mujoco')


def describe() -> dict[str, Any]:
    """Return processor, cores, memory, system and the versions that matter."""
    return {
        'cpu': _cpu_model(),
        'cores': os.cpu_count(),
        'memory_gb': _memory_gb(),
        'system': f'{platform.system()} {platform.machine()}',
        'python': platform.python_version(),
        'versions': {name: _version(name) for name in (*OURS, *PEERS)},
    }


def load() -> float | None:
    """Return the load average of the last minute, None where the system keeps none."""
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _cpu_model() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(':')[2].strip() for line in lines if line.startswith('model name'))
    return next(names, platform.processor() or platform.machine())


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30, 1)
    except (OSError, ValueError):
        return None


def _version(name: str) -> str:
    """Return the version of what is imported; a ROS package on the path has a package.xml."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        found = find_spec(name.replace('-', '_'))
    if found is None or found.origin is None:
        return 'absent'
    for folder in Path(found.origin).parents[:4]:
        for file in (folder / 'package.xml', folder / 'share' / found.name / 'package.xml'):
            if file.is_file() and (
                version := re.search('<version>(.+)</version>', file.read_text())
            ):
                return version[1].strip()
    return 'of unknown version'
