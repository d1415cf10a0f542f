"""An outcome crosses machines as JSON."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from sensor_rig.sweep.running.outcome import RunOutcome, RunStatus


def test_an_outcome_survives_its_json() -> None:
    outcome = RunOutcome(
        'a', RunStatus.FAILED, {'x': 1.5}, -9, 'ended', 0.25, 'host', 'log\n', True
    )
    assert RunOutcome.from_json(outcome.to_json()) == outcome


def test_numbers_that_are_none_survive_too() -> None:
    told = RunOutcome.from_json(RunOutcome('a', RunStatus.OK, {'x': math.nan}).to_json())
    assert math.isnan(told.measures['x'])


def test_what_is_no_outcome_is_refused() -> None:
    for text in (b'', b'{}', b'{"id": "a", "status": "fine"}', b'\x80\x04K\x01.'):
        with pytest.raises(ValidationError):
            RunOutcome.from_json(text)
