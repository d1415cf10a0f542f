"""MuJoCo geoms as Embree geometries, in the geom's own frame or baked in the world."""

from __future__ import annotations

from ctypes import c_void_p

import mujoco
import numpy as np
import numpy.typing as npt

from rig_common.arrays import Floats, Floats32
from sim_sensors.raycast import embree_api as api

_BOX_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
_BOX_FACES = np.array(
    [
        [0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1],
        [2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3],
    ],
    np.uint32,
)  # fmt: skip
_SEGMENT_RADII = 4.0
"""Longest curve segment in radii: Embree's float32 cone solver loses 0.1 mm on longer ones."""
_FLAT_DISC = 0.5
"""Cylinders shorter than this many radii lose their axis in the digits of world coordinates."""
_LARGEST_PLANE_M = 50.0
"""Half size up to which two float32 triangles are as good as a tilted plane."""
_ENDLESS_M = 1e6

_G = mujoco.mjtGeom
FLAT = (_G.mjGEOM_BOX, _G.mjGEOM_MESH, _G.mjGEOM_HFIELD)
"""Geom types made of triangles."""
KNOWN = (*FLAT, _G.mjGEOM_SPHERE, _G.mjGEOM_CAPSULE, _G.mjGEOM_CYLINDER, _G.mjGEOM_ELLIPSOID)
"""Geom types that Embree takes; planes are solved directly and the rest is left to MuJoCo."""

Triangles = tuple[Floats, npt.NDArray[np.uint32]]


def is_bakeable_plane(model: mujoco.MjModel, geom: int, mat: Floats) -> bool:
    """Tell whether two triangles in the world are as good as the plane, whose frame is `mat`.

    The normal of a level or upright plane has no rounding, so its triangles may be of any size;
    others must be small.
    """
    still = model.body_weldid[model.geom_bodyid[geom]] == 0
    upright = np.abs(mat[:, 2]).max() == 1.0
    size = model.geom_size[geom, :2]
    return bool(still and (upright or (size.min() > 0.0 and size.max() <= _LARGEST_PLANE_M)))


def needs_own_frame(model: mujoco.MjModel, geom: int) -> bool:
    """Tell whether a geom must be instanced even when it is static, to be exact."""
    kind = model.geom_type[geom]
    radius, half_length = model.geom_size[geom, :2]
    flat = kind == _G.mjGEOM_CYLINDER and half_length < _FLAT_DISC * radius
    return bool(flat or kind == _G.mjGEOM_ELLIPSOID)


def instance_scale(model: mujoco.MjModel, geom: int) -> Floats:
    """Return [3] by which `make_shape`'s geometry must be stretched: only ellipsoids need it."""
    if model.geom_type[geom] == _G.mjGEOM_ELLIPSOID:
        return np.array(model.geom_size[geom], dtype=float)
    return np.ones(3)


def make_shape(
    embree: api.Embree,
    model: mujoco.MjModel,
    geom: int,
    pos: Floats = np.zeros(3),  # noqa: B008 - never written to
    mat: Floats = np.eye(3),  # noqa: B008
) -> c_void_p:
    """Return an Embree geometry of `geom` with its frame at `pos` [3], `mat` [3, 3].

    An ellipsoid comes as the unit sphere, see `instance_scale`.
    """
    kind = model.geom_type[geom]
    radius, half_length = model.geom_size[geom, :2]
    if kind == _G.mjGEOM_SPHERE:
        return _sphere(embree, pos, radius)
    if kind == _G.mjGEOM_ELLIPSOID:
        return _sphere(embree, pos, 1.0)
    if kind == _G.mjGEOM_CAPSULE:
        return _curve(embree, api.ROUND_CURVE, radius, pos, half_length * mat[:, 2])
    if kind == _G.mjGEOM_CYLINDER:
        return _curve(embree, api.CONE_CURVE, radius, pos, half_length * mat[:, 2])
    vertices, faces = _geom_triangles(model, geom)
    return _triangles(embree, (vertices @ mat.T + pos, faces))


def _sphere(embree: api.Embree, centre: Floats, radius: float) -> c_void_p:
    point = np.array([[*centre, radius]], np.float32)
    return embree.new_geometry(api.SPHERES, [(api.BUFFER_VERTEX, api.FORMAT_FLOAT4, point)])


def _curve(embree: api.Embree, kind: int, radius: float, middle: Floats, half: Floats) -> c_void_p:
    """Return a curve from `middle` - `half` to `middle` + `half`.

    Its segments know their neighbours, so there are caps at its ends only.
    """
    length = 2.0 * float(np.linalg.norm(half))
    segments = max(1, int(np.ceil(length / (_SEGMENT_RADII * radius))))
    points = np.empty((segments + 1, 4), np.float32)
    points[:, :3] = middle + np.linspace(-1.0, 1.0, segments + 1)[:, None] * half
    points[:, 3] = radius
    flags = np.zeros(segments, np.uint8)
    flags[1:] |= api.NEIGHBOUR_BEFORE
    flags[:-1] |= api.NEIGHBOUR_AFTER
    return embree.new_geometry(
        kind,
        [
            (api.BUFFER_VERTEX, api.FORMAT_FLOAT4, points),
            (api.BUFFER_INDEX, api.FORMAT_UINT, np.arange(segments, dtype=np.uint32)),
            (api.BUFFER_FLAGS, api.FORMAT_UCHAR, flags),
        ],
    )


def _triangles(embree: api.Embree, triangles: Triangles) -> c_void_p:
    vertices: Floats32 = triangles[0].astype(np.float32)
    return embree.new_geometry(
        api.TRIANGLES,
        [
            (api.BUFFER_VERTEX, api.FORMAT_FLOAT3, vertices),
            (api.BUFFER_INDEX, api.FORMAT_UINT3, triangles[1].astype(np.uint32)),
        ],
    )


def _geom_triangles(model: mujoco.MjModel, geom: int) -> Triangles:
    """Return vertices [v, 3] in the geom's frame and faces [f, 3]."""
    kind = model.geom_type[geom]
    if kind == _G.mjGEOM_BOX:
        return _BOX_CORNERS * model.geom_size[geom], _BOX_FACES
    if kind == _G.mjGEOM_PLANE:
        corners = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
        size = model.geom_size[geom, :2]
        flat = np.pad(corners * np.where(size > 0.0, size, _ENDLESS_M), ((0, 0), (0, 1)))
        return flat, np.array([[0, 1, 2], [0, 2, 3]], np.uint32)
    asset = model.geom_dataid[geom]
    if kind == _G.mjGEOM_HFIELD:
        return _hfield_triangles(model, asset)
    first, count = model.mesh_vertadr[asset], model.mesh_vertnum[asset]
    face, faces = model.mesh_faceadr[asset], model.mesh_facenum[asset]
    vertices = model.mesh_vert[first : first + count].astype(float)
    return vertices, model.mesh_face[face : face + faces].astype(np.uint32)


def _hfield_triangles(model: mujoco.MjModel, asset: int) -> Triangles:
    """Return a height field's surface, its skirt down to z = 0 and its base box."""
    rows, cols = int(model.hfield_nrow[asset]), int(model.hfield_ncol[asset])
    size = model.hfield_size[asset]
    start = model.hfield_adr[asset]
    height = model.hfield_data[start : start + rows * cols].reshape(rows, cols) * size[2]
    y, x = np.meshgrid(
        np.linspace(-size[1], size[1], rows), np.linspace(-size[0], size[0], cols), indexing='ij'
    )
    surface = np.stack([x, y, height], axis=-1).reshape(-1, 3)
    index = np.arange(rows * cols, dtype=np.uint32).reshape(rows, cols)
    a, b = index[:-1, :-1].ravel(), index[:-1, 1:].ravel()
    c, d = index[1:, 1:].ravel(), index[1:, :-1].ravel()
    # MuJoCo splits every cell along the diagonal from (row, column) to (row + 1, column + 1).
    parts = [np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]
    vertices = [surface]
    total = len(surface)
    for edge in (index[0], index[-1], index[:, 0], index[:, -1]):
        foot = surface[edge] * (1.0, 1.0, 0.0)
        low = np.arange(total, total + len(edge), dtype=np.uint32)
        parts.append(np.stack([edge[:-1], edge[1:], low[1:]], axis=1))
        parts.append(np.stack([edge[:-1], low[1:], low[:-1]], axis=1))
        vertices.append(foot)
        total += len(edge)
    base = _BOX_CORNERS * (size[0], size[1], size[3] / 2) - (0.0, 0.0, size[3] / 2)
    parts.append(_BOX_FACES + np.uint32(total))
    return np.concatenate([*vertices, base]), np.concatenate(parts)
