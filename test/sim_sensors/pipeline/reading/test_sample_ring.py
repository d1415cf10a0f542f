"""Rings against plain lists: skipped and lost captures, environments out of step, growth."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest

from sim_sensors.pipeline.reading.sample_ring import Found, SampleRing
from sim_sensors.pipeline.tick_history import TimelineRing
from sim_sensors.timing.arrays.layout import Layout
from sim_sensors.timing.arrays.rows import ALL, Rows

LAYOUT = Layout({'x': (2,)}, np.float64)
ENVS = 3
SPREAD, HISTORY = 2, 3


class Record(NamedTuple):
    """What was captured, and when it was there."""

    value: float
    capture_ns: int
    stamp_ns: int
    arrival_ns: int


class Lists:
    """Every capture of every environment, by its index; None before the first that was made."""

    def __init__(self) -> None:
        self.made: list[list[Record | None]] = [[] for _ in range(ENVS)]

    def push(self, env: int, index: int, record: Record | None) -> None:
        captures = self.made[env]
        while len(captures) < index:
            captures.append(captures[-1] if captures else None)
        held = captures[-1] if captures else None
        captures.append(held if record is None else record)

    def at(self, env: int, index: int, slots: int) -> Record | None:
        captures = self.made[env]
        here = min(index, len(captures) - 1)
        return captures[here] if here >= 0 and len(captures) - here <= slots else None


class Play:
    """Gives a ring and the lists the same captures, and compares what they say."""

    def __init__(self, seed: int, slots: int) -> None:
        self.random = random.Random(seed)
        self.ring, self.lists, self.slots = SampleRing(slots, ENVS, LAYOUT), Lists(), slots
        self.number = 0

    def push(self, envs: list[int], skip: int, lost_share: float) -> None:
        rows: Rows = ALL if len(envs) == ENVS else np.array(envs)
        index = self.ring.newest[rows] + 1 + skip
        records, lost = [], [self.random.random() < lost_share for _ in envs]
        for env, k, is_lost in zip(envs, index.tolist(), lost, strict=True):
            self.number += 1
            record = Record(
                self.number, 10 * k, 1000 + self.number, 10 * k + self.random.randrange(25)
            )
            records.append(record)
            self.lists.push(env, k, None if is_lost else record)
        value, capture, stamp, arrival = (np.array(each) for each in zip(*records, strict=True))
        self.ring.push(
            rows,
            index,
            np.stack([value, value + 0.5], 1),
            capture,
            stamp,
            arrival,
            np.array(lost) if lost_share else None,
            self.ring.skipped(rows, index),
        )

    def read(self, found: Found, place: tuple[int, ...], env: int) -> Record | None:
        """Return what the ring has there; a slot alone stands for all environments."""
        if not found.valid[place]:
            return None
        at = found.place if isinstance(found.place, int) else int(found.place[place])
        slot, column = (at, env) if isinstance(found.place, int) else divmod(at, ENVS)
        ring = self.ring
        assert column == env
        assert ring.values[slot, env, 1] == ring.values[slot, env, 0] + 0.5
        return Record(
            ring.values[slot, env, 0],
            *(
                int(array[slot, env])
                for array in (ring.capture_ns, ring.stamp_ns, ring.arrival_ns)
            ),
        )

    def check(self, beyond: int = 2) -> None:
        """Compare the captures that are held and `beyond` older ones."""
        top = int(self.ring.newest.max())
        envs = np.array(self.random.sample(range(ENVS), 2))
        for index in range(max(top - self.slots + 1 - beyond, -1), top + 2):
            single = self.ring.at_index(ALL, np.full(ENVS, index))
            some = self.ring.at_index(envs, np.array([[index, index - 1]] * 2))
            common = self.ring.at_common(index)
            for env in range(ENVS):
                expected = self.lists.at(env, index, self.slots)
                assert self.read(single, (env,), env) == expected
                assert common is None or self.read(common, (env,), env) == expected
            for row, env in enumerate(envs.tolist()):
                for back in range(min(beyond, 1) + 1):
                    assert self.read(some, (row, back), env) == self.lists.at(
                        env, index - back, self.slots
                    )
        self.check_arrived(top)

    def check_arrived(self, top: int) -> None:
        now_ns = 10 * top + self.random.randrange(30)
        index = np.array([top - self.random.randrange(2) for _ in range(ENVS)])
        now: int | np.ndarray = np.full(ENVS, now_ns) if self.random.random() < 0.5 else now_ns
        newest = self.ring.arrived(ALL, index, now, SPREAD)
        many = self.ring.arrived(ALL, index, now, SPREAD, HISTORY)
        for env in range(ENVS):
            start = min(int(index[env]), len(self.lists.made[env]) - 1)
            column = [
                self.lists.at(env, start - back, self.slots) if start >= back else None
                for back in range(HISTORY + SPREAD)
            ]
            here = [
                back
                for back, record in enumerate(column)
                if record is not None and record.arrival_ns <= now_ns
            ]
            one = [back for back in here if back <= SPREAD]
            assert self.read(newest, (env,), env) == (column[one[0]] if one else None)
            for entry in range(HISTORY):
                wanted = min(here[0] + entry, HISTORY + SPREAD - 1) if here else 0
                older = [back for back in here if back >= wanted]
                assert self.read(many, (env, entry), env) == (column[older[0]] if older else None)


@pytest.mark.parametrize('lost_share', [0.0, 0.3])
@pytest.mark.parametrize('seed', range(6))
def test_a_ring_says_what_lists_say(seed: int, lost_share: float) -> None:
    play = Play(seed, 4)
    together = seed % 2 == 0
    for _ in range(40):
        skip = play.random.choice((0, 0, 0, 1, 7))
        play.push(
            list(range(ENVS))
            if together or play.random.random() < 0.5
            else sorted(play.random.sample(range(ENVS), 2)),
            skip,
            lost_share,
        )
        if not together and play.random.random() < 0.1:
            env = play.random.randrange(ENVS)
            play.ring.reset(np.array([env]))
            play.lists.made[env].clear()
        play.check()
    assert (play.ring.cursor.common is not None) == together
    play.ring.reset(ALL)
    play.lists = Lists()
    for _ in range(3):
        play.push(list(range(ENVS)), 0, 0.0)
        play.check()
    assert play.ring.cursor.common is not None


@pytest.mark.parametrize('together', [True, False])
def test_a_ring_that_grows_keeps_what_it_had(together: bool) -> None:
    play = Play(1, 4)
    for number in range(10):
        play.push(list(range(ENVS)) if together or number % 9 else [0, 2], 0, 0.0)
    assert play.ring.grow(4) is play.ring
    larger = play.ring.grow(5)
    assert larger.cursor.slots == 8
    play.ring = larger
    play.check(beyond=0)
    play.slots = 8
    for _ in range(8):
        play.push(list(range(ENVS)), 0, 0.0)
    play.check()


def test_what_is_held_up_for_longer_than_expected_is_not_read_and_the_last_one_is() -> None:
    """A fault delays more captures than `spread`: the history is what came before it."""
    ring = SampleRing(8, 1, LAYOUT)
    for k, arrival_ns in enumerate((0, 10, 900, 900, 900, 900)):
        here = np.array([k])
        ring.push(
            ALL,
            here,
            np.full((1, 2), float(k)),
            10 * here,
            10 * here,
            np.array([arrival_ns]),
            None,
            None,
        )
    found = ring.arrived(ALL, np.array([5]), 60, SPREAD, HISTORY)
    assert found.valid.all()
    assert ring.take(ring.values, found.place)[0, :, 0].tolist() == [1.0, 1.0, 1.0]


def test_a_past_can_be_given_to_an_episode() -> None:
    ring = SampleRing(8, 2, LAYOUT)
    assert not ring.has_past
    start = (np.zeros(2, np.int64),) * 3
    ring.push(ALL, start[0], np.zeros((2, 2)), *start, None, None)
    index, times = np.array([[-3, -2, -1]]), np.array([[-30, -20, -10]])
    values = np.array([[[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]])
    ring.rewrite(np.array([1]), index, values, (times, times + 1, times + 2))
    assert ring.has_past and ring.at_common(0) is None
    found = ring.at_index(ALL, np.array([[0, -1, -2, -3, -4]] * 2))
    assert found.valid.tolist() == [[True] + [False] * 4, [True] * 4 + [False]]
    assert ring.take(ring.values, found.place)[1, :4, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert ring.take(ring.arrival_ns, found.place)[1, 1:4].tolist() == [-8, -18, -28]
    single = ring.at_index(ALL, np.array([-2, -2]))
    assert single.valid.tolist() == [False, True]
    late = ring.arrived(ALL, np.array([0, 0]), -17, 5)
    assert late.valid.tolist() == [False, True]
    assert ring.take(ring.stamp_ns, late.place)[1] == -19
    assert ring.grow(16).has_past
    ring.rewrite(np.array([0]), index, values, (times, times, times))
    ring.reset(np.array([1]))
    assert not ring.at_index(np.array([1]), np.array([-1])).valid.any()
    zero = np.zeros(1, np.int64)
    ring.push(np.array([1]), zero, np.ones((1, 2)), zero, zero, zero, None, None)
    assert ring.at_index(ALL, np.array([[0, -1]] * 2)).valid.tolist() == [
        [True, True],
        [True, False],
    ]
    ring.reset(ALL)
    assert not ring.has_past


# ---- the timeline of a response model ----------------------------------------------------------


def test_the_timeline_gives_back_earlier_ticks_of_each_environment() -> None:
    line, made = TimelineRing(3, ENVS, LAYOUT), [[] for _ in range(ENVS)]
    chance = random.Random(4)
    for tick in range(60):
        envs: Rows = (
            ALL
            if tick < 8 or chance.random() < 0.5
            else np.array(sorted(chance.sample(range(ENVS), 2)))
        )
        rows = np.arange(ENVS)[envs]
        line.push(np.stack([rows * 100.0 + tick, rows * 0.0], 1), envs)
        for env in rows.tolist():
            made[env].append(env * 100.0 + tick)
        if tick % 20 == 19:
            line.reset(np.array([1]))
            assert not line.complete
            assert line.bind(ALL).filled.tolist() == [True, False, True]
            line.push(np.array([[-1.0, 0.0]]), np.array([1]))
            made[1].append(-1.0)
        some: Rows
        for some in (ALL, np.array([2, 0])):
            bound = line.bind(some)
            assert bound.filled.all()
            for back in range(1, min(tick + 1, 3) + 1):
                expected = [made[env][-back] for env in np.arange(ENVS)[some].tolist()]
                assert bound.at(back)[:, 0].tolist() == expected


def test_the_timeline_says_when_every_environment_has_a_tick() -> None:
    line = TimelineRing(1, ENVS, LAYOUT)
    assert not line.complete and not line.bind(ALL).filled.any()
    line.push(np.zeros((1, 2)), np.array([2]))
    assert not line.complete and line.bind(np.array([2, 1])).filled.tolist() == [True, False]
    line.push(np.zeros((ENVS, 2)), ALL)
    assert line.complete
    line.reset(ALL)
    assert not line.complete and not line.bind(ALL).filled.any()
    for back in (0, 2):
        with pytest.raises(ValueError, match=f'keeps 1 earlier ticks, not {back}'):
            line.at(back)
