"""Every order of the messages of a small rig in lockstep: with a loss, a restart, a reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.lockstep_model import Size, WrongError, search

from rig_common.lockstep.again import Kept
from rig_common.lockstep.following import Following
from rig_common.lockstep.messages import Tick
from sim_sensors.timekeeping.conductor import Conductor

SMALL = [
    Size(emulators=1, ticks=3, losses=1, early=1),
    Size(emulators=1, ticks=4, losses=2),
    Size(emulators=1, ticks=3, resets=1, losses=1),
    Size(emulators=1, ticks=4, restarts=1),
    Size(emulators=2, ticks=1),
    Size(emulators=1, ticks=2, discovery=True, losses=1),
    Size(emulators=1, ticks=2, cuts=1),
]
LARGE = [
    Size(emulators=2, ticks=2),
    Size(emulators=1, ticks=3, restarts=1, resets=1),
    Size(emulators=2, ticks=2, losses=1),
    Size(emulators=2, ticks=2, restarts=1),
    Size(emulators=2, ticks=1, discovery=True),
    Size(emulators=1, ticks=4, cuts=1),
    Size(emulators=1, ticks=2, cuts=1, early=1),
    Size(emulators=1, ticks=2, cuts=1, losses=1),
    Size(emulators=1, ticks=2, cuts=2),
    Size(emulators=1, ticks=6, restarts=1),
]


def no_deadlock(size: Size) -> int:
    found = search(size)
    assert not found.stuck, '\n'.join(map(str, found.stuck[0]))
    return found.states


@pytest.mark.parametrize('size', SMALL, ids=str)
def test_the_end_is_reached_from_every_state(size: Size) -> None:
    assert no_deadlock(size) > 400


@pytest.mark.long
@pytest.mark.parametrize('size', LARGE, ids=str)
def test_the_end_is_reached_from_every_state_of_a_larger_rig(size: Size) -> None:
    assert no_deadlock(size) > 4_000


# ---- the search sees what it should -------------------------------------------------------------


def answers_no_repeated_tick(self: Following, tick: Tick) -> None:
    if tick.time_ns != self._heard_ns or tick.round:
        HEAR(self, tick)


def does_not_wait_for_data(self: Following) -> None:
    self._due = {}
    TRY(self)


def counts_only_since_the_last_tick(
    self: Conductor, time_ns: int, wall_ns: int, sent: Any
) -> None:
    self._truths.clear()
    TICK(self, time_ns, wall_ns, sent)


def keeps_nothing(self: Kept, key: str, raw: bytes) -> None:
    pass


def takes_every_copy(self: Following, key: str, raw: bytes) -> bool:
    return False


def goes_on_with_what_was_counted(self: Following, tick: Tick) -> None:
    before = self._received.copy()
    JOIN(self, tick)
    self._received |= before


HEAR, TRY, TICK, JOIN = Following.hear, Following._try, Conductor.tick, Following._join
MISTAKES = [
    (Following, 'hear', answers_no_repeated_tick, Size(emulators=1, ticks=2, losses=1)),
    (Following, '_try', does_not_wait_for_data, Size(emulators=1, ticks=2)),
    (Conductor, 'tick', counts_only_since_the_last_tick, Size(emulators=1, ticks=3, losses=1)),
    (Kept, 'add', keeps_nothing, Size(emulators=1, ticks=2, cuts=1)),
    (Following, 'is_late', takes_every_copy, Size(emulators=1, ticks=4, early=1)),
    (Following, '_join', goes_on_with_what_was_counted, Size(emulators=1, ticks=6, restarts=1)),
]


@pytest.mark.parametrize(
    ('kind', 'name', 'mistake', 'size'), MISTAKES, ids=[each[2].__name__ for each in MISTAKES]
)
def test_a_mistake_in_the_protocol_is_found(
    monkeypatch: pytest.MonkeyPatch,
    kind: type,
    name: str,
    mistake: Callable[..., None],
    size: Size,
) -> None:
    monkeypatch.setattr(kind, name, mistake)
    with pytest.raises((WrongError, AssertionError)):
        no_deadlock(size)
