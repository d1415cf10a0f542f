"""What the backends answer differently or not at all: rays from inside a geom, and flexes.

A ray that starts inside a box, a sphere or another round geom ends at that geom's inner side; some
backends pass through it. Flexes (cloth, soft bodies) are no geoms, so neither backend sees them.
Both are rare and few, so they are cast ray by ray with MuJoCo's exact functions, and the nearer
hit wins.
"""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common.arrays import Flags, Floats, Ids, Ints32
from sim_sensors.raycast.ray_caster import Hits

G = mujoco.mjtGeom
SOLID = tuple(
    int(kind)
    for kind in (
        G.mjGEOM_SPHERE,
        G.mjGEOM_CAPSULE,
        G.mjGEOM_ELLIPSOID,
        G.mjGEOM_CYLINDER,
        G.mjGEOM_BOX,
    )
)

_ROUNDING_M = 1e-9
"""More than rounding makes of a metre."""


class Exceptions:
    """Amends the answer of a backend for one model."""

    def __init__(self, model: mujoco.MjModel, max_range_m: float, visible: Flags) -> None:
        self._model, self._max_range_m = model, max_range_m
        self.solids: Ids = np.flatnonzero(visible & np.isin(model.geom_type, SOLID))
        """The geoms that a ray may start inside of."""
        self._reach = _reach(model)[self.solids]
        # Written to in every scan: making them takes as long as the arithmetic.
        self._away, self._is_near = np.empty(self._reach.shape), np.empty(self._reach.shape, bool)
        self.flexes = [flex for flex in range(model.nflex) if _is_seen(model, flex)]
        """Those that rays see."""
        self._normal = np.zeros(3)

    def amend(self, data: mujoco.MjData, origins: Floats, directions: Floats, hits: Hits) -> None:
        """Put nearer hits into `hits`, whose arrays are of `directions` [n, 3]."""
        for geom in self._around(data, origins):
            position, axes = data.geom_xpos[geom], data.geom_xmat[geom]
            size, kind = self._model.geom_size[geom], int(self._model.geom_type[geom])
            for ray, direction in enumerate(directions):
                origin = origins if origins.ndim == 1 else origins[ray]
                distance = mujoco.mju_rayGeom(
                    position, axes, size, origin, direction, kind, self._normal
                )
                self._take(hits, ray, distance, geom, direction)
        for flex in self.flexes:
            self._cast_flex(data, flex, origins, directions, hits)

    def _around(self, data: mujoco.MjData, origins: Floats) -> list[int]:
        """Return the solid geoms that the (middle) origin is inside of."""
        if not len(self.solids):
            return []
        origin = origins if origins.ndim == 1 else np.add.reduce(origins) / len(origins)
        away, is_near = self._away, self._is_near
        np.subtract(data.geom_xpos.take(self.solids, 0, away, 'clip'), origin, out=away)
        np.less_equal(np.abs(away, out=away), self._reach, out=is_near)
        near = np.logical_and.reduce(is_near, 1).nonzero()[0]
        if not len(near):
            return []
        geoms = self.solids[near]
        axes = data.geom_xmat[geoms].reshape(-1, 3, 3)
        points = np.einsum('ni,nij->nj', origin - data.geom_xpos[geoms], axes)
        inside = self.holds(near, points)
        found: list[int] = geoms[inside].tolist()
        return found

    def holds(self, solids: Ids, points: Floats) -> Flags:
        """Return which of n points, in the frames of `solids` by rank, are inside them, [n]."""
        geoms = self.solids[solids]
        return is_inside(self._model.geom_type[geoms], self._model.geom_size[geoms], points)

    def _cast_flex(
        self, data: mujoco.MjData, flex: int, origins: Floats, directions: Floats, hits: Hits
    ) -> None:
        model = self._model
        start, count = int(model.flex_vertadr[flex]), int(model.flex_vertnum[flex])
        points = data.flexvert_xpos[start : start + count]
        middle = 0.5 * (points.min(0) + points.max(0))
        reach = float(np.linalg.norm(points - middle, axis=1).max()) + float(
            model.flex_radius[flex]
        )
        to_middle = np.broadcast_to(middle - origins, directions.shape)
        along = np.einsum('ij,ij->i', to_middle, directions)
        aside = (to_middle * to_middle).sum(1) - along**2
        is_line = int(model.flex_dim[flex]) == 1
        for ray in np.flatnonzero((aside <= reach**2) & (along > -reach)).tolist():
            origin = origins if origins.ndim == 1 else origins[ray]
            distance = mujoco.mj_rayFlex(
                model,
                data,
                0,
                False,
                is_line,
                not is_line,
                False,
                flex,
                origin,
                directions[ray],
                None,
                self._normal,
            )
            self._take(hits, ray, distance, flex_id(flex), directions[ray])

    def _take(self, hits: Hits, ray: int, distance_m: float, geom: int, direction: Floats) -> None:
        """Take a hit that is nearer than what `ray` has; `self._normal` is its normal."""
        if not 0.0 <= distance_m <= self._max_range_m or distance_m >= hits.range_m[ray] - 1e-6:
            return
        hits.range_m[ray], hits.geom[ray] = distance_m, geom
        if hits.cos_incidence is not None:
            cosine = float(self._normal @ direction)
            hits.cos_incidence[ray] = abs(cosine)
            if hits.normal is not None:
                hits.normal[ray] = -self._normal if cosine > 0.0 else self._normal


def flex_id(flex: int) -> int:
    """Return what stands for a flex where others have the id of a geom, see `Hits.geom`."""
    return -2 - flex


def flex_material(model: mujoco.MjModel, flex: int) -> int:
    """Return the material of a flex, -1 for none; MuJoCo 4 has one for each of its elements."""
    by_element = len(model.flex_matid) != model.nflex
    return int(model.flex_matid[model.flex_elemadr[flex] if by_element else flex])


def _is_seen(model: mujoco.MjModel, flex: int) -> bool:
    material = flex_material(model, flex)
    alpha = model.flex_rgba[flex, 3] if material < 0 else model.mat_rgba[material, 3]
    return bool(alpha > 0.0)


def _reach(model: mujoco.MjModel) -> Floats:
    """Return how far each geom reaches along the world's axes from its position, m [ngeom, 3].

    What moves reaches as far as its sphere; a wall that stands, whose sphere would hold half a
    yard, as far as its box.
    """
    still = mujoco.MjData(model)
    mujoco.mj_kinematics(model, still)
    axes = np.abs(still.geom_xmat.reshape(-1, 3, 3))
    boxes = np.einsum('nij,nj->ni', axes, model.geom_aabb[:, 3:])
    is_still = model.body_weldid[model.geom_bodyid] == 0
    reach: Floats = np.where(is_still[:, None], boxes, model.geom_rbound[:, None])
    return reach + _ROUNDING_M


def is_inside(kinds: Ints32, sizes: Floats, points: Floats) -> Flags:
    """Return which of n points, each in the frame of a solid geom, are inside it, [n]."""
    x, y, z = np.abs(points).T
    a, b, c = sizes.T
    flat = x * x + y * y
    with np.errstate(divide='ignore', invalid='ignore'):
        oval = (x / a) ** 2 + (y / b) ** 2 + (z / c) ** 2 <= 1.0
    beyond = np.where(kinds == int(G.mjGEOM_CAPSULE), np.maximum(z - b, 0.0), z)
    return np.asarray(
        np.select(
            [
                kinds == int(G.mjGEOM_BOX),
                kinds == int(G.mjGEOM_ELLIPSOID),
                kinds == int(G.mjGEOM_CYLINDER),
            ],
            [(x <= a) & (y <= b) & (z <= c), oval, (flat <= a * a) & (z <= b)],
            flat + beyond * beyond <= a * a,
        )
    )
