"""Every velocity belongs to the instant of its pose: finite differences of poses say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from sim_sensors.attached import AttachedRig
from sim_sensors.interface.config import SensorConfig
from sim_sensors.registry import sensor_class
from sim_sensors.rig import Rig
from sim_sensors.world.config.world import WorldConfig

DT_S = 0.002
BODY = """
<mujoco><option timestep="0.002" integrator="{integrator}"/>
  <worldbody>
    <geom type="plane" size="9 9 1"/>
    <body name="trunk" pos="0 0 {height}" euler="20 -15 40"><freejoint/>
      <geom type="box" size=".2 .1 .05" mass="2"/>
      <body pos=".2 .1 0"><joint name="hip" axis="0 1 .2" damping="{damping}"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .1 0 -.2" mass=".3"/>
        <body name="shin" pos=".1 0 -.2"><joint name="knee" axis="0 1 0" armature=".001"/>
          <geom type="capsule" size=".02" fromto="0 0 0 -.1 0 -.2" mass=".2"/>
          <site name="tip" pos="-.1 .05 -.2" euler="10 20 30"/></body></body>
    </body>
  </worldbody>
  <actuator><position joint="hip" kp="20"/><motor joint="knee" gear="2"/></actuator>
  <keyframe><key qpos="0 0 {height} .9 .2 -.1 .3 .4 -.7" qvel="1 -2 0 3 -4 5 6 -8"/></keyframe>
</mujoco>
"""


def sensors() -> list[Any]:
    kinds: dict[str, dict[str, Any]] = {
        'imu': {'mount': {'site': 'tip'}},
        'pose': {'mount': {'site': 'tip'}},
        'gnss': {'mount': {'site': 'tip'}},
        'joint_state': {'joints': ('hip', 'knee')},
    }
    made = []
    for kind, keys in kinds.items():
        cls = sensor_class(kind)
        config: SensorConfig = cls.config_class(type=kind, rate_hz=0.0, **keys)
        made.append(cls(kind, config))
    return made


def turns(before: Any, after: Any) -> Any:
    """Return the angular velocity in the axes of `before` (xyzw) that leads to `after`, rad/s."""
    first, second = (np.roll(each, 1) for each in (before, after))
    found = np.zeros(3)
    mujoco.mju_subQuat(found, second, first)
    return found / (2 * DT_S)


def check(rows: dict[str, Any], at: int, tolerance: float) -> None:
    """Compare velocities of capture `at` with the poses on both sides of it."""
    pose, joints = rows['pose'], rows['joint_state']
    moved = (pose[at + 1, :3] - pose[at - 1, :3]) / (2 * DT_S)
    orientation = pose[at, 3:7]
    frame = np.zeros(9)
    mujoco.mju_quat2Mat(frame, np.roll(orientation, 1))
    frame = frame.reshape(3, 3)
    np.testing.assert_allclose(frame @ pose[at, 7:10], moved, atol=tolerance)
    np.testing.assert_allclose(rows['gnss'][at, 3:6], moved, atol=tolerance)
    halfway = 0.5 * (turns(orientation, pose[at + 1, 3:7]) - turns(orientation, pose[at - 1, 3:7]))
    np.testing.assert_allclose(pose[at, 10:13], 2.0 * halfway, atol=tolerance)
    np.testing.assert_allclose(rows['imu'][at, 3:6], 2.0 * halfway, atol=tolerance)
    turned = (joints[at + 1, :2] - joints[at - 1, :2]) / (2 * DT_S)
    np.testing.assert_allclose(joints[at, 2:4], turned, atol=1e-6)


def record(rig: Rig, steps: int) -> dict[str, Any]:
    rows: dict[str, list[Any]] = {name: [] for name in rig.sensors}
    for step in range(steps):
        rig.command({'hip': 0.5 * np.sin(step), 'knee': 1.0 if step % 7 else -1.0})
        rig.step()
        for name, found in rows.items():
            found.append(rig.read_ground_truth(name).values[-1].copy())
    return {name: np.array(found) for name, found in rows.items()}


@pytest.mark.parametrize('integrator', ['Euler', 'implicitfast', 'implicit'])
@pytest.mark.parametrize(('height', 'damping'), [(5.0, 2.0), (0.25, 0.1)], ids=['falls', 'walks'])
@pytest.mark.parametrize('num_envs', [1, 2])
def test_velocities_are_differences_of_the_poses_around_them(
    tmp_path: Path, integrator: str, height: float, damping: float, num_envs: int
) -> None:
    file = tmp_path / 'robot.xml'
    file.write_text(BODY.format(integrator=integrator, height=height, damping=damping))
    config = WorldConfig(model=str(file), timestep_s=DT_S, keyframe=0, num_envs=num_envs)
    rows = record(Rig(config, sensors(), seed=1), 60)
    lag = np.abs(np.diff(rows['joint_state'][:, 2:4], axis=0)).max()
    assert lag > 1.0, 'the joints change their speed too little for half a step to matter'
    for at in range(5, 58, 4):
        check(rows, at, tolerance=0.02)


def test_an_attached_rig_says_the_same_as_a_rig_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / 'robot.xml'
    file.write_text(BODY.format(integrator='implicitfast', height=0.25, damping=0.1))
    model = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    world = WorldConfig(model='(attached)', timestep_s=DT_S)
    rig = AttachedRig(model, data, world, sensors(), seed=1)
    rows: dict[str, list[Any]] = {name: [] for name in rig.sensors}
    for _ in range(40):
        rig.observe()
        for name, found in rows.items():
            found.append(rig.read_ground_truth(name).values[0].copy())
        mujoco.mj_step(model, data)
    for at in range(5, 38, 4):
        check({name: np.array(found) for name, found in rows.items()}, at, tolerance=0.02)
