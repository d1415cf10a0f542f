"""Rangers against a loop over mj_ray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sensor_run import decode, feed, make_sensor, run

from sim_sensors.sensors.range_finder import cone

CORRIDOR = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 0.5" euler="0 0 30">
      <joint type="slide" axis="1 0 0"/>
      <geom name="bumper" type="box" size="0.05 0.2 0.2" pos="0.3 0 0"/>
    </body>
    <geom name="post" type="cylinder" size="0.05 1" pos="1.2 0.9 0"/>
    <geom name="wall" type="box" size="0.1 5 5" pos="3.1 0 0"/>
  </worldbody>
</mujoco>
"""
MOUNT = {'body': 'base', 'pos_m': [0.1, 0.0, 0.1], 'rpy_rad': [0.0, -0.05, 0.03]}


@pytest.mark.parametrize('fov_deg', [0.0, 15.0, 60.0])
def test_the_nearest_surface_in_the_cone(tmp_path: Path, fov_deg: float) -> None:
    keys = {'type': 'range', 'mount': MOUNT, 'fov_deg': fov_deg, 'num_rays': 200, 'noise': 0.0}
    done = run(tmp_path, CORRIDOR, {'sonar': keys}, 0.0)
    turn = Rotation.from_euler('z', 30, degrees=True) * Rotation.from_euler(
        'xyz', MOUNT['rpy_rad']
    )
    eye = Rotation.from_euler('z', 30, degrees=True).apply(MOUNT['pos_m']) + np.array(
        [0.0, 0.0, 0.5]
    )
    found = np.zeros(1, np.int32)
    half = np.radians(fov_deg / 2)
    distances = []
    for polar in np.linspace(0.0, half, 60):  # a grid of our own, much denser than the sensor's
        for around in np.linspace(0.0, 2 * np.pi, 120, endpoint=False):
            along = turn.apply(
                [np.cos(polar), np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around)]
            )
            distance = mujoco.mj_ray(
                done.world.model,
                done.world.data(0),
                eye,
                along,
                None,
                1,
                done.world.model.body('base').id,
                found,
                None,
            )
            distances.append(distance if found[0] >= 0 else np.inf)
    assert done.values('sonar', 'range')[0] == pytest.approx(min(distances), rel=0.02)


def test_wide_cones_see_what_narrow_ones_miss(tmp_path: Path) -> None:
    keys = {'type': 'range', 'mount': {**MOUNT, 'rpy_rad': [0.0, 0.0, -0.2]}, 'noise': 0.0}
    done = run(
        tmp_path,
        CORRIDOR,
        {'narrow': {**keys, 'fov_deg': 5.0}, 'wide': {**keys, 'fov_deg': 60.0, 'num_rays': 200}},
        0.0,
    )
    narrow, wide = (done.values(name, 'range')[0] for name in ('narrow', 'wide'))
    assert wide < 1.5 < narrow


def test_the_cone_is_full_and_even() -> None:
    rays = cone(1000, np.radians(40.0))
    np.testing.assert_allclose(np.linalg.norm(rays, axis=1), 1.0)
    np.testing.assert_array_equal(rays[0], [1.0, 0.0, 0.0])
    assert np.degrees(np.arccos(rays[:, 0].min())) == pytest.approx(20.0)
    cap = 1.0 - rays[:, 0]  # height of the spherical cap grows evenly with its area
    np.testing.assert_allclose(np.sort(cap), np.linspace(0.0, cap.max(), 1000), atol=1e-9)
    np.testing.assert_allclose(rays.mean(axis=0)[1:], 0.0, atol=0.005)


def test_rep_117_at_both_ends() -> None:
    keys: dict[str, Any] = {'type': 'range', 'min_range_m': 0.2, 'max_range_m': 2.0, 'noise': 0.0}
    rows = np.array([[0.1], [0.2], [1.0], [2.0], [2.1], [np.inf]], np.float32)
    values = feed(make_sensor('s', **keys), rows, period_s=0.05)[:, 0, 0]
    np.testing.assert_allclose(values, [-np.inf, 0.2, 1.0, 2.0, np.inf, np.inf], rtol=1e-6)


def test_its_own_body_is_invisible_unless_asked_for(tmp_path: Path) -> None:
    keys = {'type': 'range', 'mount': MOUNT, 'fov_deg': 0.0, 'noise': 0.0}
    blocked = {**keys, 'exclude_own_body': False}
    done = run(tmp_path, CORRIDOR, {'through': keys, 'blocked': blocked}, 0.0)
    assert done.values('blocked', 'range')[0] == pytest.approx(0.15, abs=0.01)
    assert done.values('through', 'range')[0] > 2.0


def test_the_message_says_what_the_sensor_is(tmp_path: Path) -> None:
    keys = {
        'type': 'range',
        'mount': MOUNT,
        'radiation': 'infrared',
        'fov_deg': 10.0,
        'min_range_m': 0.1,
        'max_range_m': 5.0,
        'noise': 0.02,
    }
    done = run(tmp_path, CORRIDOR, {'ir': keys}, 0.5)
    message = decode('sensor_msgs/msg/Range', done.messages('ir')[0]['range'])
    assert (message.radiation_type, message.header.frame_id) == (1, 'ir')
    assert message.field_of_view == pytest.approx(np.radians(10.0))
    assert (message.min_range, message.max_range) == pytest.approx((0.1, 5.0))
    assert message.variance == pytest.approx(0.02**2)
