"""Rays by Embree: static geometry baked once, moving geoms as instances, round geoms exact.

One scan is: planes that cannot be baked, solved directly, which shorten the rays; then the static
scene; then the moving one. Each step starts from the ranges that the one before left, so the
nearest hit wins.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Literal

import mujoco
import numpy as np
import numpy.typing as npt

from sim_sensors.raycast import embree_api as api
from sim_sensors.raycast import embree_shapes as shapes
from sim_sensors.raycast.base import F32, F64, Bool, Hits, RayCaster, Surface
from sim_sensors.raycast.instances import Instances
from sim_sensors.raycast.multiray import MujocoCaster
from sim_sensors.raycast.packets import Packets
from sim_sensors.raycast.planes import Planes

_FAR_FROM_ZERO_M = 100.0
"""Worlds whose static middle lies farther out than this are baked around that middle."""
_FIRST_PLANE_BIT, _LAST_PLANE_BIT = 1, 31
"""Bits of the ray mask that say whether a baked plane shows its front; bit 0 is all the rest."""


class EmbreeCaster(RayCaster):
    """Embree's answer to `cast`; float32, within 0.1 mm of MuJoCo's."""

    name = 'embree'

    def __init__(
        self,
        model: mujoco.MjModel,
        max_range_m: float,
        visible: Bool,
        packet: int = 16,
        moving: Literal['embree', 'mujoco'] = 'embree',
    ) -> None:
        """Bake the `visible` ([ngeom]) static geoms of `model`; takes ~0.3 us a triangle.

        `packet` is the number of rays a call: 16 suits any order of rays, 8 is faster where
        neighbours in the list are neighbours in space. `moving` says who casts at moving geoms:
        with few rays MuJoCo is done before Embree has moved them.
        """
        self._embree = api.load_embree()
        self._intersect = getattr(self._embree.library, f'rtcIntersect{packet}')
        self._packet = packet
        self._packets: dict[int, Packets] = {}
        self._model = model
        self._max_range_m = max_range_m
        self._data: mujoco.MjData | None = None
        self._xpos = self._xmat = np.empty((0, 0))
        self._build(visible, moving == 'mujoco')
        scenes = [scene for scene in (self._moving_scene, self._static) if scene]
        self._release = weakref.finalize(self, self._embree.release, scenes)
        self.reason = f'Embree, {packet} rays a call, moving geoms by {moving}'

    def cast(
        self, data: mujoco.MjData, origins: F64, directions: F64, surface: Surface = 'none'
    ) -> Hits:
        """Cast rays; see `RayCaster.cast`."""
        count = len(directions)
        packets = self._packets.get(count)
        if packets is None:
            packets = self._packets[count] = Packets(count, self._packet)
        self._bind(data)
        packets.aim(origins - self._centre if self._centred else origins, directions)
        self._begin(origins, directions, packets)
        if self._static:
            packets.trace(self._intersect, self._static)
        if self._moving is not None:
            self._moving.place(self._xpos, self._xmat)
            self._moving.update()
            self._embree.library.rtcCommitScene(self._moving_scene)
            packets.trace(self._intersect, self._moving_scene)
        hits = packets.collect()
        if surface != 'none':
            self._add_surface(directions, packets, surface == 'normal')
        if self._rest is not None:
            _merge(hits, self._rest.cast(data, origins, directions, surface))
        return hits

    def close(self) -> None:
        """Free Embree's memory."""
        self._release()

    def _build(self, visible: Bool, leave_moving: bool) -> None:
        """Sort the geoms into planes, static and moving ones, and a rest that MuJoCo casts."""
        model = self._model
        still = mujoco.MjData(model)
        mujoco.mj_kinematics(model, still)
        frames = still.geom_xmat.reshape(-1, 3, 3)
        plane = visible & (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
        planes = [int(geom) for geom in np.flatnonzero(plane)]
        planes = [geom for geom in planes if shapes.is_bakeable_plane(model, geom, frames[geom])]
        baked_planes = planes[: _LAST_PLANE_BIT - _FIRST_PLANE_BIT + 1]
        plane[baked_planes] = False
        self._planes = Planes(model, np.flatnonzero(plane)) if plane.any() else None
        static = model.body_weldid[model.geom_bodyid] == 0
        known = visible & np.isin(model.geom_type, shapes.KNOWN)
        if leave_moving:
            known &= static
        rest = visible & ~known & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)
        self._rest = MujocoCaster(model, self._max_range_m, rest) if rest.any() else None

        self._centre = _bake_centre(still.geom_xpos[known & static])
        self._centred = bool(self._centre.any())
        self._static, self._framed = self._bake(still, known & static, baked_planes)
        self._moving: Instances | None = None
        self._moving_scene = 0
        moving = np.flatnonzero(known & ~static)
        if moving.size:
            self._moving = Instances(self._embree, model, moving, self._centre)
            self._moving.place(still.geom_xpos, still.geom_xmat)
            self._moving_scene = self._embree.new_scene(api.SCENE_DYNAMIC | api.SCENE_ROBUST)
            self._moving.attach(self._moving_scene, model.ngeom + 1)
            self._embree.commit(self._moving_scene)

    def _bake(
        self, still: mujoco.MjData, chosen: Bool, planes: list[int]
    ) -> tuple[int, Instances | None]:
        """Return the static scene (0 for none) and those of its geoms that are instanced."""
        self._fronts: list[tuple[int, F64, float]] = []  # bit, normal, offset
        if not chosen.any() and not planes:
            return 0, None
        embree, model = self._embree, self._model
        scene = embree.new_scene(api.SCENE_ROBUST)
        framed = [g for g in np.flatnonzero(chosen) if shapes.needs_own_frame(model, int(g))]
        chosen = chosen.copy()
        chosen[framed] = False
        for geom in [int(geom) for geom in np.flatnonzero(chosen)] + planes:
            pos, mat = still.geom_xpos[geom], still.geom_xmat[geom].reshape(3, 3)
            shape = shapes.make_shape(embree, model, geom, pos - self._centre, mat)
            if geom in planes:
                bit = 1 << (_FIRST_PLANE_BIT + len(self._fronts))
                self._fronts.append((bit, mat[:, 2].copy(), float(mat[:, 2] @ pos)))
                embree.library.rtcSetGeometryMask(shape, bit)
                embree.library.rtcCommitGeometry(shape)
            embree.attach(scene, shape, geom)
        instances = None
        if framed:
            instances = Instances(embree, model, np.array(framed), self._centre)
            instances.place(still.geom_xpos, still.geom_xmat)
            instances.attach(scene, model.ngeom)
        embree.commit(scene)
        return scene, instances

    def _bind(self, data: mujoco.MjData) -> None:
        """Keep the views of `data` that every scan reads: making them costs as much as a ray."""
        if data is not self._data:
            self._data = data
            self._xpos, self._xmat = data.geom_xpos, data.geom_xmat

    def _begin(self, origins: F64, directions: F64, packets: Packets) -> None:
        """Begin every ray with the nearest unbaked plane it meets, or with the maximum range."""
        if self._fronts:
            packets.mask(self._visible_fronts(origins))
        if self._planes is None:
            packets.start(self._max_range_m)
            return
        inverse, geom = packets.start_arrays
        inverse.fill(1.0 / self._max_range_m)
        geom.fill(-1)
        self._planes.place(self._xpos, self._xmat)
        self._planes.nearest(origins, directions, inverse, geom)
        packets.start_from_arrays()

    def _visible_fronts(self, origins: F64) -> int | npt.NDArray[np.uint32]:
        """Return the ray mask without the baked planes that are seen from behind."""
        if origins.ndim == 1:
            x, y, z = origins.tolist()
            mask = api.EVERY_BIT
            for bit, normal, offset in self._fronts:
                nx, ny, nz = normal.tolist()
                if x * nx + y * ny + z * nz < offset:
                    mask &= ~bit
            return mask
        masks = None
        for bit, normal, offset in self._fronts:
            height = origins @ normal
            if height.min() < offset:
                masks = np.full(len(origins), api.EVERY_BIT, np.uint32) if masks is None else masks
                masks[height < offset] &= np.uint32(api.EVERY_BIT & ~bit)
        return api.EVERY_BIT if masks is None else masks

    def _add_surface(self, directions: F64, packets: Packets, want_normal: bool) -> None:
        hits = packets.hits
        hits.cos_incidence = cosines = packets.cosines()
        normals = packets.normals() if want_normal else None
        for rows, turned in self._turned_normals(packets):
            square = np.einsum('ij,ij->i', turned, turned)
            along = np.einsum('ij,ij->i', turned, directions[rows])
            cosines[rows] = np.sqrt(along * along / square)
            if normals is not None:
                normals[rows] = turned
        np.copyto(cosines, 0.0, where=hits.geom < 0)
        if normals is not None:
            hits.normal = _unit_facing(normals, directions, hits.geom)

    def _turned_normals(
        self, packets: Packets
    ) -> Iterator[tuple[npt.NDArray[np.int64], F32 | F64]]:
        """Yield rays whose normals Embree gives in another frame or not at all, and theirs."""
        for instances, number in ((self._framed, 0), (self._moving, 1)):
            if instances is not None:
                rows = packets.rays_in(self._model.ngeom + number)
                if rows.size:
                    yield rows, instances.normals(packets, rows)
        if self._planes is not None:
            # Last, as a ray that ends at a plane may carry an instance of an earlier scan.
            for index, plane in enumerate(self._planes.geoms):
                rows = np.flatnonzero(packets.hits.geom == plane)
                if rows.size:
                    yield rows, np.tile(self._planes.normal(index), (len(rows), 1))


def _unit_facing(normal: F32, directions: F64, geom: npt.NDArray[np.int32]) -> F32:
    """Return [n, 3] normals of unit length that face their rays, 0 on a miss."""
    cosine = np.einsum('ij,ij->i', normal, directions.astype(np.float32))
    with np.errstate(divide='ignore', invalid='ignore'):
        scale = np.float32(1.0) / np.sqrt(np.einsum('ij,ij->i', normal, normal))
    scale[geom < 0] = 0.0
    normal *= np.where(cosine > 0.0, -scale, scale)[:, None]
    return normal


def _merge(hits: Hits, other: Hits) -> None:
    """Let the nearer of two answers win, in `hits`."""
    nearer = other.range_m < hits.range_m
    for mine, theirs in (
        (hits.range_m, other.range_m),
        (hits.geom, other.geom),
        (hits.cos_incidence, other.cos_incidence),
        (hits.normal, other.normal),
    ):
        if mine is not None and theirs is not None:
            mine[nearer] = theirs[nearer]


def _bake_centre(positions: F64) -> F64:
    """Return [3] the point around which float32 keeps its digits; zero for ordinary worlds."""
    middle = positions.mean(axis=0) if len(positions) else np.zeros(3)
    return np.round(middle) if np.linalg.norm(middle) > _FAR_FROM_ZERO_M else np.zeros(3)
