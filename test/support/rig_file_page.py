"""The tables of docs/rig_file/, made from the config classes; the words between are the pages'.

`PYTHONPATH=test ./rig python test/support/rig_file_page.py` writes the tables again.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import BaseModel

from sensor_rig.rigfile.stream_keys import StreamKeys
from sim_sensors.interface.config import SensorConfig
from sim_sensors.timing.config import LinkConfig
from sim_sensors.timing.faults import FaultConfig
from sim_sensors.world.config.world import WorldConfig
from support.parameter_table import parameter_table
from sync_engine.config import InputConfig, SyncConfig

FOLDER = Path(__file__).resolve().parents[2] / 'docs' / 'rig_file'
MODELS: dict[str, dict[str, type[BaseModel]]] = {
    'world.md': {'# Rig file: world': WorldConfig},
    'sensors.md': {'# Rig file: sensors': SensorConfig, '## faults': FaultConfig},
    'streams.md': {'## streams': StreamKeys, '## links': LinkConfig},
    'sync.md': {'# Rig file: sync': SyncConfig, '## inputs': InputConfig},
}
"""Page -> the heading above each table, and the class that the table describes."""


def with_fresh_tables(name: str) -> str:
    """Return the page `name` with the first table below each heading made again."""
    page = (FOLDER / name).read_text(encoding='utf-8')
    apart = tuple(model for each in MODELS.values() for model in each.values())
    for heading, model in MODELS[name].items():
        before, found, after = f'\n{page}'.partition(f'\n{heading}\n')
        assert found, f'{name} has no heading {heading!r}'
        words, _, rest = re.split(r'((?:^\|.*\n)+)', after, maxsplit=1, flags=re.M)
        table = parameter_table(model, with_common=True, apart=apart)
        page = (before + found + words + table + rest).removeprefix('\n')
    return page


if __name__ == '__main__':
    for each in MODELS:
        (FOLDER / each).write_text(with_fresh_tables(each), encoding='utf-8')
