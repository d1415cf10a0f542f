"""Rays by MuJoCo's own `mj_multiRay`."""

from __future__ import annotations

import copy

import mujoco
import numpy as np

from rig_common.arrays import Flags, Floats, Ints32
from sim_sensors.raycast.ray_caster import Hits, RayCaster, Surface, visible_geoms
from sim_sensors.raycast.shape_exceptions import Exceptions


class MujocoCaster(RayCaster):
    """`mj_multiRay` with arrays made once; exact for every geom type MuJoCo has.

    It takes one origin a call: rays from a moving origin are cast one by one.
    """

    name = 'mujoco'

    def __init__(self, model: mujoco.MjModel, max_range_m: float, visible: Flags) -> None:
        """Prepare casts against the `visible` ([ngeom]) geoms."""
        self._model = _for_rays(model, visible)
        self._max_range_m = max_range_m
        self._exceptions = Exceptions(model, max_range_m, visible)
        self._cutoff_m = _cutoff_m(self._model, max_range_m)
        self._buffers: dict[int, _Buffers] = {}
        self.reason = 'mj_multiRay'

    def cast(
        self, data: mujoco.MjData, origins: Floats, directions: Floats, surface: Surface = 'none'
    ) -> Hits:
        """Cast rays; see `RayCaster.cast`."""
        count = len(directions)
        buffers = self._buffers.get(count)
        if buffers is None:
            buffers = self._buffers[count] = _Buffers(count)
        normal = None if surface == 'none' else buffers.normal
        if origins.ndim == 1:
            self._cast(data, origins, directions, buffers.geom, buffers.dist, normal)
        else:
            for ray, origin in enumerate(origins):
                one = slice(ray, ray + 1)
                self._cast(
                    data,
                    origin,
                    directions[one],
                    buffers.geom[one],
                    buffers.dist[one],
                    None if normal is None else normal[one],
                )
        hits = buffers.finish(directions, self._max_range_m, surface)
        self._exceptions.amend(data, origins, directions, hits)
        return hits

    def _cast(
        self,
        data: mujoco.MjData,
        origin: Floats,
        directions: Floats,
        geom: Ints32,
        dist: Floats,
        normal: Floats | None,
    ) -> None:
        """Cast rays from one `origin`; write what they meet."""
        mujoco.mj_multiRay(
            self._model,
            data,
            origin,
            directions.reshape(-1),
            None,
            1,
            -1,
            geom,
            dist,
            None if normal is None else normal.reshape(-1),
            len(dist),
            self._cutoff_m,
        )


def _cutoff_m(model: mujoco.MjModel, max_range_m: float) -> float:
    """Return beyond which distance `mj_multiRay` may pass over a geom.

    MuJoCo 3 measures it to a plane's centre: the ground would vanish under a sensor that is
    farther than its range from there. Nothing is passed over then; the range is clipped later.
    """
    has_planes = bool((model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE).any())
    is_old = int(mujoco.__version__.partition('.')[0]) < 4
    return float(mujoco.mjMAXVAL) if is_old and has_planes else max_range_m


class _Buffers:
    """Arrays for casts of one size."""

    def __init__(self, count: int) -> None:
        self.geom = np.empty(count, np.int32)
        self.dist = np.empty(count, np.float64)
        self.normal = np.empty((count, 3), np.float64)
        self.hits = Hits(np.empty(count, np.float32), self.geom)

    def finish(self, directions: Floats, max_range_m: float, surface: Surface) -> Hits:
        """Turn MuJoCo's answer into `Hits`: misses are +inf, normals face the ray."""
        hits = self.hits
        # -1 is MuJoCo's miss; its cutoff only drops far geoms, so the range is clipped here.
        missed = (self.geom < 0) | (self.dist > max_range_m)
        hits.range_m[:] = self.dist
        hits.range_m[missed] = np.inf
        self.geom[missed] = -1
        hits.cos_incidence = hits.normal = None
        if surface != 'none':
            cosine = np.einsum('ij,ij->i', self.normal, directions)
            cosine[missed] = 0.0
            hits.cos_incidence = np.abs(cosine).astype(np.float32)
            if surface == 'normal':
                self.normal[missed] = 0.0
                facing = self.normal * np.where(cosine > 0.0, -1.0, 1.0)[:, None]
                hits.normal = facing.astype(np.float32)
        return hits


def _for_rays(model: mujoco.MjModel, visible: Flags) -> mujoco.MjModel:
    """Return `model`, or a copy in which `mj_multiRay` meets all `visible` geoms and no other.

    MuJoCo's own arguments can exclude one body and whole groups only, so what is hidden gets
    alpha 0. And `mj_multiRay` passes over a body whose bounding volume a ray misses, though that
    volume holds the geoms that collide only: rays went through the shells of robots. A body
    without such a volume is looked at geom by geom, as `mj_ray` does.
    """
    hidden = visible_geoms(model) & ~visible
    collides = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
    uncovered = np.unique(model.geom_bodyid[visible & ~collides])
    if not hidden.any() and not len(uncovered):
        return model
    shown = copy.copy(model)
    shown.geom_matid[~visible] = -1
    shown.geom_rgba[~visible, 3] = 0.0
    shown.body_bvhadr[uncovered] = -1
    return shown
