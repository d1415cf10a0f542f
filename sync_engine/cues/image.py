"""Rotation of a camera from consecutive images: phase correlation, then the motion between them.

Phase correlation on a small gray image finds the turn to a pixel or two; image_motion.py sharpens
it, with the camera's way and the depth of the scene fitted beside the three angles.
"""

from __future__ import annotations

import numpy as np

from rig_common.arrays import AnyArray
from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, FloatArray, GyroLookup
from sync_engine.cues.image_motion import TRUST, ImageMotion, MeasuredTurn
from sync_engine.cues.motion import Rotation
from sync_engine.streams.payload import CueValues

_WIDTH = 160
_LONGEST_NS = NS_PER_S // 2
_LEAST_CONTRAST = 2.0
"""Standard deviation of the gray values (0 to 255) below which there is nothing to hold on to."""
_STRAYED_PX = 8.0
"""Further than this from the phase correlation, one of the two is wrong."""
_WORST_SIGMA_RAD = 0.02
_GYRO_SIGMA_RAD = 1e-3
"""How well the gyro knows the turn between two images, with its bias."""
_CLOCK_S = 4e-3
"""How wrong the clock difference may be with which the gyro's turn is looked up."""


class ImageCue:
    """Rotation vectors from `gray` [h, w] (0 to 255) with `fx`, `fy` (px); optical frame.

    `gray` is reduced to about 160 x 120 by averaging whole blocks.
    """

    def __init__(self) -> None:
        self._shape = (0, 0)
        self._focal = (0.0, 0.0)
        self._motion: ImageMotion | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the last image."""
        if self._motion is not None:
            self._motion.forget()
        self._last: tuple[int, FloatArray] | None = None

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one image; return the rotation since the last one."""
        gray = np.asarray(values['gray'])
        block = max(1, round(gray.shape[1] / _WIDTH))
        focal = float(values['fx']) / block, float(values['fy']) / block
        if not (focal[0] > 0.0 and focal[1] > 0.0):
            raise ValueError('the image cue needs the focal length (focal_px of its input)')
        small = _smoothed(_reduce(gray, block))
        last, self._last = self._last, (stamp_ns, small)
        if small.shape != self._shape or focal != self._focal:
            self._prepare(small.shape, focal)
            return None
        if last is None or not 0 < stamp_ns - last[0] <= _LONGEST_NS:
            return None
        solved = self._rotation(last[1], small, _measured(gyro, last[0], stamp_ns))
        if solved is None:
            return None
        turn, variances = solved
        return Rotation(last[0], stamp_ns, tuple(turn), XYZ_AXES, tuple(variances))

    def _prepare(self, shape: tuple[int, ...], focal: tuple[float, float]) -> None:
        height, width = shape
        self._shape, self._focal = (height, width), focal
        self._taper = np.outer(np.hanning(height // 2), np.hanning(width // 2))
        self._motion = ImageMotion(self._shape, focal)

    def _rotation(
        self, before: FloatArray, after: FloatArray, measured: MeasuredTurn | None
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the rotation vector [3] (rad) and the variances [3]."""
        if min(float(before.std()), float(after.std())) < _LEAST_CONTRAST:
            return None
        right, down = self._phase_correlate(before, after)
        fx, fy = self._focal
        # Content that moves right means the camera turned left: negative about y (down).
        guess = np.array([down / fy, -right / fx, 0.0])
        assert self._motion is not None
        found = self._motion.fit(before, after, guess, measured)
        if found is None:
            return None
        variances = np.diag(found.covariance) * TRUST**2
        strayed = np.abs((found.turn - guess)[:2]).max() * fx > _STRAYED_PX
        if strayed or not float(variances.max()) < _WORST_SIGMA_RAD**2:
            return None
        return found.turn, variances

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


def _measured(gyro: GyroLookup | None, from_ns: int, to_ns: int) -> MeasuredTurn | None:
    """Return the gyro's turn from one stamp to another, None where it is not known."""
    if gyro is None:
        return None
    ends_s = np.array([0.0, (from_ns - to_ns) / NS_PER_S])
    times_s = np.concatenate([ends_s, ends_s - _CLOCK_S])
    found = [gyro(to_ns, times_s, axis) for axis in XYZ_AXES]
    angles = [each for each in found if each is not None]
    if len(angles) < len(found):
        return None
    turn, before = (np.array([each[k] - each[k + 1] for each in angles]) for k in (0, 2))
    return MeasuredTurn(turn, _GYRO_SIGMA_RAD**2 + (turn - before) ** 2)


def _reduce(gray: AnyArray, block: int) -> FloatArray:
    """Average `block` x `block` pixels."""
    if block == 1:
        return gray.astype(np.float64)
    height, width = gray.shape[0] // block * block, gray.shape[1] // block * block
    wide = gray[:height, :width].reshape(height // block, block, width // block, block)
    small: FloatArray = np.einsum('hbwc->hw', wide, dtype=np.float64) / block**2
    return small


def _smoothed(image: FloatArray) -> FloatArray:
    """Return the image blurred by (1, 2, 1) / 4 each way: from a sharp one no step finds home."""
    across, down = image.copy(), image.copy()
    across[:, 1:-1] = 0.25 * (image[:, :-2] + image[:, 2:]) + 0.5 * image[:, 1:-1]
    down[1:-1] = 0.25 * (across[:-2] + across[2:]) + 0.5 * across[1:-1]
    return down
