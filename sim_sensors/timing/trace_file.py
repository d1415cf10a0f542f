"""Text files of measured times: a latency a line, or receive and message stamps in two columns."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from rig_common.arrays import Floats, Ints
from rig_common.errors import RigError


def read_columns(file: Path) -> list[list[str]]:
    """Return the words of each line, split at commas or blanks; a heading and `#` are left out."""
    try:
        lines = file.read_text(encoding='utf-8').splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RigError(f'{file} cannot be read as text: {error}') from None
    rows: list[list[str]] = []
    for number, line in enumerate(lines, 1):
        words = [word for word in re.split(r'[,;\s]+', line.partition('#')[0].strip()) if word]
        if not words:
            continue
        if not all(map(_is_number, words)):
            if not rows:
                continue  # a heading
            raise RigError(f'{file}, line {number}: {line.strip()!r} is no row of numbers')
        if rows and len(words) != len(rows[0]):
            raise RigError(
                f'{file}, line {number} has {len(words)} columns; the lines before '
                f'have {len(rows[0])}'
            )
        rows.append(words)
    if len(rows) < 2:
        raise RigError(f'{file} has {len(rows)} rows of numbers; a trace needs two or more')
    return rows


def read_stamps(file: Path) -> tuple[Ints, Ints]:
    """Return (receive, message) stamps of a two-column trace, ns [n] each, exact."""
    rows = read_columns(file)
    if len(rows[0]) != 2:
        raise RigError(f'{file} has {len(rows[0])} columns; receive and message stamp are two')
    try:
        values = np.array([[int(word) for word in row] for row in rows], np.int64)
    except (ValueError, OverflowError):
        raise RigError(f'{file}: stamps must be whole nanoseconds of at most 64 bits') from None
    return values[:, 0], values[:, 1]


def read_latencies(file: Path) -> Floats:
    """Return the latencies of a trace, s: one column of them, or the difference of two stamps."""
    rows = read_columns(file)
    if len(rows[0]) == 2:
        received, sent = read_stamps(file)
        return (received - sent) / 1e9
    if len(rows[0]) != 1:
        raise RigError(
            f'{file} has {len(rows[0])} columns; a trace has one (latency, s) or two '
            '(receive and message stamp, ns)'
        )
    return np.array([float(row[0]) for row in rows])


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False
