"""`rig mount`: what is in a model, a rig file that runs, a picture of the frames."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.rendering import needs_renderer
from support.robots import arm, quadruped

from rig_common.errors import RigError
from sensor_rig.cli import mount
from sensor_rig.cli.support.registry import parse
from sensor_rig.inprocess import open_rig
from sensor_rig.mounting.guess import Guess
from sensor_rig.mounting.survey import look_at
from sensor_rig.rigfile import RigConfig, load_rig

FLAT = """
<mujoco><worldbody><body name="palm" pos="0 0 1"><joint name="wrist"/><geom size="0.05"/>
  <camera name="camera" pos="0.1 0 0" xyaxes="0 -1 0 0 0 1"/><site name="imu"/>
  <body name="a"><joint name="a"/><geom size="0.02"/></body>
  <body name="b"><joint name="b"/><geom size="0.02"/></body>
  <body name="c"><joint name="c"/><geom size="0.02"/></body>
</body></worldbody></mujoco>
"""

CART = """
<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="9 9 1"/>
  <geom type="box" size="0.1 2 1" pos="4 0 0"/>
  <body name="base" pos="0 0 0.6"><freejoint name="root"/>
    <geom type="box" size="0.2 0.12 0.05" mass="5"/>
    <site name="lidar" pos="0.1 0 0.1"/>
    <geom type="sphere" size="0.04" pos="-0.15 0 -0.06" friction="0.01" condim="1"/>
    <body name="l" pos="0 0.15 -0.02"><joint name="l" axis="0 1 0" armature="0.02"/>
      <geom type="cylinder" size="0.08 0.02" euler="90 0 0" mass="0.5"/></body>
    <body name="r" pos="0 -0.15 -0.02"><joint name="r" axis="0 1 0" armature="0.02"/>
      <geom type="cylinder" size="0.08 0.02" euler="90 0 0" mass="0.5"/></body>
  </body></worldbody>
  <actuator><velocity joint="l" kv="2"/><velocity joint="r" kv="2"/></actuator></mujoco>
"""
POLE = """
<mujoco><worldbody><body name="pole" pos="0 0 1"><freejoint/>
  <geom type="capsule" size="0.03" fromto="0 0 -0.2 0.02 0 0.8" mass="3"/>
  <body name="leg" pos="0 0 -0.2"><joint name="ankle" axis="0 1 0" range="-1 1" limited="true"/>
  <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.4"/></body></body></worldbody>
  <actuator><motor joint="ankle"/></actuator></mujoco>
"""


def run(*arguments: str) -> int:
    return mount.run(parse(mount, list(arguments)))


def sensors_of(file: Path) -> dict[str, str]:
    return {name: each.type for name, each in load_rig(file).sensors.items()}


def test_a_quadruped_gets_a_rig_that_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path('dog.xml').write_text(quadruped())
    assert run('dog.xml', '--no-picture', '--json') == 0
    document = json.loads(capsys.readouterr().out)
    assert document['version'] == 1 and document['rig_file'] == 'dog_rig.yaml'
    assert {each['name'] for each in document['bodies']} >= {'trunk', 'fl_shin'}
    assert document['actuators'][0] == {
        'name': '',
        'index': 0,
        'drives': 'fl_roll',
        'takes': 'effort',
    }
    assert document['joints'][0]['type'] == 'free'
    kinds = sensors_of(tmp_path / 'dog_rig.yaml')
    assert [kinds.get(f'{leg}_shin_contact') for leg in ('fl', 'fr', 'rl', 'rr')] == (
        ['contact_force'] * 4
    )
    assert kinds['imu'] == 'imu' and kinds['camera'] == 'camera'
    assert document['kind'] == 'legged' and document['saw'] == []  # it stands


def test_an_arm_gets_a_wrist_and_names_that_are_free(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('arm.xml').write_text(arm())
    run('arm.xml', '--no-picture')
    assert sensors_of(tmp_path / 'arm_rig.yaml')['wrist_force'] == 'force_torque'
    Path('hand.xml').write_text(FLAT)
    run('hand.xml', '--no-picture')
    config = load_rig(tmp_path / 'hand_rig.yaml')
    assert config.sensors['imu'].mount.site == 'imu'
    camera = config.sensors['rig_camera'].mount  # the model has a camera of the usual name
    assert camera.pos_m == (0.1, 0.0, 0.0)
    np.testing.assert_allclose(camera.rpy_rad, 0.0, atol=1e-6)
    assert [config.sensors[f'{tip}_contact'].type for tip in 'abc'] == ['contact_force'] * 3
    assert config.world.actuators['all'].joint == '*'


def mounted(text: str, capsys) -> tuple[dict, RigConfig]:
    """Return what `mount` says of a model, and the rig file it wrote."""
    Path('robot.xml').write_text(text)
    run('robot.xml', '--no-picture', '--json', '--force')
    return json.loads(capsys.readouterr().out), load_rig('robot_rig.yaml')


def test_wheels_are_found_and_put_on_the_floor(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document, config = mounted(CART, capsys)
    assert document['kind'] == 'wheeled' and document['saw'] == []
    drive, wheels = config.world.drive, config.sensors['wheels']
    assert (
        (drive.left, drive.right) == (('l',), ('r',)) == (wheels.left_joints, wheels.right_joints)
    )
    assert drive.wheel_radius_m == pytest.approx(0.08) and drive.track_m == pytest.approx(0.3)
    assert config.world.timestep_s == 0.002
    assert config.world.poses['start']['root'] == pytest.approx(0.1, abs=0.002)
    assert config.sensors['lidar'].mount.site == 'lidar'
    assert all(each.clock.drift_ppm for each in config.sensors.values())
    assert config.sensors['imu'].gyro.noise_density[0] > 0.0


def test_what_falls_or_sees_nothing_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    document, _ = mounted(POLE, capsys)
    assert [each['what'] for each in document['saw']] == ['fell']
    assert 0.0 < document['saw'][0]['at_s'] < 3.0
    document, _ = mounted(FLAT.replace('pos="0 0 1"', 'pos="0 0 -1"'), capsys)
    assert [each['what'] for each in document['saw']] == ['blind']


def test_odd_models_get_a_rig_too(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    weight = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
    joint = f'<body name="y"><joint name="y"/>{weight}</body>'
    bodies = f'<body name="b"><freejoint/>{weight}{joint}</body>'
    _, config = mounted(f'<mujoco><worldbody>{bodies}</worldbody></mujoco>', capsys)
    assert config.sensors['joint_states'].joints == ('y',)  # no boolean, and no geom to stand on
    document, _ = mounted('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>', capsys)
    assert document['kind'] == 'other' and document['mounted'] == []


def test_a_drone_leaves_its_place(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    drone = Path(__file__).resolve().parents[3] / 'worlds' / 'drone.xml'
    run(str(drone), '--no-picture', '--json')
    assert json.loads(capsys.readouterr().out)['saw'] == []
    rig = open_rig('drone_rig.yaml', skip_unavailable=True, messages=False)
    for _ in range(2500):
        rig.world.step()
    body = rig.world.model.body('drone').id
    assert np.ptp([rig.world.bound('xpos')[0, body], [0.0, 0.0, 0.0]], 0).max() > 0.5


@needs_renderer
def test_the_picture_shows_the_frames(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('arm.xml').write_text(arm())
    run('arm.xml')
    image = np.asarray(Image.open('arm_rig.png').convert('RGB')).astype(int)
    red = (image[..., 0] > 120) & (image[..., 1] < 90) & (image[..., 2] < 90)
    blue = (image[..., 2] > 120) & (image[..., 0] < 90)
    assert image.shape == (640, 1600, 3) and red.sum() > 200 and blue.sum() > 200


def test_nothing_is_replaced_or_half_done(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path('arm.xml').write_text(arm())
    Path('arm_rig.yaml').write_text('mine')
    with pytest.raises(RigError, match=r'arm_rig.yaml is there already; .* or --force'):
        run('arm.xml', '--no-picture')
    assert Path('arm_rig.yaml').read_text() == 'mine'
    with pytest.raises(RigError, match='there is no model file'):
        run('gone.xml', '--list')
    with pytest.raises(RigError, match='it should be in a folder that exists'):
        run('arm.xml', '-o', 'no/where.yaml')


def test_a_list_needs_no_guess(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path('arm.xml').write_text(arm())
    run('arm.xml', '--list')
    out = capsys.readouterr().out
    assert 'shoulder' in out and 'bent' in out and not list(tmp_path.glob('*.yaml'))


@pytest.mark.parametrize(
    ('name', 'driver'),
    [('drone', 'waypoints'), ('hand', 'excite'), ('rover_yard', 'figure_eight')],
)
def test_the_driver_fits_the_robot(name, driver):
    file = Path(__file__).resolve().parents[3] / 'worlds' / f'{name}.xml'
    chosen = Guess(look_at(file)).world()['driver']
    assert (chosen if isinstance(chosen, str) else chosen['type']) == driver
