"""The LiDAR with rays in all directions, which publishes PointCloud2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig_common import msgs
from sim_sensors.interface import Sample, Topic
from sim_sensors.raycast import patterns
from sim_sensors.sensors.lidar.config import Lidar3dConfig
from sim_sensors.sensors.lidar.ray_reader import frame_of
from sim_sensors.sensors.lidar.scanner import Lidar

POINT = np.dtype(
    {
        'names': ['x', 'y', 'z', 'intensity', 'time', 'ring'],
        'formats': ['<f4', '<f4', '<f4', '<f4', '<f4', '<u2'],
        'offsets': [0, 4, 8, 12, 16, 20],
        'itemsize': 24,
    }
)
"""`time` is seconds after the header's stamp, `ring` counts from the lowest laser."""


class Lidar3d(Lidar[Lidar3dConfig]):
    """A LiDAR that gives point clouds."""

    config_class = Lidar3dConfig
    topic = Topic('points', 'sensor_msgs/msg/PointCloud2')

    def __init__(self, name: str, config: Lidar3dConfig) -> None:
        super().__init__(name, config)
        self._directions = self.pattern.directions.astype(np.float32)
        self._points = np.zeros(self.pattern.count, POINT)
        self._points['time'] = self.time_offsets_s
        self._points['ring'] = self.pattern.ring
        rows = self.pattern.rows
        self._template = msgs.point_cloud2(
            self.frame_id, POINT, self.pattern.count // rows, height=rows, is_dense=False
        )

    def _make_pattern(self) -> patterns.Pattern:
        config = self.config
        if config.pattern == 'rosette':
            return patterns.rosette(config.num_rays, config.fov_deg, config.rate_hz)
        if config.pattern == 'grid':
            return patterns.grid(config.rows, config.columns, config.fov_deg, config.vfov_deg)
        if config.pattern == 'file':
            return patterns.from_file(config.pattern_file)
        elevations = config.elevations_deg or patterns.ELEVATION_TABLES_DEG[config.rows]
        return patterns.multi_beam(
            elevations, config.columns, config.fov_deg, config.start_angle_deg, config.clockwise
        )

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write the cloud: of fixed size with NaN points, or without the rays that met nothing."""
        frame = frame_of(sample.elapsed_ns, self.config.rate_hz, self.pattern.frames)
        fields = self.return_layout.unpack(sample.values)
        points, ranges = self._points, self._rep117(fields['ranges'])
        self._write_points(points, self._directions[frame], ranges)
        points['intensity'] = fields['intensities']
        # numpy copies a record field by field, and leaves what lies between them to chance
        whole = points.view(f'V{POINT.itemsize}')
        if self.config.no_return == 'nan':
            # An organised cloud has a row per laser; rays stand column by column.
            grid = whole.reshape(-1, self.pattern.rows).T.reshape(-1).view(POINT)
            return ((self.topic, self._template.fill(sample.stamp_ns, points=grid)),)
        kept = whole[np.isfinite(ranges)].view(POINT)
        if 0 < self.config.max_points < len(kept):
            kept = kept[np.linspace(0, len(kept) - 1, self.config.max_points).astype(np.intp)]
        return ((self.topic, msgs.point_cloud2_message(sample.stamp_ns, self.frame_id, kept)),)
