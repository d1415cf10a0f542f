"""Every type has its page, with the very parameters it takes and the topics it publishes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.all_sensors import entry
from support.parameter_table import table_of_page
from support.sensor_run import make_sensor

from sensor_rig.rigfile import load_rig
from sim_sensors.registry import BUILT_IN

HINT = 'write the tables again: ./rig python test/support/parameter_table.py'


@pytest.mark.parametrize('name', BUILT_IN)
def test_page_has_the_very_parameters_of_the_sensor(root: Path, name: str) -> None:
    page = root / 'docs' / 'sensors' / f'{name}.md'
    assert table_of_page(page) in page.read_text(), f'{page.name} is out of date; {HINT}'


@pytest.mark.parametrize('kind', BUILT_IN)
def test_page_names_every_topic_and_its_type(root: Path, kind: str) -> None:
    text = (root / 'docs' / 'sensors' / f'{kind}.md').read_text()
    sensor = make_sensor('s', **entry(kind))
    for topic in sensor.topics():
        name = topic.suffix[1:] if topic.suffix[0] == '/' else f'<name>/{topic.suffix}'
        assert f'`{name}`' in text, name
        assert topic.type_name in text
    assert '`truth/<name>`' in text


@pytest.mark.parametrize('kind', BUILT_IN)
def test_the_list_of_sensors_links_every_page(root: Path, kind: str) -> None:
    assert f'({kind}.md)' in (root / 'docs' / 'sensors' / 'README.md').read_text()


def test_everything_holds_every_type() -> None:
    assert {each.type for each in load_rig('everything').sensors.values()} == set(BUILT_IN)
