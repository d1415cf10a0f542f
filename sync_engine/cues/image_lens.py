"""The lens of a camera, taken off the image cue's small picture once and for all.

The cue works on a pinhole camera with its axis in the middle. Where CameraInfo says otherwise
(distortion, a fisheye, an axis beside the middle), every pixel of such a pinhole is looked up in
the small picture, at places that are found once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rig_common.arrays import Floats

FISHEYES = ('equidistant', 'fisheye')
MODELS = ('plumb_bob', 'rational_polynomial', *FISHEYES)
_WIDEST = 1.43
"""Tangent of the widest angle off the axis that is used (55 degrees): a pinhole stretches what
lies further out."""
_BESIDE = 0.015
"""Share of the width by which a pinhole's axis may lie beside the middle and be taken for it."""


@dataclass(frozen=True, slots=True)
class CameraLens:
    """What CameraInfo says: focal lengths and centre in px of a picture of `width`, model."""

    focal_px: tuple[float, float]
    centre_px: tuple[float, float]
    width: int
    model: str = 'plumb_bob'
    d: tuple[float, ...] = ()

    def for_width(self, width: float) -> CameraLens:
        """Return the lens for the same picture at another width."""
        share = width / self.width if self.width else 1.0
        return replace(
            self,
            focal_px=(self.focal_px[0] * share, self.focal_px[1] * share),
            centre_px=(
                (self.centre_px[0] + 0.5) * share - 0.5,
                (self.centre_px[1] + 0.5) * share - 0.5,
            ),
            width=round(width),
        )

    @property
    def bends(self) -> bool:
        """Whether its picture differs from that of a pinhole."""
        return any(self.d) or self.model in FISHEYES

    def seen_at(self, x: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return the picture's pixel (u, v) of directions given by x/z and y/z."""
        bent = _fisheye if self.model in FISHEYES else _brown
        x, y = bent(x, y, self.d)
        return (
            x * self.focal_px[0] + self.centre_px[0],
            y * self.focal_px[1] + self.centre_px[1],
        )


def is_plain(lens: CameraLens, size_px: tuple[float, float]) -> bool:
    """Return whether a picture of this size (width, height) is a pinhole's, axis in the middle."""
    beside = [abs(at - 0.5 * (size - 1)) for at, size in zip(lens.centre_px, size_px, strict=True)]
    return not lens.bends and max(beside) < _BESIDE * size_px[0]


def _brown(x: Floats, y: Floats, d: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Brown's model: k1 k2 p1 p2 k3, and as a fraction k4 k5 k6, and thin prism s1 .. s4."""
    k1, k2, p1, p2, k3, k4, k5, k6, s1, s2, s3, s4 = (*d, *[0.0] * 12)[:12]
    r2 = x * x + y * y
    radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3))
    if k4 or k5 or k6:
        radial = radial / (1.0 + r2 * (k4 + r2 * (k5 + r2 * k6)))
    xy = 2.0 * x * y
    return (
        x * radial + p1 * xy + p2 * (r2 + 2.0 * x * x) + r2 * (s1 + s2 * r2),
        y * radial + p1 * (r2 + 2.0 * y * y) + p2 * xy + r2 * (s3 + s4 * r2),
    )


def _fisheye(x: Floats, y: Floats, d: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Angles off the axis become radii: a (1 + k1 a^2 + k2 a^4 + k3 a^6 + k4 a^8)."""
    k1, k2, k3, k4 = (*d, *[0.0] * 4)[:4]
    r = np.hypot(x, y)
    angle = np.arctan(r)
    a2 = angle * angle
    bent = angle * (1.0 + a2 * (k1 + a2 * (k2 + a2 * (k3 + a2 * k4))))
    share = np.divide(bent, r, out=np.ones_like(r), where=r > 1e-9)
    return x * share, y * share


class Straightened:
    """Looks a pinhole's picture up in the small picture of a real camera."""

    def __init__(
        self, lens: CameraLens, shape: tuple[int, int], block: float, width_px: int
    ) -> None:
        """`shape` of the small picture, each pixel of which is `block` of the lens's pixels."""
        height, width = shape
        reach = [_reach(lens, axis, size * block) for axis, size in ((0, width), (1, height))]
        self.focal_px = min(min(lens.focal_px) / block, width_px / (2.0 * reach[0]))
        """Of the pinhole, in its own pixels."""
        columns, rows = (max(8, int(2.0 * each * self.focal_px)) for each in reach)
        self.shape = rows, columns
        y, x = np.mgrid[:rows, :columns].astype(np.float64)
        u, v = lens.seen_at(
            (x - 0.5 * (columns - 1)) / self.focal_px, (y - 0.5 * (rows - 1)) / self.focal_px
        )
        # The middle of a small pixel lies half a block after its first pixel.
        u, v = ((each + 0.5) / block - 0.5 for each in (u, v))
        self.row_shares: Floats = (v + 0.5) / height - 0.5
        """Where in the readout of the camera's picture every pixel is, -0.5 to 0.5."""
        self._places = np.stack([v, u])

    def of(self, small: Floats) -> Floats:
        """Return the pinhole's picture."""
        from scipy.ndimage import map_coordinates

        return np.asarray(map_coordinates(small, self._places, order=1, mode='nearest'))


def _reach(lens: CameraLens, axis: int, size_px: float) -> float:
    """Return the tangent of the angle off the axis up to which the picture shows both sides.

    A polynomial folds beyond its turning point; what lies there is no direction.
    """
    tangents = np.linspace(0.0, _WIDEST, 287)
    zeros = np.zeros_like(tangents)
    reach = _WIDEST
    for sign in (-1.0, 1.0):
        along = sign * tangents
        at = lens.seen_at(along, zeros)[0] if axis == 0 else lens.seen_at(zeros, along)[1]
        seen = (at >= 0.0) & (at <= size_px - 1.0)
        seen[1:] &= sign * np.diff(at) > 0.0
        if not seen.all():
            reach = min(reach, float(tangents[max(int(np.argmin(seen)) - 1, 1)]))
    return reach
