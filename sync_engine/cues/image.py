"""Rotation of a camera from consecutive images: phase correlation, then the motion between them.

Phase correlation on a small gray image finds the turn to a pixel or two; image_motion.py sharpens
it, with the camera's way and the depth of the scene fitted beside the three angles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from rig_common.arrays import AnyArray, Floats
from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, GyroLookup
from sync_engine.cues.image_lens import CameraLens, Straightened, is_plain
from sync_engine.cues.image_motion import TRUST, ImageMotion, MeasuredTurn, PairMotion
from sync_engine.cues.image_readout import ImageReadout
from sync_engine.cues.motion import Rotation
from sync_engine.streams.payload import CueValues

_WIDTH = 160
_MOST_ROWS = 8
"""Rows of a block that are averaged; of a large picture every third or fourth will do."""
_LONGEST_NS = NS_PER_S // 2
_SHORTEST_NS = 12_000_000
"""Pictures that follow sooner are left out: at 240 a second every third one tells as much."""
_LEAST_CONTRAST = 2.0
"""Standard deviation of the gray values (0 to 255) below which there is nothing to hold on to."""
_SAME = 0.01
"""Mean difference of gray values below which a picture is the last one, repeated."""
_STRAYED_PX = 8.0
"""Further than this from the phase correlation, one of the two is wrong."""
_WORST_SIGMA_RAD = 0.02
_GYRO_SIGMA_RAD = 1e-3
"""How well the gyro knows the turn between two images, with its bias."""
_CLOCK_S = 4e-3
"""How wrong the clock difference may be with which the gyro's turn is looked up."""
_USUAL_FOCAL = 0.6
"""Focal length over width where nobody says it: 80 degrees to the sides, between 40 and 130."""
_SCALE_SIGMAS = (0.1, 0.5)
"""Share by which turns may be too large: with a focal length that is given, and with one that is
not. It is given to 1 %; but a camera ahead of the axle moves sideways in step with the turn, which
looks like more of a turn until its way is known, by up to 16 % in the yard."""


@dataclass
class ImageCounts:
    """What became of the pictures."""

    pictures: int = 0
    blank: int = 0
    """Without contrast: a covered lens, a dark room."""
    repeated: int = 0
    """The last picture once more."""
    lost: int = 0
    """Pairs in which too little of one was found in the other."""
    turns: int = 0
    squares: float = 0.0
    """Sum of the squared rates of these (rad^2/s^2)."""

    @property
    def rate_rad_s(self) -> float:
        """Root mean square of the rate of the turns."""
        return sqrt(self.squares / self.turns) if self.turns else 0.0


class ImageCue:
    """Rotation vectors from `gray` [h, w]; optical frame.

    `fx`, `fy` focal lengths (px of the full picture; 0: unknown), `lens` a `CameraLens` that
    CameraInfo describes, `shrink` how many times smaller than the full picture `gray` is, `mosaic`
    whether it is a Bayer mosaic, `readout_s` the time from the first row to the last. Gray is
    reduced to about 160 x 120 by averaging whole blocks. `stamp_ns` counts where the picture is
    not that of the message (video).
    """

    def __init__(self) -> None:
        self._known: tuple[object, ...] = ()
        self._motion: ImageMotion | None = None
        self._straight: Straightened | None = None
        self.readout = ImageReadout()
        self.counts = ImageCounts()
        self.focal_px: float | None = None
        """As the cue takes it (px of the full picture); None before the first picture."""
        self.is_focal_declared = False
        self.reset()

    def reset(self) -> None:
        """Forget the last image."""
        if self._motion is not None:
            self._motion.forget()
        self.readout.clear()
        self._last: tuple[int, Floats] | None = None

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one image; return the rotation since the last one.

        Both ends of it are when the middle rows were exposed, as far as `readout_s` says.
        """
        if 'gray' not in values:
            return None
        stamp_ns = values.get('stamp_ns', stamp_ns)
        stamp_ns += round(0.5 * values.get('readout_s', 0.0) * NS_PER_S)
        if self._last is not None and 0 < stamp_ns - self._last[0] < _SHORTEST_NS:
            return None
        small = self._small(values)
        last = self._last
        self.counts.pictures += 1
        if small.std() < _LEAST_CONTRAST:
            self.counts.blank += 1
            self._last = None
            return None
        if last is not None and _is_same(last[1], small):
            self.counts.repeated += 1
            return None
        self._last = stamp_ns, small
        if last is None or not 0 < stamp_ns - last[0] <= _LONGEST_NS:
            return None
        return self._turned(last, stamp_ns, small, gyro)

    def _small(self, values: CueValues) -> Floats:
        """Return the picture small, straight and smooth; a new size voids `_last`."""
        gray = np.asarray(values['gray'])
        if gray.ndim != 2 or min(gray.shape) < 32:
            raise ValueError(f'a picture of shape {gray.shape} is too small for the image cue')
        block = max(1, round(gray.shape[1] / _WIDTH))
        if values.get('mosaic'):
            block += block % 2  # whole quads, so that every block has the same colours
        small = _levelled(_reduce(gray, block), gray.dtype)
        shrink = int(values.get('shrink', 1))
        known = small.shape, shrink * block, values.get('lens'), values['fx'], values['fy']
        if known != self._known:
            self._known = known
            self._prepare(small.shape, gray.shape, shrink, values)
        if self._straight is not None:
            small = self._straight.of(small)
        return _smoothed(small)

    def _prepare(
        self, shape: tuple[int, ...], gray: tuple[int, ...], shrink: int, values: CueValues
    ) -> None:
        """Get ready for small pictures of `shape`, made of a `gray` one of this shape."""
        block = shrink * max(1, gray[1] // shape[1])
        size_px = float(gray[1] * shrink), float(gray[0] * shrink)
        focal = float(values['fx']), float(values['fy'])
        lens: CameraLens | None = values.get('lens')
        scale_sigma = _SCALE_SIGMAS[lens is None and focal[0] <= 0.0]
        self._scale_sigmas = scale_sigma, scale_sigma, 0.0
        self._straight, row_shares = None, None
        if lens is not None:
            lens = lens.for_width(size_px[0])
            focal = lens.focal_px
            if not is_plain(lens, size_px):
                straight = Straightened(lens, (shape[0], shape[1]), block, _WIDTH)
                self._straight, row_shares = straight, straight.row_shares
        elif focal[0] <= 0.0:
            focal = (_USUAL_FOCAL * size_px[0],) * 2
        small_focal = focal[0] / block, focal[1] / block
        if self._straight is not None:
            shape, small_focal = self._straight.shape, (self._straight.focal_px,) * 2
        self.focal_px = focal[0]
        self.is_focal_declared = lens is not None or float(values['fx']) > 0.0
        self._small_focal = small_focal
        self._taper = np.outer(np.hanning(shape[0] // 2), np.hanning(shape[1] // 2))
        self._motion = ImageMotion((shape[0], shape[1]), small_focal, row_shares)
        self.readout = ImageReadout()
        self._last = None

    def _turned(
        self,
        last: tuple[int, Floats],
        stamp_ns: int,
        small: Floats,
        gyro: GyroLookup | None,
    ) -> Rotation | None:
        """Return the rotation since the `last` picture."""
        right, down = self._phase_correlate(last[1], small)
        fx, fy = self._small_focal
        # Content that moves right means the camera turned left: negative about y (down).
        guess = np.array([down / fy, -right / fx, 0.0])
        assert self._motion is not None
        ends_ns = last[0], stamp_ns
        found = self._motion.fit(last[1], small, guess, _measured(gyro, *ends_ns))
        if found is None or not self._is_good(found, guess):
            self.counts.lost += 1
            return None
        self.counts.turns += 1
        lasted_s = (stamp_ns - last[0]) / NS_PER_S
        self.counts.squares += float(found.turn @ found.turn) / lasted_s**2
        variances, of_sweep = (
            np.diag(each) * TRUST**2 for each in (found.covariance, found.sweep_covariance)
        )
        self.readout.add(ends_ns, found.turn, found.sweep, of_sweep, gyro)
        return Rotation(
            last[0],
            stamp_ns,
            tuple(found.turn),
            XYZ_AXES,
            tuple(variances),
            self._scale_sigmas,
        )

    def _is_good(self, found: PairMotion, guess: Floats) -> bool:
        """Return whether a fit stayed near the phase correlation and is sharp."""
        strayed = np.abs((found.turn - guess)[:2]).max() * self._small_focal[0] > _STRAYED_PX
        worst = float(np.diag(found.covariance).max()) * TRUST**2
        return not strayed and worst < _WORST_SIGMA_RAD**2

    def _phase_correlate(self, before: Floats, after: Floats) -> tuple[float, float]:
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


def _reduce(gray: AnyArray, block: int) -> Floats:
    """Average `block` x `block` pixels; of many rows some will do."""
    if block == 1:
        return gray.astype(np.float64)
    height, width = gray.shape[0] // block * block, gray.shape[1] // block * block
    every = max(1, block // _MOST_ROWS - 1) | 1  # odd: rows of both kinds of a mosaic
    # Rows first: whole rows are added at the speed of memory, columns are a small rest.
    wide = np.uint32 if gray.dtype.kind == 'u' and gray.dtype.itemsize < 4 else np.float64
    first: AnyArray = gray[:height:block, :width].astype(wide)
    count = 1
    for row in range(every, block, every):
        np.add(first, gray[row:height:block, :width], out=first)
        count += 1
    small: Floats = first[:, ::block].astype(np.float64)
    for column in range(1, block):
        np.add(small, first[:, column::block], out=small)
    small /= count * block
    return small


def _levelled(small: Floats, dtype: np.dtype[np.generic]) -> Floats:
    """Return gray values of 0 to 255, whatever the pixels were: 8 bits are taken as they are.

    Others (12 bits in 16, temperatures, depths) are stretched between their darkest and brightest
    hundredth, picture by picture; the fit allows for a change of brightness and contrast.
    """
    if dtype == np.uint8:
        return small
    known = np.isfinite(small)
    if not known.any():
        return np.zeros_like(small)
    low, middle, high = np.percentile(small[known], (1.0, 50.0, 99.0))
    if not high > low:
        return np.zeros_like(small)
    clean = np.where(known, small, middle)
    level: Floats = np.clip((clean - low) * (255.0 / (high - low)), 0.0, 255.0)
    return level


def _is_same(one: Floats, other: Floats) -> bool:
    return float(np.abs(one - other).mean()) < _SAME


def _smoothed(image: Floats) -> Floats:
    """Return the image blurred by (1, 2, 1) / 4 each way: from a sharp one no step finds home."""
    across, down = image.copy(), image.copy()
    across[:, 1:-1] = 0.25 * (image[:, :-2] + image[:, 2:]) + 0.5 * image[:, 1:-1]
    down[1:-1] = 0.25 * (across[:-2] + across[2:]) + 0.5 * across[1:-1]
    return down
