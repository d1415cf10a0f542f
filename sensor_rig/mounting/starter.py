"""The text of a starting rig file for a model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from sensor_rig.mounting.guess import Guess
from sensor_rig.mounting.survey import Survey

WIDTH = 118


class _Dumper(yaml.SafeDumper):
    """Puts names that rcl takes for booleans into quotes: a joint may be called y."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(
        'tag:yaml.org,2002:str', text, style="'" if text in ('y', 'Y', 'n', 'N') else None
    ),
)


def starter_rig(survey: Survey, guess: Guess, out: Path, **world: object) -> str:
    """Return a rig file, to be written to `out`, with sensors in likely places.

    `world` replaces keys that were guessed.
    """
    model = survey.path.absolute()
    near = os.path.relpath(model, out.absolute().parent)
    sensors = guess.sensors()
    values: dict[str, Any] = {
        'seed': 7,
        'world': {
            'model': near if not near.startswith('..') else str(model),
            **guess.world(),
            **world,
        },
    }
    if sensors:
        values['sensors'] = sensors
    camera, imu = (
        next((name for name, each in sensors.items() if each['type'] == kind), '')
        for kind in ('camera', 'imu')
    )
    if camera and imu:
        values['sync'] = {
            'reference_sensor_id': camera,
            'required_sensors': [camera],
            'imu_sensor_id': imu,
            'inputs': {imu: {'collect': True}},
        }
    text = yaml.dump(
        {'/**': {'ros__parameters': values}},
        Dumper=_Dumper,
        sort_keys=False,
        default_flow_style=None,
        width=WIDTH,
    )
    return (
        f'# Made from {survey.path.name}: sensors in likely places, with usual rates and '
        'latencies. Look at the picture,\n'
        f'# move what is in the wrong place, and leave out what your robot does not have.\n{text}'
    )
