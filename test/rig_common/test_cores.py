"""How many processors there are for this process."""

from __future__ import annotations

import os

import pytest

from rig_common.cores import usable_cores


def test_a_process_that_is_held_to_some_processors_counts_those(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, 'sched_getaffinity', lambda pid: {3, 5}, raising=False)
    monkeypatch.setattr(os, 'cpu_count', lambda: 8)
    assert usable_cores() == 2
    monkeypatch.delattr(os, 'sched_getaffinity')
    assert usable_cores() == 8
    monkeypatch.setattr(os, 'cpu_count', lambda: None)
    assert usable_cores() == 1
