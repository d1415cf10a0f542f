"""Many worlds at once are many single worlds, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.world.batch import BatchWorld
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.snapshot import Snapshot
from sim_sensors.world.world import World, make_world

PENDULUM = """
<mujoco>
  <option integrator="{integrator}"/>
  <worldbody>
    <body name="arm">
      <joint name="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -1"/><site name="tip" pos="0 0 -1"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><accelerometer site="tip"/><gyro site="tip"/><framepos objtype="site" objname="tip"/>
  </sensor>
</mujoco>
"""


@pytest.fixture(params=['Euler', 'implicitfast', 'RK4'])
def folder(request, tmp_path):
    (tmp_path / 'pendulum.xml').write_text(PENDULUM.format(integrator=request.param))
    return tmp_path


def torque(env: int, tick: int) -> float:
    return 3.0 * np.sin(0.1 * tick + env)


def test_every_environment_is_a_world_of_its_own(folder):
    config = WorldConfig(model='pendulum.xml', num_envs=5, timestep_s=0.002)
    batch = BatchWorld(config, base_dir=folder)
    singles = [World(config.model_copy(update={'num_envs': 1}), base_dir=folder) for _ in range(5)]
    for tick in range(60):
        batch.command_all(np.array([[torque(env, tick)] for env in range(5)]))
        batch.step()
        for env, single in enumerate(singles):
            single.command({'motor': torque(env, tick)})
            single.step()
            np.testing.assert_array_equal(batch.sensordata[env], single.sensordata[0])
            if tick % 20 == 7:
                np.testing.assert_array_equal(batch.data(env).site_xmat, single.data().site_xmat)
                np.testing.assert_array_equal(batch.poses(1)[env], single.poses(1)[0])
    assert len(np.unique(batch.sensordata[:, 4])) == 5


def test_a_partial_reset_touches_nobody_else(folder):
    config = WorldConfig(model='pendulum.xml', num_envs=4)
    batch, other = BatchWorld(config, base_dir=folder), BatchWorld(config, base_dir=folder)
    fresh = World(config.model_copy(update={'num_envs': 1}), base_dir=folder)
    for world in (batch, other):
        world.command({'motor': 2.0})
        for _ in range(30):
            world.step()
    batch.reset([3, 1])
    fresh.step()
    for _ in range(30):
        np.testing.assert_array_equal(batch.sensordata[[0, 2]], other.sensordata[[0, 2]])
        for env in (1, 3):
            np.testing.assert_array_equal(batch.sensordata[env], fresh.sensordata[0])
        batch.step()
        other.step()
        fresh.step()
    assert batch.time_ns == other.time_ns


def test_the_number_of_threads_changes_nothing(folder):
    config = WorldConfig(model='pendulum.xml', num_envs=6)
    one, two = (BatchWorld(config, base_dir=folder, threads=n) for n in (1, 2))
    for tick in range(20):
        for world in (one, two):
            world.command_all(np.array([[torque(env, tick)] for env in range(6)]))
            world.step()
    np.testing.assert_array_equal(one.sensordata, two.sensordata)


def test_drivers_steer_every_environment():
    config = WorldConfig(
        model='rover_yard.xml', num_envs=3, driver='figure_eight', timestep_s=0.002
    )
    batch = make_world(config)
    single = World(config.model_copy(update={'num_envs': 1}))
    for _ in range(1500):
        batch.step()
        single.step()
    assert np.hypot(*single.poses(single.drive.body)[0, :2]) > 0.3
    for env in range(3):
        np.testing.assert_array_equal(
            batch.poses(batch.drive.body)[env], single.poses(single.drive.body)[0]
        )


def test_the_unstable_environment_is_named_and_can_be_reset(tmp_path):
    (tmp_path / 'bomb.xml').write_text(
        '<mujoco><worldbody><body><joint name="fuse" type="slide"/>'
        '<geom size="0.1" mass="0.01"/></body></worldbody>'
        '<actuator><motor name="match" joint="fuse"/></actuator></mujoco>'
    )
    world = BatchWorld(WorldConfig(model='bomb.xml', num_envs=3), base_dir=tmp_path)
    world.step()
    world.command({'match': 9e9}, [2])
    with pytest.raises(RigError, match=r"unstable at 0.001 s in environment 2: the .* 'fuse'"):
        world.step()
    world.reset([2])
    for _ in range(5):
        world.step()
    assert world.tick == 6


def test_resets_of_unknown_environments_are_refused(folder):
    world = BatchWorld(WorldConfig(model='pendulum.xml', num_envs=2), base_dir=folder)
    with pytest.raises(RigError, match='there are 0 to 1'):
        world.reset([2])


@pytest.mark.parametrize('num_envs', [1, 3])
def test_a_snapshot_stays_while_the_world_goes_on(folder, num_envs):
    world = make_world(WorldConfig(model='pendulum.xml', num_envs=num_envs), base_dir=folder)
    world.command({'motor': 2.0})
    for _ in range(10):
        world.step()
    still = Snapshot(world)
    before = world.sensordata.copy(), world.data(num_envs - 1).site_xpos.copy()
    for _ in range(10):
        world.step()
    assert still.time_ns == 9_000_000
    np.testing.assert_array_equal(still.sensordata, before[0])
    np.testing.assert_array_equal(still.data(num_envs - 1).site_xpos, before[1])
    assert (world.data(num_envs - 1).site_xpos != before[1]).any()
    still.take()
    assert still.time_ns == world.time_ns
    np.testing.assert_array_equal(still.data(0).site_xpos, world.data(0).site_xpos)


def test_physics_takes_as_many_threads_as_it_may_use(folder, monkeypatch):
    monkeypatch.setattr('sim_sensors.world.batch.usable_cores', lambda: 3)
    config = WorldConfig(model='pendulum.xml', num_envs=4)
    assert BatchWorld(config, base_dir=folder)._batch.nthread == 3
    assert BatchWorld(config, base_dir=folder, threads=1)._batch.nthread == 1
