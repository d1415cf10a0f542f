"""The world: whose time the arrays belong to, commands, resets, and mistakes in one sentence."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import World

CART = """
<mujoco>
  <option integrator="{integrator}" gravity="0 0 0"/>
  <worldbody>
    <body name="cart">
      <joint name="rail" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="2"/>
      <site name="cart"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="rail"/></actuator>
  <sensor>
    <framepos objtype="body" objname="cart"/>
    <accelerometer site="cart"/>
  </sensor>
  <keyframe><key name="rolling" qvel="3" ctrl="0"/></keyframe>
</mujoco>
"""


def steps(world: World, count: int) -> None:
    for _ in range(count):
        world.step()


INTEGRATORS = ('Euler', 'implicitfast', 'implicit', 'RK4')


def cart(folder: Path, integrator: str = 'Euler', **keys) -> World:
    file = folder / 'cart.xml'
    file.write_text(CART.format(integrator=integrator))
    return World(WorldConfig(model='cart.xml', **keys), base_dir=folder)


def model_of(folder: Path, xml: str, **keys) -> World:
    (folder / 'model.xml').write_text(xml)
    return World(WorldConfig(model='model.xml', **keys), base_dir=folder)


@pytest.mark.parametrize('integrator', INTEGRATORS)
def test_everything_belongs_to_the_present_tick(tmp_path, integrator):
    world = cart(tmp_path, integrator, keyframe='rolling', timestep_s=0.002)
    for tick in range(50):
        world.step()
        assert (world.tick, world.time_ns) == (tick, tick * 2_000_000)
        seconds = world.time_ns / 1e9
        assert world.sensordata[0, 0] == pytest.approx(3 * seconds, abs=1e-12)
        assert world.data().xpos[1, 0] == pytest.approx(3 * seconds, abs=1e-12)
        assert world.data().geom_xpos[0, 0] == pytest.approx(3 * seconds, abs=1e-12)


@pytest.mark.parametrize('integrator', INTEGRATORS)
def test_a_command_acts_from_the_next_tick(tmp_path, integrator):
    world = cart(tmp_path, integrator)
    felt = []
    for tick in range(6):
        if tick == 3:
            world.command({'push': 8.0})
        world.step()
        felt.append(world.sensordata[0, 3])
    assert felt == pytest.approx([0, 0, 0, 4, 4, 4])
    position = world.sensordata[0, 0]
    assert 0 < position < 4 * 0.002**2  # two steps of 4 m/s^2 have passed, not three


@pytest.mark.parametrize('integrator', ['Euler', 'RK4'])
def test_commands_come_late_by_the_control_delay(tmp_path, integrator):
    world = cart(tmp_path, integrator, control_delay_s=0.002)
    for _ in range(2):  # a reset empties the line
        felt = []
        for tick in range(8):
            world.command({'push': 8.0 if tick in (2, 3) else 0.0})
            world.step()
            felt.append(world.sensordata[0, 3])
        assert felt == pytest.approx([0, 0, 0, 0, 4, 4, 0, 0])
        world.command({'push': 8.0})
        world.step()
        world.reset()


def test_a_partial_reset_drops_commands_on_their_way(tmp_path):
    world = cart(tmp_path, control_delay_s=0.003)
    world.command({'push': 8.0})
    world.step()
    world.reset([0])
    felt = []
    for _ in range(6):
        world.step()
        felt.append(world.sensordata[0, 3])
    assert felt == [0] * 6


def test_a_reset_gives_the_same_run_again(tmp_path):
    world = cart(tmp_path)

    def run():
        world.command({'push': 1.5})
        for _ in range(20):
            world.step()
        return world.sensordata.copy()

    first = run()
    world.reset()
    assert world.tick == -1
    np.testing.assert_array_equal(first, run())


def test_a_reset_midway_keeps_time_and_starts_now(tmp_path):
    world, fresh = cart(tmp_path, keyframe='rolling'), cart(tmp_path, keyframe='rolling')
    for _ in range(10):
        world.step()
    world.reset([0])
    fresh.step()
    assert world.tick == 9
    for _ in range(5):
        np.testing.assert_array_equal(world.sensordata, fresh.sensordata)
        world.step()
        fresh.step()
    assert world.tick == 14


# ---- files ---------------------------------------------------------------------------------


def test_models_are_found_absolute_beside_the_rig_and_among_the_shipped(tmp_path):
    world = cart(tmp_path)
    assert world.model.nu == 1
    assert World(WorldConfig(model=str(tmp_path / 'cart.xml'))).model.nu == 1
    assert World(WorldConfig(model='rover_yard.xml'), base_dir=tmp_path).model.nu == 4


def test_a_missing_model_is_one_sentence(tmp_path):
    with pytest.raises(RigError, match=r"world.model is 'nowhere.xml'; it is neither in .* nor "):
        World(WorldConfig(model='nowhere.xml'), base_dir=tmp_path)


def test_a_broken_model_is_one_sentence(tmp_path):
    with pytest.raises(RigError, match=r"model.xml: Schema violation.*'siz'") as caught:
        model_of(tmp_path, '<mujoco><worldbody><geom siz="1"/></worldbody></mujoco>')
    assert '\n' not in str(caught.value)


@pytest.mark.parametrize('timestep_s', [0.0010000004, 1e-10])
def test_the_step_is_whole_nanoseconds(tmp_path, timestep_s):
    with pytest.raises(RigError, match='whole number of nanoseconds'):
        cart(tmp_path, timestep_s=timestep_s)


TRIANGLES = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n'


def test_meshes_outside_the_models_folder_are_refused_unless_allowed(tmp_path):
    folder = tmp_path / 'robot'
    folder.mkdir()
    (tmp_path / 'part.obj').write_text(TRIANGLES)
    xml = (
        '<mujoco><asset><mesh name="part" file="../part.obj"/></asset>'
        '<worldbody><geom type="mesh" mesh="part"/></worldbody></mujoco>'
    )
    with pytest.raises(RigError, match=r'mesh file .*part.obj, which is outside its own folder'):
        model_of(folder, xml)
    assert model_of(folder, xml, allow_outside_files=True).model.nmesh == 1


def test_meshes_inside_the_models_folder_are_read(tmp_path):
    (tmp_path / 'meshes').mkdir()
    (tmp_path / 'meshes' / 'part.obj').write_text(TRIANGLES)
    world = model_of(
        tmp_path,
        '<mujoco><compiler meshdir="meshes"/><asset>'
        '<mesh name="part" file="part.obj"/></asset>'
        '<worldbody><geom type="mesh" mesh="part"/></worldbody></mujoco>',
    )
    assert world.model.nmesh == 1


def test_includes_outside_the_models_folder_are_refused(tmp_path):
    folder = tmp_path / 'robot'
    folder.mkdir()
    (tmp_path / 'secret.xml').write_text('<mujoco/>')
    (folder / 'near.xml').write_text('<mujoco><include file="../secret.xml"/></mujoco>')
    with pytest.raises(RigError, match=r'include file .*secret.xml, which is outside'):
        model_of(folder, '<mujoco><include file="near.xml"/></mujoco>')


# ---- trouble -------------------------------------------------------------------------------

BOMB = """
<mujoco>
  <worldbody><body name="bomb"><joint name="fuse" type="slide" stiffness="-1e9" springref="-1"/>
    <geom size="0.1"/></body></worldbody>
</mujoco>
"""


def test_an_unstable_simulation_is_one_sentence_and_can_be_reset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world = model_of(tmp_path, BOMB, timestep_s=0.01)
    for _ in range(2):
        with pytest.raises(
            RigError,
            match=r'unstable at 0\.\d+ s: the acceleration of joint '
            r"'fuse' is not finite or huge; use a smaller",
        ):
            steps(world, 100)
        world.reset()
    assert not (tmp_path / 'MUJOCO_LOG.TXT').exists()


def test_a_model_that_switches_the_check_off_is_caught_too(tmp_path):
    quiet = BOMB.replace('<worldbody>', '<option><flag autoreset="disable"/></option><worldbody>')
    world = model_of(tmp_path, quiet, timestep_s=0.01)
    with pytest.raises(RigError, match='unstable'):
        steps(world, 100)


BED_OF_BALLS = ''.join(f'<geom size="0.1" pos="{i % 20} {i // 20} 0"/>' for i in range(400))
LOOSE_BALLS = ''.join(
    f'<body pos="{i % 6} {i // 6} 0.09"><freejoint/><geom size="0.1"/></body>' for i in range(36)
)


@pytest.mark.parametrize(
    ('bodies', 'sentence'),
    [
        (LOOSE_BALLS, 'MuJoCo stopped at 0.000 s: mj_stackAlloc: out of memory'),
        (
            f'<body pos="-9 -9 0.09"><freejoint/>{BED_OF_BALLS}</body>',
            r'ran out of memory for (contacts|constraints) at 0\.\d+ s'  # MuJoCo 4
            r'|MuJoCo stopped at 0.000 s: mj_stackAlloc: out of memory',
        ),  # MuJoCo 3
    ],
)
def test_too_little_memory_is_one_sentence(tmp_path, bodies, sentence):
    xml = (
        '<mujoco><size memory="60K"/><worldbody><geom type="plane" size="30 30 1"/>'
        f'{bodies}</worldbody></mujoco>'
    )
    with pytest.raises(RigError, match=sentence) as caught:
        steps(model_of(tmp_path, xml), 600)
    assert '\n' not in str(caught.value)


def test_unknown_names_come_with_near_ones(tmp_path):
    world = cart(tmp_path)
    with pytest.raises(RigError, match=r"actuator|did you mean 'push'\?"):
        world.command({'pusch': 1.0})
    with pytest.raises(RigError, match=r"world.keyframe is 'roling'.*did you mean 'rolling'\?"):
        cart(tmp_path, keyframe='roling')


def test_actuators_answer_to_their_joints_name_where_that_is_clear(tmp_path):
    arm = (
        '<mujoco><worldbody><body><joint name="a"/><geom size="0.1"/><body><joint name="b"/>'
        '<geom size="0.1"/></body></body></worldbody><actuator><motor joint="a"/>'
        '<motor name="left" joint="b"/><motor name="right" joint="b"/></actuator></mujoco>'
    )
    world = model_of(tmp_path, arm)
    assert world.actuators == {'a': 0, 'left': 1, 'right': 2}
    world.command({'a': 0.5, 'right': -1.0})
    world.step()
    assert world.data().ctrl.tolist() == [0.5, 0.0, -1.0]


def test_commands_must_be_finite(tmp_path):
    with pytest.raises(RigError, match="actuator 'push' is nan"):
        cart(tmp_path).command({'push': float('nan')})


def test_a_model_without_a_drive_takes_no_twist(tmp_path):
    with pytest.raises(RigError, match='does not say how it is driven'):
        cart(tmp_path).command_twist(1.0, 0.0)
    with pytest.raises(RigError, match="driver is 'figure_eight', but the model does not say"):
        cart(tmp_path, driver='figure_eight')
    with pytest.raises(RigError, match="driver is 'taxi'; allowed are none, commands, figure"):
        cart(tmp_path, driver='taxi')


def test_the_rovers_wheels_follow_a_twist():
    world = World(WorldConfig(model='rover_yard.xml', driver='commands'))
    world.command_twist(0.6, 0.5)
    for _ in range(1500):
        world.step()
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(
        world.model, world.data(), mujoco.mjtObj.mjOBJ_XBODY, world.drive.body, velocity, 1
    )
    assert velocity[2] == pytest.approx(0.5, abs=0.05)
    assert velocity[3] == pytest.approx(0.6, abs=0.05)
