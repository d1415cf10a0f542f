"""Reads a ROS 2 parameter file without ROS, by the rules of rcl's own parser.

rcl reads YAML in its own way: `off` is false, `1e-4` is a number, `null` is a text, and several
things that YAML allows end in a wrong parameter or in none. A file read here has the values that
`--params-file` gives a node; whatever rcl would refuse, garble or silently flatten is refused with
a sentence that names the file, the line and the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rig_common.errors import RigError, why
from rig_common.paramfile.events import EventReader, Parameters
from rig_common.paramfile.scalars import Scalar

Value: TypeAlias = Scalar | list[bool] | list[int] | list[float] | list[str]

MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class ParameterFile:
    """The parameters of one file and where they stand in it."""

    path: Path
    values: Parameters
    """Nested maps; leaves are bool, int, float, str or a list of one of these."""
    lines: dict[str, int]
    """Line of every key, by its dotted name (1 is the first line)."""


def read(path: str | Path) -> Parameters:
    """Return the nested parameters for all nodes (`/**`) of the file at `path`."""
    return load(path).values


def load(path: str | Path) -> ParameterFile:
    """Return the parameters for all nodes of the file at `path`, with their lines."""
    file = Path(path)
    return parse(_text_of(file), file)


def parse(text: str, path: Path = Path('parameters')) -> ParameterFile:
    """Return the parameters in `text`; `path` only names it in errors."""
    reader = EventReader(path, text)
    return ParameterFile(path, reader.parameters(), reader.lines)


def flatten(values: Mapping[str, Any], prefix: str = '') -> dict[str, Value]:
    """Return nested parameters by their dotted ROS names, as a node sees them."""
    flat: dict[str, Value] = {}
    for key, value in values.items():
        name = f'{prefix}{key}'
        if isinstance(value, Mapping):
            flat.update(flatten(value, f'{name}.'))
        else:
            flat[name] = value
    return flat


def merged(base: Mapping[str, object], over: Mapping[str, object]) -> Parameters:
    """Return `over` on top of `base`, map by map."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = (
            merged(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return result


def _text_of(file: Path) -> str:
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):
            raise RigError(f'cannot read {file}: it is a pipe or a device, not a file')
        with file.open('rb') as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise RigError(f'cannot read {file}: {why(error)}') from None
    if len(data) > MAX_BYTES:
        raise RigError(f'{file} is larger than {MAX_BYTES // 2**20} MiB, which no rig needs')
    try:
        return data.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b'\n') + 1
        raise RigError(f'{file}:{line}: not a text file in UTF-8') from None
