"""The planar LiDAR, which publishes LaserScan."""

from __future__ import annotations

from typing import Any

import numpy as np

from rig_common import msgs
from rig_common.times import NS_PER_S
from sim_sensors.interface import Topic
from sim_sensors.raycast import patterns
from sim_sensors.sensors.lidar.config import Lidar2dConfig
from sim_sensors.sensors.lidar.scanner import Lidar
from sim_sensors.timing.arrays import Array


class Lidar2d(Lidar[Lidar2dConfig]):
    """A planar LiDAR."""

    config_class = Lidar2dConfig
    topic = Topic('scan', 'sensor_msgs/msg/LaserScan')

    def __init__(self, name: str, config: Lidar2dConfig) -> None:
        super().__init__(name, config)
        first, step = patterns.sweep_angles_rad(
            config.num_rays, config.fov_deg, config.start_angle_deg, config.clockwise
        )
        turn_s = self._sweep_ns / NS_PER_S
        self._template = msgs.laser_scan(
            self.frame_id,
            config.num_rays,
            angle_min_rad=first,
            angle_max_rad=first + (config.num_rays - 1) * step,
            angle_increment_rad=step,
            range_min_m=config.min_range_m,
            range_max_m=config.max_range_m,
            time_increment_s=abs(step) / (2.0 * np.pi) * turn_s,
            scan_time_s=1.0 / config.rate_hz,
            intensities=config.intensities,
        )

    def _make_pattern(self) -> patterns.Pattern:
        config = self.config
        return patterns.single_plane(
            config.num_rays, config.fov_deg, config.start_angle_deg, config.clockwise
        )

    @property
    def _has_intensities(self) -> bool:
        return self.config.intensities

    def blocks(self, row: Array) -> dict[str, Any]:
        """Return ranges and, if asked for, intensities."""
        fields = self.return_layout.unpack(row)
        blocks = {'ranges': self._rep117(fields['ranges'])}
        if self.config.intensities:
            blocks['intensities'] = fields['intensities']
        return blocks
