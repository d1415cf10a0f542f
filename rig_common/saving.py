"""Writes a file whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig_common.errors import RigError, why


@contextmanager
def saving(path: Path) -> Iterator[Path]:
    """Give a file to write, which becomes `path` at the end of the block.

    Where writing fails, RigError is raised, and what was there before stays. Something that is
    no file, such as /dev/stdout, is written to as it is.
    """
    beside = path.with_name(f'.{path.stem}.part{path.suffix}')
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        try:
            yield beside
            beside.replace(path.resolve())
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise RigError(f'cannot write {path}: {why(error)}') from None


def save_text(path: Path, text: str) -> None:
    """Write `text` to `path`."""
    with saving(path) as file:
        file.write_text(text, encoding='utf-8')
