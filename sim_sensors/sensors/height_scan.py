"""Height scanner: how far below the mount the ground is, on a level grid that turns with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from rig_common import msgs
from sim_sensors.interface import Batch, Topic
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.raycast.ray_caster import visible_from
from sim_sensors.sensors.common.eye import Eye
from sim_sensors.sensors.common.phenomena import PhysicalConfig, PhysicalSensor
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative, Positive

MOST_POINTS = 100_000
Side = Annotated[float, Field(gt=0.0, le=100.0)]


class HeightScanConfig(PhysicalConfig):
    """A height scanner; `noise`, `bias`, `random_walk`, `resolution`, `physics` are in m."""

    rate_hz: NonNegative = 50.0
    """Captures a second; 0 captures at every physics step."""
    size_m: tuple[Side, Side] = (1.6, 1.0)
    """Size of the grid, from back to front and from right to left, m."""
    spacing_m: Positive = 0.1
    """Distance between neighbouring points, m."""
    above_m: NonNegative = 1.0
    """Height above the mount from which the rays go down, m: what is higher is not seen."""
    max_range_m: Positive = 5.0
    """Ground farther below the mount than this, or none, reads this, m."""
    exclude_own_body: bool = True
    """Whether the body that carries the sensor, and all that is attached to it, is invisible to
    it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the grid."""
        ahead, aside = (int(side / self.spacing_m + 1e-9) + 1 for side in self.size_m)
        return ahead, aside

    @model_validator(mode='after')
    def _is_possible(self) -> HeightScanConfig:
        rows, columns = self.shape
        if rows * columns > MOST_POINTS:
            raise ValueError(
                f'size_m is {list(self.size_m)} and spacing_m {self.spacing_m}, which is '
                f'{rows * columns} points; at most {MOST_POINTS}'
            )
        return self


class HeightScan(PhysicalSensor[HeightScanConfig]):
    """Height of the mount over each point of a grid, m; the first is ahead on the left."""

    config_class = HeightScanConfig
    topic = Topic('height/image_raw', 'sensor_msgs/msg/Image')
    on_tensors = True

    def __init__(self, name: str, config: HeightScanConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'data': config.shape}, np.float32)
        """Heights, m; +inf where nothing is below."""
        self._template = msgs.image(self.frame_id, *config.shape, '32FC1')

    def reader(self, view: WorldView) -> TruthReader:
        """Cast the rays."""
        return HeightReader(view, self.name, self.config)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Read the maximum range for what is farther."""
        batch.noise.xp.clip_in_place(values, *self.bounds())
        return values

    def bounds(self) -> tuple[float, float]:
        """Return the least and largest height, m."""
        return (-self.config.above_m, self.config.max_range_m)


class HeightReader:
    """Casts the rays of the grid straight down."""

    parts_ns: Sequence[int] = (0,)

    def __init__(self, view: WorldView, name: str, config: HeightScanConfig) -> None:
        """Lay out the grid in the level frame under the mount."""
        model, self._above_m = view.model, config.above_m
        site = int(model.site(name).id)
        ahead, aside = (
            config.spacing_m * (0.5 * (count - 1) - np.arange(count)) for count in config.shape
        )
        grid = np.meshgrid(ahead, aside, config.above_m, indexing='ij')
        self._points = np.stack(grid, axis=-1).reshape(-1, 3)
        self._down = np.tile([0.0, 0.0, -1.0], (len(self._points), 1))
        self._eye = Eye(
            view,
            site,
            self._down,
            visible_from(model, site, exclude_own_body=config.exclude_own_body),
            config.max_range_m + config.above_m,
        )

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write the heights of each environment, m."""
        motion = self._eye.motion(view, envs)
        forward = motion.axes[:, :, 0] * (1.0, 1.0, 0.0)
        forward /= np.maximum(np.linalg.norm(forward, axis=1, keepdims=True), 1e-9)
        left = np.stack([-forward[:, 1], forward[:, 0], forward[:, 2]], axis=1)
        up = np.broadcast_to((0.0, 0.0, 1.0), forward.shape)
        origins = motion.origin[:, None] + self._points @ np.stack([forward, left, up], axis=1)
        down = np.broadcast_to(self._down, origins.shape)
        hits = self._eye.cast(view, envs, origins, down)
        np.subtract(hits.range_m.reshape(out.shape), self._above_m, out=out)
