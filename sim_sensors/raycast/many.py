"""The rays of many environments in one go.

What does not move is the same in all of them: it is baked once, and all rays go through it
together. What moves has a small scene for each environment, which shares its shapes with the
others and is skipped where nothing in it is near enough to be seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import mujoco
import numpy as np

from rig_common.arrays import AnyArray, Flags, Floats, Floats32, Ints
from sim_sensors.raycast import embree_api as api
from sim_sensors.raycast.arrangement import WIDTH, Arrangement
from sim_sensors.raycast.embree import EmbreeCaster
from sim_sensors.raycast.instances import Instances
from sim_sensors.raycast.packets import Packets
from sim_sensors.raycast.poses import ROUNDING_M, Poses, Solids
from sim_sensors.raycast.ray_caster import Hits, Surface

Data = Callable[[int], mujoco.MjData]


@dataclass
class _Room:
    """Memory for casts of one size, in all environments."""

    packets: Packets
    origins: Floats
    """[num_envs, padded, 3]; where `padded` is the number of rays, filled up to whole calls."""
    directions: Floats

    def fill(self, origins: Floats, directions: Floats) -> None:
        """Take rays [n, rays, 3]; the last of each environment fills up its calls."""
        count, rays = directions.shape[:2]
        for mine, given in ((self.origins, origins), (self.directions, directions)):
            mine[:count, :rays] = given
            mine[:count, rays:] = given[:, -1:]


class ManyCaster(EmbreeCaster):
    """Embree's answer to the rays of `num_envs` copies of one model; the same as one by one."""

    def __init__(
        self,
        model: mujoco.MjModel,
        max_range_m: float,
        visible: Flags,
        num_envs: int,
        arrangement: Arrangement = Arrangement(),  # noqa: B008 - frozen
    ) -> None:
        """Bake what is static once, and make a scene of what moves for each environment."""
        super().__init__(model, max_range_m, visible, Arrangement(arrangement.bundled))
        self._num_envs = num_envs
        self._rooms: dict[int, _Room] = {}
        self._moving_poses = Poses(model, self._known_moving(visible))
        count = _aligned(len(self._moving_poses.geoms))
        self._matrices = api.aligned_zeros((num_envs, count, 3, 4))
        """[num_envs, m, 3, 4] poses of what moves."""
        self._copies: list[Instances] = []
        if self._moving is not None:
            still = mujoco.MjData(model)
            mujoco.mj_kinematics(model, still)
            geoms = self._moving_poses.geoms
            self._copies = [
                self._new_moving(geoms, still, self._moving, memory[: len(geoms)])
                for memory in self._matrices
            ]
        self._solids = Solids(model, self._exceptions.solids)
        self._ray_env: Ints | None = None
        """Environment of each ray of `cast_many`, while its normals are turned."""
        self.reason = f'Embree for {num_envs} environments at once, {self._arrangement}'

    @property
    def is_complete(self) -> bool:
        """Whether all that is visible can be cast so; else cast environment by environment."""
        return self._rest is None and not self._exceptions.flexes

    def cast_many(
        self,
        envs: Sequence[int],
        bodies: tuple[Floats, Floats],
        origins: Floats,
        directions: Floats,
        surface: Surface,
        data: Data,
    ) -> Hits:
        """Cast rays [n, rays, 3] of `envs` [n]; the answer's arrays are [n * rays], in order.

        `bodies` are the positions [n, nbody, 3] and axes [n, nbody, 9] of all bodies; `origins` is
        [n, 1, 3] or, along a line, [n, rays, 3]. `data` gives an environment's state, where it is
        needed whole.
        """
        count, rays = directions.shape[:2]
        # The rays of an environment fill whole calls, so that none is of two.
        room = self._room(-(-rays // WIDTH) * WIDTH)
        room.fill(origins, directions)
        packets, each = room.packets, room.directions.shape[1] // WIDTH
        flat_origins, flat = room.origins.reshape(-1, 3), room.directions.reshape(-1, 3)
        packets.aim(flat_origins - self._centre if self._centred else flat_origins, flat)
        self._begin(flat_origins, packets)
        slack_m = 2.0 * float(np.abs(origins[:, -1] - origins[:, 0]).max(initial=0.0))
        if self._copies:
            near = self._place_moving(envs, bodies, origins[:, :1], slack_m, directions)
            for row in near:
                copy = self._copies[envs[row]]
                copy.update()
                packets.trace(copy.scene, row * each, (row + 1) * each)
        if self._static is not None:
            packets.trace(self._static, 0, count * each)
        packets.collect()
        if surface != 'none':
            self._ray_env = np.repeat(np.asarray(envs, np.int64), each * WIDTH)
            packets.hits.geom[len(self._ray_env) :] = -1
            self._add_surface(flat, packets, surface == 'normal')
            self._ray_env = None
        hits = _unpad(packets.hits, self._num_envs, count, rays)
        self._amend(envs, bodies, origins, slack_m, directions, hits, data)
        return hits

    def _room(self, padded: int) -> _Room:
        room = self._rooms.get(padded)
        if room is None:
            shape = (self._num_envs, padded, 3)
            packets = Packets(self._embree, shape[0] * padded, self._arrangement)
            room = self._rooms[padded] = _Room(packets, np.zeros(shape), np.ones(shape))
        return room

    def _known_moving(self, visible: Flags) -> Ints:
        model = self._model
        moves = model.body_weldid[model.geom_bodyid] != 0
        return np.flatnonzero(moves & visible & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE))

    def _place_moving(
        self,
        envs: Sequence[int],
        bodies: tuple[Floats, Floats],
        first: Floats,
        slack_m: float,
        directions: Floats,
    ) -> list[int]:
        """Write where what moves is; return the rows in which some of it may be met."""
        positions, axes = self._moving_poses.of(*bodies)
        near = self._may_meet(positions, first, slack_m, directions)
        now = np.empty((*positions.shape[:2], 3, 4), np.float32)
        self._copies[0].write(now, positions, axes)
        self._matrices[np.asarray(envs), : now.shape[1]] = now
        rows: list[int] = np.flatnonzero(near).tolist()
        return rows

    def _may_meet(
        self, positions: Floats, first: Floats, slack_m: float, directions: Floats
    ) -> Flags:
        """Return in which of n environments a ray may meet one of the geoms at [n, m, 3], [n].

        Rays start no farther than `slack_m` from the `first` of their environment, [n, 1, 3].
        Few geoms are held against every ray, which pays as most rays of a segment look elsewhere;
        many only against the range.
        """
        bound = self._model.geom_rbound[self._moving_poses.geoms] + (slack_m + ROUNDING_M)
        away = positions - first
        square = np.einsum('nmk,nmk->nm', away, away)
        near = square <= np.square(bound + self._max_range_m)
        if directions.shape[1] * len(bound) > _MOST_PAIRS:
            return np.asarray(near.any(axis=1))
        # A ray meets a sphere that it starts outside of if it goes as far along as to a tangent.
        along = np.matmul(away, directions.transpose(0, 2, 1)).max(axis=2)
        beyond = square - bound * bound
        met = (along * np.abs(along) >= beyond) | (beyond <= 0.0)
        return np.asarray((met & near).any(axis=1))

    def _own_normals(self, instances: Instances, packets: Packets, rays: Ints) -> Floats32:
        if instances is not self._moving or self._ray_env is None:  # or one environment alone
            return super()._own_normals(instances, packets, rays)
        geoms = packets.hits.geom[rays]
        matrices = self._matrices[self._ray_env[rays], instances.ranks(geoms)]
        return instances.normals_by(matrices, packets.normals_of(rays), geoms)

    def _amend(
        self,
        envs: Sequence[int],
        bodies: tuple[Floats, Floats],
        origins: Floats,
        slack_m: float,
        directions: Floats,
        hits: Hits,
        data: Data,
    ) -> None:
        """Cast again where rays start inside a geom, as one environment alone does."""
        rows, solids, local = self._solids.near(origins, slack_m, *bodies)
        if not len(rows):
            return
        inside = np.unique(rows[self._exceptions.holds(solids, local)])
        rays = directions.shape[1]
        for row in inside.tolist():
            part = slice(row * rays, (row + 1) * rays)
            own = hits.each(itemgetter(part))  # views
            origin = origins[row, 0] if origins.shape[1] == 1 else origins[row]
            self._exceptions.amend(data(envs[row]), origin, directions[row], own)


def _aligned(count: int) -> int:
    """Return how many matrices of 48 bytes keep those of the next environment on 64 bytes."""
    return -(-count // 4) * 4


_MOST_PAIRS = 1024
"""Rays times moving geoms of an environment up to which each pair is looked at."""


def _unpad(hits: Hits, num_envs: int, count: int, rays: int) -> Hits:
    """Return the answer without what only filled up calls and environments."""

    def cut(array: AnyArray) -> AnyArray:
        part = array.reshape(num_envs, -1, *array.shape[1:])[:count, :rays]
        return part.reshape(-1, *array.shape[1:])

    return hits.each(cut)
