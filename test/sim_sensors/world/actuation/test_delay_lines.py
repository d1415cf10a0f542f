"""The control delay line, against a list that is searched command by command."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.toy_sensors import MS

from rig_common.errors import RigError
from sim_sensors.world.actuation.delay_lines import ControlDelay


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 3), st.integers(0, 2**32)
)
def test_every_actuator_holds_the_newest_command_old_enough(
    gaps: list[int], num_envs: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    delay_s = random.integers(0, 50, (num_envs, 2)) * 1e-3 + 0.0003
    line = ControlDelay(num_envs, 2, delay_s, MS, initial=-1.0)
    given_so_far = [(-1, np.full((num_envs, 2), -1.0))]
    now = 0
    for gap in gaps:
        now += gap * MS
        command = random.normal(size=(num_envs, 2))
        line.set(now, command)
        given_so_far.append((now, command))
        received = line.read(now)
        for env in range(num_envs):
            for actuator in range(2):
                expected = -1.0
                for time_ns, values in given_so_far:
                    if time_ns + round(delay_s[env, actuator] * 1e9) <= now:
                        expected = values[env, actuator]
                assert received[env, actuator] == expected


def test_a_command_twice_at_one_time_is_replaced() -> None:
    line = ControlDelay(1, 1, 0.0, MS)
    line.set(0, [[1.0]])
    line.set(0, [[2.0]])
    assert line.read(0) == 2.0
    with pytest.raises(ValueError, match='came after one at'):
        line.set(-1, [[3.0]])


def test_some_environments_are_commanded_and_the_others_keep_theirs() -> None:
    line = ControlDelay(3, 1, [[0.0], [0.0], [0.002]], MS)
    line.set(0, [[1.0], [2.0], [3.0]])
    line.set(MS, [[9.0], [9.0]], np.array([0, 2]))
    assert line.read(MS)[:, 0].tolist() == [9.0, 2.0, 0.0]
    assert line.read(3 * MS)[:, 0].tolist() == [9.0, 2.0, 9.0]


def test_a_history_can_be_given() -> None:
    line = ControlDelay(2, 1, 0.003, MS)
    line.start_history([-3 * MS, -1 * MS], [[[5.0], [6.0]], [[7.0], [8.0]]])
    line.set(0, [[0.0], [0.0]])
    assert [line.read(t * MS)[:, 0].tolist() for t in (0, 1, 2, 3)] == [
        [5.0, 6.0],
        [5.0, 6.0],
        [7.0, 8.0],
        [0.0, 0.0],
    ]
    line.start_history([-1 * MS], [[[1.5]]], np.array([1]))
    assert line.read(2 * MS)[:, 0].tolist() == [7.0, 1.5]
    with pytest.raises(RigError, match='strictly increasing'):
        line.start_history([0, 0], np.zeros((2, 2, 1)))


def test_a_reset_touches_its_environments_only() -> None:
    line = ControlDelay(2, 1, 0.002, MS)
    for t in range(10):
        line.set(t * MS, np.full((2, 1), float(t)))
    line.reset(np.array([1]), 0.5)
    assert line.read(9 * MS)[:, 0].tolist() == [7.0, 0.5]


def test_linear_commands() -> None:
    line = ControlDelay(1, 1, 0.0025, MS, 'linear')
    for t in range(10):
        line.set(t * MS, [[float(t)]])
    assert line.read(9 * MS)[0, 0] == pytest.approx(6.5)


def test_bad_lines_are_refused() -> None:
    with pytest.raises(RigError, match='allowed are zoh, linear and cubic'):
        ControlDelay(1, 1, 0.0, MS, 'slerp')
    with pytest.raises(RigError, match='not negative'):
        ControlDelay(1, 1, -0.1, MS)
