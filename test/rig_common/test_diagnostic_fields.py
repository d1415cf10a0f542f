"""Facts survive their way through the texts of /diagnostics."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rig_common.diagnostic_fields import fact, from_values, to_values


@dataclass(frozen=True)
class Inner:
    received: int = 0
    late: int = 0


@dataclass(frozen=True)
class Outer:
    rate_hz: float = fact('rate (Hz)', '.2f')
    factor: float | None = fact('factor', 'g', none='unlimited')
    is_up: bool = fact('up')
    name: str = fact('its name')
    counts: Inner = field(default_factory=Inner)


OUTER = Outer(12.5, None, True, 'front lidar', Inner(7, 2))
TEXTS = {
    'rate (Hz)': '12.50',
    'factor': 'unlimited',
    'up': 'true',
    'its name': 'front lidar',
    'received': '7',
    'late': '2',
}


def test_facts_are_written_under_their_labels_in_order() -> None:
    assert to_values(OUTER) == TEXTS
    assert list(to_values(OUTER)) == list(TEXTS)


def test_facts_are_read_back_with_their_types() -> None:
    assert from_values(Outer, TEXTS) == OUTER
    read = from_values(Outer, {**TEXTS, 'factor': '0.5', 'up': 'false', 'more': 'of another'})
    assert read == Outer(12.5, 0.5, False, 'front lidar', Inner(7, 2))


@pytest.mark.parametrize('label', list(TEXTS))
def test_a_status_without_one_of_the_labels_holds_other_facts(label: str) -> None:
    assert from_values(Outer, {key: text for key, text in TEXTS.items() if key != label}) is None


def test_a_text_that_is_no_number_is_no_fact() -> None:
    assert from_values(Outer, {**TEXTS, 'received': 'many'}) is None
