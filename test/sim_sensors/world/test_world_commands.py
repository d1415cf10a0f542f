"""Commands: to the actuators that take them, whole or not at all, each with its own latency."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots import MOTORS, SERVOS, SPEEDS, STRINGS, arm, positions, run, world_of

from rig_common.errors import RigError
from sim_sensors.world.actuation.path_following import JointPath

HOLD = {'type': 'hold'}


def ctrl(world) -> list[float]:
    return world.actuation.ctrl[0].tolist()


@pytest.mark.parametrize(
    ('actuators', 'command', 'wanted'),
    [
        (MOTORS, {'shoulder': {'effort': 2.0}, 'elbow': {'effort': 10.0}}, [2.0, 2.0]),
        (MOTORS, {'m0': {'effort': 1.0}, '1': {'effort': 5.0}}, [1.0, 1.0]),
        (SERVOS, {'shoulder': {'position': 0.3}, 'p1': {'position': -0.2}}, [0.3, -0.2]),
        (SERVOS, {'shoulder': {'position': 0.3, 'velocity': 9.0, 'effort': 9.0}}, [0.3, 0.0]),
        (SPEEDS, {'shoulder': {'velocity': 0.5}, 'elbow': {'velocity': -0.5}}, [0.5, -0.5]),
        (STRINGS, {'string': {'effort': 3.0}}, [0.0, 3.0]),
        (MOTORS, {'shoulder': {'effort': 2.0, 'position': np.nan}}, [2.0, 0.0]),
        (
            '<position joint="elbow" kp="9"/><motor joint="elbow"/>',
            {'elbow': {'position': 0.4, 'effort': 1.5}},
            [0.4, 1.5],
        ),
    ],
)
def test_each_field_goes_to_what_takes_it(tmp_path, actuators, command, wanted):
    world = world_of(tmp_path, arm(actuators))
    world.command_joints(command)
    assert ctrl(world) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ('actuators', 'bad', 'sentence'),
    [
        (
            MOTORS,
            {'elbow': {'position': 1.0}},
            "'elbow' is given a position but driven by a torque",
        ),
        (MOTORS, {'elbow': {'position': 1.0, 'effort': 1.0}}, 'a PD layer takes both'),
        (
            MOTORS,
            {'elbow': {'velocity': 1.0}},
            "'elbow' is given a velocity but driven by a torque",
        ),
        (
            MOTORS,
            {'wrist': {'effort': 1.0}},
            "the command is 'wrist', which the model does not have",
        ),
        (
            SERVOS.split('<position name')[0],
            {'elbow': {'position': 1.0}},
            "'elbow', a joint that no actuator drives; add one with world.actuators",
        ),
        (
            SERVOS,
            {'elbow': {'effort': 1.0}},
            "'elbow' is given effort but driven by a position servo",
        ),
        (MOTORS, {'elbow': {'effort': np.inf}}, "the effort of 'elbow' is inf; it must be finite"),
        (
            MOTORS + '<motor name="m2" joint="elbow"/>',
            {'elbow': {'effort': 1.0}},
            '2 actuators of one kind drive; name one of elbow, m2',
        ),
    ],
)
@pytest.mark.parametrize('first', [True, False])
def test_a_refused_command_changes_nothing(tmp_path, actuators, bad, sentence, first):
    world = world_of(tmp_path, arm(actuators))
    field = {'effort': 'effort', 'position': 'position'}[world.actuation.actuators.kinds[0]]
    good = {'shoulder': {field: 0.5}}
    before = ctrl(world)
    with pytest.raises(RigError, match=sentence):
        world.command_joints({**bad, **good} if first else {**good, **bad})
    assert ctrl(world) == before


def test_raw_commands_are_whole_or_nothing_too(tmp_path):
    world = world_of(tmp_path, arm())
    with pytest.raises(RigError, match='which the model does not have'):
        world.command({'m0': 1.0, 'nobody': 1.0})
    assert ctrl(world) == [0.0, 0.0]


def test_positions_move_what_the_pd_layer_holds(tmp_path):
    world = world_of(tmp_path, arm(), driver=HOLD)
    world.command_joints({'elbow': {'position': 0.5}, 'shoulder': {'position': -0.2}})
    run(world, 1.5)
    assert positions(world) == pytest.approx({'shoulder': -0.2, 'elbow': 0.5}, abs=0.01)
    with pytest.raises(RigError, match='which the PD layer of the driver holds'):
        world.command({'m0': 1.0})


def test_a_trajectory_is_followed_and_stopped(tmp_path):
    world = world_of(tmp_path, arm(), driver=HOLD, num_envs=2)
    path = JointPath(
        ('elbow', 'shoulder'),
        np.array([0.5, 1.0]),
        np.array([[0.4, 0.1], [0.8, 0.2]]),
        np.array([[0.8, 0.2], [0.0, 0.0]]),
    )
    world.command_trajectory(path, 1)
    run(world, 0.5)
    assert positions(world, 1) == pytest.approx({'shoulder': 0.1, 'elbow': 0.4}, abs=0.04)
    assert positions(world, 0) == pytest.approx({'shoulder': 0.0, 'elbow': 0.0}, abs=0.01)
    run(world, 1.5)
    assert positions(world, 1) == pytest.approx({'shoulder': 0.2, 'elbow': 0.8}, abs=0.01)
    world.command_trajectory(
        JointPath(('elbow',), np.array([0.0, 9.0]), np.array([[0.8], [-0.8]])), 1
    )
    run(world, 0.5)
    world.command_trajectory(None, 1)
    run(world, 1.0)
    assert positions(world, 1)['elbow'] == pytest.approx(0.71, abs=0.03)


@pytest.mark.parametrize(
    ('make', 'sentence'),
    [
        (
            lambda: JointPath(('elbow',), np.array([1.0, 1.0]), np.zeros((2, 1))),
            'increase strictly',
        ),
        (lambda: JointPath(('elbow',), np.array([1.0]), np.array([[np.nan]])), 'not finite'),
        (lambda: JointPath(('elbow',), np.array([1.0]), np.zeros((1, 2))), 'of shape'),
    ],
)
def test_bad_trajectories_are_refused(make, sentence):
    with pytest.raises(RigError, match=sentence):
        make()


def test_a_trajectory_for_torque_motors_needs_the_pd_layer(tmp_path):
    world = world_of(tmp_path, arm())
    with pytest.raises(RigError, match='a PD layer takes both'):
        world.command_trajectory(JointPath(('elbow',), np.array([1.0]), np.ones((1, 1))))
    run(world, 0.01)
    assert ctrl(world) == [0.0, 0.0]


def test_every_actuator_has_its_own_latency(tmp_path):
    world = world_of(tmp_path, arm(), control_delay_s=0.004, control_delays_s={'elbow': 0.010})
    world.command_joints({'shoulder': {'effort': 1.0}, 'elbow': {'effort': 5.0}})
    got = []
    for _ in range(7):
        world.step()
        got.append(world.bound('ctrl')[0].tolist())
    assert [row[0] for row in got] == [0, 0, 1, 1, 1, 1, 1]
    assert [row[1] for row in got] == [0, 0, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ('integrator', 'keys', 'sentence'),
    [
        ('RK4', {'control_delay_s': 0.004}, 'uses the integrator RK4, whose substeps'),
        ('Euler', {'control_delays_s': {'elbow': 0.004}}, 'has one latency for all actuators'),
        ('Euler', {'control_delay_s': 0.004, 'driver': HOLD}, 'would delay what the PD layer'),
    ],
)
def test_what_mujocos_own_delay_cannot_do_is_refused(tmp_path, integrator, keys, sentence):
    with pytest.raises(RigError, match=sentence):
        world_of(tmp_path, arm(integrator=integrator), control_delay_backend='mujoco', **keys)


def test_a_wrong_name_of_a_latency_is_refused(tmp_path):
    with pytest.raises(RigError, match=r"world.control_delays_s is 'elbo'.*did you mean 'elbow'"):
        world_of(tmp_path, arm(), control_delays_s={'elbo': 0.1})


def test_cmd_vel_without_a_drive_is_refused(tmp_path):
    with pytest.raises(RigError, match="driver is 'commands', but the model does not say how"):
        world_of(tmp_path, arm(), driver='commands')


@pytest.mark.parametrize('backend', ['rig', 'mujoco'])
def test_an_actuator_of_several_inputs_has_a_command_for_each(tmp_path, backend):
    model = arm(
        '<pid name="pid" joint="shoulder" kp="10" kv="3" input="pos vel"/>'
        '<motor name="m1" joint="elbow" gear="2"/>'
    )
    world = world_of(tmp_path, model, control_delay_s=0.004, control_delay_backend=backend)
    assert world.actuators['pid/1'] == 1
    world.command({'pid': 0.3, 'pid/1': 1.0})
    world.command_joints({'elbow': {'effort': 4.0}})
    assert ctrl(world) == pytest.approx([0.3, 1.0, 2.0])
    forces = []
    for _ in range(6):
        world.step()
        forces.append(world.bound('actuator_force')[0].tolist())
    steps = np.diff(forces, axis=0, prepend=0.0)  # gravity moves the arm, and the PID answers
    late = round(4e6 / world.dt_ns)
    assert not np.any(steps[:late, 1])
    assert steps[late] == pytest.approx([10.0 * 0.3 + 3.0 * 1.0, 2.0], abs=0.5)


def test_a_pd_layer_holds_the_joints_beside_an_actuator_of_several_inputs(tmp_path):
    model = arm(
        '<pid name="pid" joint="shoulder" kp="100" kv="10" input="pos vel"/>'
        '<motor name="m1" joint="elbow" gear="2"/>'
    )
    world = world_of(tmp_path, model, driver={'type': 'hold'})
    assert world.actuation.servo.chosen == [2]
    world.command_joints({'elbow': {'position': 0.2}})
    run(world, 2.0)
    assert positions(world)['elbow'] == pytest.approx(0.2, abs=0.02)
