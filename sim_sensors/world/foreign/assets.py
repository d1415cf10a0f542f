"""Meshes, height fields, textures and materials of a compiled model, for a new spec."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from sim_sensors.world.foreign.names import Names

Obj = mujoco.mjtObj


def same(model: mujoco.MjModel, prefix: str, index: int, fields: str) -> dict[str, Any]:
    """Return fields of element `index`, as a spec takes them, out of the arrays `prefix_field`."""
    return {each: getattr(model, f'{prefix}_{each}')[index].tolist() for each in fields.split()}


def add(spec: mujoco.MjSpec, model: mujoco.MjModel, names: Names) -> None:
    """Add the assets of `model` to `spec` under their names."""
    for index in range(model.nmesh):
        _add_mesh(spec, model, index, names(Obj.mjOBJ_MESH, index))
    for index in range(model.nhfield):
        _add_hfield(spec, model, index, names(Obj.mjOBJ_HFIELD, index))
    for index in range(model.ntex):
        _add_texture(spec, model, index, names(Obj.mjOBJ_TEXTURE, index))
    for index in range(model.nmat):
        _add_material(spec, model, index, names)


def _add_mesh(spec: mujoco.MjSpec, model: mujoco.MjModel, index: int, name: str) -> None:
    vertices = _rows(model.mesh_vert, model.mesh_vertadr[index], model.mesh_vertnum[index])
    faces = _rows(model.mesh_face, model.mesh_faceadr[index], model.mesh_facenum[index])
    mesh = spec.add_mesh(name=name)
    mesh.uservert, mesh.userface = vertices.ravel().tolist(), faces.ravel().tolist()
    # Bodies carry their own inertia; a thin or open mesh has no volume to compute one from.
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    start, count = int(model.mesh_texcoordadr[index]), int(model.mesh_texcoordnum[index])
    if count and start >= 0:
        mesh.usertexcoord = _rows(model.mesh_texcoord, start, count).ravel().tolist()
        mesh.userfacetexcoord = (
            _rows(model.mesh_facetexcoord, model.mesh_faceadr[index], model.mesh_facenum[index])
            .ravel()
            .tolist()
        )


def _add_hfield(spec: mujoco.MjSpec, model: mujoco.MjModel, index: int, name: str) -> None:
    rows, columns = int(model.hfield_nrow[index]), int(model.hfield_ncol[index])
    start = int(model.hfield_adr[index])
    spec.add_hfield(
        name=name,
        nrow=rows,
        ncol=columns,
        size=model.hfield_size[index],
        userdata=model.hfield_data[start : start + rows * columns].tolist(),
    )


def _add_texture(spec: mujoco.MjSpec, model: mujoco.MjModel, index: int, name: str) -> None:
    width, height = int(model.tex_width[index]), int(model.tex_height[index])
    channels, start = int(model.tex_nchannel[index]), int(model.tex_adr[index])
    texture = spec.add_texture(
        name=name, type=int(model.tex_type[index]), width=width, height=height, nchannel=channels
    )
    texture.data = model.tex_data[start : start + width * height * channels].tobytes()


def _add_material(spec: mujoco.MjSpec, model: mujoco.MjModel, index: int, names: Names) -> None:
    material = spec.add_material(
        name=names(Obj.mjOBJ_MATERIAL, index),
        **same(
            model,
            'mat',
            index,
            'rgba texrepeat texuniform emission specular shininess reflectance',
        ),
    )
    for role, texture in enumerate(model.mat_texid[index].tolist()):
        if texture >= 0:
            material.textures[role] = names(Obj.mjOBJ_TEXTURE, texture)


def _rows(array: np.ndarray, start: int, count: int) -> np.ndarray:
    return array[int(start) : int(start) + int(count)]
