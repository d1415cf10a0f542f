"""The members of the last bundle side by side."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

from rig_common import msgs
from sensor_rig.drawing.scan_points import SCAN, Mount
from sensor_rig.page.synced_set import IMAGE, IMU, SyncedSet, View

AHEAD = np.eye(3)
TURNED = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
"""A mount that looks to the left of its carrier."""


def mount(x: float, y: float, z: float, rotation: np.ndarray = AHEAD) -> Mount:
    return Mount(rotation, np.array([x, y, z]), False)


def picture(stamp_ns: int) -> bytes:
    pixels = np.zeros((120, 160, 3), np.uint8)
    return bytes(msgs.image('c', 120, 160, 'rgb8').fill(stamp_ns, data=pixels))


def scan(stamp_ns: int) -> bytes:
    template = msgs.laser_scan(
        'l',
        3,
        angle_min_rad=-1.0,
        angle_max_rad=1.0,
        angle_increment_rad=1.0,
        range_min_m=0.1,
        range_max_m=9.0,
        time_increment_s=0.0,
        scan_time_s=0.1,
    )
    return bytes(template.fill(stamp_ns, ranges=[2.0, 4.0, np.inf]))


def imu(stamp_ns: int, rate: float) -> bytes:
    return bytes(msgs.imu('i').fill(stamp_ns, angular_velocity=[0.0, 0.0, rate]))


def words(drawing: str) -> list[str]:
    return [unescape(each) for each in re.findall(r'<text[^>]*>([^<]*)</text>', drawing)]


def test_a_point_is_seen_where_a_pinhole_sees_it() -> None:
    """Camera 0.2 m before and 0.1 m below the LiDAR, both straight ahead."""
    view = View(mount(0.2, 0.0, 0.3), mount(0.0, 0.0, 0.4), 100.0, (160, 120))
    points = np.array([[2.2, 0.0, 0.0], [2.2, 0.5, 0.0], [-3.0, 0.0, 0.0], [2.2, 9.0, 0.0]])
    np.testing.assert_allclose(view.pixels(points), [[80.0, 55.0, 2.0], [55.0, 55.0, 2.0]])


def test_the_mounts_may_look_elsewhere() -> None:
    """Both look to the left: what is ahead of the LiDAR is in the middle of the picture."""
    both = mount(0.0, 0.0, 0.4, TURNED)
    view = View(both, both, 100.0, (160, 120))
    np.testing.assert_allclose(view.pixels(np.array([[5.0, 0.0, 0.0]])), [[80.0, 60.0, 5.0]])


def test_members_of_one_bundle_are_drawn_together() -> None:
    shown = SyncedSet(View(mount(0, 0, 0), mount(0, 0, 0), 80.0, (160, 120)), is_synced=True)
    assert shown.drawing(None) == ''
    shown.take(IMAGE, picture(100))
    shown.take(SCAN, scan(90))
    assert shown.drawing(None) == '', 'they are of two bundles'
    shown.take(SCAN, scan(100))
    shown.take(IMAGE, picture(200))
    for index in range(5):
        shown.take(IMU, imu(80 + index, 0.5))
    drawing = shown.drawing(17.04)
    assert words(drawing) == [
        'truly taken within 17.0 ms',
        'from above, 8.48 m',
        'turn rate, +-33 degrees/s',
    ]
    assert drawing.count('<image') == 1
    assert drawing.count('<circle') == 3, 'one of two returns is ahead of the camera'


@pytest.mark.parametrize('kind', [IMAGE, SCAN])
def test_a_rig_may_have_one_of_them(kind: str) -> None:
    shown = SyncedSet(None, is_synced=False)
    shown.take(kind, picture(1) if kind == IMAGE else scan(1))
    assert words(shown.drawing(None))[0] == 'latest, not synced'
