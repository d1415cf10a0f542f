"""Which of the formats of others a path is in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sensor_rig.bags.formats.made import MadeFile
from sensor_rig.bags.formats.ulog import ulog_file
from sensor_rig.bags.formats.ulog_records import MAGIC
from sensor_rig.bags.storage.base import Miss


def other_format(path: Path, miss: Miss) -> Callable[[], MadeFile] | None:
    """Return what opens `path` as a format of others; None where it looks like none of them.

    `miss` gets a sentence for what is left out.
    """
    from sensor_rig.bags.formats.asl import asl_file, asl_folder

    if path.is_dir():
        folder = asl_folder(path)
        return None if folder is None else lambda: asl_file(folder, miss)
    if not path.is_file():
        return None
    with path.open('rb') as file:
        is_ulog = file.read(len(MAGIC)) == MAGIC
    return (lambda: ulog_file(path, miss)) if is_ulog else None
