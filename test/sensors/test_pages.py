from __future__ import annotations

from pathlib import Path

import pytest
from support.body_sensors import EACH
from support.parameter_table import parameter_table

from sim_sensors.config import SensorConfig
from sim_sensors.registry import sensor_class


@pytest.mark.parametrize('kind', EACH)
def test_page_has_the_very_parameters_of_the_sensor(root: Path, kind: str) -> None:
    page = (root / 'docs' / 'sensors' / f'{kind}.md').read_text()
    table = parameter_table(sensor_class(kind).config_class)
    assert table in page, f'docs/sensors/{kind}.md should have this table:\n{table}'


def test_keys_of_every_sensor_are_on_the_first_page(root: Path) -> None:
    page = (root / 'docs' / 'sensors' / 'README.md').read_text()
    table = parameter_table(SensorConfig, with_common=True)
    assert table in page, f'docs/sensors/README.md should have this table:\n{table}'
