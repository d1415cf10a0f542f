"""One entry for every sensor of the robot's own motion, and a model to mount them on."""

from __future__ import annotations

from typing import Any

PLATE = """
<mujoco>
  <worldbody>
    <body name="plate">
      <joint name="hinge" axis="0 0 1"/>
      <geom type="box" size="0.1 0.1 0.1"/>
    </body>
  </worldbody>
  <keyframe><key name="turning" qvel="2"/></keyframe>
</mujoco>
"""
ON_PLATE = {'body': 'plate', 'pos_m': [0.1, 0.0, 0.0]}
EACH: dict[str, dict[str, Any]] = {
    'imu': {'orientation': True, 'temperature': {'publish': True}},
    'magnetometer': {},
    'barometer': {'publish_temperature': True},
    'gnss': {},
    'joint_state': {'joints': ['hinge']},
    'wheel_odometry': {},
    'pose': {},
    'clock_pps': {},
    'wind': {},
}
