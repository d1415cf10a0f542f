"""Turns of a link from joint states, against MuJoCo's kinematics of the same URDF."""

from __future__ import annotations

from pathlib import Path

import mujoco
import pytest
from scipy.spatial.transform import Rotation

from rig_common import msgs
from rig_common.cdr import CdrError
from rig_common.errors import RigError
from sync_engine.config import InputConfig
from sync_engine.wire.cue_readers import find_transform
from sync_engine.wire.joint_chain import JointChain

LINKS = ('base', 'upper', 'carriage', 'wrist', 'tip')
BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'  # noqa: E501
JOINTS = """
  <joint name="turret" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 0 2"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/>
  </joint>
  <joint name="rail" type="prismatic">
    <parent link="upper"/><child link="carriage"/><origin rpy="0.3 0 0" xyz="0 0 1"/>
    <axis xyz="1 0 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="carriage"/><child link="wrist"/><origin rpy="0.1 -0.2 0.5"/><axis xyz="0 1 1"/>
  </joint>
  <joint name="roll" type="continuous">
    <parent link="wrist"/><child link="tip"/><axis xyz="1 0 0"/>
  </joint>
"""
URDF = f'<robot name="arm">{"".join(f"<link name={name!r}>{BODY}</link>" for name in LINKS)}{JOINTS}</robot>'  # noqa: E501


def joint_state(positions: dict[str, float]) -> bytes:
    template = msgs.joint_state(list(positions), velocity=False)
    return template.fill(5, position=list(positions.values()))


def test_the_wrist_is_where_mujoco_has_it(tmp_path: Path) -> None:
    path = tmp_path / 'arm.urdf'
    path.write_text(URDF)
    model = mujoco.MjModel.from_xml_string(URDF)
    data = mujoco.MjData(model)
    chain = JointChain(path, 'upper', 'tip')
    positions = {'turret': 0.4, 'rail': 0.3, 'elbow': -1.1, 'roll': 0.7}
    for name, value in positions.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_kinematics(model, data)
    turns = {
        name: Rotation.from_quat(data.body(name).xquat[[1, 2, 3, 0]]) for name in ('upper', 'tip')
    }
    wanted = turns['upper'].inv() * turns['tip']
    found = Rotation.from_quat(chain(joint_state(positions))['orientation'])
    assert (wanted.inv() * found).magnitude() < 1e-9


def test_what_a_chain_needs_is_said(tmp_path: Path) -> None:
    path = tmp_path / 'arm.urdf'
    with pytest.raises(RigError, match='cannot be read'):
        JointChain(path, 'base', 'tip')
    path.write_text('no xml')
    with pytest.raises(RigError, match='is no URDF'):
        JointChain(path, 'base', 'tip')
    path.write_text(URDF)
    with pytest.raises(RigError, match="no chain of joints leads from 'tip' to 'base'"):
        JointChain(path, 'tip', 'base')
    with pytest.raises(RigError, match='turns'):
        JointChain(path, 'upper', 'carriage')
    path.write_text(URDF.replace('axis xyz="0 1 1"', 'axis xyz="0 1"'))
    with pytest.raises(RigError, match="xyz of joint 'elbow' is '0 1', not three numbers"):
        JointChain(path, 'base', 'tip')
    path.write_text(URDF.replace('type="continuous"', 'type="floating"'))
    with pytest.raises(RigError, match="joint 'elbow' is of type 'floating'"):
        JointChain(path, 'base', 'tip')
    path.write_text(URDF)
    with pytest.raises(CdrError, match="no position of the joint 'turret'"):
        JointChain(path, 'base', 'tip')(joint_state({'elbow': 0.0}))


def test_transforms_of_one_message_are_put_together() -> None:
    """/tf of an arm holds one transform a joint; the wrist's turn is their product."""
    one, other = Rotation.from_rotvec([0.0, 0.0, 0.4]), Rotation.from_rotvec([0.3, 0.0, 0.0])
    raw = msgs.tf_message(
        [
            msgs.Transform(5, 'base', 'upper', (0, 0, 0), one.as_quat()),
            msgs.Transform(5, 'upper', 'wrist', (0, 0, 0), other.as_quat()),
        ]
    )
    given = InputConfig(
        type='tf2_msgs/msg/TFMessage', member=False, frame_id='base', child_frame_id='wrist'
    )
    found = find_transform(given, raw)
    assert found is not None
    wanted = (one * other).inv() * Rotation.from_quat(found.rotation_xyzw)
    assert wanted.magnitude() < 1e-9
    assert found.stamp_ns == 5
    assert find_transform(given.model_copy(update={'frame_id': 'map'}), raw) is None
