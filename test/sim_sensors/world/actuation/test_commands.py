"""A history of commands: what actuators are said to have received is what moved the robot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.rig import Rig
from sim_sensors.world.config.world import WorldConfig

MS = 1_000_000
ARM = """
<mujoco><option timestep="0.001"/><worldbody><body><joint name="hinge" damping="0.1"/>
  <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" mass="1"/></body></worldbody>
  <actuator><motor joint="hinge" name="motor"/></actuator></mujoco>
"""
PAST = [0.3, -0.2, 0.7, 0.5, -0.9]
"""Torques commanded in the 5 ms before an episode, N m."""


def make(tmp_path: Path, num_envs: int = 2) -> Rig:
    file = tmp_path / 'arm.xml'
    file.write_text(ARM)
    return Rig(WorldConfig(model=str(file), control_delay_s=0.005, num_envs=num_envs), [], seed=1)


def history(rig: Rig, envs: int, begin_ns: int) -> tuple[Any, Any]:
    times = begin_ns + np.arange(-5, 0) * MS
    return times, np.tile(np.array(PAST)[None, :, None], (envs, 1, 1))


def moved_by(torques: list[float]) -> list[float]:
    """Return positions of the arm after each step of plain MuJoCo under these torques."""
    model = mujoco.MjModel.from_xml_string(ARM)
    data, found = mujoco.MjData(model), []
    for torque in torques:
        data.ctrl[0] = torque
        mujoco.mj_step(model, data)
        found.append(float(data.qpos[0]))
    return found


def test_a_reset_of_some_environments_begins_under_their_history(tmp_path: Path) -> None:
    rig = make(tmp_path)
    for _ in range(20):
        rig.command({'motor': 0.4})
        rig.step()
    rig.command({'motor': 0.0}, [1])
    rig.reset([1], commands=history(rig, 1, rig.time_ns))
    received, positions = [float(rig.read_ctrl()[1, 0])], [float(rig.world.bound('qpos')[1, 0])]
    for _ in range(7):
        rig.step()
        received.append(float(rig.read_ctrl()[1, 0]))
        positions.append(float(rig.world.bound('qpos')[1, 0]))
    assert received == [*PAST, 0.0, 0.0, 0.0]
    np.testing.assert_allclose(positions, moved_by(received), atol=1e-12)
    assert rig.read_ctrl()[0, 0] == 0.4


@pytest.mark.parametrize('with_reset', [False, True])
def test_a_rig_begins_under_its_history(tmp_path: Path, with_reset: bool) -> None:
    rig = make(tmp_path)
    begin_ns = rig.time_ns + MS
    if with_reset:
        rig.step()
        rig.reset(commands=history(rig, 2, begin_ns))
    else:
        rig.init_ctrl_history(*history(rig, 2, begin_ns))
    received, positions = [], []
    for _ in range(7):
        rig.step()
        received.append(float(rig.read_ctrl()[0, 0]))
        positions.append(float(rig.world.bound('qpos')[0, 0]))
    assert received == [*PAST, 0.0, 0.0]
    np.testing.assert_allclose(positions, moved_by(received), atol=1e-12)


def test_a_history_after_the_first_step_is_refused(tmp_path: Path) -> None:
    rig = make(tmp_path)
    rig.step()
    with pytest.raises(RigError, match=r'reset\(envs, commands='):
        rig.init_ctrl_history(*history(rig, 2, rig.time_ns))


def test_one_actuator_is_read_and_given_a_past_by_its_name(tmp_path: Path) -> None:
    by_name, by_array = make(tmp_path), make(tmp_path)
    times_ns, values = history(by_name, 2, by_name.time_ns + MS)
    name = next(iter(by_name.world.actuators))
    by_array.init_ctrl_history(times_ns, values)
    by_name.init_ctrl_history(times_ns, {name: np.asarray(values)[:, :, 0]})
    for _ in range(7):
        by_name.step(), by_array.step()
        np.testing.assert_array_equal(by_name.read_ctrl(name), by_array.read_ctrl()[:, 0])
    with pytest.raises(RigError, match=rf'of {name} has the shape \[3\]; it must be \[2, '):
        make(tmp_path).init_ctrl_history(times_ns, {name: np.zeros(3)})
