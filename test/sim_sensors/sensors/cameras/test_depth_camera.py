"""Depth and segmentation against rays, and stereo's errors against its geometry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from support.rendering import needs_renderer
from support.sensor_run import Run, decode, feed, make_sensor, run

from rig_common.msgs.decode import read_cloud
from sim_sensors.sensors.cameras.segmentation import BACKGROUND
from sim_sensors.timing.arrays.layout import Array

pytestmark = needs_renderer

WIDTH, HEIGHT = 120, 90
ROOM = """
<mujoco>
  <visual><map znear="0.01"/></visual>
  <statistic extent="5" center="0 0 0"/>
  <worldbody>
    <geom name="wall" type="box" size="0.1 2 1.2" pos="4.1 0 0"/>
    <geom name="box" type="box" size="0.2 0.3 0.3" pos="2.2 0.1 -0.1"/>
    <geom name="near" type="box" size="0.01 0.04 0.04" pos="0.3 -0.15 0.12"/>
    <geom name="tilted" type="box" size="0.3 0.3 0.01" pos="2.5 -0.8 0.3" euler="20 40 10"/>
  </worldbody>
</mujoco>
"""


def depth_camera(**keys: Any) -> dict[str, Any]:
    return {
        'type': 'depth_camera',
        'rate_hz': 10.0,
        'width': WIDTH,
        'height': HEIGHT,
        'fovy_deg': 70.0,
        'baseline_m': 0.0,
        **keys,
    }


def intrinsics(done: Run, name: str, topic: str) -> Array:
    message = decode('sensor_msgs/msg/CameraInfo', done.messages(name)[0][topic])
    return message.k.reshape(3, 3)


def cast(done: Run, k: Array) -> tuple[Array, Array]:
    """Return depth along the axis m and geom id of a ray through every pixel (world = mount)."""
    v, u = np.mgrid[:HEIGHT, :WIDTH]
    x, y = (u - k[0, 2]) / k[0, 0], (v - k[1, 2]) / k[1, 1]
    depth, geom = np.full((HEIGHT, WIDTH), np.inf), np.full((HEIGHT, WIDTH), -1)
    found = np.zeros(1, np.int32)
    for pixel in np.ndindex(HEIGHT, WIDTH):
        along = np.array([1.0, -x[pixel], -y[pixel]])
        distance = mujoco.mj_ray(
            done.world.model, done.world.data(0), np.zeros(3), along, None, 1, -1, found, None
        )
        if found[0] >= 0:
            depth[pixel], geom[pixel] = distance, found[0]
    return depth, geom


def inner(geom: Array) -> Array:
    """Return the pixels whose neighbours show the same geom: no doubt about edges there."""
    same = np.zeros(geom.shape, bool)
    middle = geom[1:-1, 1:-1]
    same[1:-1, 1:-1] = np.all(
        [
            middle == geom[1 + dv : HEIGHT - 1 + dv, 1 + du : WIDTH - 1 + du]
            for dv in (-1, 0, 1)
            for du in (-1, 0, 1)
        ],
        axis=0,
    )
    return same


def test_depth_and_ids_are_what_rays_say(tmp_path: Path) -> None:
    sensors = {
        'depth': depth_camera(min_range_m=0.5, max_range_m=3.9),
        'ids': {
            'type': 'segmentation',
            'rate_hz': 10.0,
            'width': WIDTH,
            'height': HEIGHT,
            'fovy_deg': 70.0,
        },
    }
    done = run(tmp_path, ROOM, sensors, 0.0)
    k = intrinsics(done, 'depth', 'depth/camera_info')
    np.testing.assert_array_equal(k, intrinsics(done, 'ids', 'segmentation/camera_info'))
    depth, geom = cast(done, k)
    sure = inner(geom)
    assert set(np.unique(geom[sure])) == {-1, 0, 1, 2, 3}
    seen = done.values('ids', 'data')[0]
    np.testing.assert_array_equal(seen[sure], np.where(geom < 0, BACKGROUND, geom)[sure])
    measured = done.values('depth', 'data')[0]
    expected = np.where(depth < 0.5, -np.inf, np.where(depth > 3.9, np.inf, depth))
    np.testing.assert_allclose(measured[sure], expected[sure], rtol=2e-4)
    assert {-np.inf, np.inf} <= set(measured[sure])


@pytest.mark.parametrize('depth_m', [1.0, 2.0, 4.0])
def test_stereo_noise_grows_with_the_square_of_the_depth(depth_m: float) -> None:
    sensor: Any = make_sensor(
        'd', **depth_camera(baseline_m=0.06, disparity_noise_px=0.05, edge_holes=False)
    )
    row = np.full(sensor.truth_layout.width, depth_m, np.float32)
    error = feed(sensor, row[None], period_s=0.1)[0, 0] - depth_m
    focal = HEIGHT / 2 / np.tan(np.radians(35.0))
    assert error.std() == pytest.approx(depth_m**2 * 0.05 / (focal * 0.06), rel=0.05)


def test_disparities_come_in_steps() -> None:
    sensor = make_sensor(
        'd',
        **depth_camera(
            baseline_m=0.06, disparity_noise_px=0.0, disparity_step_px=0.125, edge_holes=False
        ),
    )
    row = np.linspace(0.5, 6.0, WIDTH * HEIGHT).astype(np.float32)
    depth = feed(sensor, row[None], period_s=0.1)[0, 0]
    focal_baseline = HEIGHT / 2 / np.tan(np.radians(35.0)) * 0.06
    steps = focal_baseline / depth / 0.125
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-3)
    assert np.abs(focal_baseline / row - focal_baseline / depth).max() <= 0.0626


def test_holes_are_where_the_right_eye_cannot_see(tmp_path: Path) -> None:
    baseline = 0.4
    done = run(
        tmp_path, ROOM, {'d': depth_camera(baseline_m=baseline, disparity_noise_px=0.0)}, 0.0
    )
    k = intrinsics(done, 'd', 'depth/camera_info')
    missing = np.isnan(done.values('d', 'data')[0])
    eye = np.array([0.0, -baseline, 0.0])
    found = np.zeros(1, np.int32)
    expected = np.zeros((HEIGHT, WIDTH), bool)
    depth, geom = cast(done, k)
    for v, u in np.ndindex(HEIGHT, WIDTH):
        far = min(depth[v, u], 1e6)  # the sky is a point too, far away
        point = far * np.array([1.0, -(u - k[0, 2]) / k[0, 0], -(v - k[1, 2]) / k[1, 1]])
        distance = mujoco.mj_ray(
            done.world.model, done.world.data(0), eye, point - eye, None, 1, -1, found, None
        )
        outside = u - k[0, 0] * baseline / far < -0.5
        expected[v, u] = outside or 0.0 <= distance < 0.995
    sure = inner(geom)
    assert expected[sure].sum() > 300
    assert (missing[sure] != expected[sure]).sum() < 0.15 * expected[sure].sum()
    # to the left of the box, and nowhere to its right
    row = 50
    box = np.flatnonzero(geom[row] == 1)
    assert missing[row, box[0] - 4 : box[0]].all()
    assert not missing[row, box[-1] + 2 : box[-1] + 6].any()


def test_points_lie_on_the_rays_of_their_pixels(tmp_path: Path) -> None:
    done = run(tmp_path, ROOM, {'d': depth_camera(points=True, max_range_m=3.9)}, 0.0)
    messages = done.messages('d')[0]
    k = intrinsics(done, 'd', 'depth/camera_info')
    cloud = decode('sensor_msgs/msg/PointCloud2', messages['depth/points'])
    assert (cloud.width, cloud.height, cloud.is_dense) == (WIDTH, HEIGHT, False)
    assert cloud.header.frame_id == 'd_optical'
    points = read_cloud(messages['depth/points']).points.reshape(HEIGHT, WIDTH)
    depth = done.values('d', 'data')[0]
    there = np.isfinite(depth)
    assert 0 < there.sum() < there.size
    assert np.isnan(points['z'][~there]).all()
    np.testing.assert_array_equal(points['z'][there], depth[there])
    v, u = np.nonzero(there)
    pixel = k @ np.stack([points[axis][there].astype(float) for axis in 'xyz'])
    np.testing.assert_allclose(pixel[:2] / pixel[2], [u, v], atol=1e-3)


def test_ids_are_never_noisy(tmp_path: Path) -> None:
    keys = {'type': 'segmentation', 'rate_hz': 10.0, 'width': 32, 'height': 24, 'noise': 5.0}
    done = run(tmp_path, ROOM, {'ids': keys}, 0.0)
    np.testing.assert_array_equal(done.values('ids', 'data'), done.truth('ids', 'data'))
    message = decode('sensor_msgs/msg/Image', done.messages('ids')[0]['segmentation/image_raw'])
    assert (message.encoding, message.step) == ('mono16', 64)
