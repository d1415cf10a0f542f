"""How far bodies reach, and what is seen from a place: by geometry, without a renderer."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ints32

RENDERED = np.array([1, 1, 1, 0, 0, 0], np.uint8)
"""Groups of geoms that a camera shows."""
GEOM = mujoco.mjtGeom
MOST_INSIDES = 6
"""Surfaces seen from behind that a ray goes through."""


def rays(width_deg: float, height_deg: float) -> Floats:
    """Return 16 x 12 directions [n, 3] over a field of view; x is forward, z up."""
    aside, up = np.meshgrid(
        np.radians(width_deg) * np.linspace(-0.5, 0.5, 16),
        np.radians(height_deg) * np.linspace(-0.5, 0.5, 12),
    )
    return np.stack(
        [np.cos(up) * np.cos(aside), np.cos(up) * np.sin(aside), np.sin(up)], -1
    ).reshape(-1, 3)


def seen(
    model: mujoco.MjModel, data: mujoco.MjData, place: Floats, directions: Floats
) -> tuple[Floats, Ints32]:
    """Return distances, m (infinite for nothing), and bodies that rays from `place` meet, [n].

    As in a picture a surface is seen from its outside only.
    """
    found = [_seen(model, data, np.array(place), way) for way in directions]
    far, bodies = zip(*found, strict=True)
    return np.array(far), np.array(bodies, np.int32)


def _seen(
    model: mujoco.MjModel, data: mujoco.MjData, place: Floats, way: Floats
) -> tuple[float, int]:
    """Return distance and body that one ray meets; infinity and -1 for nothing."""
    geom, normal, far = np.empty(1, np.int32), np.empty(3), 0.0
    for _ in range(MOST_INSIDES):
        step = mujoco.mj_ray(model, data, place, way, RENDERED, True, -1, geom, normal)
        if step < 0.0:
            break
        far += step
        if normal @ way <= 0.0:
            return far, int(model.geom_bodyid[geom[0]])
        place, far = place + (step + 1e-5) * way, far + 1e-5
    return np.inf, -1


def reach(
    model: mujoco.MjModel, data: mujoco.MjData, geoms: Iterable[int], along: Floats
) -> float:
    """Return how far `geoms` reach in the direction `along` of the world, m from its origin."""
    return max((_reach(model, data, geom, along) for geom in geoms), default=-np.inf)


def _reach(model: mujoco.MjModel, data: mujoco.MjData, geom: int, along: Floats) -> float:
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    way = data.geom_xmat[geom].reshape(3, 3).T @ along
    if kind == GEOM.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        first = int(model.mesh_vertadr[mesh])
        vertices = model.mesh_vert[first : first + int(model.mesh_vertnum[mesh])]
        own = float((vertices @ way).max())
    elif kind in (GEOM.mjGEOM_SPHERE, GEOM.mjGEOM_CAPSULE):
        own = size[0] + (abs(way[2]) * size[1] if kind == GEOM.mjGEOM_CAPSULE else 0.0)
    elif kind == GEOM.mjGEOM_CYLINDER:
        own = size[0] * float(np.hypot(way[0], way[1])) + abs(way[2]) * size[1]
    elif kind == GEOM.mjGEOM_ELLIPSOID:
        own = float(np.linalg.norm(way * size))
    else:
        centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
        own = float(way @ centre + np.abs(way) @ half)
    return float(data.geom_xpos[geom] @ along) + float(own)
