"""The tables of docs/rig_file.md, made from the config classes; the words between are the page's.

`PYTHONPATH=test ./rig python test/support/rig_file_page.py` writes the tables again.
"""

from __future__ import annotations

import re
from pathlib import Path

from sensor_rig.rigfile.stream_keys import StreamKeys
from sim_sensors.interface.config import SensorConfig
from sim_sensors.registry import sensor_class, type_names
from sim_sensors.timing.config import LinkConfig
from sim_sensors.timing.faults import FaultConfig
from sim_sensors.world.config.world import WorldConfig
from support.parameter_table import parameter_table
from sync_engine.config import InputConfig, SyncConfig

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'rig_file.md'
MODELS = {
    '## world': WorldConfig,
    '## sensors': SensorConfig,
    '### faults': FaultConfig,
    '## links': LinkConfig,
    '## streams': StreamKeys,
    '## sync': SyncConfig,
    '### inputs': InputConfig,
}
"""The heading above each table, and the class that the table describes."""


def with_fresh_tables(page: str) -> str:
    """Return the page with the first table below each heading made again."""
    tables = {
        heading: parameter_table(model, with_common=True, apart=tuple(MODELS.values()))
        for heading, model in MODELS.items()
    } | {'### types': types_table()}
    for heading, table in tables.items():
        before, found, after = page.partition(f'\n{heading}\n')
        assert found, f'{PAGE.name} has no heading {heading!r}'
        words, _, rest = re.split(r'((?:^\|.*\n)+)', after, maxsplit=1, flags=re.M)
        page = before + found + words + table + rest
    return page


def types_table() -> str:
    """Return a row for each type of sensor: its page, and what its class says of itself."""
    rows = [
        f'| [`{name}`](sensors/{name}.md) | {_first_line(sensor_class(name).__doc__)} |'
        for name in type_names()
    ]
    return '| type | what it is |\n|---|---|\n' + '\n'.join(rows) + '\n'


def _first_line(text: str | None) -> str:
    return text.strip().splitlines()[0].rstrip('.') if text else ''


if __name__ == '__main__':
    PAGE.write_text(with_fresh_tables(PAGE.read_text(encoding='utf-8')), encoding='utf-8')
