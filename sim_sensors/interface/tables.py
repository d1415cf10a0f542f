"""Columns of numbers from a file of the user's: CSV or NPZ."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError


def read_table(file: Path, where: str) -> dict[str, Floats]:
    """Return the columns [k] of a CSV with a header row, or the arrays [k] of an NPZ, by name."""
    return _npz(file, where) if file.suffix.lower() == '.npz' else _csv(file, where)


def _csv(file: Path, where: str) -> dict[str, Floats]:
    try:
        with file.open(newline='', encoding='utf-8-sig') as stream:
            rows = [row for row in csv.reader(stream) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RigError(f'{where}: it cannot be read: {error}') from None
    if len(rows) < 2:
        raise RigError(f'{where}: it should have a header row and rows of numbers')
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise RigError(f'{where}: a column is there twice')
    values = np.empty((len(rows) - 1, len(names)))
    for line, row in enumerate(rows[1:], 2):
        try:
            if len(row) != len(names):
                raise ValueError(len(row))
            values[line - 2] = [float(cell) for cell in row]
        except ValueError:
            raise RigError(
                f'{where}: row {line} should be {len(names)} numbers, it is {",".join(row)[:60]!r}'
            ) from None
    return dict(zip(names, values.T, strict=True))


def _npz(file: Path, where: str) -> dict[str, Floats]:
    try:
        with np.load(file, allow_pickle=False) as stored:
            columns = {name: np.asarray(stored[name], np.float64) for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise RigError(f'{where}: it cannot be read as NPZ: {error}') from None
    sizes = {array.shape for array in columns.values()}
    if len(sizes) != 1 or len(next(iter(sizes))) != 1:
        raise RigError(f'{where}: its arrays should all be one-dimensional and of one length')
    return columns
