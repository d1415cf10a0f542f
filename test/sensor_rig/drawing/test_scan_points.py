"""Scans and clouds in the world, against rays that are placed one by one."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rig_common import msgs
from rig_common.msgs.decode import MotionMessage
from sensor_rig.drawing.scan_points import CLOUD, SCAN, Mount, Placer, mount_of

S = 10**9
MODEL = """
<mujoco><worldbody>
  <site name="post" pos="1 2 3"/>
  <body name="base" pos="1 0 0"><freejoint/><geom size="0.1" mass="1"/>
    <body name="mast" pos="0 0 1" euler="0 0 90"><site name="lidar" pos="0.5 0 0"/></body>
    <body name="arm"><joint axis="0 0 1"/><geom size="0.1" mass="1"/><site name="hand"/></body>
  </body>
</worldbody></mujoco>"""


def pose(time_s: float) -> tuple[np.ndarray, Rotation]:
    """A body that drives along x and turns through a half circle, its quaternion flipping."""
    return np.array([0.8 * time_s, 0.0, 0.1]), Rotation.from_euler(
        'z', 170 + 120 * time_s, degrees=True
    )


def driven(mount: Mount) -> Placer:
    placer = Placer(mount)
    for time_s in np.arange(0.0, 0.4, 0.01):
        place, turn = pose(time_s)
        placer.add_pose(
            MotionMessage(
                round(time_s * S),
                tuple(place),
                tuple(turn.as_quat()),
                (0.0, 0.0, 0.0),
                (0.0, 0.0, 0.0),
            )
        )
    return placer


def test_each_ray_starts_where_the_sensor_was_when_it_fired() -> None:
    mount = Mount(
        Rotation.from_euler('x', 90, degrees=True).as_matrix(), np.array([0.3, 0, 0.4]), False
    )
    template = msgs.laser_scan(
        'l',
        5,
        angle_min_rad=-1.0,
        angle_max_rad=1.0,
        angle_increment_rad=0.5,
        range_min_m=0.1,
        range_max_m=9.0,
        time_increment_s=0.02,
        scan_time_s=0.1,
        intensities=True,
    )
    ranges = [1.0, 2.0, np.inf, 3.0, 4.0]
    placed = driven(mount).place(
        SCAN, template.fill(0, ranges=ranges, intensities=[1, 2, 0, 4, 2]), round(0.1 * S)
    )
    assert placed is not None
    expected = []
    for ray, reach in enumerate(ranges):
        if np.isfinite(reach):
            angle = -1.0 + 0.5 * ray
            local = reach * np.array([np.cos(angle), np.sin(angle), 0.0])
            place, turn = pose(0.1 + 0.02 * ray)
            expected.append(place + turn.apply(mount.rotation @ local + mount.offset_m))
    np.testing.assert_allclose(placed.points_m, expected, atol=2e-3)
    np.testing.assert_allclose(placed.time, [0.0, 0.25, 0.75, 1.0], atol=1e-6)
    np.testing.assert_allclose(placed.intensity, [0.25, 0.5, 1.0, 0.5])


def test_a_sweep_that_no_pose_covers_is_not_drawn() -> None:
    placer = driven(Mount(np.eye(3), np.zeros(3), False))
    scan = msgs.laser_scan(
        'l',
        2,
        angle_min_rad=0,
        angle_max_rad=1,
        angle_increment_rad=1,
        range_min_m=0.1,
        range_max_m=9.0,
        time_increment_s=0.1,
        scan_time_s=0.2,
    ).fill(0, ranges=[1.0, 1.0])
    assert placer.place(SCAN, scan, round(0.35 * S)) is None
    assert placer.place(SCAN, scan, -S) is None
    assert placer.place(SCAN, scan, round(0.1 * S)) is not None


def test_a_cloud_that_never_moves() -> None:
    points = np.zeros(3, [('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('time', '<f4')])
    points['x'] = [1.0, np.nan, 3.0]
    points['time'] = [0.0, 0.1, 0.2]
    placed = Placer(Mount(np.eye(3), np.array([0.0, 0.0, 1.0]), True)).place(
        CLOUD, msgs.point_cloud2_message(0, 'l', points), 0
    )
    assert placed is not None
    np.testing.assert_allclose(placed.points_m, [[1, 0, 1], [3, 0, 1]])
    np.testing.assert_allclose(placed.time, [0.0, 1.0])
    assert placed.intensity.tolist() == [0.5, 0.5], 'it measures none'


@pytest.mark.parametrize('turn', [0.0, 1.0])
def test_mounts_are_taken_through_welded_bodies(turn: float) -> None:
    model = mujoco.MjModel.from_xml_string(MODEL)
    data = mujoco.MjData(model)
    data.qpos[3:7] = [np.cos(turn / 2), 0.0, 0.0, np.sin(turn / 2)]
    mujoco.mj_forward(model, data)
    base = model.body('base').id
    lidar = mount_of(model, data, 'lidar', base)
    assert lidar is not None and not lidar.is_fixed
    np.testing.assert_allclose(lidar.offset_m, [0.0, 0.5, 1.0], atol=1e-12)
    np.testing.assert_allclose(lidar.rotation @ [1, 0, 0], [0, 1, 0], atol=1e-12)
    post = mount_of(model, data, 'post', base)
    assert post is not None and post.is_fixed and post.offset_m.tolist() == [1, 2, 3]
    assert mount_of(model, data, 'hand', base) is None, 'where an arm is, the odometry cannot say'
