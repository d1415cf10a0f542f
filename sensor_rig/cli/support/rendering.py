"""Begins to try a renderer while a command still loads what reads the rig."""

from __future__ import annotations

import re
from pathlib import Path

from rig_common.paths import find_shared
from sim_sensors.world.rendering.gl_libraries import begin_trial

LOOKED_AT = 1 << 20
"""Characters of a rig file that are looked at; a rig is far smaller."""
_RENDERED = re.compile(r'\btype: *["\']?(camera|depth_camera|segmentation)\b')


def begin_trial_for(rig: str) -> None:
    """Begin to try a renderer if the rig file `rig`, or the shipped one, seems to need one.

    A look at the text is enough: a wrong guess costs time, and changes no result.
    """
    path = Path(rig)
    shipped = find_shared('config', path.with_suffix('.yaml').name) if path.name else None
    found = path if path.is_file() else shipped  # never a pipe, which could be read for ever
    if found is None:
        return
    try:
        with found.open(encoding='utf-8') as file:
            text = file.read(LOOKED_AT)
    except (OSError, ValueError):
        return  # reported when the rig is read
    if _RENDERED.search(text) and 'renderer: rays' not in text:
        begin_trial()
