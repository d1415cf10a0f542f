"""What kinds of findings declare: complete, on the page, and never without a use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.findings_page import PAGE, page

import sensor_rig.findings
from sensor_rig.findings.declared import GROUPS
from sensor_rig.findings.explaining import CLAIMS
from sensor_rig.findings.kinds import KINDS

SOURCES = '\n'.join(
    source.read_text(encoding='utf-8')
    for source in Path(sensor_rig.findings.__path__[0]).glob('*.py')
    if source.name != 'declared.py'
)


def test_the_page_is_what_the_kinds_declare() -> None:
    assert PAGE.read_text(encoding='utf-8') == page(), (
        'write it again: PYTHONPATH=.:test ./rig python test/support/findings_page.py'
    )


def test_every_kind_has_its_place_and_can_be_found() -> None:
    assert [code for codes in GROUPS.values() for code in codes] == list(KINDS)
    for kind in KINDS.values():
        assert all((kind.says, kind.effect, kind.change, kind.confirm)), kind.code
        assert f"'{kind.code}'" in SOURCES, f'no search yields {kind.code}'


def test_causes_and_what_they_explain_are_kinds() -> None:
    for rule in CLAIMS:
        assert rule.causes | rule.codes <= set(KINDS)


@pytest.mark.parametrize('code', list(KINDS))
def test_the_page_of_inspect_names_every_kind(code: str) -> None:
    text = (PAGE.parent / 'inspect.md').read_text(encoding='utf-8')
    assert re.search(rf'`{code}`', text), f'docs/inspect.md lacks {code}'
