"""Rays by Embree: static geometry baked once, moving geoms as instances, round geoms exact.

One scan is: the moving scene, whose tree is small; then the static one, which starts from the
ranges that the first left, so the nearest hit wins, and the large tree gets the shortest rays.
What Embree cannot hold exactly (moving planes, large tilted ones, signed distances) MuJoCo casts.
"""

from __future__ import annotations

import ctypes
import dataclasses
import weakref

import mujoco
import numpy as np
import numpy.typing as npt

from rig_common.arrays import Flags, Floats, Floats32, Ints, Ints32
from sim_sensors.raycast import embree_api as api
from sim_sensors.raycast import embree_shapes as shapes
from sim_sensors.raycast.arrangement import Arrangement
from sim_sensors.raycast.instances import Instances
from sim_sensors.raycast.multiray import MujocoCaster
from sim_sensors.raycast.packets import Packets
from sim_sensors.raycast.ray_caster import Hits, RayCaster, Surface
from sim_sensors.raycast.shape_exceptions import Exceptions

_FAR_FROM_ZERO_M = 100.0
"""Worlds whose static middle lies farther out than this are baked around that middle."""
_FIRST_PLANE_BIT, _LAST_PLANE_BIT = 1, 31
"""Bits of the ray mask that say whether a baked plane shows its front; bit 0 is all the rest."""
_FRAMED, _MOVING = 1, 2
"""Whose normals Embree gives in another frame."""


class EmbreeCaster(RayCaster):
    """Embree's answer to `cast`; float32, within 0.1 mm of MuJoCo's."""

    name = 'embree'

    def __init__(
        self,
        model: mujoco.MjModel,
        max_range_m: float,
        visible: Flags,
        arrangement: Arrangement = Arrangement(),  # noqa: B008 - frozen
    ) -> None:
        """Bake the `visible` ([ngeom]) static geoms of `model`; takes ~0.3 us a triangle.

        `arrangement` groups the rays: ranges do not depend on it, but on the edge of two
        triangles either one's normal may come.
        """
        self._embree = api.load_embree()
        self._arrangement = arrangement
        self._packets: dict[int, Packets] = {}
        self._model = model
        self._max_range_m = max_range_m
        self._data: mujoco.MjData | None = None
        self._xpos = self._xmat = np.empty((0, 0))
        self._exceptions = Exceptions(model, max_range_m, visible)
        self._build(visible)
        moved = self._moving.scene if self._moving is not None else None
        scenes = [scene for scene in (moved, self._static) if scene is not None]
        self._release = weakref.finalize(self, self._embree.release, scenes)
        self.reason = f'Embree, {arrangement}'

    def cast(
        self, data: mujoco.MjData, origins: Floats, directions: Floats, surface: Surface = 'none'
    ) -> Hits:
        """Cast rays; see `RayCaster.cast`."""
        count = len(directions)
        packets = self._packets.get(count)
        if packets is None:
            packets = self._packets[count] = self._new_packets(count)
        self._bind(data)
        packets.aim(origins - self._centre if self._centred else origins, directions)
        self._begin(origins, packets)
        if self._moving is not None:
            self._moving.move(self._xpos, self._xmat)
            packets.trace(self._moving.scene)
        if self._static is not None:
            packets.trace(self._static)
        hits = packets.collect()
        if surface != 'none':
            self._add_surface(directions, packets, surface == 'normal')
        if self._rest is not None:
            _merge(hits, self._rest.cast(data, origins, directions, surface))
        self._exceptions.amend(data, origins, directions, hits)
        return hits

    def close(self) -> None:
        """Free Embree's memory."""
        self._release()

    def _build(self, visible: Flags) -> None:
        """Sort the geoms into static and moving ones, and a rest that MuJoCo casts."""
        model = self._model
        still = mujoco.MjData(model)
        mujoco.mj_kinematics(model, still)
        frames = still.geom_xmat.reshape(-1, 3, 3)
        self._frame_of = np.zeros(model.ngeom + 1, np.uint8)  # the last is for a miss, geom -1
        static = model.body_weldid[model.geom_bodyid] == 0
        known = visible & np.isin(model.geom_type, shapes.KNOWN)
        is_plane = visible & (model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
        planes = [
            geom
            for geom in np.flatnonzero(is_plane).tolist()
            if shapes.is_bakeable_plane(model, geom, frames[geom])
        ][: _LAST_PLANE_BIT - _FIRST_PLANE_BIT + 1]
        rest = visible & ~known
        rest[planes] = False
        self._rest = MujocoCaster(model, self._max_range_m, rest) if rest.any() else None

        self._centre = _bake_centre(still.geom_xpos[known & static])
        self._centred = bool(self._centre.any())
        self._static, self._framed = self._bake(still, known & static, planes)
        self._moving: Instances | None = None
        moving = np.flatnonzero(known & ~static)
        self._frame_of[moving] = _MOVING
        if moving.size:
            self._moving = self._new_moving(moving, still)

    def _new_moving(
        self,
        geoms: Ints,
        still: mujoco.MjData,
        shared: Instances | None = None,
        memory: Floats32 | None = None,
    ) -> Instances:
        """Return a scene of `geoms` that move, as `still` has them; see `Instances`."""
        scene = self._embree.new_scene(api.SCENE_DYNAMIC | api.SCENE_ROBUST)
        made = Instances(self._embree, self._model, geoms, self._centre, scene, shared, memory)
        made.place(still.geom_xpos, still.geom_xmat.reshape(-1, 3, 3))
        made.attach(self._model.ngeom + 1)
        self._embree.commit(scene)
        return made

    def _bake(
        self, still: mujoco.MjData, chosen: Flags, planes: list[int]
    ) -> tuple[ctypes.c_void_p | None, Instances | None]:
        """Return the static scene, if any, and those of its geoms that are instanced."""
        self._fronts: list[tuple[int, Floats, float]] = []  # bit, normal, offset
        if not chosen.any() and not planes:
            return None, None
        embree, model = self._embree, self._model
        scene = embree.new_scene(api.SCENE_ROBUST)
        framed = [g for g in np.flatnonzero(chosen) if shapes.needs_own_frame(model, int(g))]
        chosen = chosen.copy()
        chosen[framed] = False
        for geom in np.flatnonzero(chosen).tolist() + planes:
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
            self._frame_of[framed] = _FRAMED
            instances = Instances(embree, model, np.array(framed), self._centre, scene)
            instances.place(still.geom_xpos, still.geom_xmat.reshape(-1, 3, 3))
            instances.attach(model.ngeom)
        embree.commit(scene)
        return scene, instances

    def _new_packets(self, count: int) -> Packets:
        """Return memory for `count` rays, as a plain list if they are not whole columns."""
        arrangement = self._arrangement
        if count % arrangement.rows:
            arrangement = dataclasses.replace(arrangement, rows=1)
        return Packets(self._embree, count, arrangement)

    def _bind(self, data: mujoco.MjData) -> None:
        """Keep the views of `data` that every scan reads: making them costs as much as a ray."""
        if data is not self._data:
            self._data = data
            self._xpos, self._xmat = data.geom_xpos, data.geom_xmat.reshape(-1, 3, 3)

    def _begin(self, origins: Floats, packets: Packets) -> None:
        """Begin every ray with the maximum range, and with the planes that it is in front of."""
        if self._fronts:
            packets.mask(self._visible_fronts(origins))
        packets.start(self._max_range_m)

    def _visible_fronts(self, origins: Floats) -> int | npt.NDArray[np.uint32]:
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
            height = origins.dot(normal)
            if height.min() < offset:
                masks = np.full(len(origins), api.EVERY_BIT, np.uint32) if masks is None else masks
                masks[height < offset] &= np.uint32(api.EVERY_BIT & ~bit)
        return api.EVERY_BIT if masks is None else masks

    def _add_surface(self, directions: Floats, packets: Packets, want_normal: bool) -> None:
        hits = packets.hits
        hits.cos_incidence = cosines = packets.cosines()
        normals = packets.normals() if want_normal else None
        frames = self._frame_of.take(hits.geom)
        for instances, number in ((self._framed, _FRAMED), (self._moving, _MOVING)):
            rays = np.flatnonzero(frames == number)
            if instances is None or not rays.size:
                continue
            turned = self._own_normals(instances, packets, rays)
            square = np.einsum('ij,ij->i', turned, turned)
            along = np.einsum('ij,ij->i', turned, directions[rays])
            cosines[rays] = np.sqrt(along * along / square)
            if normals is not None:
                normals[rays] = turned
        if normals is not None:
            hits.normal = _unit_facing(normals, directions, hits.geom)

    def _own_normals(self, instances: Instances, packets: Packets, rays: Ints) -> Floats32:
        """Return [m, 3] normals in the world of `rays` [m] that met `instances`."""
        return instances.normals(packets.normals_of(rays), packets.hits.geom[rays])


def _unit_facing(normal: Floats32, directions: Floats, geom: Ints32) -> Floats32:
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


def _bake_centre(positions: Floats) -> Floats:
    """Return [3] the point around which float32 keeps its digits; zero for ordinary worlds."""
    middle = positions.mean(axis=0) if len(positions) else np.zeros(3)
    return np.round(middle) if np.linalg.norm(middle) > _FAR_FROM_ZERO_M else np.zeros(3)
