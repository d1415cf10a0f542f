"""The scene as plain shapes: what a marker array, a web page or a plot needs to draw the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Literal, get_args

import mujoco
import numpy as np

from rig_common.arrays import Floats, Floats32, Ids, Ints32

Kind = Literal['plane', 'box', 'sphere', 'ellipsoid', 'cylinder', 'capsule', 'mesh']
MeanColour = Callable[[int], tuple[float, float, float]]

VISIBLE_GROUPS = 3
"""Geom groups 0 to 2 are drawn by default; 3 and up hold collision shapes by custom."""
ENDLESS_M = 200.0
"""Side of a plane that the model leaves infinite, m."""

_HFIELD = int(mujoco.mjtGeom.mjGEOM_HFIELD)
_KINDS: dict[int, Kind] = {
    int(getattr(mujoco.mjtGeom, f'mjGEOM_{kind.upper()}')): kind for kind in get_args(Kind)
} | dict.fromkeys((int(mujoco.mjtGeom.mjGEOM_SDF), _HFIELD), 'mesh')


@dataclass(frozen=True, slots=True)
class Shape:
    """One visible geom."""

    geom: int
    """Geom id."""
    name: str
    body: str
    kind: Kind
    size_m: tuple[float, float, float]
    """Full extents along the geom's axes; of a capsule the length includes its round ends."""
    rgba: tuple[float, float, float, float]
    """Colour, 0 to 1: of the geom, or of its material with its texture's mean colour."""
    is_static: bool
    """True when it can never move."""
    vertices: Floats32 | None = field(default=None, repr=False)
    """[n, 3] in the geom's frame, m; of kind mesh only."""
    faces: Ints32 | None = field(default=None, repr=False)
    """[n, 3] vertex numbers; of kind mesh only."""


class Scene:
    """Every visible geom of a model, and where each is."""

    def __init__(self, model: mujoco.MjModel) -> None:
        """Describe `model`; poses come from `static_poses` once and `moving_poses` per instant."""
        mean_colour = cache(partial(_mean_colour, model))  # many geoms share a texture
        shapes = [
            shape
            for geom in range(model.ngeom)
            if _is_drawn(model, geom) and (shape := _shape(model, geom, mean_colour)).rgba[3] > 0.0
        ]
        self.static = [shape for shape in shapes if shape.is_static]
        self.moving = [shape for shape in shapes if not shape.is_static]
        self._static_ids = np.array([shape.geom for shape in self.static], np.intp)
        self._moving_ids = np.array([shape.geom for shape in self.moving], np.intp)

    def static_poses(self, data: mujoco.MjData) -> tuple[Floats, Floats]:
        """Return positions [n, 3] m and quaternions wxyz [n, 4] of `static`, in the world."""
        return _poses(data, self._static_ids)

    def moving_poses(self, data: mujoco.MjData) -> tuple[Floats, Floats]:
        """Return positions [n, 3] m and quaternions wxyz [n, 4] of `moving`, in the world."""
        return _poses(data, self._moving_ids)


def _poses(data: mujoco.MjData, ids: Ids) -> tuple[Floats, Floats]:
    quats = np.empty((len(ids), 4))
    for quat, mat in zip(quats, data.geom_xmat[ids], strict=True):
        mujoco.mju_mat2Quat(quat, mat)
    return data.geom_xpos[ids], quats


def _is_drawn(model: mujoco.MjModel, geom: int) -> bool:
    return model.geom_group[geom] < VISIBLE_GROUPS and int(model.geom_type[geom]) in _KINDS


def _shape(model: mujoco.MjModel, geom: int, mean_colour: MeanColour) -> Shape:
    view, body = model.geom(geom), int(model.geom_bodyid[geom])
    kind = _KINDS[int(model.geom_type[geom])]
    vertices, faces = _triangles(model, geom) if kind == 'mesh' else (None, None)
    return Shape(
        geom,
        view.name,
        model.body(body).name,
        kind,
        _size(kind, model.geom_size[geom], vertices),
        _rgba(model, geom, mean_colour),
        int(model.body_weldid[body]) == 0 and int(model.body_mocapid[body]) < 0,
        vertices,
        faces,
    )


def _size(kind: Kind, size: Floats, vertices: Floats32 | None) -> tuple[float, float, float]:
    a, b, c = size.tolist()
    if vertices is not None:
        x, y, z = np.ptp(vertices, 0).tolist()
        return x, y, z
    if kind == 'plane':
        return 2 * a or ENDLESS_M, 2 * b or ENDLESS_M, 0.0
    halves = {'sphere': (a, a, a), 'cylinder': (a, a, b), 'capsule': (a, a, a + b)}
    x, y, z = halves.get(kind, (a, b, c))
    return 2 * x, 2 * y, 2 * z


def _rgba(
    model: mujoco.MjModel, geom: int, mean_colour: MeanColour
) -> tuple[float, float, float, float]:
    material = int(model.geom_matid[geom])
    if material < 0:
        r, g, b, a = model.geom_rgba[geom].tolist()
        return r, g, b, a
    r, g, b, a = model.mat_rgba[material].tolist()
    texture = int(model.mat_texid[material, mujoco.mjtTextureRole.mjTEXROLE_RGB])
    if texture < 0:
        return r, g, b, a
    red, green, blue = mean_colour(texture)
    return r * red, g * green, b * blue, a


def _mean_colour(model: mujoco.MjModel, texture: int) -> tuple[float, float, float]:
    channels = int(model.tex_nchannel[texture])
    start = int(model.tex_adr[texture])
    count = int(model.tex_width[texture]) * int(model.tex_height[texture])
    pixels = model.tex_data[start : start + count * channels].reshape(count, channels)
    means = [float(value) / 255.0 for value in pixels.mean(0)]
    return (means[0], means[1], means[2]) if channels >= 3 else (means[0],) * 3


def _triangles(model: mujoco.MjModel, geom: int) -> tuple[Floats32, Ints32]:
    data_id = int(model.geom_dataid[geom])
    if int(model.geom_type[geom]) == _HFIELD:
        return _height_field(model, data_id)
    start, count = int(model.mesh_vertadr[data_id]), int(model.mesh_vertnum[data_id])
    face, faces = int(model.mesh_faceadr[data_id]), int(model.mesh_facenum[data_id])
    return (
        np.array(model.mesh_vert[start : start + count], np.float32),
        np.array(model.mesh_face[face : face + faces], np.int32),
    )


def _height_field(model: mujoco.MjModel, index: int) -> tuple[Floats32, Ints32]:
    """Return the surface of a height field, two triangles a cell."""
    rows, columns = int(model.hfield_nrow[index]), int(model.hfield_ncol[index])
    start = int(model.hfield_adr[index])
    half_x, half_y, top, _ = model.hfield_size[index]
    heights = model.hfield_data[start : start + rows * columns].reshape(rows, columns) * top
    x, y = np.meshgrid(np.linspace(-half_x, half_x, columns), np.linspace(-half_y, half_y, rows))
    vertices = np.stack([x, y, heights], -1).reshape(-1, 3).astype(np.float32)
    corner = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    lower = np.stack([corner, corner + 1, corner + columns + 1], 1)
    upper = np.stack([corner, corner + columns + 1, corner + columns], 1)
    return vertices, np.concatenate([lower, upper]).astype(np.int32)
