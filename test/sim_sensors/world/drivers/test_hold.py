"""The PD layer holds any robot: torque, position, velocity, tendons, legs."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots import (
    MOTORS,
    SERVOS,
    SPEEDS,
    STRINGS,
    arm,
    positions,
    quadruped,
    run,
    upright,
    world_of,
)

from rig_common.errors import RigError

HOLD = {'type': 'hold'}


@pytest.mark.parametrize(
    'actuators',
    [MOTORS, SERVOS, SPEEDS, STRINGS],
    ids=['torque', 'position', 'velocity', 'tendon'],
)
@pytest.mark.parametrize('integrator', ['Euler', 'implicitfast', 'RK4'])
def test_it_holds_a_keyframe_with_actuators_of_every_kind(tmp_path, actuators, integrator):
    world = world_of(tmp_path, arm(actuators, integrator), driver={**HOLD, 'pose': 'bent'})
    run(world, 2.2)
    assert positions(world) == pytest.approx({'shoulder': 0.3, 'elbow': -0.8}, abs=0.02)


@pytest.mark.parametrize(
    ('pose', 'wanted'),
    [('', (0.0, 0.0)), ('1', (-0.4, 0.5)), (1, (-0.4, 0.5)), ('reach', (0.7, 0.0))],
)
def test_a_pose_is_the_start_a_keyframe_by_number_or_one_of_the_rig_file(tmp_path, pose, wanted):
    world = world_of(
        tmp_path, arm(), driver={**HOLD, 'pose': pose}, poses={'reach': {'shoulder': 0.7}}
    )
    run(world, 3.0)
    assert list(positions(world).values()) == pytest.approx(wanted, abs=0.01)


def test_without_it_the_arm_falls(tmp_path):
    world = world_of(tmp_path, arm())
    run(world, 1.0)
    assert positions(world)['shoulder'] > 0.5


def test_a_start_may_be_a_pose_of_the_rig_file(tmp_path):
    world = world_of(
        tmp_path, arm(), driver=HOLD, keyframe='low', poses={'low': {'sh*': 0.5, 'elbow': -0.2}}
    )
    assert positions(world) == {'shoulder': 0.5, 'elbow': -0.2}
    run(world, 1.0)
    assert positions(world) == pytest.approx({'shoulder': 0.5, 'elbow': -0.2}, abs=0.01)


def test_a_torque_driven_quadruped_stands(tmp_path):
    world = world_of(tmp_path, quadruped(), driver=HOLD)
    run(world, 2.5)
    assert upright(world, 'trunk') > 0.999
    assert world.bound('xpos')[0, 1, 2] == pytest.approx(0.31, abs=0.03)
    fallen = world_of(tmp_path, quadruped())
    run(fallen, 1.0)
    assert fallen.bound('xpos')[0, 1, 2] < 0.2


def test_gains_of_the_rig_file_count(tmp_path):
    soft = {'soft': {'joints': ['elb*'], 'kp': 2.0, 'kd': 0.3}}
    world = world_of(tmp_path, arm(), driver={**HOLD, 'gains': soft})
    gains = dict(
        zip(('shoulder', 'elbow'), world.driver.servo.kp * world.driver.servo.gear**2, strict=True)
    )
    assert gains['elbow'] == pytest.approx(2.0) and gains['shoulder'] > 50.0


def test_late_commands_do_not_shake_what_is_held(tmp_path):
    world = world_of(tmp_path, arm(), driver={**HOLD, 'pose': 'bent'}, control_delay_s=0.1)
    run(world, 4.0)
    assert positions(world) == pytest.approx({'shoulder': 0.3, 'elbow': -0.8}, abs=0.01)


def test_copies_hold_the_same_bits_and_a_reset_midway_starts_as_new(tmp_path):
    one = world_of(tmp_path, quadruped(), driver=HOLD)
    many = world_of(tmp_path, quadruped(), driver=HOLD, num_envs=3)
    run(one, 0.2)
    run(many, 0.2)
    np.testing.assert_array_equal(many.bound('qpos')[2], one.bound('qpos')[0])
    many.reset([1])
    fresh = world_of(tmp_path, quadruped(), driver=HOLD)
    fresh.step()
    np.testing.assert_allclose(many.bound('qpos')[1], fresh.bound('qpos')[0], atol=1e-12)


@pytest.mark.parametrize(
    ('keys', 'sentence'),
    [
        ({'driver': {**HOLD, 'pose': 'bend'}}, "world.driver.pose is 'bend'.*did you mean 'bent'"),
        (
            {'driver': {**HOLD, 'pose': 7}},
            "world.driver.pose is '7'; the model has keyframes 0 to 1",
        ),
        ({'driver': HOLD, 'keyframe': 5}, "world.keyframe is '5'; the model has keyframes 0 to 1"),
        (
            {'driver': {**HOLD, 'gains': {'a': {'joints': ['wrist']}}}},
            "world.driver.gains.a.joints is 'wrist', which the model does not have",
        ),
        (
            {'driver': {**HOLD, 'pose': 'p'}, 'poses': {'p': {'wrist': 1.0}}},
            "world.poses.p is 'wrist', which the model does not have",
        ),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, keys, sentence):
    with pytest.raises(RigError, match=sentence):
        world_of(tmp_path, arm(), **keys)


def test_a_model_without_actuators_is_refused(tmp_path):
    with pytest.raises(RigError, match='no joint or tendon actuator that a PD layer'):
        world_of(tmp_path, arm(''), driver=HOLD)
