"""The plain YAML of a plan: not the stricter YAML of parameter files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from rig_common.errors import RigError, why
from rig_common.paramfile.events import not_yaml

MAX_BYTES = 1 << 20


class _Loader(yaml.SafeLoader):
    """YAML as people read it: `1e-4` is a number, too."""


_Loader.add_implicit_resolver(
    'tag:yaml.org,2002:float',
    re.compile(r'[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+\Z'),
    list('-+.0123456789'),
)


def lines_of(file: Path) -> dict[str, int]:
    """Return the line of every key in a YAML file, by its dotted name; empty where it is none."""
    try:
        root = _Loader(file.read_text(encoding='utf-8-sig')).get_single_node()
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return {}
    found: dict[str, int] = {}

    def look(node: Any, above: str) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                name = f'{above}{key.value}'
                found[name] = key.start_mark.line + 1
                look(value, f'{name}.')

    look(root, '')
    return found


def read_yaml(file: Path) -> dict[str, object]:
    """Return the map in a YAML file."""
    try:
        if file.exists() and not file.is_file():
            raise RigError(f'cannot read the plan {file}: it is not a file')
        with file.open('rb') as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise RigError(f'{file} is larger than {MAX_BYTES // 2**20} MiB, which no plan needs')
        values = _Loader(data.decode('utf-8-sig')).get_single_data()
    except OSError as error:
        raise RigError(f'cannot read the plan {file}: {why(error)}') from None
    except UnicodeDecodeError:
        raise RigError(f'{file}: not a text file in UTF-8') from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RigError(not_yaml(file, data.decode('utf-8-sig'), error)) from None
    if not isinstance(values, dict):
        raise RigError(f'{file} is not a plan; it should be a map with rig: and vary:')
    return values
