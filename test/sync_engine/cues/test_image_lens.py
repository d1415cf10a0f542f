"""Lenses against OpenCV's models, and turns that are seen through them."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common.arrays import Floats
from sync_engine.cues.image import ImageCue
from sync_engine.cues.image_lens import CameraLens, Straightened
from sync_engine.cues.mounting import turned_by

cv2 = pytest.importorskip('cv2')

WIDTH, HEIGHT = 320, 240
FISHEYE = CameraLens(
    (152.8, 152.8), (165.0, 118.0), WIDTH, 'equidistant', (0.05, -0.01, 0.002, -1e-4)
)
BARREL = CameraLens(
    (190.0, 185.0), (150.0, 125.0), WIDTH, 'plumb_bob', (-0.28, 0.07, 1e-3, -2e-3, -5e-3)
)
RATIONAL = CameraLens((190.0, 185.0), (158.0, 119.0), WIDTH, 'rational_polynomial',
                (0.4, 0.1, 1e-3, 5e-4, 0.01, 0.7, 0.2, 0.03))  # fmt: skip
_RNG = np.random.default_rng(7)
WAVES = _RNG.normal(0.0, 9.0, (24, 3))
PHASES = _RNG.uniform(0.0, 2.0 * np.pi, 24)


def matrix(lens: CameraLens) -> Floats:
    """Return K [3, 3]."""
    fx, fy = lens.focal_px
    cx, cy = lens.centre_px
    return np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])


def opencv(lens: CameraLens, points: Floats) -> Floats:
    """Return where OpenCV sees points [n, 3], [n, 2] px."""
    k = matrix(lens)
    zero = np.zeros(3)
    if lens.model == 'equidistant':
        seen, _ = cv2.fisheye.projectPoints(points[None], zero, zero, k, np.array(lens.d))
    else:
        seen, _ = cv2.projectPoints(points, zero, zero, k, np.array(lens.d))
    return np.asarray(seen).reshape(-1, 2)


@pytest.mark.parametrize('lens', [FISHEYE, BARREL, RATIONAL])
def test_every_model_is_opencvs(lens: CameraLens) -> None:
    x, y = np.meshgrid(np.linspace(-0.8, 0.8, 15), np.linspace(-0.6, 0.6, 11))
    u, v = lens.seen_at(x, y)
    wanted = opencv(lens, np.stack([x.ravel(), y.ravel(), np.ones(x.size)], axis=1))
    np.testing.assert_allclose(np.stack([u.ravel(), v.ravel()], axis=1), wanted, atol=1e-6)


def seen_through(lens: CameraLens, turn: Floats) -> Floats:
    """Return the picture of far things for a camera that has turned, through OpenCV's model."""
    u, v = np.meshgrid(np.arange(WIDTH, dtype=np.float64), np.arange(HEIGHT, dtype=np.float64))
    k = matrix(lens)
    pixels = np.stack([u.ravel(), v.ravel()], axis=1)[:, None]
    if lens.model == 'equidistant':
        flat = cv2.fisheye.undistortPoints(pixels, k, np.array(lens.d))
    else:
        flat = cv2.undistortPoints(pixels, k, np.array(lens.d))
    rays = np.concatenate([flat.reshape(-1, 2), np.ones((flat.size // 2, 1))], axis=1)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    world = rays @ turned_by(turn).T
    gray = 128.0 + 18.0 * np.sin(world @ WAVES.T + PHASES).sum(axis=1)
    return np.asarray(np.clip(gray, 0, 255).astype(np.uint8).reshape(HEIGHT, WIDTH))


@pytest.mark.parametrize('lens', [FISHEYE, BARREL, RATIONAL])
def test_a_turn_is_measured_in_true_radians(lens: CameraLens) -> None:
    """Without the lens a turn comes out up to a fifth wrong."""
    for turn in ([0.0, 0.05, 0.0], [0.04, 0.0, 0.0], [0.0, 0.0, 0.04], [0.02, -0.03, 0.01]):
        vector, cue = np.array(turn), ImageCue()
        for k, at in enumerate((np.zeros(3), vector)):
            values = {'gray': seen_through(lens, at), 'fx': 0.0, 'fy': 0.0, 'lens': lens}
            found = cue.feed(1 + k * 33_000_000, values)
        assert found is not None
        np.testing.assert_allclose(found.values_rad, vector, atol=8e-4)


def test_a_lens_of_another_size_is_the_same_lens() -> None:
    half = FISHEYE.for_width(WIDTH / 2)
    u, v = FISHEYE.seen_at(np.array([0.3]), np.array([-0.2]))
    small_u, small_v = half.seen_at(np.array([0.3]), np.array([-0.2]))
    np.testing.assert_allclose([(u + 0.5) / 2 - 0.5, (v + 0.5) / 2 - 0.5], [small_u, small_v])


def test_what_a_polynomial_folds_is_left_out() -> None:
    """Beyond its turning point two directions meet on one pixel."""
    folding = CameraLens(
        (160.0, 160.0), (159.5, 119.5), WIDTH, 'plumb_bob', (-0.5, 0.0, 0.0, 0.0, 0.0)
    )
    straight = Straightened(folding, (120, 160), 2.0, 160)
    half_view = 0.5 * straight.shape[1] / straight.focal_px
    assert half_view < np.sqrt(1.0 / 1.5)  # where 1 - 3 * 0.5 r^2 = 0


def test_a_picture_wider_than_a_half_space_is_cut() -> None:
    wide = CameraLens((80.0, 80.0), (159.5, 119.5), WIDTH, 'equidistant', ())  # 230 degrees
    straight = Straightened(wide, (120, 160), 2.0, 160)
    assert np.degrees(np.arctan(0.5 * straight.shape[1] / straight.focal_px)) < 56.0
    assert straight.shape[1] <= 160
