"""Where geoms are in many environments at once, and which of them may hold a point."""

from __future__ import annotations

import mujoco
import numpy as np
import numpy.typing as npt

from sim_sensors.raycast.base import F64

Indices = npt.NDArray[np.intp]
ROUNDING_M = 1e-4
"""What bounds are widened by, m; it costs nothing to look at one more."""


class Poses:
    """Poses of some geoms by those of the bodies that carry them."""

    def __init__(self, model: mujoco.MjModel, geoms: npt.NDArray[np.int64]) -> None:
        self.geoms = geoms
        self._bodies = model.geom_bodyid[geoms]
        self._local = model.geom_pos[geoms]
        axes = np.empty((len(geoms), 9))
        for row, geom in enumerate(geoms.tolist()):
            mujoco.mju_quat2Mat(axes[row], model.geom_quat[geom])
        self._axes = axes.reshape(-1, 3, 3)

    def positions(self, xpos: F64, xmat: F64) -> F64:
        """Return [n, m, 3] for bodies at [n, nbody, 3] with axes [n, nbody, 9]."""
        return self._shifted(xpos, self._turns(xmat))

    def of(self, xpos: F64, xmat: F64) -> tuple[F64, F64]:
        """Return positions [n, m, 3] and axes [n, m, 3, 3]."""
        turns = self._turns(xmat)
        return self._shifted(xpos, turns), turns @ self._axes

    def axes_of(self, xmat: F64, rows: Indices, ranks: Indices) -> F64:
        """Return the axes [k, 3, 3] of the geoms `ranks` [k] in the environments `rows` [k]."""
        turns: F64 = xmat[rows, self._bodies[ranks]].reshape(-1, 3, 3) @ self._axes[ranks]
        return turns

    def _turns(self, xmat: F64) -> F64:
        return xmat[:, self._bodies].reshape(len(xmat), -1, 3, 3)

    def _shifted(self, xpos: F64, turns: F64) -> F64:
        shifted: F64 = xpos[:, self._bodies] + np.einsum('nmij,mj->nmi', turns, self._local)
        return shifted


class Solids:
    """Finds the solid geoms that may hold a point, in many environments."""

    def __init__(self, model: mujoco.MjModel, geoms: Indices) -> None:
        still = mujoco.MjData(model)
        mujoco.mj_kinematics(model, still)
        static = model.body_weldid[model.geom_bodyid[geoms]] == 0
        self._fixed, self._moving = np.flatnonzero(static), np.flatnonzero(~static)
        self._places = still.geom_xpos[geoms[self._fixed]].copy()
        self._axes = still.geom_xmat[geoms[self._fixed]].reshape(-1, 3, 3).copy()
        box = model.geom_aabb[geoms[self._fixed]].reshape(-1, 2, 3)
        self._middles = self._places + np.einsum('nij,nj->ni', self._axes, box[:, 0])
        self._halves = np.einsum('nij,nj->ni', np.abs(self._axes), box[:, 1]) + ROUNDING_M
        """Half the sides of the boxes along the world's axes that hold what does not move, m."""
        self._reach2 = np.square(model.geom_rbound[geoms[self._moving]])
        self._poses = Poses(model, geoms[self._moving])

    def near(self, points: F64, xpos: F64, xmat: F64) -> tuple[Indices, Indices, F64]:
        """Return rows of `points` [n, 3], ranks of solids, and the points in their frames."""
        across = np.abs(points[:, :1] - self._middles[:, 0]) <= self._halves[:, 0]
        rows, ranks = across.nonzero()
        held = (np.abs(points[rows] - self._middles[ranks]) <= self._halves[ranks]).all(axis=1)
        rows, ranks = rows[held], ranks[held]
        local = np.einsum('ni,nij->nj', points[rows] - self._places[ranks], self._axes[ranks])
        if not len(self._moving):
            return rows, self._fixed[ranks], local
        away = points[:, None] - self._poses.positions(xpos, xmat)
        some, those = (np.einsum('nmk,nmk->nm', away, away) <= self._reach2).nonzero()
        axes = self._poses.axes_of(xmat, some, those)
        turned = np.einsum('ni,nij->nj', away[some, those], axes)
        return (
            np.concatenate([rows, some]),
            np.concatenate([self._fixed[ranks], self._moving[those]]),
            np.concatenate([local, turned]),
        )
