"""Pictures by rays instead of a renderer: depth and geom ids, one ray through each pixel.

No OpenGL is needed, and the rays of many environments are cast together. Colours, shadows and
smooth edges remain the renderer's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rig_common.arrays import Floats, Floats32
from rig_common.times import seconds_to_ns
from sim_sensors.interface.truth import WorldView
from sim_sensors.raycast.ray_caster import Hits, visible_geoms
from sim_sensors.sensors.cameras.imager import Imager, ImagerConfig, bands_of
from sim_sensors.sensors.cameras.optics import Pinhole
from sim_sensors.sensors.common.eye import Eye
from sim_sensors.timing.arrays import Array

CAMERA_GROUPS = (0, 1, 2)
"""Geom groups that MuJoCo's cameras show."""


class TracedConfig(ImagerConfig):
    """Keys of a picture that needs no colours."""

    renderer: Literal['gl', 'rays'] = 'gl'
    """Who makes the picture: OpenGL, or rays (Embree, or MuJoCo's own), which need no renderer and
    are cast for many environments together; without smooth edges (`samples`)."""


class TracedReader:
    """Casts a ray through every pixel, row band by row band where the shutter rolls."""

    def __init__(
        self, view: WorldView, sensor: Imager[Any], wants: Literal['depth', 'geom'], missing: float
    ) -> None:
        """Prepare the rays of `sensor`; a pixel that shows nothing reads `missing`."""
        model = view.model
        self._wants, self._missing = wants, missing
        directions, self._cosine = _pixels(sensor.picture)
        self._directions = directions
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
        pictures = out.reshape(len(out), *self._shape)
        origins, directions = self._eye.motion(view, envs).aim(rays, rays[:0], 0.0)
        hits = self._eye.cast(view, envs, origins, directions)
        pictures[:, band] = self._picture(hits, len(envs), band)

    def _picture(self, hits: Hits, count: int, band: slice) -> Array:
        """Return what the rays of `count` environments met, [count, rows, width]."""
        shape = (count, -1, self._shape[1])
        depth = hits.range_m.reshape(shape) * self._cosine[band]
        is_seen = depth <= self._far_m
        if self._wants == 'depth':
            return np.where(is_seen, depth, self._missing)
        geoms = hits.geom.reshape(shape)
        return np.where(is_seen & (geoms >= 0), geoms, self._missing)


def _pixels(picture: Pinhole) -> tuple[Floats, Floats32]:
    """Return unit vectors [height, width, 3] in the mount's frame, and their cosines to its x."""
    x, y = picture.rays()
    vectors = np.stack([np.ones_like(x), -x, -y], axis=-1)
    length = np.linalg.norm(vectors, axis=-1)
    return vectors / length[..., None], (1.0 / length).astype(np.float32)
