"""Sites that are turned: their rotation reaches the sync inputs, or stays undeclared."""

from __future__ import annotations

from pathlib import Path

import pytest

from sensor_rig.rigfile.rig_config import load_rig

HALF = 0.7071067811865476
RIG = """/**:
  ros__parameters:
    world: {model: robot.xml}
    sensors:
      imu: {type: imu, mount: {site: imu}}
      lidar: {type: lidar2d, mount: {site: top}}
    sync:
      reference_sensor_id: lidar
      imu_sensor_id: imu
      required_sensors: [lidar]
"""
MODEL = """<mujoco><worldbody><body name="base"><freejoint/><geom size="0.1"/>
<site name="imu" quat="0.7071067811865476 0 0 0.7071067811865476"/><site name="top" %s/>
</body></worldbody></mujoco>"""


@pytest.mark.parametrize(
    ('site', 'expected'),
    [
        ('pos="0 0 1"', (HALF, 0.0, 0.0, -HALF)),
        ('quat="0 0 0 2"', (HALF, 0.0, 0.0, HALF)),
        ('euler="0 0 1.57"', (0.0, 0.0, 0.0, 0.0)),  # only the compiler knows its angles
    ],
)
def test_a_turned_site_is_declared_or_left_to_motion(
    tmp_path: Path, site: str, expected: tuple[float, ...]
) -> None:
    (tmp_path / 'robot.xml').write_text(MODEL % site)
    (tmp_path / 'rig.yaml').write_text(RIG)
    sync = load_rig(tmp_path / 'rig.yaml').sync
    assert sync is not None
    assert sync.inputs['lidar'].imu_quat_wxyz == pytest.approx(expected)
