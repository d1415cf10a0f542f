"""Segmentation: which geom each pixel shows. Truth only: nothing real makes such pictures."""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common.errors import RigError
from sim_sensors.interface import Batch, Topic
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.cameras.imager import Imager, ImageReader
from sim_sensors.sensors.cameras.traced import TracedConfig, TracedReader
from sim_sensors.timing.arrays import Array
from sim_sensors.world.rendering.renderer import Renderer

BACKGROUND = 65535


class SegmentationConfig(TracedConfig):
    """A segmentation picture."""


class Segmentation(Imager[SegmentationConfig]):
    """A picture [height, width] of MuJoCo geom ids, 65535 where there is none."""

    config_class = SegmentationConfig
    topic = Topic('segmentation/image_raw', 'sensor_msgs/msg/Image')
    info = Topic('segmentation/camera_info', 'sensor_msgs/msg/CameraInfo')

    def __init__(self, name: str, config: SegmentationConfig) -> None:
        super().__init__(name, config)
        self._lay_out('mono16', np.uint16)

    def validate(self, view: WorldView) -> None:
        """Raise RigError where ids do not fit into 16 bits."""
        super().validate(view)
        if view.model.ngeom >= BACKGROUND:
            raise RigError(
                f'sensor {self.name!r}: the model has {view.model.ngeom} geoms; a '
                f'mono16 picture can distinguish at most {BACKGROUND - 1}'
            )

    def reader(self, view: WorldView) -> TruthReader:
        """Render the ids, or cast rays."""
        if self.is_traced:
            return TracedReader(view, self, 'geom', BACKGROUND)
        return ImageReader(view, self, _geom_ids)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Leave the ids as they are: a noisy id would name another geom."""

    def bounds(self) -> tuple[float, float]:
        """Return the range of an id."""
        return (0.0, float(BACKGROUND))


def _geom_ids(renderer: Renderer, data: mujoco.MjData, camera: int, rows: slice) -> Array:
    ids = renderer.segmentation(data, camera, rows=rows)
    return np.where(ids < 0, BACKGROUND, ids).astype(np.uint16)
