from __future__ import annotations

from typing import Any

from pydantic import Field

from rig_common.field_docs import DescribedSchema, fields_of
from rig_common.validation import Strict


class Base(Strict):
    rate_hz: float = 1.0
    """Messages
    per second."""
    plain: int = 0


class Inner(Strict):
    gain: float = 1.0
    """Of the amplifier."""


class Derived(Base):
    rate_hz: float = 2.0
    """Twice as many."""
    kind: str = Field(default='', alias='class')
    """A reserved word."""
    inner: Inner = Inner()
    """What is inside."""


def test_docstrings_become_descriptions_also_those_of_a_base():
    assert fields_of(Base)['rate_hz'].description == 'Messages\nper second.'
    assert fields_of(Base)['plain'].description is None
    assert fields_of(Derived)['rate_hz'].description == 'Twice as many.'


def test_a_model_without_source_has_no_descriptions():
    made: dict[str, Any] = {}
    exec('from rig_common.validation import Strict\nclass Made(Strict):\n    a: int = 0', made)
    assert fields_of(made['Made'])['a'].description is None


def test_the_schema_has_them_under_the_keys_that_a_user_writes():
    schema = Derived.model_json_schema(schema_generator=DescribedSchema)
    found = {key: each.get('description') for key, each in schema['properties'].items()}
    assert found == {
        'rate_hz': 'Twice as many.',
        'plain': None,
        'class': 'A reserved word.',
        'inner': 'What is inside.',
    }
    assert schema['$defs']['Inner']['properties']['gain']['description'] == 'Of the amplifier.'
