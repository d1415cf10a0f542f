"""Segmentation: which geom each pixel shows. Truth only: nothing real makes such pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from rig_common import msgs
from rig_common.errors import RigError
from sim_sensors.interface.batch import Batch
from sim_sensors.interface.sensor import Sample, Topic
from sim_sensors.sensors.cameras.imager import Imager, ImageReader
from sim_sensors.sensors.cameras.traced import TracedConfig, TracedReader
from sim_sensors.timing.arrays.layout import Array, Layout
from sim_sensors.world.rendering.renderer import Renderer

if TYPE_CHECKING:
    from sim_sensors.interface.truth import TruthReader, WorldView

IMAGE = Topic('segmentation/image_raw', 'sensor_msgs/msg/Image')
INFO = Topic('segmentation/camera_info', 'sensor_msgs/msg/CameraInfo')
BACKGROUND = 65535


class SegmentationConfig(TracedConfig):
    """A segmentation picture."""


class Segmentation(Imager[SegmentationConfig]):
    """A picture [height, width] of MuJoCo geom ids, 65535 where there is none."""

    config_class = SegmentationConfig

    def __init__(self, name: str, config: SegmentationConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'data': (config.height, config.width)}, np.uint16)
        """Geom ids."""
        self._template = msgs.image(self.frame_id, config.height, config.width, 'mono16')
        self._info = self.info_template()

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

    def topics(self) -> Sequence[Topic]:
        """Return the picture and its camera info."""
        return (IMAGE, INFO)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write the picture; the camera info carries the same stamp."""
        ids = self.truth_layout.view(sample.values, 'data')
        return (
            (IMAGE, self._template.fill(sample.stamp_ns, data=ids)),
            (INFO, self._info.fill(sample.stamp_ns)),
        )

    def bounds(self) -> tuple[float, float]:
        """Return the range of an id."""
        return (0.0, float(BACKGROUND))


def _geom_ids(renderer: Renderer, data: mujoco.MjData, camera: int, rows: slice) -> Array:
    ids = renderer.segmentation(data, camera, rows=rows)
    return np.where(ids < 0, BACKGROUND, ids).astype(np.uint16)
