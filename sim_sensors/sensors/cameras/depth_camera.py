"""Depth camera: stereo-like noise, quantised disparity, holes beside edges."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig_common import msgs
from rig_common.arrays import Flags
from sim_sensors.interface import Batch, Sample, Topic
from sim_sensors.interface.config import ranges_are_sane
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.cameras.imager import Imager, ImageReader
from sim_sensors.sensors.cameras.traced import TracedConfig, TracedReader
from sim_sensors.timing.arrays import Array
from sim_sensors.timing.units import NonNegative, Positive

POINTS = Topic('depth/points', 'sensor_msgs/msg/PointCloud2')
POINT = np.dtype([('x', '<f4'), ('y', '<f4'), ('z', '<f4')])


class DepthCameraConfig(TracedConfig):
    """A depth camera; depth is along the optical axis, m (REP 118)."""

    min_range_m: NonNegative = 0.2
    """Nearer than this reads -inf, m (REP 117)."""
    max_range_m: Positive = 10.0
    """Farther than this reads +inf, m (REP 117)."""
    baseline_m: NonNegative = 0.05
    """Distance between the two eyes, m; 0 measures without stereo (time of flight)."""
    disparity_noise_px: NonNegative = 0.08
    """Noise of the disparity, pixels; with a baseline the depth noise grows with depth squared."""
    disparity_step_px: NonNegative = 0.0
    """Sub-pixel step of the matcher, pixels; 0 is none."""
    edge_holes: bool = True
    """Measure nothing (NaN) where only one of the two eyes sees: left of a step in depth, and
    along the left edge of the picture."""
    points: bool = False
    """Publish an organised cloud on `<name>/depth/points` too."""

    _ranges = ranges_are_sane


class DepthCamera(Imager[DepthCameraConfig]):
    """A picture [height, width] of metres along the optical axis."""

    config_class = DepthCameraConfig
    topic = Topic('depth/image_raw', 'sensor_msgs/msg/Image')
    info = Topic('depth/camera_info', 'sensor_msgs/msg/CameraInfo')

    def __init__(self, name: str, config: DepthCameraConfig) -> None:
        super().__init__(name, config)
        self._lay_out('32FC1', np.float32)  # m; +inf where nothing is
        self._focal_baseline = np.float32(self.picture.focal_px * config.baseline_m)
        if config.points:
            x, y = self.picture.rays()
            self._rays = x.astype(np.float32), y.astype(np.float32)
            self._cloud = msgs.point_cloud2(
                self.frame_id, POINT, config.width, height=config.height, is_dense=False
            )

    def reader(self, view: WorldView) -> TruthReader:
        """Render the depth, or cast rays."""
        if self.is_traced:
            return TracedReader(view, self, 'depth', np.inf)
        return ImageReader(
            view,
            self,
            lambda renderer, data, camera, rows: renderer.depth(data, camera, rows=rows),
        )

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Measure by disparity, lose what one eye does not see, then the generic errors."""
        config = self.config
        if config.baseline_m > 0.0:
            holes = self._holes(values) if config.edge_holes else None
            with np.errstate(divide='ignore'):
                disparity = self._focal_baseline / values
                if config.disparity_noise_px:
                    disparity += config.disparity_noise_px * batch.noise.normal(
                        'disparity', batch, values.shape[1]
                    )
                if config.disparity_step_px:
                    disparity = (
                        np.rint(disparity / config.disparity_step_px) * config.disparity_step_px
                    )
                measured = np.where(disparity > 0.0, self._focal_baseline / disparity, np.inf)
            values[:] = np.where(np.isfinite(values), measured, np.inf)
            if holes is not None:
                values[holes] = np.nan
        batch.noise.apply_readout_errors(values, batch)

    def _holes(self, values: Array) -> Flags:
        """Return the pixels of `values` [n, pixels] that the second eye, to the right, misses."""
        depth = self.truth_layout.view(values, 'data')
        with np.errstate(divide='ignore'):
            disparity = self._focal_baseline / depth
        return hidden_from_right(disparity.reshape(-1, depth.shape[-1])).reshape(values.shape)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Write -inf for too close and +inf for too far; holes stay NaN."""
        with np.errstate(invalid='ignore'):
            values[values < self.config.min_range_m] = -np.inf
            values[values > self.config.max_range_m] = np.inf
        return values

    def topics(self) -> Sequence[Topic]:
        """Return depth and its camera info, and the cloud if asked for."""
        return [*super().topics()] + [POINTS] * self.config.points

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write the depth; camera info and cloud carry the same stamp."""
        written = [*super().encode(sample)]
        if self.config.points:
            depth = self.truth_layout.view(sample.values, 'data')
            z = np.where(np.isfinite(depth), depth, np.nan)
            cloud = np.empty(z.size, POINT)
            cloud['x'], cloud['y'] = ((ray * z).ravel() for ray in self._rays)
            cloud['z'] = z.ravel()
            written.append((POINTS, self._cloud.fill(sample.stamp_ns, points=cloud)))
        return written


def hidden_from_right(disparity: Array) -> Flags:
    """Return which pixels of rows [n, width] a second eye to the right cannot see.

    A pixel is hidden when a point to its right appears farther left in the second picture (which
    never happens on one surface) and something nearer lies where it should appear there. What
    leaves the second picture on the left is not seen either.
    """
    width = disparity.shape[1]
    seen_at = np.arange(width, dtype=np.float32) - disparity
    overtaken = np.zeros(disparity.shape, np.bool_)
    nearest = np.minimum.accumulate(seen_at[:, ::-1], axis=1)[:, ::-1]
    overtaken[:, :-1] = seen_at[:, :-1] > nearest[:, 1:]
    hidden: Flags = seen_at < -0.5
    rows = np.flatnonzero((overtaken & ~hidden).any(axis=1))
    if len(rows):
        column, theirs = seen_at[rows], disparity[rows]
        second = _second_picture(column, theirs)
        place = np.clip(np.rint(column), 0, width - 1).astype(np.intp)
        covered = np.take_along_axis(second, place, axis=1) > theirs + 1.0
        hidden[rows] |= overtaken[rows] & covered
    return hidden


def _second_picture(column: Array, disparity: Array) -> Array:
    """Return the largest disparity in each pixel of the second eye, [n, width]; -inf where none.

    A point counts in both pixels beside it, so that a surface that appears stretched is closed.
    """
    count, width = column.shape
    picture = np.full(count * width, -np.inf, np.float32)
    first = np.arange(count)[:, None] * width
    for side in (np.floor(column), np.ceil(column)):
        inside = (side >= 0) & (side < width)
        places = (first + np.where(inside, side, 0).astype(np.intp))[inside]
        np.maximum.at(picture, places, disparity[inside])
    return picture.reshape(count, width)
