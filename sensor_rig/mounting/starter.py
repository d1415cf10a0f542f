"""The text of a starting rig file for a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sensor_rig.mounting.guess import Guess
from sensor_rig.mounting.survey import Survey

WIDTH = 118


def starter_rig(survey: Survey, guess: Guess, out: Path) -> str:
    """Return a rig file, to be written to `out`, with sensors in likely places."""
    model = survey.path.absolute()
    near = os.path.relpath(model, out.absolute().parent)
    world = {'model': near if not near.startswith('..') else str(model), **guess.world()}
    sensors = guess.sensors()
    lines = [
        f'# Made from {survey.path.name}: sensors in likely places, with usual rates and '
        'latencies. Look at the picture,',
        '# move what is in the wrong place, and leave out what your robot does not have.',
        '/**:',
        '  ros__parameters:',
        '    seed: 7',
    ]
    lines += _section('world', world, 4)
    if sensors:
        lines += _section('sensors', sensors, 4)
    camera, imu = (
        next((name for name, each in sensors.items() if each['type'] == kind), '')
        for kind in ('camera', 'imu')
    )
    if camera and imu:
        lines += _section(
            'sync',
            {
                'reference_sensor_id': camera,
                'required_sensors': [camera],
                'imu_sensor_id': imu,
                'inputs': {imu: {'collect': True}},
            },
            4,
        )
    return '\n'.join(lines) + '\n'


def _section(key: str, value: Any, indent: int) -> list[str]:
    """Return `key: value` in YAML; short maps on one line."""
    pad = ' ' * indent
    line = f'{pad}{_key(key)}: {_flow(value)}'
    is_long_map = (
        isinstance(value, Mapping)
        and (indent <= 6 or len(line) > WIDTH)
        and key not in ('mount', 'driver')
    )
    if not is_long_map:
        return _wrapped(line, indent)
    return [
        f'{pad}{_key(key)}:',
        *(row for inner, item in value.items() for row in _section(inner, item, indent + 2)),
    ]


def _wrapped(line: str, indent: int) -> list[str]:
    """Break a long list after a comma."""
    rows = []
    while len(line) > WIDTH and ', ' in line[:WIDTH]:
        cut = line.rindex(', ', 0, WIDTH) + 1
        rows.append(line[:cut])
        line = ' ' * (indent + 4) + line[cut:].lstrip()
    return [*rows, line]


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return '{' + ', '.join(f'{_key(k)}: {_flow(v)}' for k, v in value.items()) + '}'
    if isinstance(value, (list, tuple)):
        return '[' + ', '.join(_flow(item) for item in value) + ']'
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, (int, float)) else _text(str(value))


def _text(text: str) -> str:
    plain = (
        text
        and all(c.isalnum() or c in '_./-' for c in text)
        and text[0].isalpha()
        and (text.lower() not in ('true', 'false', 'yes', 'no', 'on', 'off', 'null', 'y', 'n'))
    )
    plain = plain or (text.startswith('/') and ' ' not in text and "'" not in text)
    return text if plain else "'" + text.replace("'", "''") + "'"


def _key(text: str) -> str:
    return _text(text)
