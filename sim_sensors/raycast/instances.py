"""Geoms that Embree holds in their own frames and places by a matrix each."""

from __future__ import annotations

import ctypes
import weakref

import mujoco
import numpy as np

from rig_common.arrays import Floats, Floats32, Ids, Ints, Ints32
from sim_sensors.raycast import embree_api as api
from sim_sensors.raycast import embree_shapes as shapes


class _Shapes:
    """The shapes of some geoms, each a scene in its own frame."""

    def __init__(self, embree: api.Embree, model: mujoco.MjModel, geoms: Ints) -> None:
        self.scenes = []
        for geom in geoms:
            own = embree.new_scene(api.SCENE_ROBUST)
            embree.attach(own, shapes.make_shape(embree, model, int(geom)), int(geom))
            embree.commit(own)
            self.scenes.append(own)
        weakref.finalize(self, embree.release, self.scenes)


class Instances:
    """One instance array: a scan moves all its geoms for the price of about half a us each."""

    def __init__(
        self,
        embree: api.Embree,
        model: mujoco.MjModel,
        geoms: Ints,
        centre: Floats,
        scene: ctypes.c_void_p,
        shared: Instances | None = None,
        matrices: Floats32 | None = None,
    ) -> None:
        """Hold `geoms` of `model` for `scene`, in coordinates around `centre` ([3], world).

        `shared` holds the same geoms in another scene; their shapes are then not built again.
        `matrices` [m, 3, 4] is memory for their poses, aligned as `api.aligned_zeros` does.
        """
        self._embree = embree
        self.scene = scene
        first, last = int(geoms[0]), int(geoms[-1])
        # Neighbours are read as a view, others as a copy.
        self._rows = slice(first, last + 1) if last - first + 1 == len(geoms) else geoms
        self._rank = np.zeros(model.ngeom, np.intp)
        self._rank[geoms] = np.arange(len(geoms))
        self._centre, self._centred = centre, bool(centre.any())
        self._scale = np.array([shapes.instance_scale(model, int(geom)) for geom in geoms])
        self._stretch = np.tile(self._scale[:, None], (1, 3, 1))  # faster than broadcasting
        self._unstretch = (1.0 / np.square(self._scale)).astype(np.float32)
        self._stretched = bool((self._scale != 1.0).any())
        self._matrices = api.aligned_zeros((len(geoms), 3, 4)) if matrices is None else matrices
        self._shapes: _Shapes = _Shapes(embree, model, geoms) if shared is None else shared._shapes
        self._array = self._new_array(self._shapes.scenes)

    def _new_array(self, scenes: list[ctypes.c_void_p]) -> ctypes.c_void_p:
        library = self._embree.library
        count = len(scenes)
        array = ctypes.c_void_p(library.rtcNewGeometry(self._embree.device, api.INSTANCE_ARRAY))
        library.rtcSetGeometryInstancedScenes(array, (ctypes.c_void_p * count)(*scenes), count)
        index = library.rtcSetNewGeometryBuffer(
            array, api.BUFFER_INDEX, 0, api.FORMAT_UINT, 4, count
        )
        numbers = np.arange(count, dtype=np.uint32)  # held by a name until it has been copied
        ctypes.memmove(index, numbers.ctypes.data, numbers.nbytes)
        library.rtcSetSharedGeometryBuffer(
            array,
            api.BUFFER_TRANSFORM,
            0,
            api.FORMAT_FLOAT3X4_ROW_MAJOR,
            self._matrices.ctypes.data,
            0,
            self._matrices.strides[0],
            count,
        )
        return array

    def attach(self, number: int) -> None:
        """Hand the instances to their scene under `number`, once they have been placed."""
        self._embree.library.rtcCommitGeometry(self._array)
        self._embree.attach(self.scene, self._array, number)

    def place(self, xpos: Floats, xmat: Floats) -> None:
        """Take the geoms' poses out of those of all geoms, [ngeom, 3] and [ngeom, 3, 3]."""
        self.write(self._matrices, xpos[self._rows], xmat[self._rows])

    def write(self, matrices: Floats32, shifts: Floats, turns: Floats) -> None:
        """Write poses [..., m, 3] and [..., m, 3, 3] of these geoms into `matrices`."""
        matrices[..., :3] = turns * self._stretch if self._stretched else turns
        matrices[..., 3] = shifts - self._centre if self._centred else shifts

    def update(self) -> None:
        """Let the scene know that the matrices changed."""
        self._embree.move(self.scene, self._array, api.BUFFER_TRANSFORM)

    def move(self, xpos: Floats, xmat: Floats) -> None:
        """Place the geoms again in the scene that holds them, see `place`."""
        self.place(xpos, xmat)
        self.update()

    def normals(self, local: Floats32, geoms: Ints32) -> Floats32:
        """Return [m, 3] normals in the world, of any length, of hits at `geoms` ([m]) of these.

        `local` is [m, 3] the normals as Embree gives them, in the geoms' own frames.
        """
        return self.normals_by(self._matrices[self._rank.take(geoms)], local, geoms)

    def normals_by(self, matrices: Floats32, local: Floats32, geoms: Ints32) -> Floats32:
        """Return `normals` of geoms that stand as `matrices` [m, 3, 4] say."""
        if self._stretched:
            # A stretched surface's normal goes with the inverse transpose, R diag(1 / scale).
            local = local * self._unstretch[self._rank.take(geoms)]
        turned: Floats32 = np.einsum('nij,nj->ni', matrices[:, :, :3], local)
        return turned

    def ranks(self, geoms: Ints32) -> Ids:
        """Return the places of `geoms` among these."""
        return self._rank.take(geoms)
