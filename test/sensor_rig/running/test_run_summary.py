"""A column of the summary is one row: the value, its heading and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import SimpleNamespace

from sensor_rig.running.run_summary import (
    InputSummary,
    SensorSummary,
    cells,
    column,
    headings,
    summarised,
)

REPORTED = SimpleNamespace(
    rate_hz=30.0,
    achieved_hz=29.9,
    latency_p50_ms=4.0,
    latency_p99_ms=float('nan'),
    published=90,
    lost=10,
    in_flight=3,
)


def test_a_row_holds_what_the_node_reported_under_the_same_names() -> None:
    row = summarised(SensorSummary, REPORTED, lost_fraction=0.1)
    assert headings(SensorSummary)[-2:] == ['published', 'lost']
    assert cells(row) == ['30.0', '29.900', '4.00', '-', 90, '10 (10.0 %)']
    assert len(headings(SensorSummary)) == len(cells(row))


def test_a_new_column_is_one_field() -> None:
    @dataclass(frozen=True)
    class Wider(SensorSummary):
        in_flight: int = column({'in flight': ''}, default=0)

    row = summarised(Wider, REPORTED, lost_fraction=None)
    assert row.in_flight == 3
    assert dict(zip(headings(Wider), cells(row), strict=True))['in flight'] == 3
    assert 'in_flight' in [each.name for each in fields(row)]


def test_an_input_shows_its_error_beside_the_truth() -> None:
    facts = SimpleNamespace(
        offset_to_reference_ms=2.0, sigma_to_reference_ms=0.5, offset_state='locked'
    )
    known = summarised(InputSummary, facts, true_offset_ms=1.5, ledger={})
    assert cells(known) == ['2.000', '1.500', '+0.500', '0.500', 'locked']
    unknown = summarised(InputSummary, facts, true_offset_ms=None, ledger={})
    assert cells(unknown)[1:3] == ['-', '-']
