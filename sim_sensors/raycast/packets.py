"""Rays and hits in the layout of Embree's packets."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sim_sensors.raycast import embree_api as api
from sim_sensors.raycast.base import F32, F64, Hits

_NO_NORMAL = np.float32(1e-30)
_COHERENT = ctypes.addressof(api.COHERENT)

Intersect = Callable[[int, int, int, int], None]


class Packets:
    """The memory of casts of `count` rays, `width` a call."""

    def __init__(self, count: int, width: int) -> None:
        """Lay out memory for `count` rays; `width` is one of `PACKET_SIZES`."""
        full, rest = divmod(count, width)
        total = full + (rest > 0)
        self._count, self._width = count, width
        self._block = api.aligned_zeros((total, api.ROWS, width))
        self._words = self._block.view(np.uint32)
        self._words[:, api.MASK] = api.EVERY_BIT
        self._words[:, api.INST_ID] = api.INVALID_ID
        first, stride = self._block.ctypes.data, api.ROWS * width * 4
        self._full = [first + stride * index for index in range(full)]
        self._tail = first + stride * full if rest else 0
        self._lanes = api.aligned_zeros((2, 16)).view(np.int32)
        self._lanes[0] = -1
        self._lanes[1, :rest] = -1
        self._all_lanes = self._lanes.ctypes.data
        self._tail_lanes = self._all_lanes + self._lanes.strides[0]
        # Every scan goes through these views; making them costs more than using them.
        self._origins = self._block[:, api.ORIGIN].transpose(0, 2, 1)
        self._directions = self._block[:, api.DIRECTION].transpose(0, 2, 1)
        self._tfar = self._block[:, api.TFAR]
        self._geom_ids = self._words[:, api.GEOM_ID].view(np.int32)
        step = api.GEOM_ID - api.TFAR
        self._found = self._words[:, api.TFAR : api.GEOM_ID + 1 : step].transpose(1, 0, 2)
        """[2, packets, width] range and geom id, to write and read both at once."""
        self._nothing_found = np.full((2, 1, 1), api.INVALID_ID, np.uint32)
        self._max_range_m = 0.0
        self._normals = self._block[:, api.NORMAL].transpose(0, 2, 1)
        self._instances = self._words[:, api.INST_ID]
        self._normal_rows = self._block[:, api.NORMAL]
        self._direction_rows = self._block[:, api.DIRECTION]
        self._ray_row = np.arange(count) // width * (api.ROWS * width) + np.arange(count) % width
        self._flat = self._block.reshape(-1)
        self._flat_words = self._words.reshape(-1)
        self._stage = np.zeros((total * width, 3))
        self._start = np.ones(total * width, np.float64)
        self._start_geom = np.zeros(total * width, np.int32)
        self.start_arrays = self._start[:count], self._start_geom[:count]
        """[n] inverse ranges and geom ids to begin with, for `start_from_arrays`."""
        self._mask: int | None = api.EVERY_BIT
        self._copy = np.empty((2, total, width), np.uint32)
        self._range, self._geom = self._copy[0].view(np.float32), self._copy[1].view(np.int32)
        self.hits = Hits(self._range.reshape(-1)[:count], self._geom.reshape(-1)[:count])

    def aim(self, origins: F64, directions: F64) -> None:
        """Write origins ([3] or [n, 3]) and directions [n, 3]."""
        if origins.ndim == 1:
            self._origins[...] = origins
        else:
            self._write(self._origins, origins)
        self._write(self._directions, directions)

    def _write(self, view: F32, vectors: F64) -> None:
        if self._tail:
            self._stage[: self._count] = vectors
            vectors = self._stage
        view[...] = vectors.reshape(view.shape)

    def mask(self, mask: int | npt.NDArray[np.uint32]) -> None:
        """Let rays see only geometries that share a bit with `mask`, one for all or [n]."""
        if isinstance(mask, int):
            if mask != self._mask:
                self._words[:, api.MASK] = mask
                self._mask = mask
            return
        padded = np.zeros(self._range.size, np.uint32)
        padded[: self._count] = mask
        self._words[:, api.MASK] = padded.reshape(-1, self._width)
        self._mask = None

    def start(self, max_range_m: float) -> None:
        """Let every ray begin with the maximum range and no hit."""
        if max_range_m != self._max_range_m:
            self._max_range_m = max_range_m
            self._nothing_found[0] = np.float32(max_range_m).view(np.uint32)
        self._found[...] = self._nothing_found

    def start_from_arrays(self) -> None:
        """Let every ray begin with what `start_arrays` holds."""
        inverse = self._start.reshape(-1, self._width)
        np.divide(1.0, inverse, out=self._tfar, casting='same_kind')
        self._geom_ids[...] = self._start_geom.reshape(-1, self._width)

    def trace(self, intersect: Intersect, scene: int) -> None:
        """Let every ray go through `scene`; nearer hits replace what it has."""
        lanes, arguments = self._all_lanes, _COHERENT
        for packet in self._full:
            intersect(lanes, scene, packet, arguments)
        if self._tail:
            intersect(self._tail_lanes, scene, self._tail, arguments)

    def collect(self) -> Hits:
        """Copy ranges and geom ids out of the packets."""
        np.copyto(self._copy, self._found)
        np.copyto(self._range, np.inf, where=self._geom < 0)
        self.hits.cos_incidence = self.hits.normal = None
        return self.hits

    def rays_in(self, instance: int) -> npt.NDArray[np.int64]:
        """Return the rays that hit something inside `instance`."""
        found: npt.NDArray[np.bool_] = (self._instances == instance).reshape(-1)
        return found[: self._count].nonzero()[0]

    def part_of_instance(self, rays: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return [m] which member of an instance array some rays hit."""
        which: npt.NDArray[np.uint32] = self._flat_words[
            self._ray_row[rays] + api.INST_PRIM_ID * self._width
        ]
        return which

    def normals(self) -> F32:
        """Return [n, 3] normals as Embree gives them: any length, in the instance's frame."""
        return np.ascontiguousarray(self._normals).reshape(-1, 3)[: self._count]

    def normals_of(self, rays: npt.NDArray[np.int64]) -> F32:
        """Return [m, 3] normals of some rays, as `normals`."""
        rows = np.arange(api.NORMAL.start, api.NORMAL.stop) * self._width
        normals: F32 = self._flat[self._ray_row[rays][:, None] + rows]
        return normals

    def cosines(self) -> F32:
        """Return [n] cosines of incidence where the normal is in the world's frame."""
        normal, direction = self._normal_rows, self._direction_rows
        square = np.einsum('pkw,pkw->pw', normal, normal)
        np.maximum(square, _NO_NORMAL, out=square)
        cosine = np.einsum('pkw,pkw->pw', normal, direction)
        cosine /= np.sqrt(square, out=square)
        cosines: F32 = np.abs(cosine, out=cosine).reshape(-1)[: self._count]
        return cosines
