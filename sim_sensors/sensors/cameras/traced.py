"""Pictures by rays instead of a renderer: colours, depth and geom ids, one ray through each pixel.

No OpenGL is needed, and the rays of many environments are cast together. Colours are flat under
one light at the camera; textures, shadows and smooth edges remain the renderer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import mujoco
import numpy as np

from rig_common.arrays import Floats, Floats32
from rig_common.times import seconds_to_ns
from sim_sensors.interface.truth import WorldView
from sim_sensors.raycast.ray_caster import Hits, Surface, visible_geoms
from sim_sensors.raycast.shape_exceptions import flex_id, flex_material
from sim_sensors.sensors.cameras.imager import Imager, ImagerConfig, bands_of
from sim_sensors.sensors.common.eye import Eye
from sim_sensors.timing.arrays import Array

CAMERA_GROUPS = (0, 1, 2)
"""Geom groups that MuJoCo's cameras show."""


LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""Weights of red, green and blue in a grey value (ITU-R BT.601)."""
AMBIENT = 0.4
"""Light on a surface that is seen edge-on, as a fraction of that on one seen head-on."""


class TracedConfig(ImagerConfig):
    """Keys of a picture that rays can make."""

    renderer: Literal['gl', 'rays'] = 'gl'
    """Who makes the picture: OpenGL, or rays (Embree, or MuJoCo's own), which need no renderer and
    are cast for many environments together; without textures, shadows and smooth edges."""


class TracedReader:
    """Casts a ray through every pixel, row band by row band where the shutter rolls."""

    def __init__(
        self,
        view: WorldView,
        sensor: Imager[Any],
        wants: Literal['depth', 'geom', 'rgb8', 'mono8'],
        missing: float = 0.0,
    ) -> None:
        """Prepare the rays of `sensor`; a pixel that shows nothing reads `missing`."""
        model = view.model
        self._wants, self._missing = wants, missing
        directions, self._cosine = _pixels(*sensor.pixel_rays())
        self._directions = directions
        self._colours = _colours(model) @ (LUMA[:, None] if wants == 'mono8' else np.eye(3))
        self._surface: Surface = 'incidence' if wants in ('rgb8', 'mono8') else 'none'
        self._far_m = float(model.vis.map.zfar * model.stat.extent)
        self._shape = (sensor.config.height, sensor.config.width)
        self.parts_ns: Sequence[int]
        self.parts_ns, self._bands = bands_of(sensor.config, seconds_to_ns(model.opt.timestep))
        self._eye = Eye(
            view,
            int(model.site(sensor.name).id),
            directions.reshape(-1, 3),
            visible_geoms(model, groups=CAMERA_GROUPS),
            self._far_m / float(self._cosine.min()),
        )

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Cast the rows of band `part` in each environment."""
        band = self._bands[part]
        rays = self._directions[band].reshape(-1, 3)
        pictures = out.reshape(len(out), *self._shape, -1)
        origins, directions = self._eye.motion(view, envs).aim(rays, rays[:0], 0.0)
        hits = self._eye.cast(view, envs, origins, directions, self._surface)
        pictures[:, band] = self._picture(hits, len(envs), band)

    def _picture(self, hits: Hits, count: int, band: slice) -> Array:
        """Return what the rays of `count` environments met, [count, rows, width, channels]."""
        shape = (count, -1, self._shape[1])
        depth = hits.range_m.reshape(shape) * self._cosine[band]
        is_seen = depth <= self._far_m
        if self._wants == 'depth':
            return np.where(is_seen, depth, self._missing)[..., None]
        geoms = hits.geom.reshape(shape)
        if hits.cos_incidence is None:
            return np.where(is_seen & (geoms >= 0), geoms, self._missing)[..., None]
        light = AMBIENT + (1.0 - AMBIENT) * hits.cos_incidence.reshape(shape)
        colours = self._colours[np.where(is_seen, geoms, -1)] * light[..., None]
        return np.asarray(np.rint(255.0 * colours), np.uint8)


def _pixels(x: Floats, y: Floats) -> tuple[Floats, Floats32]:
    """Return unit vectors [height, width, 3] in the mount's frame, and their cosines to its x."""
    vectors = np.stack([np.ones_like(x), -x, -y], axis=-1)
    length = np.linalg.norm(vectors, axis=-1)
    return vectors / length[..., None], (1.0 / length).astype(np.float32)


def _colours(model: mujoco.MjModel) -> Floats:
    """Return red, green and blue by the ids in `Hits.geom`: of geoms, flexes and, last, none."""
    table = np.zeros((model.ngeom + model.nflex + 1, 3))
    surfaces = [*enumerate(zip(model.geom_matid, model.geom_rgba, strict=True))]
    for flex in range(model.nflex):
        surfaces.append((flex_id(flex), (flex_material(model, flex), model.flex_rgba[flex])))
    for surface, (material, rgba) in surfaces:
        table[surface] = (model.mat_rgba[material] if material >= 0 else rgba)[:3]
    return table
