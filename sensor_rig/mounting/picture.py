"""A picture of a model with its sensors' frames: x red, y green, z blue, so that a wrong rotation
is seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rig_common.arrays import Floats
from sim_sensors.interface import AnySensor, frame_pose
from sim_sensors.world.rendering.renderer import overview

WIDTH, HEIGHT = 800, 640
VIEWS_DEG = ((135.0, -18.0), (45.0, -35.0))
"""Azimuth and elevation of the pictures, side by side."""
COLOURS = ((0.9, 0.1, 0.1, 1.0), (0.1, 0.7, 0.1, 1.0), (0.15, 0.3, 0.95, 1.0))
ARROW, THICK = 0.16, 0.012
"""Length and width of an axis, in units of the robot's size."""


def draw_mounts(
    model: mujoco.MjModel, data: mujoco.MjData, sensors: Iterable[AnySensor], base: int, out: Path
) -> None:
    """Write the picture of `data` with the frames of `sensors`; the robot is what `base` carries.

    The model must have been compiled with the sensors; `data` been through `mj_forward`.
    """
    frames = _frames(model, data, sensors)
    centre, size = _extent(model, data, base)
    tiles = [_view(model, data, frames, centre, size, *view) for view in VIEWS_DEG]
    sheet = Image.new('RGB', (WIDTH * len(tiles), HEIGHT))
    for column, tile in enumerate(tiles):
        sheet.paste(tile, (column * WIDTH, 0))
    sheet.save(out)


def _frames(
    model: mujoco.MjModel, data: mujoco.MjData, sensors: Iterable[AnySensor]
) -> dict[str, tuple[Floats, Floats]]:
    """Return position [3] and axes [3, 3] in the world of each sensor that has a place.

    These are the axes that `mount` turns, not the optical ones of a camera's messages.
    """
    frames = {}
    for sensor in sensors:
        if frame_pose(model, sensor) is not None:
            site = model.site(sensor.name).id
            frames[sensor.name] = (
                data.site_xpos[site].copy(),
                data.site_xmat[site].reshape(3, 3).copy(),
            )
    return frames


def _extent(model: mujoco.MjModel, data: mujoco.MjData, base: int) -> tuple[Floats, float]:
    """Return the middle and the size of the robot, m."""
    own = (model.body_rootid[model.geom_bodyid] == base) & (
        model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE
    )
    points = data.geom_xpos[own] if own.any() else data.xpos[1:]
    middle = 0.5 * (points.min(0) + points.max(0))
    reach = np.linalg.norm(points - middle, axis=1).max() + (
        model.geom_rbound[own].mean() if own.any() else 0.1
    )
    return middle, float(max(2.0 * reach, 0.1))


def _view(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    frames: Mapping[str, tuple[Floats, Floats]],
    centre: Floats,
    size: float,
    azimuth: float,
    elevation: float,
) -> Image.Image:
    camera = mujoco.MjvCamera()
    camera.lookat[:] = centre
    camera.distance, camera.azimuth, camera.elevation = 1.5 * size, azimuth, elevation
    model.vis.headlight.ambient[:] = np.maximum(model.vis.headlight.ambient, 0.35)
    model.vis.headlight.diffuse[:] = np.maximum(model.vis.headlight.diffuse, 0.5)
    eyes: list[Any] = []

    def decorate(scene: mujoco.MjvScene) -> None:
        for position, axes in frames.values():
            _arrows(scene, position, axes, size)
        eye = scene.camera[0]
        eyes.append((np.array(eye.pos), np.array(eye.forward), np.array(eye.up)))

    image = Image.fromarray(overview(model, data, camera, WIDTH, HEIGHT, decorate))
    _labels(image, frames, eyes[0], float(model.vis.global_.fovy))
    return image


def _arrows(scene: mujoco.MjvScene, position: Floats, axes: Floats, size: float) -> None:
    for axis, colour in enumerate(COLOURS):
        if scene.ngeom >= scene.maxgeom:
            return
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(
            geom,
            mujoco.mjtGeom.mjGEOM_ARROW,
            np.zeros(3),
            np.zeros(3),
            np.eye(3).flatten(),
            np.array(colour, np.float32),
        )
        length = ARROW * size * (1.4 if axis == 0 else 1.0)
        mujoco.mjv_connector(
            geom,
            mujoco.mjtGeom.mjGEOM_ARROW,
            THICK * size,
            position,
            position + length * axes[:, axis],
        )
        scene.ngeom += 1


def _labels(
    image: Image.Image,
    frames: Mapping[str, tuple[Floats, Floats]],
    eye: tuple[Floats, Floats, Floats],
    fovy_deg: float,
) -> None:
    """Write the names beside the frames, one below the other where they would overlap."""
    place, forward, up = eye
    right = np.cross(forward, up)
    focal = 0.5 * HEIGHT / np.tan(np.radians(fovy_deg) / 2)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    taken: list[tuple[float, float]] = []
    for name, (position, _) in frames.items():
        away = position - place
        depth = max(float(away @ forward), 1e-6)
        x = WIDTH / 2 + focal * float(away @ right) / depth + 8
        y = HEIGHT / 2 - focal * float(away @ up) / depth - 18
        while any(abs(x - other) < 130 and abs(y - line) < 16 for other, line in taken):
            y += 16
        taken.append((x, y))
        box = draw.textbbox((x, y), name, font=font)
        draw.rectangle([box[0] - 3, box[1] - 2, box[2] + 3, box[3] + 2], fill=(20, 22, 26))
        draw.text((x, y), name, font=font, fill=(255, 255, 255))
