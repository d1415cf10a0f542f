"""What accumulates, against plain recurrences; also where blocks and knots are staggered."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common.arrays import Ints
from sim_sensors.timing.randomness.lanes import Lanes
from sim_sensors.timing.randomness.noise_stream import GROUP, NoiseStream
from sim_sensors.timing.randomness.processes import DriftSpec, DriftStream, MarkovStream

ENVS = 2 * GROUP + 2
"""Of three groups: the blocks and knots of each begin at another index."""
SOME = np.array([0, GROUP, ENVS - 1])
EVERY = 20
WEIGHTS = np.array([[1.0, 2.0, 0.5], [-0.5, 1.0, 3.0]])


def every(k: int) -> Ints:
    return np.full(ENVS, k)


@pytest.mark.parametrize('decay', [1.0, 0.9995, 0.9, 0.0])
def test_a_process_is_the_plain_recurrence_in_every_group(decay: float) -> None:
    one = np.ones(2)
    normals = NoiseStream(Lanes(3, ('imu',), ENVS), 'walk', 2)
    process = MarkovStream(
        Lanes(3, ('imu',), ENVS), 'walk', decay=one * decay, gain=one * 0.5, start=one * 2.0
    )
    x = np.zeros((len(SOME), 2))
    for k in range(600):
        normal = normals.at(slice(None), every(k))[SOME]
        x = 2.0 * normal if k == 0 else decay * x + 0.5 * normal
        found = process.at(slice(None), every(k))[SOME]
        np.testing.assert_allclose(found, x, rtol=0, atol=1e-11)


def test_a_process_does_not_go_back() -> None:
    one = np.ones(2)
    process = MarkovStream(Lanes(3, ('imu',)), 'walk', decay=one, gain=one, start=one)
    process.at(slice(None), np.array([1000]))
    with pytest.raises(ValueError, match='earlier block'):
        process.at(slice(None), np.array([0]))


def drift(lanes: Lanes) -> DriftStream:
    return DriftStream(
        lanes,
        'bias',
        DriftSpec(
            EVERY,
            decay=np.array([0.9, 1.0]),
            gain=np.array([0.4, 0.1]),
            start=np.array([1.0, 0.3]),
            width=3,
        ),
    )


def knots(lanes: Lanes, count: int) -> np.ndarray:
    """Return the weighted sum of the processes behind `drift`, step by step, [count, n, 3]."""
    process = MarkovStream(
        lanes,
        'bias',
        decay=np.repeat([0.9, 1.0], 3),
        gain=np.repeat([0.4, 0.1], 3),
        start=np.repeat([1.0, 0.3], 3),
    )
    found = []
    for k in range(count):
        values = process.at(slice(None), np.full(len(lanes), k))
        found.append(values[:, :3] * WEIGHTS[0] + values[:, 3:] * WEIGHTS[1])
    return np.array(found)


@pytest.mark.parametrize('num_envs', [1, ENVS])
def test_a_drift_is_a_line_from_knot_to_knot(num_envs: int) -> None:
    stream, steps = drift(Lanes(3, ('imu',), num_envs)), knots(Lanes(3, ('imu',), num_envs), 12)
    envs = np.arange(num_envs)
    for k in range(0, 180, 3):
        knot, part = np.divmod(k + envs // GROUP, EVERY)
        low, high = steps[knot, envs], steps[knot + 1, envs]
        expected = low + (high - low) * (part / EVERY)[:, None]
        found = stream.at(slice(None), np.full(num_envs, k), WEIGHTS)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_asking_twice_at_a_knot_gives_the_same_for_as_long_as_it_runs() -> None:
    stream = drift(Lanes(3, ('imu',), 2))
    for knot in range(300):  # over the ends of blocks of random numbers
        k = np.full(2, knot * EVERY)
        first = stream.at(slice(None), k, WEIGHTS)
        assert np.array_equal(stream.at(slice(None), k, WEIGHTS), first)


def test_a_reset_drift_begins_its_new_episode_and_no_other_environment_notices() -> None:
    lanes, later = Lanes(3, ('imu',), 4), Lanes(3, ('imu',), 4, first_episode=1)
    stream, untouched, fresh = drift(lanes), drift(Lanes(3, ('imu',), 4)), drift(later)
    gone = np.array([1, 3])
    for k in range(3):  # not past the first knot: nothing but the reset tells the old values
        stream.at(slice(None), np.full(4, k), WEIGHTS)
    lanes.episode[gone] += 1
    stream.reset(gone)
    for k in range(50):
        found = stream.at(slice(None), np.where([0, 1, 0, 1], k, k + 3), WEIGHTS)
        new = fresh.at(slice(None), np.full(4, k), WEIGHTS)
        old = untouched.at(slice(None), np.full(4, k + 3), WEIGHTS)
        assert np.array_equal(found[gone], new[gone])
        assert np.array_equal(found[[0, 2]], old[[0, 2]])
