"""Geoms that Embree holds in their own frames and places by a matrix each."""

from __future__ import annotations

import ctypes

import mujoco
import numpy as np
import numpy.typing as npt

from sim_sensors.raycast import embree_api as api
from sim_sensors.raycast import embree_shapes as shapes
from sim_sensors.raycast.base import F32, F64
from sim_sensors.raycast.packets import Packets


class Instances:
    """One instance array: a scan moves all its geoms for the price of about half a us each."""

    def __init__(
        self,
        embree: api.Embree,
        model: mujoco.MjModel,
        geoms: npt.NDArray[np.int64],
        centre: F64,
    ) -> None:
        """Hold `geoms` of `model`, in coordinates around `centre` ([3], world)."""
        self._embree = embree
        first, last = int(geoms[0]), int(geoms[-1])
        # Neighbours are read as a view, others as a copy.
        self._rows = slice(first, last + 1) if last - first + 1 == len(geoms) else geoms
        self._centre = centre
        self._scale = np.array([shapes.instance_scale(model, int(geom)) for geom in geoms])
        self._stretch = np.tile(self._scale, 3)
        self._unstretch = (1.0 / np.square(self._scale)).astype(np.float32)
        self._stretched = bool((self._scale != 1.0).any())
        self._matrices = api.aligned_zeros((len(geoms), 3, 4))
        scenes = []
        for geom in geoms:
            scene = embree.new_scene(api.SCENE_ROBUST)
            embree.attach(scene, shapes.make_shape(embree, model, int(geom)), int(geom))
            embree.commit(scene)
            scenes.append(scene)
        self._array = self._new_array(scenes)
        embree.release(scenes)  # the array holds them from here on

    def _new_array(self, scenes: list[int]) -> int:
        library = self._embree.library
        count = len(scenes)
        array: int = library.rtcNewGeometry(self._embree.device, api.INSTANCE_ARRAY)
        library.rtcSetGeometryInstancedScenes(array, (ctypes.c_void_p * count)(*scenes), count)
        index = library.rtcSetNewGeometryBuffer(
            array, api.BUFFER_INDEX, 0, api.FORMAT_UINT, 4, count
        )
        ctypes.memmove(index, np.arange(count, dtype=np.uint32).ctypes.data, 4 * count)
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

    def attach(self, scene: int, number: int) -> None:
        """Hand the instances to `scene`, once they have been placed."""
        self._embree.library.rtcCommitGeometry(self._array)
        self._embree.attach(scene, self._array, number)

    def place(self, xpos: F64, xmat: F64) -> None:
        """Take the geoms' poses out of those of all geoms, [ngeom, 3] and [ngeom, 9]."""
        turn = xmat[self._rows]
        if self._stretched:
            turn = turn * self._stretch
        self._matrices[:, :, :3] = turn.reshape(-1, 3, 3)
        np.subtract(
            xpos[self._rows], self._centre, out=self._matrices[:, :, 3], casting='same_kind'
        )

    def update(self) -> None:
        """Tell Embree that the poses changed."""
        self._embree.library.rtcUpdateGeometryBuffer(self._array, api.BUFFER_TRANSFORM, 0)
        self._embree.library.rtcCommitGeometry(self._array)

    def normals(self, packets: Packets, rays: npt.NDArray[np.int64]) -> F32:
        """Return [m, 3] the normals in the world of `rays` that hit one of these; any length."""
        which = packets.part_of_instance(rays)
        local = packets.normals_of(rays)
        if self._stretched:
            # A stretched surface's normal goes with the inverse transpose, R diag(1 / scale).
            local = local * self._unstretch[which]
        turned: F32 = np.einsum('nij,nj->ni', self._matrices[which, :, :3], local)
        return turned
