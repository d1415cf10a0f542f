"""The world in 3D: every visible geom, those that move, and the points of a LiDAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats
from sim_sensors.world.scene.markers import Scene, Shape
from sim_sensors.world.scene.pose_messages import base_of
from sim_sensors.world.world import World

POINT_SIZE = 0.01
"""Of the distance to the robot at the first look."""
DIRECTION = np.array([-0.46, -0.52, 0.72])
"""From the robot to the camera, unit length."""
VIEW, NEAREST_M, FARTHEST_M = 6.0, 0.7, 7.0
"""Distance of the first look: how often the robot's reach, and its bounds."""


class PageScene:
    """Draws `world` once and moves what moves."""

    def __init__(self, server: Any, world: World) -> None:
        """Add everything that is seen to the page of `server`."""
        self.follows = True
        """Whether the robot stays in the middle."""
        self._api = server.scene
        self._api.set_up_direction('+z')
        self._api.configure_default_lights(enabled=False)
        self._api.configure_environment_map(None)
        self._api.add_light_ambient('/light/ambient', intensity=0.9)
        self._api.add_light_directional('/light/sun', intensity=1.6, position=(-6.0, -8.0, 12.0))
        mujoco.mj_forward(world.model, world.data())
        # The world is moved under the camera, not the camera over the world: the view stays as
        # the person turned it, and the robot stays in it.
        self._root = self._api.add_frame('/world', show_axes=False)
        scene = Scene(world.model)
        for shape, position, quat in zip(
            scene.static, *scene.static_poses(world.data()), strict=True
        ):
            self._add(shape, position, quat)
        self._moving: dict[int, Any] = {}
        self._add_moving(world.model, scene, *scene.moving_poses(world.data()))
        self._base = _first_geom(world.model, scene, base_of(world).body)
        self._points: Any = None
        self._look_at(server, world)

    def _look_at(self, server: Any, world: World) -> None:
        """Begin with the robot in the middle, as large as it is."""
        middle, reach = _robot(world.model, world.data(), base_of(world).body)
        self._centre(middle)
        distance = min(max(VIEW * reach, NEAREST_M), FARTHEST_M)
        self._point_m = POINT_SIZE * distance
        server.initial_camera.position = tuple(distance * DIRECTION)
        server.initial_camera.look_at = (0.0, 0.0, 0.0)

    def _centre(self, position_m: Floats) -> None:
        if self.follows:
            self._root.position = -np.asarray(position_m)

    def _add_moving(
        self, model: mujoco.MjModel, scene: Scene, positions: Floats, quats: Floats
    ) -> None:
        """Hang the geoms of a body on its first one: a body is then moved in one go."""
        first: dict[int, int] = {}
        inverse, quat, offset = np.empty(4), np.empty(4), np.empty(3)
        for index, shape in enumerate(scene.moving):
            body = int(model.geom_bodyid[shape.geom])
            anchor = first.setdefault(body, index)
            if anchor == index:
                self._moving[shape.geom] = self._api.add_frame(
                    f'/world/body_{body}',
                    show_axes=False,
                    position=positions[index],
                    wxyz=quats[index],
                )
            mujoco.mju_negQuat(inverse, quats[anchor])
            mujoco.mju_mulQuat(quat, inverse, quats[index])
            mujoco.mju_rotVecQuat(offset, positions[index] - positions[anchor], inverse)
            self._add(shape, offset.copy(), quat.copy(), f'/world/body_{body}')

    def _add(
        self, shape: Shape, position: Floats, quat_wxyz: Floats, parent: str = '/world'
    ) -> object:
        name = f'{parent}/{shape.geom}'
        colour = tuple(round(255 * value) for value in shape.rgba[:3])
        common: dict[str, object] = {
            'position': position,
            'wxyz': quat_wxyz,
            'color': colour,
            'cast_shadow': False,
            'receive_shadow': False,
        }
        if shape.rgba[3] < 1.0:
            common['opacity'] = shape.rgba[3]
        x, y, z = shape.size_m
        if shape.kind in ('box', 'plane'):
            return self._api.add_box(name, dimensions=(x, y, max(z, 0.002)), **common)
        if shape.kind == 'cylinder':
            return self._api.add_cylinder(name, radius=x / 2, height=z, **common)
        if shape.vertices is not None:
            return self._api.add_mesh_simple(
                name, shape.vertices, shape.faces, side='double', flat_shading=True, **common
            )
        return self._api.add_mesh_simple(name, *_round(shape), **common)

    def move(self, poses: Mapping[int, Floats]) -> None:
        """Put geoms at their poses (x y z m, quaternion xyzw) [7]."""
        for geom, handle in self._moving.items():
            pose = poses.get(geom)
            if pose is not None:
                handle.position, handle.wxyz = pose[:3], pose[[6, 3, 4, 5]]
        if self._base is not None and self._base in poses:
            self._centre(poses[self._base][:3])

    def show_points(self, points: Floats, shade: Floats) -> None:
        """Draw points [n, 3] m in the world, coloured by `shade` [n] from 0 to 1."""
        colours = _colours(shade)
        if self._points is None:
            self._points = self._api.add_point_cloud(
                '/world/points',
                points.astype(np.float32),
                colours,
                point_size=self._point_m,
                point_shape='circle',
                precision='float32',
                point_shading='flat',
            )
        else:
            self._points.points, self._points.colors = points.astype(np.float32), colours


def _first_geom(model: mujoco.MjModel, scene: Scene, body: int) -> int | None:
    """Return the geom that stands for `body`: its own, else the first one that moves with it."""
    own = [shape.geom for shape in scene.moving if model.geom_bodyid[shape.geom] == body]
    root = model.body_rootid[body]
    carried = [
        shape.geom
        for shape in scene.moving
        if model.body_dofnum[body] and model.body_rootid[model.geom_bodyid[shape.geom]] == root
    ]
    return next(iter([*own, *carried]), None)


def _robot(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> tuple[Floats, float]:
    """Return the middle of the robot that `body` belongs to, and how far it reaches from it, m."""
    root = model.body_rootid[body]
    parts = np.flatnonzero(model.body_rootid[model.geom_bodyid] == root)
    if not len(parts):
        return data.xpos[body].copy(), 1.0
    places = data.geom_xpos[parts]
    middle = (places.min(0) + places.max(0)) / 2
    away = np.linalg.norm(places - middle, axis=1) + model.geom_rbound[parts]
    return middle, float(away.max())


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
    from trimesh.creation import capsule, icosphere  # viser's own

    size_m = np.asarray(shape.size_m)
    if shape.kind == 'capsule':
        made = capsule(size_m[2] - size_m[0], size_m[0] / 2, count=[20, 13])
    else:
        made = icosphere(subdivisions=2).apply_scale(size_m / 2)
    return made.vertices.astype(np.float32), made.faces.astype(np.int32)
