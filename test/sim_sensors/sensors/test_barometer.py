from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.sensor_run import decode, feed, make_sensor, run

from sim_sensors.sensors.common import atmosphere

LIFT = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="lift">
      <joint type="slide" axis="0 0 1"/>
      <geom type="box" size="0.1 0.1 0.1"/>
    </body>
  </worldbody>
  <keyframe><key name="rising" qpos="100" qvel="20"/></keyframe>
</mujoco>
"""


@pytest.mark.parametrize(
    ('height_m', 'pressure_pa'),
    [(0.0, 101_325.0), (1000.0, 89_874.6), (5000.0, 54_019.9), (11_000.0, 22_632.0)],
)
def test_geopotential_heights_of_the_standard_s_table(height_m: float, pressure_pa: float) -> None:
    radius = atmosphere.EARTH_RADIUS_M
    altitude_m = radius * height_m / (radius - height_m)
    assert atmosphere.pressure_pa(altitude_m) == pytest.approx(pressure_pa, rel=2e-6)


def test_pressure_carries_the_air_above_it() -> None:
    """Integrate the hydrostatic equation with gravity that falls with altitude."""

    def slope(altitude_m: float, pressure: float) -> float:
        gravity = 9.80665 * (6_356_766.0 / (6_356_766.0 + altitude_m)) ** 2
        height = 6_356_766.0 * altitude_m / (6_356_766.0 + altitude_m)
        return -pressure * gravity / (287.05287 * (293.15 - 0.0065 * height))

    altitudes = np.linspace(0.0, 8000.0, 9)
    solved = solve_ivp(slope, (0.0, 8000.0), [99_000.0], t_eval=altitudes, rtol=1e-10, atol=1e-6)
    np.testing.assert_allclose(
        atmosphere.pressure_pa(altitudes, 99_000.0, 293.15), solved.y[0], rtol=1e-7
    )


def test_a_rising_body(tmp_path: Path) -> None:
    mount = {'body': 'lift', 'pos_m': [0.0, 0.0, 5.0]}
    keys = {
        'type': 'barometer',
        'mount': mount,
        'altitude_m': 500.0,
        'noise': 2.0,
        'publish_temperature': True,
    }
    done = run(tmp_path, LIFT, {'baro': keys}, 2.0, keyframe='rising')
    altitude = 605.0 + 20.0 * done.times_s('baro')
    np.testing.assert_allclose(
        done.truth('baro', 'fluid_pressure'), atmosphere.pressure_pa(altitude), rtol=1e-9
    )
    last = done.messages('baro')[-1]
    pressure = decode('sensor_msgs/msg/FluidPressure', last['pressure'])
    assert pressure.fluid_pressure == done.values('baro', 'fluid_pressure')[-1]
    assert pressure.variance == 4.0
    warm = decode('sensor_msgs/msg/Temperature', last['temperature'])
    height_m = atmosphere.geopotential_m(altitude[-1])  # 15 degC at sea level, 6.5 K less per km
    assert warm.temperature == pytest.approx(15.0 - 6.5e-3 * height_m)


@pytest.mark.parametrize('rate_hz', [2.0, 10.0])
def test_drift_has_its_size_and_its_time_at_any_rate(rate_hz: float) -> None:
    sensor = make_sensor(
        'baro', type='barometer', rate_hz=rate_hz, drift_pa=30.0, drift_time_s=20.0
    )
    rows = np.full((round(20.0 * rate_hz) + 1, 1), 1e5)
    drift = feed(sensor, rows, period_s=1 / rate_hz, num_envs=2000)[:, :, 0] - 1e5
    assert drift.std() == pytest.approx(30.0, rel=0.05)
    after_20_s = np.mean(drift[0] * drift[-1]) / 30.0**2
    assert after_20_s == pytest.approx(np.exp(-1.0), abs=0.08)


def test_turn_on_bias_bandwidth_and_range() -> None:
    sensor = make_sensor('baro', type='barometer', rate_hz=0.0, turn_on_bias_pa=100.0)
    first = feed(sensor, np.full((1, 1), 1e5), period_s=0.01, num_envs=2000)[0, :, 0]
    assert first.std() == pytest.approx(100.0, rel=0.06)
    slow = make_sensor('baro', type='barometer', rate_hz=0.0, bandwidth_hz=1.0)
    step = np.array([[1e5]] + [[1.01e5]] * 100)
    reply = feed(slow, step, period_s=0.01)[:, 0, 0] - 1e5
    np.testing.assert_allclose(
        reply, 1000.0 * (1.0 - np.exp(-2 * np.pi * 0.01 * np.arange(101))), atol=1e-6
    )
    limited = make_sensor('baro', type='barometer', rate_hz=0.0, range_pa=[9e4, 1e5])
    np.testing.assert_array_equal(feed(limited, step, period_s=0.01)[:2, 0, 0], [1e5, 1e5])
    assert limited.bounds() == (9e4, 1e5)
