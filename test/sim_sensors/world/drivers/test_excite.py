"""Excitation: smooth, seeded, inside limits, and no robot falls over."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots import arm, positions, quadruped, run, upright, world_of

from rig_common.errors import RigError

EXCITE = {'type': 'excite', 'ramp_s': 0.0}


def moved(world, seconds: float) -> np.ndarray:
    """Return the joint positions every 10 ms, [n, joints]."""
    rows = []
    for _ in range(int(seconds / 0.01)):
        run(world, 0.01)
        rows.append(list(positions(world).values()))
    return np.array(rows)


def test_it_moves_every_joint_within_its_amplitude_and_band(tmp_path):
    world = world_of(
        tmp_path, arm(), driver={**EXCITE, 'amplitude_rad': 0.4, 'band_hz': [0.5, 2.0]}
    )
    rows = moved(world, 11.0)[300:]
    assert (np.abs(rows).max(0) < 0.45).all() and (rows.std(0) > 0.05).all()
    power = np.abs(np.fft.rfft(rows - rows.mean(0), axis=0)) ** 2
    hz = np.fft.rfftfreq(len(rows), 0.01)
    assert (power[(hz > 0.3) & (hz < 2.3)].sum(0) > 0.95 * power.sum(0)).all()


def test_it_stays_inside_limits(tmp_path):
    tight = arm().replace(
        'name="elbow" axis="0 1 0" range="-2 2"', 'name="elbow" axis="0 1 0" range="-0.05 0.1"'
    )
    rows = moved(world_of(tmp_path, tight, driver={**EXCITE, 'amplitude_rad': 0.5}), 6.0)
    assert rows[:, 1].min() > -0.052 and rows[:, 1].max() < 0.102


def test_the_same_seed_moves_the_same_and_copies_differ(tmp_path):
    def qpos(seed, **keys):
        world = world_of(tmp_path, arm(), driver=EXCITE, seed=seed, **keys)
        run(world, 3.0)
        return world.bound('qpos').copy()

    np.testing.assert_array_equal(qpos(1), qpos(1))
    assert np.abs(qpos(1) - qpos(2)).max() > 1e-3
    many = qpos(1, num_envs=2)
    np.testing.assert_array_equal(many[0], qpos(1)[0])
    assert np.abs(many[0] - many[1]).max() > 1e-3


def test_a_new_seed_at_a_reset_moves_as_a_new_world(tmp_path):
    world = world_of(tmp_path, arm(), driver=EXCITE, seed=1)
    run(world, 1.0)
    world.reset(seed=2)
    run(world, 2.5)
    other = world_of(tmp_path, arm(), driver=EXCITE, seed=2)
    run(other, 2.5)
    np.testing.assert_array_equal(world.bound('qpos'), other.bound('qpos'))


def test_chosen_joints_move_and_the_others_hold(tmp_path):
    rows = moved(world_of(tmp_path, arm(), driver={**EXCITE, 'joints': ['elbow']}), 6.0)
    assert rows[:, 1].std() > 0.03 > 10 * rows[200:, 0].std()


def test_a_quadruped_sways_over_its_feet(tmp_path):
    world = world_of(tmp_path, quadruped(), driver=EXCITE)
    feet = [world.model.geom(f'{leg}_foot').id for leg in ('fl', 'fr', 'rl', 'rr')]
    run(world, 1.0)
    start = world.bound('geom_xpos')[0, feet, :2].copy()
    gyro, tilt = [], []
    for _ in range(200):
        run(world, 0.03)
        gyro.append(world.bound('qvel')[0, 3:6].copy())
        tilt.append(upright(world, 'trunk'))
    assert (np.std(gyro, axis=0) > 0.03).all()  # every axis turns
    assert min(tilt) > 0.97
    assert np.abs(world.bound('geom_xpos')[0, feet, :2] - start).max() < 0.03


def test_mistakes_are_one_sentence(tmp_path):
    with pytest.raises(RigError, match=r"world.driver.joints is 'wrist', which the model"):
        world_of(tmp_path, arm(), driver={**EXCITE, 'joints': ['wrist']})
    with pytest.raises(RigError, match='sway is base, but the robot does not stand on feet'):
        world_of(tmp_path, arm(), driver={**EXCITE, 'sway': 'base'})
