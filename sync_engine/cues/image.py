"""Rotation of a camera from consecutive images: phase correlation, then gradient steps.

Far things move in the image by rotation alone, by a flow that the focal length fixes. Phase
correlation on a small gray image finds it to a pixel or two; a few Gauss-Newton steps on the
brightness sharpen it, with a zoom beside the three angles so that driving ahead does not lean on
them. Nearby scenes shift by translation too; the residual says how well it fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, FloatArray, GyroLookup
from sync_engine.cues.motion import Rotation

_WIDTH = 160
_STEPS = 4
_LONGEST_NS = NS_PER_S // 2
_LEAST_CONTRAST = 2.0
"""Standard deviation of the gray values (0 to 255) below which there is nothing to hold on to."""
_WORST_FIT = 0.6
"""Share of the contrast that may be left over after the fit."""
_TRUST = 3.0
"""Factor on the formal sigma: brightness errors of neighbouring pixels are anything but free."""
_INNER = (slice(2, -2, 3), slice(2, -2, 3))
"""Every third pixel of the inner part: plenty for four numbers."""


class ImageCue:
    """Rotation vectors from `gray` [h, w] (0 to 255) with `fx`, `fy` (px); optical frame.

    `gray` is reduced to about 160 x 120 by averaging whole blocks.
    """

    def __init__(self) -> None:
        self._shape = (0, 0)
        self._focal = (0.0, 0.0)
        self.reset()

    def reset(self) -> None:
        """Forget the last image."""
        self._last: tuple[int, FloatArray] | None = None

    def feed(
        self, stamp_ns: int, values: Mapping[str, Any], gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one image; return the rotation since the last one."""
        gray = np.asarray(values['gray'])
        block = max(1, round(gray.shape[1] / _WIDTH))
        focal = float(values['fx']) / block, float(values['fy']) / block
        if not (focal[0] > 0.0 and focal[1] > 0.0):
            raise ValueError('the image cue needs the focal length (focal_px of its input)')
        small = _reduce(gray, block)
        last, self._last = self._last, (stamp_ns, small)
        if small.shape != self._shape or focal != self._focal:
            self._prepare(small.shape, focal)
            return None
        if last is None or not 0 < stamp_ns - last[0] <= _LONGEST_NS:
            return None
        solved = self._rotation(last[1], small)
        if solved is None:
            return None
        turn, variances = solved
        return Rotation(last[0], stamp_ns, tuple(turn), XYZ_AXES, tuple(variances))

    def _prepare(self, shape: tuple[int, ...], focal: tuple[float, float]) -> None:
        height, width = shape
        self._shape, self._focal = (height, width), focal
        self._taper = np.outer(np.hanning(height // 2), np.hanning(width // 2))
        rows, columns = np.mgrid[0:height, 0:width]
        self._dx = ((columns - 0.5 * (width - 1)) / focal[0])[_INNER]
        self._dy = ((rows - 0.5 * (height - 1)) / focal[1])[_INNER]

    def _rotation(
        self, before: FloatArray, after: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the rotation vector [3] (rad) and the variances [3]."""
        if min(float(before.std()), float(after.std())) < _LEAST_CONTRAST:
            return None
        right, down = self._phase_correlate(before, after)
        fx, fy = self._focal
        # Content that moves right means the camera turned left: negative about y (down).
        guess = np.array([down / fy, -right / fx, 0.0])
        turn, zoom = guess.copy(), 0.0
        columns = self._columns(before)
        for _ in range(_STEPS):
            solved = self._gradient_step(before, after, turn, zoom, columns)
            if solved is None:
                return None
            move, covariance, misfit = solved
            turn, zoom = turn + move[:3], zoom + float(move[3])
            if np.abs(move[:3]).max() * fx < 0.02:
                break
        strayed = np.abs((turn - guess)[:2]).max() * fx > 5.0
        if misfit > _WORST_FIT or strayed:
            return None
        return turn, np.diag(covariance)[:3] * _TRUST**2

    def _phase_correlate(self, before: FloatArray, after: FloatArray) -> tuple[float, float]:
        """Return the shift of the content (right, down in px), to about a pixel, at half size."""
        one, two = _reduce(before, 2), _reduce(after, 2)
        spectrum = np.fft.rfft2((two - two.mean()) * self._taper)
        spectrum *= np.conj(np.fft.rfft2((one - one.mean()) * self._taper))
        size = np.abs(spectrum)
        surface = np.fft.irfft2(spectrum / (size + 1e-3 * size.max()), one.shape)
        height, width = one.shape
        down, right = divmod(int(np.argmax(surface)), width)
        return (
            2.0 * (right - width if right > width // 2 else right),
            2.0 * (down - height if down > height // 2 else down),
        )

    def _columns(self, before: FloatArray) -> FloatArray:
        """Return d brightness / d (rx, ry, rz, zoom) of every inner pixel, [4, rows, columns]."""
        fx, fy = self._focal
        gy = 0.5 * fy * (before[2:, :] - before[:-2, :])[1:-1:3, 2:-2:3]
        gx = 0.5 * fx * (before[:, 2:] - before[:, :-2])[2:-2:3, 1:-1:3]
        x, y = self._dx, self._dy
        return np.stack(
            [
                gx * x * y + gy * (1.0 + y * y),
                -gx * (1.0 + x * x) - gy * x * y,
                gx * y - gy * x,
                gx * x + gy * y,
            ]
        )

    def _gradient_step(
        self,
        before: FloatArray,
        after: FloatArray,
        turn: FloatArray,
        zoom: float,
        columns: FloatArray,
    ) -> tuple[FloatArray, FloatArray, float] | None:
        """One step on (rx, ry, rz, zoom): (move [4], covariance [4, 4], share left over)."""
        height, width = self._shape
        x, y = self._turned(turn)
        scale = 1.0 + zoom
        moved, inside = _sample(
            after,
            x * (scale * self._focal[0]) + 0.5 * (width - 1),
            y * (scale * self._focal[1]) + 0.5 * (height - 1),
        )
        if inside.mean() < 0.3:
            return None
        rows = columns[:, inside]
        seen = before[_INNER][inside]
        error = seen - moved[inside]
        error -= _median(error)  # exposure may have changed
        spread = max(1.4826 * _median(np.abs(error)), 0.3)
        weighted = rows / (1.0 + (error / (3.0 * spread)) ** 2)
        normal = weighted @ rows.T
        if np.linalg.cond(normal) > 1e12:
            return None
        inverse: FloatArray = np.asarray(np.linalg.inv(normal), dtype=np.float64)
        misfit = spread / max(float(seen.std()), 1e-6)
        return inverse @ (weighted @ error), inverse * spread**2, misfit

    def _turned(self, turn: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return where the inner pixels' directions are seen after the camera turned."""
        rx, ry, rz = turn
        angle = float(np.sqrt(turn @ turn))
        skew = np.array([[0.0, -rz, ry], [rz, 0.0, -rx], [-ry, rx, 0.0]])
        first = np.sinc(angle / np.pi)
        second = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
        back = np.eye(3) - first * skew + second * (skew @ skew)
        x, y = self._dx, self._dy
        depth = back[2, 0] * x + back[2, 1] * y + back[2, 2]
        return (
            (back[0, 0] * x + back[0, 1] * y + back[0, 2]) / depth,
            (back[1, 0] * x + back[1, 1] * y + back[1, 2]) / depth,
        )


def _median(values: FloatArray) -> float:
    half = len(values) // 2
    return float(np.partition(values, half)[half])


def _reduce(gray: NDArray[Any], block: int) -> FloatArray:
    """Average `block` x `block` pixels."""
    if block == 1:
        return gray.astype(np.float64)
    height, width = gray.shape[0] // block * block, gray.shape[1] // block * block
    wide = gray[:height, :width].reshape(height // block, block, width // block, block)
    small: FloatArray = np.einsum('hbwc->hw', wide, dtype=np.float64) / block**2
    return small


def _sample(
    image: FloatArray, x: FloatArray, y: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return bilinear values at (x, y) and where these lie inside."""
    height, width = image.shape
    inside = (x >= 0.0) & (x < width - 1.0) & (y >= 0.0) & (y < height - 1.0)
    x, y = np.where(inside, x, 0.0), np.where(inside, y, 0.0)
    column, row = x.astype(np.intp), y.astype(np.intp)
    u, v = x - column, y - row
    corner = row * width + column
    flat = image.ravel()
    upper = flat[corner] * (1.0 - u) + flat[corner + 1] * u
    lower = flat[corner + width] * (1.0 - u) + flat[corner + width + 1] * u
    values: FloatArray = upper * (1.0 - v) + lower * v
    return values, inside
