"""Writes a file whole or not at all."""

from __future__ import annotations

from pathlib import Path

from rig_common.errors import RigError, why


def save_text(path: Path, text: str) -> None:
    """Write `text` to `path`; where that fails, raise RigError and leave what was there before.

    Something that is no file, such as /dev/stdout, is written to as it is.
    """
    beside = path.with_name(f'.{path.name}.part')
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding='utf-8')
            return
        try:
            beside.write_text(text, encoding='utf-8')
            beside.replace(path.resolve())
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise RigError(f'cannot write {path}: {why(error)}') from None
