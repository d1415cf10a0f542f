"""Rotation of a camera between two images, with translation and depth fitted beside it.

A thing in direction p with inverse depth r is seen, after the camera turned by R and moved by t,
in direction R' (p - r t). The turn moves everything by a flow that the focal length fixes; the way
moves near things more than far ones. Without the second part a camera that drives past things
turns too far or too little, and in step with how it turns: its clock comes out milliseconds wrong.

The image is cut into blocks, each with one inverse depth. Unknown are three angles, the direction
of the way, and a depth in every block; each Gauss-Newton step on the brightness eliminates the
depths (they meet no other unknown than the six), so it costs no more than the six do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats
from rig_common.quaternions import skewed
from sync_engine.cues.image_way import CameraWay
from sync_engine.cues.mounting import turned_by

_STRIDE = (2, 2)
"""Every second row and column is looked at: neighbours tell the same."""
_BLOCK = (8, 32)
"""Height and width of a block (px): on ground, and on most things, depth changes from row to row
and hardly along one."""
_STEPS = 8
_SETTLED_PX = 0.02
"""A step that moves the image by less is the last."""
_LEAST_INSIDE = 0.3
_DEPTH_SIGMA = 0.05
"""Inverse depth beside the way between two images: most things are twenty times as far."""
_SWEEP_SIGMA = 0.02
"""How much more the last row may have turned than the first one (rad)."""
_GAINS = (0.5, 2.0)
"""By how much an exposure may change from one image to the next."""
_LEAST_SPREAD = 0.5
"""Brightness noise (0 to 255) that is always allowed for."""
_LEAST_TEXTURE = 3.0
"""A block whose brightness varies by less (0 to 255) is blank."""
_OUTLIER = 1.5
_MATCHED = 0.3
"""Share of its texture that may be left over in a block for it to count in full: near ground
rushes by and matches nothing."""
TRUST = 3.0
"""Factor on the formal sigma: brightness errors of neighbouring pixels are anything but free. It
makes residuals in the yard as large as claimed, about all three axes (docs/offsets_theory.md)."""
_FIXED = 1e6
"""Information that keeps the length of the way."""
_LEAST_INFORMATION = 1.0
"""Keeps the turn finite where nothing tells it (1 / rad^2)."""
_LEAST_BLOCKS = 6.0
"""Blocks that must match, each counted by how well it does."""


class MeasuredTurn(NamedTuple):
    """What a gyro says of the turn between two images."""

    turn: Floats
    """[3] in the camera's frame (rad)."""
    variances: Floats


class PairMotion(NamedTuple):
    """What one pair of images shows."""

    turn: Floats
    """[3] rotation vector of the camera at the middle row, in its own frame (rad)."""
    covariance: Floats
    """[3, 3] formal, for brightness errors that are independent."""
    sweep: Floats
    """[3] by how much more the camera turned at the last row than at the first one (rad)."""
    sweep_covariance: Floats
    """[3, 3] formal."""


class ImageMotion:
    """Fits the motion between images of one size and focal length."""

    def __init__(
        self,
        shape: tuple[int, int],
        focal_px: tuple[float, float],
        row_shares: Floats | None = None,
    ) -> None:
        """`row_shares` [height, width] says where in the readout a pixel is, -0.5 to 0.5."""
        height, width = self._shape = shape
        self._focal = fx, fy = focal_px
        rows, columns = (
            grid.ravel()
            for grid in np.mgrid[2 : height - 2 : _STRIDE[0], 2 : width - 2 : _STRIDE[1]]
        )
        across = -(-width // _BLOCK[1])
        block = rows // _BLOCK[0] * across + columns // _BLOCK[1]
        order = np.argsort(block, kind='stable')
        at = self._at = (rows * width + columns)[order]
        """Flat indices of the pixels that are looked at, block by block."""
        block = block[order]
        self._starts = np.flatnonzero(np.diff(block, prepend=-1))
        self._of = np.cumsum(np.diff(block, prepend=block[0]) != 0)
        self._counts = np.diff(np.append(self._starts, len(block)))
        x = (columns[order] - 0.5 * (width - 1)) / fx
        y = (rows[order] - 0.5 * (height - 1)) / fy
        self._directions = np.stack([x, y, np.ones_like(x)])
        self._row_shares: Floats = (
            (at // width + 0.5) / height - 0.5 if row_shares is None else row_shares.ravel()[at]
        )
        self.forget()

    def forget(self) -> None:
        """The next pair has nothing to do with the last one."""
        self._way = CameraWay()

    def fit(
        self,
        before: Floats,
        after: Floats,
        guess: Floats,
        measured: MeasuredTurn | None = None,
    ) -> PairMotion | None:
        """Return the motion from one image to the next, from a `guess` of the turn [3] (rad).

        None where too little of one is found in the other. A `measured` turn only helps to learn
        the way for the next images: this turn is to be compared with it.
        """
        at, width = self._at, self._shape[1]
        flat = before.ravel()
        seen = flat[at]
        texture = self._per_block(seen * seen) - self._per_block(seen) ** 2 / self._counts
        columns = self._columns(
            0.5 * self._focal[0] * (flat[at + 1] - flat[at - 1]),
            0.5 * self._focal[1] * (flat[at + width] - flat[at - width]),
        )
        self._way.step()
        turn, depths = guess.copy(), np.zeros(len(self._starts))
        way, _ = self._way.predict(turn)
        weight, sweep = np.ones_like(seen), np.zeros(3)
        for _ in range(_STEPS):
            moved, inside = self._warp(after, turn, sweep, way, depths)
            if inside.mean() < _LEAST_INSIDE:
                return None
            error = np.where(inside, seen - _exposed_as(seen, moved, weight * inside), 0.0)
            weight, good = self._weights(error, inside, texture)
            if good < _LEAST_BLOCKS:
                return None
            prior = self._way.predict(turn)
            move, depth_move, covariance = self._step(error, weight, columns, way, depths, prior)
            turn, sweep = turn + move[:3], sweep + move[6:]
            way = way + move[3:6]
            way /= np.linalg.norm(way)
            depths = depths + depth_move
            if np.abs(move[[0, 1, 2, 6, 7, 8]]).max() * self._focal[0] < _SETTLED_PX:
                break
        known = (
            (way, covariance[3:6, 3:6])
            if measured is None
            else _way_with(measured, turn, way, covariance)
        )
        self._way.learn(turn, *known, TRUST**2)
        return PairMotion(turn, covariance[:3, :3], sweep, covariance[6:, 6:])

    def _weights(
        self, error: Floats, inside: NDArray[np.bool_], texture: Floats
    ) -> tuple[Floats, float]:
        """Return the weight of every pixel, and how many blocks match.

        `texture` [blocks] is the sum of squares that a block had to explain.
        """
        squared = error * error
        least = _LEAST_TEXTURE**2 * self._counts
        share = self._per_block(squared) / (texture + least)
        matched = 1.0 / (1.0 + (share / _MATCHED) ** 2)
        known = matched[self._of] * inside
        spread = max(float(np.sqrt((known @ squared) / known.sum())), _LEAST_SPREAD)
        weight = known / (1.0 + squared / (_OUTLIER * spread) ** 2) / spread**2
        return weight, float(matched @ (texture > least))

    def _per_block(self, values: Floats) -> Floats:
        """Return the sums over every block of values [..., pixels]."""
        sums: Floats = np.add.reduceat(values, self._starts, axis=-1)
        return sums

    def _columns(self, gx: Floats, gy: Floats) -> Floats:
        """Return d brightness / d (turn, way at inverse depth 1) of every pixel, [6, pixels]."""
        x, y, _ = self._directions
        radial = gx * x + gy * y
        return np.stack([y * radial + gy, -x * radial - gx, gx * y - gy * x, -gx, -gy, radial])

    def _warp(
        self,
        image: Floats,
        turn: Floats,
        sweep: Floats,
        way: Floats,
        depths: Floats,
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the brightness where every pixel's thing is seen now, and if it is in view."""
        placed = self._directions - way[:, None] * depths[self._of]
        x, y, z = turned_by(-turn) @ placed - self._row_shares * (skewed(sweep) @ placed)
        z = np.maximum(z, 0.05)
        height, width = self._shape
        return _sample(
            image,
            x / z * self._focal[0] + 0.5 * (width - 1),
            y / z * self._focal[1] + 0.5 * (height - 1),
        )

    def _step(
        self,
        error: Floats,
        weight: Floats,
        columns: Floats,
        way: Floats,
        depths: Floats,
        prior: tuple[Floats, Floats],
    ) -> tuple[Floats, Floats, Floats]:
        """One step: (move of turn, way and sweep [9], of the depths [blocks], covariance [9, 9]).

        `prior` is the expected way [3] and its information [3, 3]. The turn may differ from row
        to row by the sweep, so that it is the middle row's, wherever the picture has its texture.
        """
        table = np.empty((11, len(error)))
        rows = table[:9]
        rows[:3] = columns[:3]
        np.multiply(columns[3:], depths[self._of], out=rows[3:6])
        np.multiply(columns[:3], self._row_shares, out=rows[6:])
        along = table[9] = way @ columns[3:]
        table[10] = error
        sums = self._per_block(table * (along * weight))
        cross, own = sums[:9], sums[9] + _DEPTH_SIGMA**-2
        pull = sums[10] - depths * _DEPTH_SIGMA**-2
        normal = (rows * weight) @ rows.T - (cross / own) @ cross.T
        right = rows @ (weight * error) - cross @ (pull / own)
        # The length of the way goes with the depths. The prior counts as much more as the formal
        # sigma of the brightness is too small.
        sure = prior[1] * TRUST**2
        normal[3:6, 3:6] += sure + _FIXED * np.outer(way, way)
        right[3:6] += sure @ (prior[0] - way)
        normal[:3, :3] += _LEAST_INFORMATION * np.eye(3)
        normal[6:, 6:] += _SWEEP_SIGMA**-2 * np.eye(3)
        inverse = np.asarray(np.linalg.inv(normal), dtype=np.float64)
        move = inverse @ right
        return move, (pull - move @ cross) / own, inverse


def _way_with(
    measured: MeasuredTurn, turn: Floats, way: Floats, covariance: Floats
) -> tuple[Floats, Floats]:
    """Return the way [3] and its covariance [3, 3] with the turn `measured`, too.

    A pair hardly tells a turn from a way to the side; with the turn known the way is.
    """
    cross = covariance[3:6, :3]
    gain = cross @ np.linalg.inv(covariance[:3, :3] + np.diag(measured.variances) / TRUST**2)
    moved = way + gain @ (measured.turn - turn)
    return moved / np.linalg.norm(moved), covariance[3:6, 3:6] - gain @ cross.T


def _exposed_as(seen: Floats, moved: Floats, weight: Floats) -> Floats:
    """Return `moved` with the mean and the contrast of `seen`: the exposure may have changed."""
    weight = weight / weight.sum()
    means = weight @ seen, weight @ moved
    spreads = [
        float(np.sqrt(weight @ (values - mean) ** 2))
        for values, mean in zip((seen, moved), means, strict=True)
    ]
    gain = min(max(spreads[0] / max(spreads[1], 1e-6), _GAINS[0]), _GAINS[1])
    exposed: Floats = gain * (moved - means[1]) + means[0]
    return exposed


def _sample(image: Floats, x: Floats, y: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return bilinear values at (x, y) and where these lie inside."""
    from scipy.ndimage import map_coordinates  # loaded by then, with the filters

    height, width = image.shape
    inside = (x >= 0.0) & (x < width - 1.0) & (y >= 0.0) & (y < height - 1.0)
    return map_coordinates(image, [y, x], order=1, mode='nearest'), inside
