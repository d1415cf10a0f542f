"""Rays against planes that are moving, or both tilted and very large, solved directly.

As in MuJoCo a plane is seen from its front only. Distances are kept inverted: a ray that runs
along a plane then has 0 instead of a division by zero.
"""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ints, Ints32


class Planes:
    """Some planes of a model; a size of 0 is endless along that axis."""

    def __init__(self, model: mujoco.MjModel, geoms: Ints) -> None:
        """Take the planes `geoms` of `model`; their poses come with `place`."""
        self.geoms: list[int] = geoms.tolist()
        self._half = model.geom_size[geoms, :2].tolist()
        self.moves = bool((model.body_weldid[model.geom_bodyid[geoms]] != 0).any())
        self._axes: list[Floats] = []
        self._shift: list[Floats] = []

    def place(self, xpos: Floats, xmat: Floats) -> None:
        """Take the poses out of those of all geoms, [ngeom, 3] and [ngeom, 3, 3]."""
        if self._axes and not self.moves:
            return
        self._axes = [xmat[geom].T.copy() for geom in self.geoms]
        self._shift = [
            axes @ xpos[geom] for axes, geom in zip(self._axes, self.geoms, strict=True)
        ]

    def normal(self, index: int) -> Floats:
        """Return [3] the normal in the world of plane `index` of `geoms`."""
        normal: Floats = self._axes[index][2]
        return normal

    def nearest(self, origins: Floats, directions: Floats, inverse: Floats, geom: Ints32) -> None:
        """Put nearer planes into `inverse` distance and `geom`, both [n]."""
        for index, number in enumerate(self.geoms):
            up = self._axes[index][2]
            height = origins @ up - self._shift[index][2]
            if height.ndim == 0:
                if height <= 0.0:
                    continue
                found = directions @ (up * (-1.0 / height))
            else:
                found = directions @ up
                found /= -np.maximum(height, 1e-12)
                found[height <= 0.0] = 0.0
            nearer = found > inverse
            for axis, half in enumerate(self._half[index]):
                if half > 0.0:
                    side = self._axes[index][axis]
                    along = directions @ side
                    along += (origins @ side - self._shift[index][axis]) * found
                    nearer &= np.abs(along, out=along) <= half * found
            np.copyto(inverse, found, where=nearer)
            np.copyto(geom, number, where=nearer)
