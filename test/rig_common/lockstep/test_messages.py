from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.lockstep.messages import Ack, Tick
from rig_common.msgs import read_time_reference

NAMES = st.from_regex(r'[a-z][a-z0-9_/]{0,20}', fullmatch=True)
COUNTS = st.dictionaries(NAMES, st.integers(0, 10**6), max_size=4)
TIMES = st.integers(-(10**9), 2**31 * 10**9 - 1)


@given(
    TIMES,
    TIMES,
    st.integers(0, 10**6),
    st.integers(0, 2**63 - 1),
    st.integers(0, 10**6),
    st.booleans(),
    COUNTS,
    st.sampled_from([(0.0, 0), (1.0, 4_000_000), (0.3, 1)]),
)
def test_ticks_survive_the_wire(
    time_ns: int,
    wall_ns: int,
    episode: int,
    seed: int,
    round_: int,
    lockstep: bool,
    sent: dict[str, int],
    pace: tuple[float, int],
) -> None:
    readers = {'imu': ['/a', '/b']}
    tick = Tick(time_ns, wall_ns, episode, seed, round_, lockstep, sent, 'a1.0', readers, *pace)
    assert Tick.decode(tick.encode()) == tick


@given(
    NAMES,
    TIMES,
    TIMES,
    COUNTS,
    st.none() | st.lists(NAMES, max_size=3).map(tuple),
    st.integers(0, 10**6),
)
def test_acknowledgements_survive_the_wire(
    name: str,
    time_ns: int,
    wake_ns: int,
    sent: dict[str, int],
    serves: tuple[str, ...] | None,
    round_: int,
) -> None:
    ack = Ack(name, time_ns, wake_ns, sent, serves, 0 if serves is None else round_)
    assert Ack.decode(ack.encode()) == ack


@given(TIMES, COUNTS)
def test_rclpy_reads_and_writes_the_same_bytes(time_ns: int, sent: dict[str, int]) -> None:
    raw = Tick(time_ns, 5, sent=sent).encode()
    message = deserialize_message(raw, TimeReference)
    assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == time_ns
    assert message.source == 'run= episode=0 seed=0 phase=run lockstep=false'
    assert Tick.decode(bytes(serialize_message(message))) == Tick.decode(raw)
    assert read_time_reference(raw)[0] == time_ns


@pytest.mark.parametrize('raw', [b'', b'\0\1\0\0', Tick(5).encode()[:20], Ack('a', 5).encode()])
def test_other_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(CdrError):
        Tick.decode(raw)
