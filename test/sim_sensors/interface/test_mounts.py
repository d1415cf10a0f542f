"""Mounts: any body or site of any model gets a sensor at load time."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig_common.errors import RigError
from sim_sensors.interface.config import MountConfig
from sim_sensors.interface.mounts import add_site, quat_wxyz_from_rpy

ARM = """
<mujoco>
  <compiler angle="degree" eulerseq="zyx"/>
  <worldbody>
    <body name="shoulder" pos="0 0 1" euler="30 0 0">
      <frame euler="0 45 0" pos="0.1 0 0">
        <site name="tool" pos="0 0.2 0" euler="0 0 60"/>
        <site name="rod" type="capsule" size="0.01" fromto="0 0 0 0 0.3 0.3"/>
      </frame>
      <body name="elbow" pos="0.5 0 0"/>
      <body/>
    </body>
  </worldbody>
</mujoco>
"""


def compiled(mount: MountConfig, name: str = 'imu') -> tuple[mujoco.MjModel, mujoco.MjData]:
    spec = mujoco.MjSpec.from_string(ARM)
    add_site(spec, name, mount)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def turn(axis: int, angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[i, i] = matrix[j, j] = c
    matrix[j, i], matrix[i, j] = s, -s
    return matrix


angles = st.floats(-7.0, 7.0)


@given(angles, angles, angles)
def test_rpy_is_fixed_axis_x_then_y_then_z(roll, pitch, yaw):
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.array(quat_wxyz_from_rpy((roll, pitch, yaw))))
    np.testing.assert_allclose(
        matrix.reshape(3, 3), turn(2, yaw) @ turn(1, pitch) @ turn(0, roll), atol=1e-12
    )


def test_a_body_carries_the_sensor_whatever_the_models_angle_unit():
    mount = MountConfig(body='elbow', pos_m=(0.1, 0.2, 0.3), rpy_rad=(0.4, -0.5, 0.6))
    model, data = compiled(mount)
    body, site = model.body('elbow').id, model.site('imu').id
    frame = data.xmat[body].reshape(3, 3)
    np.testing.assert_allclose(
        data.site_xpos[site], data.xpos[body] + frame @ np.array(mount.pos_m), atol=1e-12
    )
    expected = frame @ turn(2, 0.6) @ turn(1, -0.5) @ turn(0, 0.4)
    np.testing.assert_allclose(data.site_xmat[site].reshape(3, 3), expected, atol=1e-12)


@pytest.mark.parametrize('site', ['tool', 'rod'])
def test_an_existing_site_gets_a_twin(site):
    model, data = compiled(MountConfig(site=site))
    twin, original = model.site('imu').id, model.site(site).id
    np.testing.assert_allclose(data.site_xpos[twin], data.site_xpos[original], atol=1e-12)
    np.testing.assert_allclose(data.site_xmat[twin], data.site_xmat[original], atol=1e-12)


def test_a_sensor_may_have_the_name_of_the_site_it_sits_on():
    model, _ = compiled(MountConfig(site='tool'), name='tool')
    assert model.nsite == 2


@pytest.mark.parametrize(
    ('mount', 'sentence'),
    [
        (MountConfig(body='elbov'), r"mount.body is 'elbov', .*did you mean 'elbow'\?"),
        (MountConfig(body='torso'), r"mount.body is 'torso', .*there are elbow, shoulder, world"),
        (MountConfig(site='tol'), r"mount.site is 'tol', .*did you mean 'tool'\?"),
    ],
)
def test_unknown_places_are_named_with_near_ones(mount, sentence):
    with pytest.raises(RigError, match=sentence):
        compiled(mount)


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(RigError, match="sensor 'tool': the model has a site 'tool' already"):
        compiled(MountConfig(body='elbow'), name='tool')
