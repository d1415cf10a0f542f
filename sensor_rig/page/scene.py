"""The world in 3D: every visible geom, those that move, and the points of a LiDAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sim_sensors.world.markers import Scene, Shape
from sim_sensors.world.world import World

Floats = NDArray[np.float64]

POINT_SIZE_M = 0.06


class PageScene:
    """Draws `world` once and moves what moves."""

    def __init__(self, server: Any, world: World) -> None:
        """Add everything that is seen to the page of `server`."""
        self._api = server.scene
        self._api.set_up_direction('+z')
        self._api.configure_default_lights(enabled=False)
        self._api.configure_environment_map(None)
        self._api.add_light_ambient('/light/ambient', intensity=0.9)
        self._api.add_light_directional('/light/sun', intensity=1.6, position=(-6.0, -8.0, 12.0))
        mujoco.mj_forward(world.model, world.data())
        scene = Scene(world.model)
        for shape, position, quat in zip(scene.static, *scene.static_poses(world.data()),
                                         strict=True):
            self._add(shape, position, quat)
        self._moving: dict[int, Any] = {}
        self._add_moving(world.model, scene, *scene.moving_poses(world.data()))
        self._points: Any = None

    def _add_moving(self, model: mujoco.MjModel, scene: Scene, positions: Floats,
                    quats: Floats) -> None:
        """Hang the geoms of a body on its first one: a body is then moved in one go."""
        first: dict[int, int] = {}
        inverse, quat, offset = np.empty(4), np.empty(4), np.empty(3)
        for index, shape in enumerate(scene.moving):
            body = int(model.geom_bodyid[shape.geom])
            anchor = first.setdefault(body, index)
            if anchor == index:
                self._moving[shape.geom] = self._api.add_frame(
                    f'/world/body_{body}', show_axes=False, position=positions[index],
                    wxyz=quats[index])
            mujoco.mju_negQuat(inverse, quats[anchor])
            mujoco.mju_mulQuat(quat, inverse, quats[index])
            mujoco.mju_rotVecQuat(offset, positions[index] - positions[anchor], inverse)
            self._add(shape, offset.copy(), quat.copy(), f'/world/body_{body}')

    def _add(self, shape: Shape, position: Floats, quat_wxyz: Floats, parent: str = '/world'
             ) -> Any:
        name = f'{parent}/{shape.geom}'
        colour = tuple(round(255 * value) for value in shape.rgba[:3])
        common: dict[str, Any] = {'position': position, 'wxyz': quat_wxyz, 'color': colour,
                                  'cast_shadow': False, 'receive_shadow': False}
        if shape.rgba[3] < 1.0:
            common['opacity'] = shape.rgba[3]
        x, y, z = shape.size_m
        if shape.kind in ('box', 'plane'):
            return self._api.add_box(name, dimensions=(x, y, max(z, 0.002)), **common)
        if shape.kind == 'cylinder':
            return self._api.add_cylinder(name, radius=x / 2, height=z, **common)
        if shape.vertices is not None:
            return self._api.add_mesh_simple(name, shape.vertices, shape.faces, side='double',
                                             flat_shading=True, **common)
        return self._api.add_mesh_simple(name, *_round(shape), **common)

    def move(self, poses: Mapping[int, Floats]) -> None:
        """Put geoms at their poses (x y z m, quaternion xyzw) [7]."""
        for geom, handle in self._moving.items():
            pose = poses.get(geom)
            if pose is not None:
                handle.position, handle.wxyz = pose[:3], pose[[6, 3, 4, 5]]

    def show_points(self, points: Floats, shade: Floats) -> None:
        """Draw points [n, 3] m in the world, coloured by `shade` [n] from 0 to 1."""
        colours = _colours(shade)
        if self._points is None:
            self._points = self._api.add_point_cloud(
                '/points', points.astype(np.float32), colours, point_size=POINT_SIZE_M,
                point_shape='circle', precision='float32', point_shading='flat')
        else:
            self._points.points, self._points.colors = points.astype(np.float32), colours


def _colours(shade: Floats) -> NDArray[np.uint8]:
    """Return colours from violet over green to yellow for 0 to 1, [n, 3]."""
    stops = np.array([[110, 30, 160], [40, 130, 190], [40, 180, 110], [250, 220, 40]], float)
    place = np.clip(shade, 0.0, 1.0) * (len(stops) - 1)
    low = np.minimum(place.astype(int), len(stops) - 2)
    share = (place - low)[:, None]
    mixed = stops[low] * (1 - share) + stops[low + 1] * share
    return np.asarray(np.rint(mixed), np.uint8)


def _round(shape: Shape) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return the triangles of a sphere, ellipsoid or capsule, in the geom's frame."""
    rings, sectors = 13, 20
    polar, around = np.meshgrid(np.linspace(0.0, np.pi, rings),
                                np.linspace(0.0, 2 * np.pi, sectors), indexing='ij')
    unit = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around),
                     np.cos(polar)], -1)
    x, y, z = shape.size_m
    if shape.kind == 'capsule':
        vertices = unit * (x / 2)
        vertices[..., 2] += np.sign(np.round(unit[..., 2], 6)) * (z / 2 - x / 2)
    else:
        vertices = unit * np.array([x, y, z]) / 2
    corner = (np.arange(rings - 1)[:, None] * sectors + np.arange(sectors - 1)).ravel()
    faces = np.concatenate([
        np.stack([corner, corner + sectors, corner + 1], 1),
        np.stack([corner + 1, corner + sectors, corner + sectors + 1], 1)])
    return vertices.reshape(-1, 3).astype(np.float32), faces.astype(np.int32)
