from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from pyproj import Geod
from support.sensor_run import decode, feed, make_sensor, run

from rig_common.errors import UnavailableError
from sim_sensors.timing.arrays.layout import Array

SEMI_MAJOR_M, FLATTENING = 6_378_137.0, 1.0 / 298.257223563
DATUM = {'latitude_deg': 47.3769, 'longitude_deg': 8.5417, 'altitude_m': 455.0}
GLIDER = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="glider">
      <freejoint/>
      <geom type="box" size="0.5 0.5 0.1"/>
    </body>
  </worldbody>
  <keyframe><key name="gliding" qpos="100 -50 10 1 0 0 0" qvel="30 40 -2 0 0 0.5"/></keyframe>
</mujoco>
"""


def ecef(latitude_deg: Array, longitude_deg: Array, altitude_m: Array) -> Array:
    """Return Earth-centred coordinates [..., 3] m: the textbook formula, no library."""
    lat, lon = np.radians(latitude_deg), np.radians(longitude_deg)
    squared = FLATTENING * (2.0 - FLATTENING)
    normal = SEMI_MAJOR_M / np.sqrt(1.0 - squared * np.sin(lat) ** 2)
    return np.stack(
        [
            (normal + altitude_m) * np.cos(lat) * np.cos(lon),
            (normal + altitude_m) * np.cos(lat) * np.sin(lon),
            (normal * (1.0 - squared) + altitude_m) * np.sin(lat),
        ],
        axis=-1,
    )


def east_north_up(geodetic: Array) -> Array:
    """Return the offset [n, 3] m from the datum in its tangent plane."""
    lat, lon = np.radians([DATUM['latitude_deg'], DATUM['longitude_deg']])
    axes = np.array(
        [
            [-np.sin(lon), np.cos(lon), 0.0],
            [-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)],
            [np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)],
        ]
    )
    return (ecef(*geodetic.T) - ecef(*DATUM.values())) @ axes.T


def test_position_and_velocity_of_the_antenna(tmp_path: Path) -> None:
    mount = {'body': 'glider', 'pos_m': [0.0, 1.0, 0.0]}
    keys = {'type': 'gnss', 'mount': mount, 'datum': DATUM, 'rate_hz': 10.0}
    done = run(tmp_path, GLIDER, {'gnss': keys}, 2.0, keyframe='gliding')
    time_s = done.times_s('gnss')
    swing = np.stack([-np.sin(0.5 * time_s), np.cos(0.5 * time_s), 0.0 * time_s], axis=1)
    position = np.array([100.0, -50.0, 10.0]) + np.outer(time_s, [30.0, 40.0, -2.0]) + swing
    geodetic = done.values('gnss', 'position')
    np.testing.assert_allclose(east_north_up(geodetic), position, atol=1e-6)
    turning = np.stack([-swing[:, 1], swing[:, 0], 0.0 * time_s], axis=1)
    np.testing.assert_allclose(
        done.values('gnss', 'linear'), np.array([30.0, 40.0, -2.0]) + 0.5 * turning, atol=1e-6
    )
    _, _, distance = Geod(ellps='WGS84').inv(*geodetic[0, [1, 0]], *geodetic[-1, [1, 0]])
    assert distance == pytest.approx(np.linalg.norm((position[-1] - position[0])[:2]), rel=2e-4)


def test_datum_s_yaw_turns_the_world_against_east() -> None:
    sensor = make_sensor('gnss', type='gnss', rate_hz=5.0, datum={**DATUM, 'yaw_rad': np.pi / 2})
    row = feed(sensor, np.array([[100.0, 0.0, 0.0, 1.0, 0.0, 0.0]]), period_s=0.2)[0, 0]
    np.testing.assert_allclose(east_north_up(row[None, :3])[0], [0.0, 100.0, 0.0], atol=1e-3)
    np.testing.assert_allclose(row[3:6], [0.0, 1.0, 0.0], atol=1e-12)


def test_messages(tmp_path: Path) -> None:
    keys = {
        'type': 'gnss',
        'datum': DATUM,
        'solution': 'gbas',
        'horizontal_noise_m': 0.3,
        'vertical_noise_m': 0.5,
        'horizontal_drift_m': 0.4,
        'vertical_drift_m': 1.2,
    }
    done = run(tmp_path, GLIDER, {'gnss': keys}, 0.2)
    message = done.messages('gnss')[0]
    fix = decode('sensor_msgs/msg/NavSatFix', message['fix'])
    assert fix.status.status == 2
    assert fix.position_covariance_type == 2
    np.testing.assert_allclose(np.diag(fix.position_covariance.reshape(3, 3)), [0.25, 0.25, 1.69])
    assert [fix.latitude, fix.longitude, fix.altitude] == done.values('gnss', 'position')[
        0
    ].tolist()
    velocity = decode('geometry_msgs/msg/TwistStamped', message['vel'])
    assert velocity.header.stamp == fix.header.stamp
    assert velocity.header.frame_id == 'map'


def test_slow_error_wanders_with_its_own_time() -> None:
    sensor = make_sensor(
        'gnss',
        type='gnss',
        datum=DATUM,
        rate_hz=1.0,
        horizontal_drift_m=2.0,
        vertical_drift_m=4.0,
        drift_time_s=30.0,
    )
    values = feed(sensor, np.zeros((31, 6)), period_s=1.0, num_envs=1000)
    first, last = (east_north_up(values[k, :, :3]) for k in (0, 30))
    np.testing.assert_allclose(first.std(axis=0), [2.0, 2.0, 4.0], rtol=0.08)
    kept = (first * last).mean(axis=0) / np.array([4.0, 4.0, 16.0])
    np.testing.assert_allclose(kept, np.exp(-1.0), atol=0.12)


def test_white_errors_of_position_and_velocity() -> None:
    sensor = make_sensor(
        'gnss',
        type='gnss',
        datum=DATUM,
        rate_hz=5.0,
        horizontal_noise_m=0.02,
        vertical_noise_m=0.04,
        horizontal_speed_noise_m_s=0.05,
        vertical_speed_noise_m_s=0.1,
    )
    values = feed(sensor, np.zeros((2, 6)), period_s=0.2, num_envs=2000)
    offsets = np.stack([east_north_up(each[:, :3]) for each in values])
    np.testing.assert_allclose(offsets.std(axis=(0, 1)), [0.02, 0.02, 0.04], rtol=0.06)
    np.testing.assert_allclose(values[..., 3:6].std(axis=(0, 1)), [0.05, 0.05, 0.1], rtol=0.06)
    assert abs(np.corrcoef(offsets[0, :, 0], offsets[1, :, 0])[0, 1]) < 0.1


@pytest.mark.parametrize('rate_hz', [1.0, 4.0])
def test_fix_is_lost_and_comes_back(rate_hz: float) -> None:
    sensor = make_sensor(
        'gnss',
        type='gnss',
        datum=DATUM,
        rate_hz=rate_hz,
        outage={'mean_interval_s': 30.0, 'mean_duration_s': 10.0},
    )
    status = feed(sensor, np.zeros((round(400 * rate_hz), 6)), period_s=1 / rate_hz, num_envs=100)[
        ..., 6
    ]
    settled = status[round(100 * rate_hz) :]
    assert np.mean(settled == -1.0) == pytest.approx(0.25, abs=0.03)
    begins = np.sum((settled[1:] == -1.0) & (settled[:-1] != -1.0))
    assert np.sum(settled == -1.0) / begins / rate_hz == pytest.approx(10.0, rel=0.15)


def test_without_a_fix_there_is_no_position(tmp_path: Path) -> None:
    keys = {
        'type': 'gnss',
        'datum': DATUM,
        'rate_hz': 100.0,
        'outage': {'mean_interval_s': 0.05, 'mean_duration_s': 0.05},
    }
    done = run(tmp_path, GLIDER, {'gnss': keys}, 1.0)
    lost = done.values('gnss', 'status') == -1.0
    assert 0 < lost.sum() < len(lost)
    index = int(np.argmax(lost))
    fix = decode('sensor_msgs/msg/NavSatFix', done.messages('gnss')[index]['fix'])
    assert fix.status.status == -1
    assert fix.position_covariance_type == 0
    assert np.isnan(fix.latitude)
    assert not np.isnan(done.truth('gnss', 'position')).any()


def test_without_pyproj_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'pyproj', None)
    with pytest.raises(UnavailableError, match='pip install pyproj'):
        run(tmp_path, GLIDER, {'gnss': {'type': 'gnss'}}, 0.1)
