from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation
from support.sensor_run import decode, feed, make_sensor, run

TOP = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="puck">
      <freejoint/>
      <geom type="sphere" size="0.1"/>
      <site name="marker" pos="0.2 0 0" euler="0 0 90"/>
    </body>
  </worldbody>
  <keyframe><key name="moving" qpos="1 2 3 1 0 0 0" qvel="0.5 -0.2 0.1 0 0 0.8"/></keyframe>
</mujoco>
"""


def test_pose_and_twist_of_an_existing_site(tmp_path: Path) -> None:
    keys = {'type': 'pose', 'mount': {'site': 'marker'}, 'position_noise_m': 0.0}
    done = run(tmp_path, TOP, {'tracker': keys}, 1.0, keyframe='moving')
    time_s = done.times_s('tracker')
    body = Rotation.from_euler('z', 0.8 * time_s[:, None])
    marker = body * Rotation.from_euler('z', np.pi / 2)
    arm = body.apply([0.2, 0.0, 0.0])
    position = np.array([1.0, 2.0, 3.0]) + np.outer(time_s, [0.5, -0.2, 0.1]) + arm
    np.testing.assert_allclose(done.values('tracker', 'position'), position, atol=1e-9)
    difference = marker.inv() * Rotation.from_quat(done.values('tracker', 'orientation'))
    assert difference.magnitude().max() < 1e-9
    velocity = np.array([0.5, -0.2, 0.1]) + np.cross([0.0, 0.0, 0.8], arm)
    np.testing.assert_allclose(
        done.values('tracker', 'linear'), marker.inv().apply(velocity), atol=1e-9
    )
    np.testing.assert_allclose(
        done.values('tracker', 'angular'), [[0.0, 0.0, 0.8]] * len(time_s), atol=1e-9
    )
    message = decode('nav_msgs/msg/Odometry', done.messages('tracker')[0]['odom'])
    assert (message.header.frame_id, message.child_frame_id) == ('map', 'tracker')


def test_noise_of_a_tracker_is_in_its_covariance() -> None:
    keys = {
        'position_noise_m': 0.002,
        'orientation_noise_rad': 0.01,
        'linear_noise_m_s': 0.05,
        'angular_noise_rad_s': 0.1,
    }
    sensor = make_sensor('tracker', type='pose', rate_hz=100.0, **keys)
    row = sensor.truth_layout.pack(orientation=[0.0, 0.0, 0.0, 1.0])
    values = feed(sensor, np.tile(row, (2000, 1)), period_s=0.01)[:, 0]
    turned = Rotation.from_quat(values[:, 3:7]).as_rotvec()
    spread = np.concatenate([values[:, :3], turned, values[:, 7:]], axis=1).std(axis=0)
    np.testing.assert_allclose(spread, np.repeat(list(keys.values()), 3), rtol=0.08)
