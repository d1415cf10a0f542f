"""The scripted drivers: rest, cruise and hard turns, on course whatever pushes the rover off."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import World

SECONDS = 36
YARD_M = 8.5


def drive(driver: str, seconds: float = SECONDS, nudge=None) -> np.ndarray:
    """Return rows (x, y, yaw, pitch, turn rate) every 10 ms."""
    world = World(WorldConfig(model='rover_yard.xml', driver=driver, timestep_s=0.002))
    data, body = world.data(), world.drive.body
    rows = []
    for tick in range(int(seconds / 0.002)):
        if nudge is not None:
            nudge(tick, data)
        world.step()
        if tick % 5 == 0:
            pitch = -np.arcsin(data.xmat[body][6])
            rows.append((*world.poses(body)[0], pitch, data.cvel[body][2]))
    return np.array(rows)


@cache
def undisturbed(driver: str) -> np.ndarray:
    return drive(driver)


@pytest.fixture(params=['figure_eight', 'rest_cruise_turn'])
def run(request):
    return request.param, undisturbed(request.param)


def test_it_rests_first_and_then_moves(run):
    _, rows = run
    assert np.abs(rows[:140, :2] - rows[0, :2]).max() < 0.01
    assert np.abs(rows[:140, 4]).max() < 0.02
    assert np.hypot(*(rows[400, :2] - rows[0, :2])) + abs(rows[400, 2] - rows[0, 2]) > 0.5


def test_it_cruises_and_turns_hard(run):
    driver, rows = run
    speed = np.hypot(*np.diff(rows[:, :2], axis=0).T) / 0.01
    assert speed.max() > 1.0
    assert np.abs(rows[:, 4]).max() > (1.1 if driver == 'figure_eight' else 1.4)
    assert np.abs(rows[:, 4]).max() < 1.8
    assert np.abs(rows[:, 3]).max() > np.radians(2)


def test_it_stays_in_the_yard_and_upright(run):
    _, rows = run
    assert np.abs(rows[:, :2]).max() < YARD_M
    assert np.abs(rows[:, 3]).max() < np.radians(20)


def test_it_is_deterministic(run):
    driver, rows = run
    np.testing.assert_array_equal(drive(driver, 5), rows[:500])


def test_a_rover_set_down_elsewhere_finds_its_course_again():
    def carry(tick, data):
        if tick == 4000:
            joint = data.joint('rover')
            joint.qpos[0] += 0.8
            joint.qpos[1] -= 0.6

    course = undisturbed('figure_eight')[300:, :2]  # more than one round
    carried = drive('figure_eight', 16, carry)[1150:, :2]
    assert max(np.hypot(*(course - point).T).min() for point in carried) < 0.15
