"""Messages that are asked for and sent again after DDS has forgotten who reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig_common.cdr import CdrError
from rig_common.lockstep.again import Again, Kept
from rig_common.lockstep.following import PATIENCE, Following
from rig_common.lockstep.messages import Tick

COUNT = st.integers(0, 2**32 - 1)


@given(st.from_regex(r'[a-z][a-z0-9_/]{0,20}', fullmatch=True), COUNT, COUNT, st.binary())
def test_they_survive_the_wire(key: str, index: int, total: int, raw: bytes) -> None:
    again = Again(key, index, total, 10**18, raw)
    assert Again.decode(again.encode()) == again


@given(st.binary(max_size=80))
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(CdrError):
        Again.decode(b'\0\1\0\0' + raw)


@given(st.lists(st.binary(min_size=1)), st.integers(0, 20), st.integers(0, 20))
def test_what_is_asked_for_is_sent_with_its_number(
    sent: list[bytes], forgotten: int, index: int
) -> None:
    """The sender has let go of the first ones, which every reader has."""
    kept = Kept()
    for raw in sent[:forgotten]:
        kept.add('imu', raw)
    kept.forget(['imu'])
    for raw in sent[forgotten:]:
        kept.add('imu', raw)
    answers = kept.answers(Again('imu', index, len(sent), 5))
    numbered = list(enumerate(sent, 1))
    assert [(each.index, each.raw) for each in answers] == numbered[max(forgotten, index) :]


class Reader:
    """A node that waits at a tick for the last two of five messages."""

    def __init__(self) -> None:
        self.asked: list[Again] = []
        self.got: list[bytes] = []
        self.follower = Following(
            '/emulator',
            lambda now_ns: now_ns + 1,
            lambda ack: None,
            serves=['imu'],
            deliver=self.take,
            send_again=self.asked.append,
        )
        self.follower.counted = {'imu'}
        for round_ in (1, 2):
            self.follower.hear(Tick(1, lockstep=True, round=round_, sent={'imu': 3}))
        self.tick()

    def take(self, key: str, raw: bytes) -> None:
        self.got.append(raw)
        self.follower.received(key)

    def tick(self) -> None:
        self.follower.hear(Tick(2, lockstep=True, sent={'imu': 5}))

    def again(self, index: int, time_ns: int = 2) -> None:
        self.follower.hear_again(Again('imu', index, 5, time_ns, b'%d' % index))


def test_a_node_asks_when_ticks_come_and_messages_do_not() -> None:
    reader = Reader()
    for _ in range(PATIENCE - 1):
        reader.tick()
    assert not reader.asked
    reader.tick()
    assert reader.asked == [Again('imu', 3, 5, 2)]


def test_messages_are_taken_in_order_and_once() -> None:
    reader = Reader()
    for index in (3, 5, 4, 4, 5, 5):
        reader.again(index)
    assert reader.got == [b'4', b'5']
    assert reader.follower.now_ns == 2


def test_a_message_for_another_tick_is_left_alone() -> None:
    reader = Reader()
    reader.again(4, time_ns=1)
    assert not reader.got


def test_the_first_copy_that_comes_late_is_known() -> None:
    reader = Reader()
    reader.again(4)
    reader.again(5)
    late = [reader.follower.is_late('imu', raw) for raw in (b'5', b'6', b'5')]
    assert late == [True, False, False]
