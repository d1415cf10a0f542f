"""Where geoms are in many environments at once, and which of them may hold a point."""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ids, Ints

Found = tuple[Ids, Ids, Floats]
"""Rows, ranks of solids, and points in their frames."""
ROUNDING_M = 1e-4
"""What bounds are widened by, m; it costs nothing to look at one more."""


class Poses:
    """Poses of some geoms by those of the bodies that carry them."""

    def __init__(self, model: mujoco.MjModel, geoms: Ints) -> None:
        self.geoms = geoms
        self._bodies = model.geom_bodyid[geoms]
        self._local = model.geom_pos[geoms]
        axes = np.empty((len(geoms), 9))
        for row, geom in enumerate(geoms.tolist()):
            mujoco.mju_quat2Mat(axes[row], model.geom_quat[geom])
        self._axes = axes.reshape(-1, 3, 3)

    def positions(self, xpos: Floats, xmat: Floats) -> Floats:
        """Return [n, m, 3] for bodies at [n, nbody, 3] with axes [n, nbody, 9]."""
        return self._shifted(xpos, self._turns(xmat))

    def of(self, xpos: Floats, xmat: Floats) -> tuple[Floats, Floats]:
        """Return positions [n, m, 3] and axes [n, m, 3, 3]."""
        turns = self._turns(xmat)
        return self._shifted(xpos, turns), turns @ self._axes

    def axes_of(self, xmat: Floats, rows: Ids, ranks: Ids) -> Floats:
        """Return the axes [k, 3, 3] of the geoms `ranks` [k] in the environments `rows` [k]."""
        turns: Floats = xmat[rows, self._bodies[ranks]].reshape(-1, 3, 3) @ self._axes[ranks]
        return turns

    def _turns(self, xmat: Floats) -> Floats:
        return xmat[:, self._bodies].reshape(len(xmat), -1, 3, 3)

    def _shifted(self, xpos: Floats, turns: Floats) -> Floats:
        shifted: Floats = xpos[:, self._bodies] + np.einsum('nmij,mj->nmi', turns, self._local)
        return shifted


class Solids:
    """Finds the solid geoms that may hold a point, in many environments."""

    def __init__(self, model: mujoco.MjModel, geoms: Ids) -> None:
        still = mujoco.MjData(model)
        mujoco.mj_kinematics(model, still)
        static = model.body_weldid[model.geom_bodyid[geoms]] == 0
        self._fixed, self._moving = np.flatnonzero(static), np.flatnonzero(~static)
        self._places = still.geom_xpos[geoms[self._fixed]].copy()
        self._axes = still.geom_xmat[geoms[self._fixed]].reshape(-1, 3, 3).copy()
        box = model.geom_aabb[geoms[self._fixed]].reshape(-1, 2, 3)
        middles = self._places + np.einsum('nij,nj->ni', self._axes, box[:, 0])
        halves = np.einsum('nij,nj->ni', np.abs(self._axes), box[:, 1]) + ROUNDING_M
        self._low, self._high = np.array((middles - halves).T), np.array((middles + halves).T)
        """[3, m] corners of the boxes along the world's axes that hold what does not move, m."""
        self._reach = model.geom_rbound[geoms[self._moving]]
        self._poses = Poses(model, geoms[self._moving])

    def near(self, origins: Floats, slack_m: float, xpos: Floats, xmat: Floats) -> Found:
        """Return rows, ranks of solids, and the middles of the rows' origins in their frames.

        The first of a row's origins [n, k, 3] is no farther than `slack_m` from their middle.
        """
        points = origins[:, 0]
        found = [self._near_fixed(points, origins, slack_m)]
        if len(self._moving):
            places = self._poses.positions(xpos, xmat)
            away = points[:, None] - places
            close = np.einsum('nmk,nmk->nm', away, away) <= np.square(self._reach + slack_m)
            if close.any():
                rows, ranks = close.nonzero()
                away = origins[rows].mean(axis=1) - places[rows, ranks]
                axes = self._poses.axes_of(xmat, rows, ranks)
                found.append((rows, self._moving[ranks], np.einsum('ni,nij->nj', away, axes)))
        return found[0] if len(found) == 1 else _joined(found)

    def _near_fixed(self, points: Floats, origins: Floats, slack_m: float) -> Found:
        """Return `near` for what does not move."""
        held = np.ones((len(points), len(self._fixed)), np.bool_)
        for across, low, high in zip(points.T[:, :, None], self._low, self._high, strict=True):
            held &= across >= low - slack_m
            held &= across <= high + slack_m
            if not held.any():  # nearly always after x and y
                return _NOTHING
        rows, ranks = held.nonzero()
        away = origins[rows].mean(axis=1) - self._places[ranks]
        return rows, self._fixed[ranks], np.einsum('ni,nij->nj', away, self._axes[ranks])


_NOTHING: Found = (np.empty(0, np.intp), np.empty(0, np.intp), np.empty((0, 3)))


def _joined(found: list[Found]) -> Found:
    rows, ranks, points = zip(*found, strict=True)
    return np.concatenate(rows), np.concatenate(ranks), np.concatenate(points)
