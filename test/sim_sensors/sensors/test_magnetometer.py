from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sensor_run import decode, feed, make_sensor, run

from rig_common.errors import RigError

FIELD_T = [0.0, 2.1e-5, -4.3e-5]
TURNTABLE = """
<mujoco>
  <worldbody>
    <body name="table">
      <joint name="spin" axis="0 0 1"/>
      <geom type="cylinder" size="0.5 0.02"/>
    </body>
  </worldbody>
  <keyframe><key name="spinning" qvel="3.0"/></keyframe>
</mujoco>
"""


def test_field_turns_against_the_mount(tmp_path: Path) -> None:
    rpy = [0.2, -0.3, 0.5]
    keys = {'type': 'magnetometer', 'mount': {'body': 'table', 'rpy_rad': rpy}, 'field_t': FIELD_T}
    done = run(tmp_path, TURNTABLE, {'mag': keys}, 1.0, keyframe='spinning')
    turn = Rotation.from_euler('z', 3.0 * done.times_s('mag')[:, None])
    expected = (turn * Rotation.from_euler('xyz', rpy)).inv().apply(FIELD_T)
    np.testing.assert_allclose(done.values('mag', 'magnetic_field'), expected, atol=1e-14)
    message = decode('sensor_msgs/msg/MagneticField', done.messages('mag')[-1]['mag'])
    assert message.magnetic_field.x == done.values('mag', 'magnetic_field')[-1, 0]
    assert message.header.frame_id == 'mag'


def test_without_a_field_the_model_s_own_counts_as_gauss(tmp_path: Path) -> None:
    model = TURNTABLE.replace('<worldbody>', '<option magnetic="0.1 0.2 -0.4"/><worldbody>')
    done = run(tmp_path, model, {'mag': {'type': 'magnetometer'}}, 0.1)
    np.testing.assert_allclose(done.values('mag', 'magnetic_field')[0], [1e-5, 2e-5, -4e-5])


def test_iron_turns_the_sphere_into_a_shifted_ellipsoid() -> None:
    soft = [1.1, 0.02, 0.0, 0.02, 0.9, -0.03, 0.0, -0.03, 1.05]
    hard = [1e-5, -2e-5, 5e-6]
    sensor = make_sensor(
        'mag', type='magnetometer', rate_hz=50.0, soft_iron=soft, hard_iron_t=hard
    )
    sphere = 5e-5 * Rotation.random(200, random_state=1).apply([1.0, 0.0, 0.0])
    values = feed(sensor, sphere, period_s=0.02)[:, 0]
    recovered = (values - hard) @ np.linalg.inv(np.reshape(soft, (3, 3))).T
    np.testing.assert_allclose(np.linalg.norm(recovered, axis=1), 5e-5, rtol=1e-9)
    assert np.ptp(np.linalg.norm(values, axis=1)) > 1e-5


def test_noise_and_range() -> None:
    sensor = make_sensor('mag', type='magnetometer', noise=3e-7, range_t=4.9e-5, rate_hz=50.0)
    values = feed(sensor, np.tile([1e-5, 6e-5, -6e-5], (2000, 1)), period_s=0.02)[:, 0]
    assert values[:, 0].std() == pytest.approx(3e-7, rel=0.08)
    np.testing.assert_array_equal(values[:, 1:], [[4.9e-5, -4.9e-5]] * 2000)
    assert sensor.bounds() == (-4.9e-5, 4.9e-5)


def test_two_fields_are_refused(tmp_path: Path) -> None:
    one = {'type': 'magnetometer', 'field_t': FIELD_T}
    with pytest.raises(RigError, match='another magnetometer has set'):
        run(tmp_path, TURNTABLE, {'a': {**one, 'field_t': [1e-5, 0.0, 0.0]}, 'b': one}, 0.1)
