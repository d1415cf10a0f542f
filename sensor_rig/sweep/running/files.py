"""The files that a sweep reads: their digests, and what is copied to other machines."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rig_common.errors import RigError, why
from rig_common.paths import share_dir
from sensor_rig.rigfile import RigConfig

IGNORED = frozenset({'__pycache__', '.git'})
CHUNK = 1 << 20


def rig_files(rig: RigConfig) -> set[Path]:
    """Return every file beside the rig file itself that running a rig reads."""
    found: set[Path] = set()
    for part in (*rig.sensors.values(), *rig.streams.values()):
        trace = getattr(part.latency, 'file', '') if part.latency is not None else ''
        if trace:
            found.add(Path(trace))
    if rig.world is None:
        return found
    from sim_sensors.world.model.model_file import model_files

    base = rig.path.parent
    found |= model_files(rig.world, base)
    driver: Any = rig.world.driver
    if getattr(driver, 'type', '') == 'trajectory':
        found |= set(inside(base / Path(driver.file).expanduser()))
    if getattr(driver, 'type', '') == 'python':
        module = base / f'{driver.class_.partition(":")[0].replace(".", "/")}.py'
        if module.is_file():
            found.add(module)
    return found


def inside(path: Path) -> Iterator[Path]:
    """Yield a file, or every file in a folder."""
    if path.is_dir():
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if name not in IGNORED)
            yield from (Path(folder) / name for name in sorted(files))
    else:
        yield path


def named_files(names: Iterable[str], folder: Path, what: str) -> list[Path]:
    """Return the files and folders that a plan names, beside it; say which is not there."""
    found = []
    for name in names:
        path = Path(os.path.abspath(folder / Path(name).expanduser()))
        if not path.exists():
            raise RigError(f'{what} names {name!r}; there is no such file or folder at {path}')
        found.append(path)
    return found


class Digests:
    """Digests of files; large ones are remembered by size and time of change."""

    def __init__(self, known: dict[str, list[Any]] | None = None) -> None:
        self.known = {} if known is None else known
        """Path -> [size, mtime ns, digest]."""

    def of_file(self, path: Path) -> str:
        """Return the digest of a file's bytes."""
        try:
            facts = path.stat()
            known = self.known.get(str(path))
            if known and known[:2] == [facts.st_size, facts.st_mtime_ns]:
                return str(known[2])
            digest = hashlib.sha256()
            with path.open('rb') as stream:
                while chunk := stream.read(CHUNK):
                    digest.update(chunk)
        except OSError as error:
            raise RigError(f'cannot read {path}: {why(error)}') from None
        if facts.st_size >= CHUNK:
            self.known[str(path)] = [facts.st_size, facts.st_mtime_ns, digest.hexdigest()]
        return digest.hexdigest()

    def of_files(self, paths: Iterable[Path], folder: Path) -> str:
        """Return one digest of many files, by their place beside `folder` and their bytes."""
        digest = hashlib.sha256()
        for name, path in sorted((_place(path, folder), path) for path in set(paths)):
            digest.update(f'{name}\0{self.of_file(path)}\n'.encode())
        return digest.hexdigest()


def _place(path: Path, folder: Path) -> str:
    """Return where a file is, the same on every machine: beside the plan or among our own."""
    shared = share_dir()
    if path.is_relative_to(shared):
        return f'share/{path.relative_to(shared).as_posix()}'
    return Path(os.path.relpath(path, folder)).as_posix()
