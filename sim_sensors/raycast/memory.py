"""Remembers which backend was chosen for a scene, so that every run on a machine casts alike.

A choice by the clock may fall differently next time, and two backends differ in their last
digits: without a memory, the same seed would not give the same bits.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from pathlib import Path

import mujoco

from sim_sensors.raycast.base import Bool

_GENERATION = 2
"""Counts up when there is something new to choose from, so that old choices are made again."""
_known: dict[str, str] = {}


def scene_key(
    model: mujoco.MjModel,
    visible: Bool,
    max_range_m: float,
    num_rays: int,
    own_origins: bool = False,
) -> str:
    """Return what a choice depends on, but for the machine's mood, as a short text.

    `own_origins` says that every ray has an origin of its own.
    """
    digest = hashlib.sha256()
    for array in (
        visible,
        model.geom_type,
        model.geom_size,
        model.geom_dataid,
        model.geom_bodyid,
        model.body_weldid,
        model.mesh_facenum,
        model.hfield_nrow,
        model.hfield_ncol,
    ):
        digest.update(array.tobytes())
    machine = f'{platform.node()} {os.cpu_count()} {mujoco.__version__} {_GENERATION}'
    digest.update(f'{max_range_m} {num_rays} {own_origins} {machine}'.encode())
    return digest.hexdigest()[:24]


def recall(key: str) -> str | None:
    """Return the choice for `key`, from this process or an earlier one."""
    if key not in _known:
        _known.update(_read(_file()))
    return _known.get(key)


def remember(key: str, choice: str) -> None:
    """Keep a choice for this process and, where the disk allows it, for later ones."""
    _known[key] = choice
    file = _file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile('w', dir=file.parent, delete=False) as draft:
            json.dump({**_read(file), key: choice}, draft, indent=1)
        Path(draft.name).replace(file)
    except OSError:
        pass  # a read-only home costs the next process a calibration, nothing else


def _read(file: Path) -> dict[str, str]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _file() -> Path:
    cache = os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return Path(cache) / 'sensor_rig' / 'raycast.json'
