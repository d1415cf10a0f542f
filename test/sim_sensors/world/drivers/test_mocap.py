"""Mocap bodies: scripted, commanded, late where commands are late."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots import run, world_of

from rig_common.errors import RigError

PULLED = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="handle" mocap="true" pos="0 0 1"/>
    <body name="tool" pos="0 0 1"><freejoint/><geom size="0.05" mass="0.2"/></body>
    <body name="stone" pos="1 1 1"><freejoint/><geom size="0.05"/></body>
  </worldbody>
  <equality><weld body1="handle" body2="tool"/></equality>
</mujoco>
"""
WAY = {
    'type': 'mocap',
    'waypoints_m': [0.2, 0.0, 1.0, 0.2, 0.2, 1.1],
    'speed_m_s': 0.4,
    'rest_s': 0.1,
    'tilt_rad': 0.3,
}


def place(world, body: str, env: int = 0) -> np.ndarray:
    return np.array(world.bound('xpos')[env, world.model.body(body).id])


def test_a_welded_tool_follows_the_waypoints(tmp_path):
    world = world_of(tmp_path, PULLED, driver=WAY)
    places, turns = [], []
    for _ in range(50):
        run(world, 0.05)
        places.append(place(world, 'tool'))
        turns.append(world.bound('mocap_quat')[0, 0, 0])
    for point in np.reshape(WAY['waypoints_m'], (-1, 3)):
        assert np.linalg.norm(np.array(places) - point, axis=1).min() < 0.02
    assert 0.9 < min(turns) < 0.995


def test_pose_commands_move_mocap_and_free_bodies(tmp_path):
    world = world_of(tmp_path, PULLED, driver={'type': 'mocap'}, num_envs=2)
    world.command_pose('handle', (0.1, 0.0, 1.2), (1, 0, 0, 0), 1)
    world.command_pose('stone', (2.0, 1.0, 0.5), (0, 1, 0, 0), 0)
    run(world, 0.5)
    np.testing.assert_allclose(place(world, 'tool', 1), [0.1, 0.0, 1.2], atol=0.01)
    np.testing.assert_allclose(place(world, 'tool', 0), [0.0, 0.0, 1.0], atol=0.01)
    np.testing.assert_allclose(place(world, 'stone', 0), [2.0, 1.0, 0.5], atol=1e-9)
    np.testing.assert_allclose(place(world, 'stone', 1), [1.0, 1.0, 1.0], atol=1e-9)
    world.reset()
    world.step()
    np.testing.assert_allclose(place(world, 'handle', 1), [0, 0, 1])


def test_a_mocap_body_is_late_by_the_control_delay(tmp_path):
    world = world_of(tmp_path, PULLED, control_delay_s=0.006)
    world.command_pose('handle', (0.1, 0.0, 1.0), (1, 0, 0, 0))
    x = []
    for _ in range(6):
        world.step()
        x.append(place(world, 'handle')[0])
    assert x == pytest.approx([0, 0, 0, 0.1, 0.1, 0.1])


@pytest.mark.parametrize(
    ('pose', 'sentence'),
    [
        (('hundle', (0, 0, 0), (1, 0, 0, 0)), "pose command is 'hundle'.*did you mean 'handle'"),
        (('handle', (0, 0, np.nan), (1, 0, 0, 0)), 'finite position and a unit quaternion'),
        (('handle', (0, 0, 0), (0, 0, 0, 0)), 'finite position and a unit quaternion'),
    ],
)
def test_bad_poses_are_refused(tmp_path, pose, sentence):
    with pytest.raises(RigError, match=sentence):
        world_of(tmp_path, PULLED).command_pose(*pose)


def test_a_model_without_mocap_bodies_is_refused(tmp_path):
    with pytest.raises(RigError, match='the model has no mocap body'):
        world_of(tmp_path, PULLED.replace('mocap="true"', ''), driver=WAY)
