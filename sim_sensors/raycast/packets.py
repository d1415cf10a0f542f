"""Rays and hits in the layout of Embree's packets."""

from __future__ import annotations

import ctypes

import numpy as np
import numpy.typing as npt

from rig_common.arrays import Floats, Floats32, Ints
from sim_sensors.raycast import embree_api as api
from sim_sensors.raycast.arrangement import WIDTH, Arrangement
from sim_sensors.raycast.ray_caster import Hits

# Arrays, as numpy takes longer to convert a number than to go through a hundred rays.
_FIRST_GEOM, _NO_NORMAL = np.array(0, np.int32), np.array(1e-30, np.float32)
_NO_RANGE, _NO_COSINE = np.array(np.inf, np.float32), np.array(0.0, np.float32)


class Packets:
    """The memory of casts of `count` rays, one packet a call.

    Ray (block * WIDTH + lane) * rows + row of the list is in lane `lane` of packet [block, row].
    """

    def __init__(self, embree: api.Embree, count: int, arrangement: Arrangement) -> None:
        """Lay out memory for `count` rays, a multiple of the arrangement's rows."""
        rows = arrangement.rows
        full, rest = divmod(count // rows, WIDTH)
        blocks = full + (rest > 0)
        self._count = count
        self._grid = blocks, WIDTH, rows
        """Shape of the padded list of rays."""
        self._block = api.aligned_zeros((blocks, rows, api.ROWS, WIDTH))
        self._words = self._block.view(np.uint32)
        self._words[:, :, api.MASK] = api.EVERY_BIT
        self._words[:, :, api.INST_ID] = api.INVALID_ID
        self._mask: int | None = api.EVERY_BIT
        self._prepare_calls(embree, full, rest, arrangement)
        self._prepare_views()
        blank = blocks * WIDTH * rows
        self._is_padded = blank > count
        self._stage = np.zeros((blank, 3))
        self._nothing_found = np.full((2, 1, 1, 1), api.INVALID_ID, np.uint32)
        self._max_range_m = 0.0
        self._copy = np.empty((2, *self._grid), np.uint32)
        range_m, geom = self._copy[0].view(np.float32), self._copy[1].view(np.int32)
        self.hits = Hits(range_m.reshape(-1)[:count], geom.reshape(-1)[:count])
        self._missed = np.empty(count, np.bool_)

    def _prepare_calls(
        self, embree: api.Embree, full: int, rest: int, arrangement: Arrangement
    ) -> None:
        """Make the arguments of every call: that costs more than a call does."""
        self._intersect = embree.intersect
        self._arguments = ctypes.byref(api.BUNDLED if arrangement.bundled else api.SINGLE)
        memory = api.memory_of(self._block)
        starts = range(0, self._block.nbytes, self._block.strides[1])
        packets = [ctypes.byref(memory, start) for start in starts]
        whole = full * arrangement.rows
        self._full, self._tail = packets[:whole], packets[whole:]
        lanes = api.aligned_zeros((2, 16)).view(np.int32)
        lanes[0] = -1
        lanes[1, :rest] = -1
        all_and_tail = api.memory_of(lanes)
        self._all_lanes = ctypes.byref(all_and_tail)
        self._tail_lanes = ctypes.byref(all_and_tail, lanes.strides[0])

    def _prepare_views(self) -> None:
        """Make the views that every scan goes through: that costs more than using them."""
        block, words = self._block, self._words
        # In the order of the list: [blocks, WIDTH, rows], vectors [blocks, WIDTH, rows, 3].
        self._origins = block[:, :, api.ORIGIN].transpose(0, 3, 1, 2)
        self._directions = block[:, :, api.DIRECTION].transpose(0, 3, 1, 2)
        self._normals = block[:, :, api.NORMAL].transpose(0, 3, 1, 2)
        self._masks = words[:, :, api.MASK].transpose(0, 2, 1)
        step = api.GEOM_ID - api.TFAR
        found = words[:, :, api.TFAR : api.GEOM_ID + 1 : step]
        self._found = found.transpose(2, 0, 3, 1)
        """[2, blocks, WIDTH, rows] range and geom id, to write and read both at once."""
        # In the order of memory: [blocks, rows, 3, WIDTH].
        self._normal_rows = block[:, :, api.NORMAL]
        self._direction_rows = block[:, :, api.DIRECTION]
        self._flat = block.reshape(-1)
        numbers = np.arange(block.size).reshape(block.shape)[:, :, api.NORMAL]
        self._place = numbers.transpose(0, 3, 1, 2).reshape(-1, 3)[: self._count]
        """[n, 3] where in memory a ray's normal is."""

    def aim(self, origins: Floats, directions: Floats) -> None:
        """Write origins ([3] or [n, 3]) and directions [n, 3]."""
        if origins.ndim == 1:
            self._origins[...] = origins
        else:
            self._write(self._origins, origins)
        self._write(self._directions, directions)

    def _write(self, view: Floats32, vectors: Floats) -> None:
        if self._is_padded:
            self._stage[: self._count] = vectors
            vectors = self._stage
        view[...] = vectors.reshape(view.shape)

    def mask(self, mask: int | npt.NDArray[np.uint32]) -> None:
        """Let rays see only geometries that share a bit with `mask`, one for all or [n]."""
        if isinstance(mask, int):
            if mask != self._mask:
                self._masks[...] = mask
                self._mask = mask
            return
        padded = np.zeros(len(self._stage), np.uint32)
        padded[: self._count] = mask
        self._masks[...] = padded.reshape(self._grid)
        self._mask = None

    def start(self, max_range_m: float) -> None:
        """Let every ray begin with the maximum range and no hit."""
        if max_range_m != self._max_range_m:
            self._max_range_m = max_range_m
            self._nothing_found[0] = np.float32(max_range_m).view(np.uint32)
        self._found[...] = self._nothing_found

    def trace(self, scene: ctypes.c_void_p, first: int = 0, last: int | None = None) -> None:
        """Let every ray go through `scene`; nearer hits replace what it has.

        Where all packets are full, those of packets `first` to `last` - 1 alone.
        """
        intersect, lanes, arguments = self._intersect, self._all_lanes, self._arguments
        for packet in self._full[first:last]:
            intersect(lanes, scene, packet, arguments)
        for packet in self._tail:
            intersect(self._tail_lanes, scene, packet, arguments)

    def collect(self) -> Hits:
        """Copy ranges and geom ids out of the packets."""
        hits = self.hits
        self._copy[...] = self._found
        np.less(hits.geom, _FIRST_GEOM, out=self._missed)
        np.putmask(hits.range_m, self._missed, _NO_RANGE)
        hits.cos_incidence = hits.normal = None
        return hits

    def normals(self) -> Floats32:
        """Return [n, 3] normals as Embree gives them: any length, in the instance's frame."""
        return np.ascontiguousarray(self._normals).reshape(-1, 3)[: self._count]

    def normals_of(self, rays: Ints) -> Floats32:
        """Return [m, 3] normals of some rays, as `normals`."""
        normals: Floats32 = self._flat.take(self._place[rays])
        return normals

    def cosines(self) -> Floats32:
        """Return [n] cosines of incidence where the normal is in the world's frame; 0: a miss."""
        normal, direction = self._normal_rows, self._direction_rows
        square = np.einsum('brkw,brkw->brw', normal, normal)
        np.maximum(square, _NO_NORMAL, out=square)
        cosine = np.einsum('brkw,brkw->brw', normal, direction)
        cosine /= np.sqrt(square, out=square)
        np.abs(cosine, out=cosine)
        cosines: Floats32 = cosine.transpose(0, 2, 1).reshape(-1)[: self._count]
        np.putmask(cosines, self._missed, _NO_COSINE)
        return cosines
