"""What a rig file adds to a model: actuators, ground, drive; URDF meshes; mounts."""

from __future__ import annotations

import numpy as np
import pytest
from support.robots import arm, positions, run, world_of

from rig_common.errors import RigError
from sim_sensors.interface.config import MountConfig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.model.model_file import compile_model

URDF = """
<robot name="stick">
  <link name="base"><inertial><mass value="1"/><origin xyz="0 0 0"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="arm"><inertial><mass value="1"/><origin xyz="0.2 0 0"/>
    <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><mesh filename="{mesh}"/></geometry></collision></link>
  <link name="plate"/>
  <joint name="pivot" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="30" velocity="5"/></joint>
  <joint name="screw" type="fixed"><parent link="arm"/><child link="plate"/></joint>
</robot>
"""
PART = 'v 0 0 0\nv .1 0 0\nv 0 .1 0\nv 0 0 .1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n'
CART = """
<mujoco><worldbody><geom type="plane" size="9 9 1"/>
  <body name="base" pos="0 0 0.1"><freejoint/>
    <geom type="box" size="0.2 0.1 0.03" mass="4"/>
    <geom type="sphere" size="0.05" pos="0.18 0 -0.05" mass="0.1" friction="0 0 0" condim="1"
          priority="1"/>
    <body pos="-0.1 0.16 0"><joint name="left" axis="0 1 0" damping="0.01"/>
      <geom size="0.1" mass="0.5"/></body>
    <body pos="-0.1 -0.16 0"><joint name="right" axis="0 1 0" damping="0.01"/>
      <geom size="0.1" mass="0.5"/></body>
  </body></worldbody><actuator>{}</actuator></mujoco>
"""
DRIVE = {
    'body': 'base',
    'left': ['left'],
    'right': ['right'],
    'wheel_radius_m': 0.1,
    'track_m': 0.32,
}


def test_actuators_for_a_model_without_any(tmp_path):
    world = world_of(
        tmp_path,
        arm(''),
        driver={'type': 'hold', 'pose': 'bent'},
        actuators={
            'lift': {'joint': 'shoulder', 'force_range': [-50.0, 50.0]},
            'rest': {'joint': 'elb*', 'type': 'position', 'kp': 40.0},
        },
    )
    assert world.actuators == {'lift': 0, 'shoulder': 0, 'elbow': 1}
    run(world, 2.0)
    assert positions(world) == pytest.approx({'shoulder': 0.3, 'elbow': -0.8}, abs=0.02)


@pytest.mark.parametrize(
    ('given', 'sentence'),
    [
        (
            {'a': {'joint': 'wrist'}},
            r"world.actuators.a.joint is 'wrist', which the model does not",
        ),
        ({'m0': {'joint': 'elbow'}}, "world.actuators.m0: the model has an actuator 'm0' already"),
    ],
)
def test_wrong_actuators_are_refused(tmp_path, given, sentence):
    with pytest.raises(RigError, match=sentence):
        world_of(tmp_path, arm(), actuators=given)


@pytest.mark.parametrize('wheels', ['velocity', 'motor'])
def test_a_drive_in_the_rig_file_drives(tmp_path, wheels):
    gain = ' kv="2"' if wheels == 'velocity' else ''
    xml = CART.format(f'<{wheels} joint="left"{gain}/><{wheels} joint="right"{gain}/>')
    world = world_of(tmp_path, xml, drive=DRIVE, driver='commands')
    world.command_twist(0.5, 0.0)
    run(world, 2.0)
    x, y, yaw = world.base_poses()[0]
    assert x == pytest.approx(0.95, abs=0.12) and abs(y) < 0.05 and abs(yaw) < 0.05
    world.command_twist(0.0, 1.0)
    run(world, 1.0)
    assert world.base_poses()[0, 2] == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize(
    ('change', 'sentence'),
    [
        ({'body': 'bass'}, r"world.drive.body is 'bass'.*did you mean 'base'"),
        ({'left': ['lost']}, r"world.drive.left is 'lost', which the model does not have"),
    ],
)
def test_a_wrong_drive_is_refused(tmp_path, change, sentence):
    xml = CART.format('<velocity joint="left"/><velocity joint="right"/>')
    with pytest.raises(RigError, match=sentence):
        world_of(tmp_path, xml, drive={**DRIVE, **change})


def test_a_ground_catches_what_would_fall(tmp_path):
    ball = (
        '<mujoco><worldbody><body name="ball" pos="0 0 1"><freejoint/><geom size="0.1"/>'
        '</body></worldbody></mujoco>'
    )
    world = world_of(tmp_path, ball, ground=True, keyframe='low', poses={'low': {'ball': 0.2}})
    assert world.bound('qpos')[0, 2] == 0.2
    run(world, 1.0)
    assert world.bound('qpos')[0, 2] == pytest.approx(0.1, abs=0.01)


# ---- URDF ---------------------------------------------------------------------------------


def urdf(folder, mesh: str, **keys):
    file = folder / 'my_robot' / 'urdf' / 'stick.urdf'
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(URDF.format(mesh=mesh))
    return compile_model(WorldConfig(model=str(file), **keys), (), folder)


def part_in(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'part.obj').write_text(PART)


def test_package_addresses_are_found_by_paths_by_the_own_package_and_by_ament(
    tmp_path, monkeypatch
):
    part_in(tmp_path / 'src' / 'parts' / 'meshes')
    address = 'package://parts/meshes/part.obj'
    model = urdf(tmp_path, address, package_paths=('src',))
    assert model.nmesh == 1 and model.body('plate').id > 0  # a fixed link stays a body
    part_in(tmp_path / 'my_robot' / 'meshes')
    assert urdf(tmp_path, 'package://my_robot/meshes/part.obj').nmesh == 1
    part_in(tmp_path / 'install' / 'share' / 'other')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path / 'install'))
    assert urdf(tmp_path, 'package://other/part.obj').nmesh == 1


def test_file_addresses_need_leave_to_go_outside(tmp_path):
    part_in(tmp_path / 'away')
    address = f'file://{tmp_path}/away/part.obj'
    with pytest.raises(RigError, match='outside its own folder'):
        urdf(tmp_path, address)
    assert urdf(tmp_path, address, allow_outside_files=True).nmesh == 1
    part_in(tmp_path / 'my_robot' / 'urdf')
    assert urdf(tmp_path, 'part.obj').nmesh == 1


@pytest.mark.parametrize(
    ('address', 'sentence'),
    [
        ('package://nowhere/part.obj', "the package 'nowhere' is in none of world.package_paths"),
        ('package://my_robot/gone.obj', r'there is no mesh file .*gone\.obj'),
        ('package://my_robot/../../etc/passwd', 'outside its own folder'),
        ('http://example.org/a.stl', 'neither package:// nor file://'),
    ],
)
@pytest.mark.parametrize('sourced', ['', '/somewhere/ros:/elsewhere'], ids=['bare', 'sourced'])
def test_bad_addresses_are_one_sentence(tmp_path, monkeypatch, address, sentence, sourced):
    monkeypatch.setenv('AMENT_PREFIX_PATH', sourced)
    with pytest.raises(RigError, match=sentence):
        urdf(tmp_path, address)


def test_a_mesh_format_that_mujoco_does_not_read_is_said(tmp_path):
    part_in(tmp_path / 'my_robot' / 'urdf')
    (tmp_path / 'my_robot' / 'urdf' / 'part.dae').write_text('x')
    with pytest.raises(RigError, match=r'is a \.dae file; MuJoCo reads \.stl, \.obj, \.msh'):
        urdf(tmp_path, 'part.dae')


def test_a_urdf_gets_actuators_and_moves(tmp_path):
    part_in(tmp_path / 'my_robot' / 'urdf')
    urdf(tmp_path, 'part.obj')
    from sim_sensors.world.world import World

    world = World(
        WorldConfig(
            model='my_robot/urdf/stick.urdf',
            driver={'type': 'hold', 'pose': 'up'},
            poses={'up': {'pivot': -0.6}},
            timestep_s=0.002,
            actuators={'m': {'joint': 'pivot'}},
        ),
        base_dir=tmp_path,
    )
    run(world, 2.0)
    np.testing.assert_allclose(world.bound('qpos')[0], [-0.6], atol=0.02)


def test_a_mount_on_no_body_is_refused():
    with pytest.raises(ValueError, match='names no body'):
        MountConfig(body='')
