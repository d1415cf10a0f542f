"""Pinhole geometry and lens distortion, shared by every sensor that renders."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians, tan
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.interface.mounts import add_frame
from sim_sensors.timing.arrays import Array

OPTICAL_QUAT_WXYZ = (0.5, -0.5, 0.5, -0.5)
"""From a mount (x forward, z up) to its optical frame (z forward, y down), REP 103."""
ONE_BITS = 8
ONE = 1 << ONE_BITS
"""One, in the fixed-point shares that pixels are mixed by: 255 times it just fits 16 bits."""
LensModel = Literal['plumb_bob', 'equidistant']
_WIDEST_RAD = radians(80.0)
"""Angle off the axis up to which a fisheye is drawn: a pinhole's picture grows without bound."""
CAMERA_QUAT_WXYZ = (0.5, 0.5, -0.5, -0.5)
"""From a mount (x forward, z up) to MuJoCo's camera (looks along -z, y up)."""


@dataclass(frozen=True)
class Pinhole:
    """An ideal camera; pixel centres have integer coordinates, (0, 0) is the upper left one."""

    width: int
    height: int
    focal_px: float

    @classmethod
    def from_fov(cls, width: int, height: int, fovy_deg: float) -> Pinhole:
        """Return the camera whose height spans `fovy_deg`."""
        return cls(width, height, height / 2.0 / tan(radians(fovy_deg) / 2.0))

    @classmethod
    def equidistant(cls, width: int, height: int, fovy_deg: float, d: Array) -> Pinhole:
        """Return the camera whose fisheye spans `fovy_deg` with its height; `d` is k1 .. k4."""
        edge = np.tan(radians(fovy_deg) / 2.0)
        bent, _ = distort(np.array([edge]), np.zeros(1), d, 'equidistant')
        return cls(width, height, height / 2.0 / float(bent[0]))

    @property
    def centre_px(self) -> tuple[float, float]:
        """Principal point (cx, cy)."""
        return (self.width - 1) / 2.0, (self.height - 1) / 2.0

    @property
    def fovy_deg(self) -> float:
        """Vertical field of view, degrees."""
        return float(np.degrees(2.0 * np.arctan2(self.height / 2.0, self.focal_px)))

    @property
    def matrix(self) -> Floats:
        """K of the camera info, [3, 3] pixels."""
        cx, cy = self.centre_px
        return np.array([[self.focal_px, 0.0, cx], [0.0, self.focal_px, cy], [0.0, 0.0, 1.0]])

    def rays(self) -> tuple[Floats, Floats]:
        """Return x/z and y/z of every pixel, [height, width] each, optical axes."""
        cx, cy = self.centre_px
        u, v = np.meshgrid(np.arange(self.width, dtype=float), np.arange(self.height, dtype=float))
        return (u - cx) / self.focal_px, (v - cy) / self.focal_px


def add_camera(spec: mujoco.MjSpec, name: str, lens: Pinhole) -> None:
    """Add a MuJoCo camera `name` at the site of the same name, looking along its +x."""
    if spec.camera(name) is not None:
        raise RigError(
            f'sensor {name!r}: the model has a camera {name!r} already; give the '
            f'sensor another name'
        )
    frame = add_frame(spec, spec.site(name))
    camera = spec.site(name).parent.add_camera(
        name=name, quat=CAMERA_QUAT_WXYZ, fovy=lens.fovy_deg
    )
    camera.resolution = [lens.width, lens.height]
    camera.set_frame(frame)


def distort(x: Array, y: Array, d: Array, model: LensModel = 'plumb_bob') -> tuple[Array, Array]:
    """Return the lens's image of normalised points.

    `d` is k1 k2 p1 p2 k3 of Brown's model (plumb_bob), or k1 k2 k3 k4 of a fisheye, where angles
    off the axis become radii (equidistant).
    """
    r2 = x * x + y * y
    if model == 'equidistant':
        k1, k2, k3, k4 = d
        r = np.sqrt(r2)
        a2 = np.arctan(r) ** 2
        bent = np.arctan(r) * (1.0 + a2 * (k1 + a2 * (k2 + a2 * (k3 + a2 * k4))))
        share = np.divide(bent, r, out=np.ones_like(r), where=r > 1e-9)
        return x * share, y * share
    k1, k2, p1, p2, k3 = d
    radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
    return (
        x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x),
        y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y,
    )


def undistort(x: Array, y: Array, d: Array, model: LensModel = 'plumb_bob') -> tuple[Array, Array]:
    """Return the normalised points whose distorted image is (x, y), by Newton's method.

    Raises RigError where the lens folds: beyond its turning point one pixel sees two directions.
    """
    guess = np.stack([x, y]).astype(np.float64)
    target = guess.copy()
    if model == 'equidistant':
        angle = np.hypot(x, y)
        if angle.max() > _WIDEST_RAD:
            raise RigError(
                f'the fisheye sees {np.degrees(angle.max()):.0f} degrees off its axis in the '
                f'corners; up to 80 are drawn, so use a smaller fovy_deg or another shape'
            )
        guess *= np.divide(np.tan(angle), angle, out=np.ones_like(angle), where=angle > 1e-9)
    step = 1e-6
    for _ in range(30):
        here = np.stack(distort(guess[0], guess[1], d, model))
        dx = (np.stack(distort(guess[0] + step, guess[1], d, model)) - here) / step
        dy = (np.stack(distort(guess[0], guess[1] + step, d, model)) - here) / step
        determinant = dx[0] * dy[1] - dy[0] * dx[1]
        if not (determinant > 1e-3).all():
            break
        error = target - here
        if np.abs(error).max() < 1e-10:
            return guess[0], guess[1]
        guess = (
            guess
            + np.stack([dy[1] * error[0] - dy[0] * error[1], dx[0] * error[1] - dx[1] * error[0]])
            / determinant
        )
    raise RigError(
        f'distortion {d.tolist()} folds the picture inside its '
        f'field of view; use smaller coefficients or a smaller fovy_deg'
    )


class Lens:
    """Bends a wide pinhole rendering into the picture of a distorting lens."""

    def __init__(self, picture: Pinhole, d: Array, model: LensModel = 'plumb_bob') -> None:
        """Find, once, where in the rendering every pixel of `picture` comes from."""
        self.rays = x, y = undistort(*picture.rays(), d, model)
        """x/z and y/z of every pixel as it is seen, [height, width] each."""
        half_w = picture.focal_px * float(np.abs(x).max()) + 1.0
        half_h = picture.focal_px * float(np.abs(y).max()) + 1.0
        self.rendered = Pinhole(
            2 * int(np.ceil(half_w)), 2 * int(np.ceil(half_h)), picture.focal_px
        )
        cx, cy = self.rendered.centre_px
        u, v = picture.focal_px * x + cx, picture.focal_px * y + cy
        left, self._top = np.floor(u).astype(np.intp), np.floor(v).astype(np.intp)
        self._corner = self._top * self.rendered.width + left
        self._weights = _shares((u - left)[..., None], (v - self._top)[..., None])

    def rows_for(self, rows: slice) -> slice:
        """Return the rows of the rendering that `rows` of the picture are made of."""
        return slice(int(self._top[rows].min()), int(self._top[rows].max()) + 2)

    def bend(self, image: NDArray[np.uint8], rows: slice) -> NDArray[np.uint8]:
        """Return `rows` of the picture, bilinear in `image`, the rendering's `rows_for(rows)`."""
        width = self.rendered.width
        flat = image.reshape(-1, image.shape[-1])
        corner = self._corner[rows] - self.rows_for(rows).start * width
        mixed = np.full((*corner.shape, image.shape[-1]), ONE // 2, np.uint16)
        for step, weight in zip((0, 1, width, width + 1), self._weights, strict=True):
            mixed += np.take(flat, corner + step, axis=0) * weight[rows]
        mixed >>= ONE_BITS
        return mixed.astype(np.uint8)


def _shares(right: Array, below: Array) -> list[NDArray[np.uint16]]:
    """Return how much each of the four neighbours counts, in 1/256; they sum to 256 exactly."""
    down = np.rint(below * ONE)
    low, high = (np.rint(right * side) for side in (down, ONE - down))
    return [share.astype(np.uint16) for share in (ONE - down - high, high, down - low, low)]
