from __future__ import annotations

from pathlib import Path

import pytest
from support.body_sensors import EACH
from support.parameter_table import table_of_page

HINT = 'write the tables anew: PYTHONPATH=. python test/support/parameter_table.py'


@pytest.mark.parametrize('name', [*EACH, 'README'])
def test_page_has_the_very_parameters_of_the_sensor(root: Path, name: str) -> None:
    page = root / 'docs' / 'sensors' / f'{name}.md'
    assert table_of_page(page) in page.read_text(), f'{page.name} is out of date; {HINT}'
