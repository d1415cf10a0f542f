"""Which files a recording has, whatever its metadata.yaml says, and what opens each."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from rig_common.errors import RigError
from sensor_rig.bags.metadata import METADATA, Metadata
from sensor_rig.bags.metadata import read as read_metadata

STORAGES = ('.mcap', '.db3')
ROS1 = '.bag'
PACKED = '.zstd'
SIGNS = (b'#ROSBAG', b'SQLite', b'\x89MCAP', b'ULog')
"""How the files begin that are read as recordings."""
_NUMBERED = re.compile(r'(.+)_\d+')


def looks_like_recording(path: Path) -> bool:
    """Whether a path is no file, or one that begins or is named like a recording."""
    if path.is_file() and path.suffix not in (*STORAGES, ROS1, PACKED):
        with suppress(OSError), path.open('rb') as file:
            return file.read(8).startswith(SIGNS)
    return True


def files_of(path: Path, miss: Callable[[str], None]) -> tuple[list[Path], Metadata | None]:
    """Return the storage files of a recording, and its metadata where they make sense.

    Raises RigError where there is no recording.
    """
    try:
        if not path.exists():
            raise RigError(f'there is no recording at {path}')
        if path.is_file():
            return [path], None
        if not path.is_dir():
            raise RigError(f'{path} is neither a file nor a folder, so it is no recording')
        return _files_in(path, miss)
    except OSError as error:
        raise RigError(f'{path} cannot be read: {error.strerror}') from None


def _files_in(folder: Path, miss: Callable[[str], None]) -> tuple[list[Path], Metadata | None]:
    for each in sorted(folder.iterdir()):
        if each.exists() and not (each.is_file() or each.is_dir()):  # could be read for ever
            raise RigError(
                f'{folder} is not a rosbag2 recording: {each.name} in it is neither a file nor a '
                f'folder'
            )
    there = [each for each in sorted(folder.iterdir()) if each.is_file() and _is_storage(each)]
    about = f'there is no {METADATA} in it'
    if (folder / METADATA).is_file():
        found = read_metadata(folder / METADATA)
        if isinstance(found, Metadata):
            return _listed(folder, found, there, miss), found
        about = f'its {METADATA} is not readable: {found}'
    if not there or not _belong_together(there):
        instead = f'; give one of its files instead, such as {there[0].name}' if there else ''
        raise RigError(f'{folder} is not a readable rosbag2 recording: {about}{instead}')
    miss(f'{folder}: {about}; what lies in it is read as one recording')
    return there, None


def _listed(
    folder: Path, found: Metadata, there: list[Path], miss: Callable[[str], None]
) -> list[Path]:
    """Return the files that the metadata list, and say which differ from those that are there."""
    names = {each.name for each in there}
    for name in found.files:
        if name not in names:
            miss(f'{METADATA} of {folder} lists the file {name}, which is not there')
    listed = [folder / name for name in found.files if name in names]
    if not listed:
        if not there and found.files:
            raise RigError(f'{folder} is not a readable rosbag2 recording: its files are missing')
        return there
    for name in sorted(names - set(found.files)):
        miss(f'{METADATA} of {folder} does not list the file {name}, which is left out')
    return listed


def _is_storage(path: Path) -> bool:
    return path.name.removesuffix(PACKED).endswith(STORAGES)


def _belong_together(files: list[Path]) -> bool:
    """Whether files are named as the parts of one recording."""
    if len(files) == 1:
        return True
    names = {
        (match.group(1), tuple(file.suffixes)) if match else (file.name, ())
        for file in files
        for match in [_NUMBERED.fullmatch(file.name.split('.')[0])]
    }
    return len(names) == 1
