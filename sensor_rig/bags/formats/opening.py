"""Which of the formats of others a path is in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sensor_rig.bags.formats import ulog
from sensor_rig.bags.formats.made import MadeFile


def other_format(path: Path) -> Callable[[], MadeFile] | None:
    """Return what opens `path` as a format of others; None where it looks like none of them."""
    from sensor_rig.bags.formats.asl import asl_file, asl_folder

    if path.is_dir():
        folder = asl_folder(path)
        return None if folder is None else lambda: asl_file(folder)
    if not path.is_file():
        return None
    with path.open('rb') as file:
        is_ulog = file.read(len(ulog.MAGIC)) == ulog.MAGIC
    return (lambda: ulog.ulog_file(path)) if is_ulog else None
