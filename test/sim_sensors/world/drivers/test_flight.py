"""A free body flies its round, hovers, and goes where a pose command sends it."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots import run, upright, world_of

from rig_common.errors import RigError
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import make_world

ROUND = {'type': 'waypoints', 'waypoints_m': [0.8, 0.5, 1.4, -0.6, 0.4, 0.9], 'rest_s': 0.3}
PLAIN = '<mujoco><worldbody><body name="stone"><freejoint/><geom size="0.1"/></body></worldbody>{}'


def drone(**keys):
    config = {'model': 'drone.xml', 'keyframe': 'hover', 'timestep_s': 0.002, **keys}
    return make_world(WorldConfig(**config))


def test_it_passes_its_waypoints_upright_and_swings_its_heading():
    world = drone(driver=ROUND)
    track, tilt = [], []
    for _ in range(120):
        run(world, 0.05)
        track.append(world.bound('qpos')[0, :7].copy())
        tilt.append(upright(world, 'drone'))
    track = np.array(track)
    for point in np.reshape(ROUND['waypoints_m'], (-1, 3)):
        assert np.linalg.norm(track[:, :3] - point, axis=1).min() < 0.1
    assert min(tilt) > 0.8
    assert np.ptp(2 * np.arctan2(track[:, 6], track[:, 3])) > 0.5


def test_it_hovers_without_waypoints_also_with_late_motors():
    world = drone(driver={'type': 'waypoints', 'yaw': 'fixed'}, control_delay_s=0.006)
    run(world, 4.0)
    np.testing.assert_allclose(world.bound('qpos')[0, :3], [0, 0, 1], atol=0.02)


def test_a_pose_command_sends_it_elsewhere():
    world = drone(driver=ROUND, num_envs=2)
    run(world, 0.5)
    world.command_pose('drone', (-0.5, -0.5, 1.2), (np.cos(0.4), 0, 0, np.sin(0.4)), 1)
    run(world, 5.0)
    pose = world.bound('qpos')[1]
    np.testing.assert_allclose(pose[:3], [-0.5, -0.5, 1.2], atol=0.03)
    assert 2 * np.arctan2(pose[6], pose[3]) == pytest.approx(0.8, abs=0.05)
    assert np.linalg.norm(world.bound('qpos')[0, :3] - pose[:3]) > 0.3


@pytest.mark.parametrize(
    ('xml', 'driver', 'sentence'),
    [
        (
            PLAIN.format('</mujoco>'),
            {'type': 'waypoints'},
            'no actuator acts on a body with a free',
        ),
        (
            PLAIN.format('</mujoco>'),
            {'type': 'waypoints', 'body': 'bird'},
            r"world.driver.body is 'bird', which the model does not have; there are stone",
        ),
        (
            PLAIN.format('<actuator><motor body="stone"/></actuator></mujoco>')
            .replace('<motor body="stone"/>', '<motor site="s" gear="0 0 1 0 0 0"/>')
            .replace('<geom size', '<site name="s"/><geom size'),
            {'type': 'waypoints'},
            'cannot give it thrust along z and torque about every axis',
        ),
    ],
)
def test_what_cannot_fly_is_refused(tmp_path, xml, driver, sentence):
    with pytest.raises(RigError, match=sentence):
        world_of(tmp_path, xml, driver=driver)
