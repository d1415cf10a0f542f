"""Random scenes for ray tests, and MuJoCo's `mj_ray` in a loop as the oracle."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import mujoco
import numpy as np
import pytest

needs_embree = pytest.mark.skipif(find_spec('embreex') is None, reason='embreex is not installed')

KINDS = ('box', 'sphere', 'capsule', 'cylinder', 'ellipsoid', 'mesh')


def random_model(seed: int, static: int = 12, moving: int = 6) -> mujoco.MjModel:
    """Return a model of random geoms, some on free bodies of two geoms each, and planes."""
    rng = np.random.default_rng(seed)
    spec = mujoco.MjSpec()
    corners = rng.normal(size=(12, 3))
    spec.add_mesh(name='stone', uservert=corners.ravel())
    world = spec.worldbody
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, -1])
    tilt = _quat(rng)
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[3, 2, 1], pos=[0, 5, 0], quat=tilt)
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], pos=[0, 0, -9], quat=tilt)
    for _ in range(static):
        world.add_geom(pos=rng.uniform(-8, 8, 3), quat=_quat(rng), **_shape(rng))
    for index in range(moving):
        body = world.add_body(pos=rng.uniform(-8, 8, 3), mocap=index == 0)
        if index:
            body.add_freejoint()
        body.add_geom(**_shape(rng))
        body.add_geom(pos=rng.uniform(-1, 1, 3), quat=_quat(rng), **_shape(rng))
    return spec.compile()


def _quat(rng: np.random.Generator) -> Any:
    quat = rng.normal(size=4)
    return quat / np.linalg.norm(quat)


def _shape(rng: np.random.Generator) -> dict[str, Any]:
    kind = KINDS[rng.integers(len(KINDS))]
    if kind == 'mesh':
        return {'type': mujoco.mjtGeom.mjGEOM_MESH, 'meshname': 'stone'}
    size = rng.uniform(0.15, 1.0, 3)
    return {'type': getattr(mujoco.mjtGeom, f'mjGEOM_{kind.upper()}'), 'size': size}


def shuffle_bodies(model: mujoco.MjModel, data: mujoco.MjData, seed: int) -> None:
    """Move every body that can move to a random pose."""
    rng = np.random.default_rng(seed)
    for body in range(1, model.nbody):
        pose = np.concatenate([rng.uniform(-8, 8, 3), _quat(rng)])
        if model.body_mocapid[body] >= 0:
            data.mocap_pos[model.body_mocapid[body]] = pose[:3]
            data.mocap_quat[model.body_mocapid[body]] = pose[3:]
        else:
            start = model.jnt_qposadr[model.body_jntadr[body]]
            data.qpos[start : start + 7] = pose
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)


def random_directions(seed: int, count: int) -> Any:
    """Return [count, 3] unit vectors."""
    vectors = np.random.default_rng(seed).normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def oracle(
    model: mujoco.MjModel, data: mujoco.MjData, origins: Any, directions: Any, max_range: float
) -> tuple[Any, Any, Any]:
    """Return [n] range (+inf: none), [n] geom (-1: none) and [n, 3] normal by `mj_ray`."""
    count = len(directions)
    ranges, geoms = np.empty(count), np.empty(count, int)
    normals = np.zeros((count, 3))
    geom = np.zeros(1, np.int32)
    for index in range(count):
        origin = origins if origins.ndim == 1 else origins[index]
        ranges[index] = mujoco.mj_ray(
            model, data, origin, directions[index], None, 1, -1, geom, normals[index]
        )
        geoms[index] = geom[0]
    missed = (ranges < 0) | (ranges > max_range)
    ranges[missed], geoms[missed] = np.inf, -1
    return ranges, geoms, normals


def near_silhouette(
    model: mujoco.MjModel, data: mujoco.MjData, origins: Any, directions: Any, max_range: float
) -> Any:
    """Return [n] True where the answer changes within half a millimetre beside the ray."""
    ranges, geoms, _ = oracle(model, data, origins, directions, max_range)
    side = np.cross(directions, np.roll(directions, 1, axis=1))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    other = np.cross(directions, side)
    close = np.zeros(len(directions), bool)
    for step in (side, -side, other, -other):
        moved = np.broadcast_to(origins, directions.shape) + 5e-4 * step
        near, hit, _ = oracle(model, data, moved, directions, max_range)
        with np.errstate(invalid='ignore'):
            close |= (hit != geoms) | (np.abs(near - ranges) > 0.02)
    return close
