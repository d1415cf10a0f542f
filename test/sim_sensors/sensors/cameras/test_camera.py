"""Cameras against projections, shutters and noise worked out by hand."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation
from support.rendering import needs_renderer
from support.sensor_run import decode, feed, make_sensor, run

from rig_common.errors import RigError
from sim_sensors.interface.sensor import frame_pose
from sim_sensors.sensors.cameras.optics import distort, undistort
from sim_sensors.timing.arrays.layout import Array

pytestmark = needs_renderer

RED, GREEN, BLUE = np.eye(3)
MARKS = {
    'red': ([2.5, 1.3, 0.6], RED),
    'green': ([3.0, -1.3, 1.9], GREEN),
    'blue': ([2.0, -0.7, 0.3], BLUE),
}
MOUNT = {'body': 'head', 'pos_m': [0.2, 0.1, 0.3], 'rpy_rad': [0.1, 0.05, -0.1]}
HEAD_RPY = [0.05, -0.1, 0.08]
LIT = '<visual><headlight ambient="1 1 1" diffuse="0 0 0" specular="0 0 0"/></visual>'
SCENE = f"""
<mujoco>
  {LIT}
  <compiler angle="radian" eulerseq="xyz"/>
  <worldbody>
    <body name="head" pos="0 0 0.7" euler="{' '.join(map(str, HEAD_RPY))}"/>
    {
    ''.join(
        f'<geom type="sphere" size="0.08" pos="{x} {y} {z}" rgba="{r} {g} {b} 1"/>'
        for (x, y, z), (r, g, b) in MARKS.values()
    )
}
  </worldbody>
</mujoco>
"""
OPTICAL = Rotation.from_matrix([[0, 0, 1], [-1, 0, 0], [0, -1, 0]])
"""Columns are the optical axes in the mount's: x right = -y, y down = -z, z forward = x."""


def camera(**keys: Any) -> dict[str, Any]:
    return {
        'type': 'camera',
        'mount': MOUNT,
        'width': 240,
        'height': 180,
        'fovy_deg': 60.0,
        **keys,
    }


def picture(folder: Path, model: str = SCENE, **keys: Any) -> tuple[Array, Any]:
    """Return the first picture of a camera and its camera info."""
    done = run(folder, model, {'cam': camera(rate_hz=10.0, **keys)}, 0.0)
    return (
        done.values('cam', 'data')[0],
        decode('sensor_msgs/msg/CameraInfo', done.messages('cam')[0]['camera_info']),
    )


def directions() -> dict[str, Array]:
    """Return x/z and y/z of the marks in the optical frame, from the poses in the model."""
    head = Rotation.from_euler('XYZ', HEAD_RPY)
    eye = head.apply(MOUNT['pos_m']) + np.array([0.0, 0.0, 0.7])
    turn = head * Rotation.from_euler('xyz', MOUNT['rpy_rad']) * OPTICAL
    seen = {name: turn.inv().apply(np.subtract(place, eye)) for name, (place, _) in MARKS.items()}
    return {name: point[:2] / point[2] for name, point in seen.items()}


def centre_of(image: Array, colour: Array) -> Array:
    """Return the centroid (u, v) of the pixels in which only `colour` shines."""
    is_bright = image > 100
    rows, columns = np.nonzero((is_bright == (colour > 0)).all(axis=-1))
    assert len(rows) > 20
    return np.array([columns.mean(), rows.mean()])


def test_intrinsics_say_where_things_are(tmp_path: Path) -> None:
    image, info = picture(tmp_path)
    k = info.k.reshape(3, 3)
    assert info.header.frame_id == 'cam_optical'
    assert (info.width, info.height, info.distortion_model) == (240, 180, 'plumb_bob')
    np.testing.assert_array_equal(info.p.reshape(3, 4)[:, :3], k)
    for name, (x, y) in directions().items():
        expected = (k @ [x, y, 1.0])[:2]
        np.testing.assert_allclose(centre_of(image, MARKS[name][1]), expected, atol=0.2)


def test_distortion_is_what_camera_info_says(tmp_path: Path) -> None:
    lens = {'k1': -0.28, 'k2': 0.09, 'p1': 0.004, 'p2': -0.006, 'k3': -0.01}
    image, info = picture(tmp_path, distortion=lens)
    k, (k1, k2, p1, p2, k3) = info.k.reshape(3, 3), info.d
    assert [k1, k2, p1, p2, k3] == list(lens.values())
    for name, (x, y) in directions().items():
        r = np.hypot(x, y)
        radial = 1.0 + k1 * r**2 + k2 * r**4 + k3 * r**6
        bent = [
            x * radial + 2 * p1 * x * y + p2 * (r**2 + 2 * x**2),
            y * radial + p1 * (r**2 + 2 * y**2) + 2 * p2 * x * y,
        ]
        expected = (k @ [*bent, 1.0])[:2]
        straight = (k @ [x, y, 1.0])[:2]
        found = centre_of(image, MARKS[name][1])
        np.testing.assert_allclose(found, expected, atol=0.25)
        assert np.linalg.norm(expected - straight) > 1.0, 'this mark would not notice the lens'


def test_a_fisheye_is_what_camera_info_says(tmp_path: Path) -> None:
    """OpenCV's fisheye model finds the marks."""
    cv2 = pytest.importorskip('cv2')
    keys = {'k1': 0.05, 'k2': -0.02, 'k3': 0.004, 'k4': -0.001}
    image, info = picture(tmp_path, lens='equidistant', fovy_deg=90.0, distortion=keys)
    assert info.distortion_model == 'equidistant'
    assert list(info.d) == list(keys.values())
    k = info.k.reshape(3, 3)
    for name, (x, y) in directions().items():
        point = np.array([[[x, y, 1.0]]])
        seen, _ = cv2.fisheye.projectPoints(point, np.zeros(3), np.zeros(3), k, np.array(info.d))
        np.testing.assert_allclose(centre_of(image, MARKS[name][1]), seen.ravel(), atol=0.35)
    edge = np.array([[[0.0, np.tan(np.radians(45.0)), 1.0]]])
    seen, _ = cv2.fisheye.projectPoints(edge, np.zeros(3), np.zeros(3), k, np.array(info.d))
    assert seen.ravel()[1] - k[1, 2] == pytest.approx(90.0)  # half the height


def test_a_fisheye_has_limits() -> None:
    with pytest.raises(RigError, match='off its axis'):
        make_sensor('cam', **camera(lens='equidistant', fovy_deg=140.0))
    with pytest.raises(ValueError, match=r'distortion.p1 is 0.1, which the lens equidistant'):
        make_sensor('cam', **camera(lens='equidistant', distortion={'p1': 0.1}))


def test_undistortion_is_the_inverse() -> None:
    x, y = np.meshgrid(np.linspace(-0.8, 0.8, 9), np.linspace(-0.6, 0.6, 7))
    d = np.array([-0.28, 0.09, 0.004, -0.006, -0.01])
    np.testing.assert_allclose(distort(*undistort(x, y, d), d), [x, y], atol=1e-9)


def test_a_lens_that_folds_is_refused() -> None:
    with pytest.raises(RigError, match='folds the picture'):
        make_sensor('cam', **camera(distortion={'k1': -1.5}))


def test_a_lens_without_bending_changes_nothing(tmp_path: Path) -> None:
    straight, _ = picture(tmp_path)
    bent, _ = picture(tmp_path, distortion={'k1': 1e-9})
    difference = np.abs(straight.astype(int) - bent)
    assert (difference > 2).mean() < 1e-3


# ---- shutter ------------------------------------------------------------------------------------

SPEED_M_S, DISTANCE_M = 2.0, 3.0
SLIDING = f"""
<mujoco>
  {LIT}
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="bar" pos="{DISTANCE_M} 0.3 0">
      <joint type="slide" axis="0 -1 0"/>
      <geom type="box" size="0.001 0.1 5" rgba="1 1 1 1"/>
    </body>
  </worldbody>
  <keyframe><key name="moving" qvel="{SPEED_M_S}"/></keyframe>
</mujoco>
"""


def bar_of(image: Array) -> Array:
    """Return the middle of the bar in every row, pixels."""
    bright = image[..., 0] > 100
    columns = np.arange(image.shape[1])
    return (bright * columns).sum(axis=1) / bright.sum(axis=1)


@pytest.mark.parametrize(('readout_s', 'lens'), [(0.0, {}), (0.06, {}), (0.06, {'k1': 1e-9})])
def test_a_rolling_shutter_shears_what_moves(
    tmp_path: Path, readout_s: float, lens: dict[str, float]
) -> None:
    keys = camera(mount={}, rate_hz=10.0, readout_s=readout_s, readout_bands=30, distortion=lens)
    done = run(tmp_path, SLIDING, {'cam': keys}, 0.19, keyframe='moving')
    first, second = done.values('cam', 'data')
    focal = decode('sensor_msgs/msg/CameraInfo', done.messages('cam')[0]['camera_info']).k[0]
    speed_px_s = focal * SPEED_M_S / DISTANCE_M
    rows = np.arange(180)
    slope = np.polyfit(rows, bar_of(first), 1)[0] * 180
    assert slope == pytest.approx(speed_px_s * readout_s, abs=0.5)
    np.testing.assert_allclose(bar_of(second) - bar_of(first), speed_px_s * 0.1, atol=1.0)
    # stamped at the first row, which shows the bar where it is then
    assert [each.capture_ns for each in done.samples['cam']] == [0, 100_000_000]
    start = focal * -0.3 / DISTANCE_M + 119.5
    assert bar_of(first)[0] == pytest.approx(start, abs=1.5)


def test_bands_are_drawn_at_the_physics_step_nearest_to_their_middle(tmp_path: Path) -> None:
    done = run(tmp_path, SLIDING, {'cam': camera(mount={}, rate_hz=10.0, readout_s=0.03)}, 0.0)
    reader = done.sensors['cam'].reader(done.world)
    middles_ms = 30.0 * (np.arange(16) + 0.5) / 16
    parts_ms = np.array(reader.parts_ns) / 1e6
    np.testing.assert_array_equal(parts_ms, np.round(parts_ms))
    assert np.abs(parts_ms - middles_ms).max() <= 0.6, 'rows are whole, so are steps'
    fast = make_sensor('cam', **camera(mount={}, readout_s=0.002)).reader(done.world)
    assert len(fast.parts_ns) == 3, 'a step is drawn once, however many bands meet on it'
    rows = np.concatenate([np.arange(180)[band] for band in fast._bands])
    np.testing.assert_array_equal(rows, np.arange(180))


def test_pictures_arrive_after_exposure_and_readout(tmp_path: Path) -> None:
    keys = camera(
        rate_hz=10.0,
        exposure_s=0.01,
        readout_s=0.02,
        delay_range_s=[0.03, 0.03],
        width=16,
        height=12,
    )
    done = run(tmp_path, SCENE, {'cam': keys}, 0.2)
    assert len(done.samples['cam']) == 2
    for sample in done.samples['cam']:
        assert sample.arrival_ns - sample.capture_ns == 5_000_000 + 20_000_000 + 30_000_000


# ---- the image sensor ---------------------------------------------------------------------------


@pytest.mark.parametrize('value', [40, 200])
def test_photon_noise_grows_with_the_light_and_read_noise_does_not(value: int) -> None:
    shot, read = 12.0, 3.0
    sensor = make_sensor('cam', **camera(rate_hz=10.0, shot_noise=shot, read_noise=read))
    row = np.full(sensor.truth_layout.width, value, np.uint8)
    values = feed(sensor, row[None], period_s=0.1)[0, 0]
    expected = shot**2 * value / 255.0 + read**2 + 1.0 / 12.0
    assert values.mean() == pytest.approx(value, abs=0.2)
    assert values.var() == pytest.approx(expected, rel=0.03)


def test_corners_lose_the_light_of_the_vignetting() -> None:
    sensor = make_sensor('cam', **camera(rate_hz=10.0, vignetting=0.4))
    row = np.full(sensor.truth_layout.width, 200, np.uint8)
    image = feed(sensor, row[None], period_s=0.1)[0, 0].reshape(180, 240, 3)
    assert (image[[0, 0, -1, -1], [0, -1, 0, -1]] == 120).all()
    assert (image[89:91, 119:121] == 200).all()
    half_way = image[90, 0, 0]  # (119.5 / |corner|)^2 of the loss
    assert half_way == pytest.approx(200 * (1 - 0.4 * 119.5**2 / (119.5**2 + 89.5**2)), abs=1.0)


def test_grey_is_the_weighted_sum_of_the_colours(tmp_path: Path) -> None:
    colour, _ = picture(tmp_path)
    grey, _ = picture(tmp_path, encoding='mono8')
    assert grey.shape == (180, 240)
    expected = colour @ np.array([0.299, 0.587, 0.114])
    np.testing.assert_allclose(grey, expected, atol=0.51)
    assert len(np.unique(grey)) > 3


@pytest.mark.parametrize('encoding', ['rgb8', 'mono8'])
def test_compressed_pictures_decode_to_the_raw_ones(tmp_path: Path, encoding: str) -> None:
    keys = camera(rate_hz=10.0, encoding=encoding, compressed=True)
    done = run(tmp_path, SCENE, {'cam': keys}, 0.0)
    message = decode(
        'sensor_msgs/msg/CompressedImage', done.messages('cam')[0]['image_raw/compressed']
    )
    assert message.format.startswith(f'{encoding}; jpeg')
    unpacked = np.asarray(Image.open(io.BytesIO(message.data.tobytes())))
    raw = done.values('cam', 'data')[0]
    assert unpacked.shape == raw.shape
    assert np.abs(unpacked.astype(int) - raw).mean() < 3.0


def test_cameras_do_not_see_the_sites_of_other_sensors(tmp_path: Path) -> None:
    alone, _ = picture(tmp_path)
    in_view = {'type': 'pose', 'mount': {'body': 'head', 'pos_m': [0.4, 0.1, 0.3]}}
    done = run(tmp_path, SCENE, {'cam': camera(rate_hz=10.0), 'tracker': in_view}, 0.0)
    np.testing.assert_array_equal(done.values('cam', 'data')[0], alone)


def test_the_frame_of_the_messages_is_the_optical_one(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        SCENE,
        {'cam': camera(rate_hz=10.0), 'tracker': {'type': 'pose', 'mount': MOUNT}},
        0.0,
    )
    head = done.world.model.body('head').id
    turned = Rotation.from_euler('xyz', MOUNT['rpy_rad'])
    for name, expected in (('cam', turned * OPTICAL), ('tracker', turned)):
        pose = frame_pose(done.world.model, done.sensors[name])
        assert pose is not None
        assert pose.body == head
        assert pose.pos_m == MOUNT['pos_m']
        found = Rotation.from_quat(np.roll(pose.quat_wxyz, -1))
        assert (expected.inv() * found).magnitude() < 1e-9
