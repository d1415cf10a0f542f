"""LiDARs: planar scanners that publish LaserScan, others that publish PointCloud2."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rig_common import msgs
from rig_common.errors import RigError
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.pipeline.layout import Array, Layout
from sim_sensors.raycast import patterns
from sim_sensors.sensors.base import Batch, Sample, Sensor, Topic
from sim_sensors.sensors.lidar import optics as optics
from sim_sensors.sensors.lidar.config import Lidar2dConfig, Lidar3dConfig, LidarConfig
from sim_sensors.sensors.lidar.reader import SweepReader, frame_of
from sim_sensors.world.mounts import unknown_name

if TYPE_CHECKING:
    from rig_common.cdr import Template
    from sim_sensors.world.truth import TruthReader, WorldView

SCAN = Topic('scan', 'sensor_msgs/msg/LaserScan')
POINTS = Topic('points', 'sensor_msgs/msg/PointCloud2')
POINT = np.dtype({'names': ['x', 'y', 'z', 'intensity', 'time', 'ring'],
                  'formats': ['<f4', '<f4', '<f4', '<f4', '<f4', '<u2'],
                  'offsets': [0, 4, 8, 12, 16, 20], 'itemsize': 24})
"""`time` is seconds after the header's stamp, `ring` counts from the lowest laser."""
HEAVY_RAYS = 8192
"""Rays a scan from which casting is worth a thread of its own over ROS."""

LidarT = TypeVar('LidarT', bound=LidarConfig)


class Lidar(Sensor[LidarT]):
    """What all LiDARs do with ranges [n] and signals [n]; rays stand in order of firing."""

    def __init__(self, name: str, config: LidarT) -> None:
        super().__init__(name, config)
        self.level_frame = config.ray_frame == 'world'
        self.pattern = self._make_pattern()
        count = self.pattern.count
        self.heavy = count * config.beam.rays > HEAVY_RAYS
        wide = {'echo': (count,), 'echo_signal': (count,)} if config.beam.rays > 1 else {}
        self._truth = Layout({'ranges': (count,), 'signal': (count,), **wide}, np.float32)
        self._return = Layout({'ranges': (count,), 'intensities': (count,)}, np.float32)
        self._sweep_ns = seconds_to_ns(config.sweep_s or 1.0 / config.rate_hz) if (
            config.motion_distortion) else 0
        # A row does not say which frame of a changing pattern it is of, so has no x, y and z then.
        self._truth_has_points = self.pattern.frames == 1
        place = ('x', 'y', 'z') if self._truth_has_points else ()
        record = [(key, '<f4') for key in (*place, *self._truth.shapes)]
        self._truth_points = np.zeros(count, record)
        self._truth_template = msgs.point_cloud2(self.frame_id, self._truth_points.dtype, count,
                                                 is_dense=False)

    @abstractmethod
    def _make_pattern(self) -> patterns.Pattern:
        """Return where the rays go."""

    @property
    def _has_intensities(self) -> bool:
        return True

    # ---- arrays ---------------------------------------------------------------------------

    @property
    def truth_layout(self) -> Layout:
        """True ranges, m (+inf: nothing there), and signals 0..1; wide beams have echoes too."""
        return self._truth

    @property
    def return_layout(self) -> Layout:
        """Ranges, m (REP 117: -inf too close, +inf no return), and intensities."""
        return self._return

    @property
    def duration_ns(self) -> int:
        """Time from the first ray to the last, ns."""
        return round(float(self.pattern.phase[-1]) * self._sweep_ns)

    @property
    def time_offsets_s(self) -> Array:
        """When each ray fires after the header's stamp, s, [n]."""
        return self.pattern.phase * (self._sweep_ns / NS_PER_S)

    # ---- the world's side -----------------------------------------------------------------

    def reader(self, view: WorldView) -> TruthReader:
        """Cast the rays."""
        needed = optics.is_surface_needed(self.config, self._has_intensities)
        return SweepReader(view, self.name, self.config, self.pattern, self._sweep_ns, needed)

    def validate(self, view: WorldView) -> None:
        """Refuse bodies, geoms and materials that the model does not have."""
        model = view.model
        bodies = [model.body(index).name for index in range(model.nbody)]
        for body in self.config.exclude_bodies:
            if body not in bodies:
                raise RigError(unknown_name(f'sensor {self.name!r}: exclude_bodies', 'body', body,
                                            bodies))
        for name in optics.unknown_reflectivities(model, self.config.optics):
            known = [model.geom(index).name for index in range(model.ngeom)]
            known += [model.material(index).name for index in range(model.nmat)]
            raise RigError(unknown_name(f'sensor {self.name!r}: optics.reflectivity',
                                        'geom or material', name, known))

    # ---- the pipeline's stages --------------------------------------------------------------

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Report the echo of a wide beam, disturb its range, lose weak returns."""
        config, fields = self.config, self._truth.unpack(values)
        ranges, signal = fields['ranges'], fields['signal']
        if config.beam.rays > 1:
            ranges[:], signal[:] = fields['echo'], fields['echo_signal']
        lost = optics.lost_returns(ranges, signal, config.optics, batch)
        deviation = optics.extra_deviation(ranges, signal, config)
        if deviation is not None:
            ranges += deviation * batch.noise.normal('range', batch, self.pattern.count)
        batch.noise.apply_readout_errors(ranges, batch)
        if lost is not None:
            ranges[lost] = np.inf

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Name what is too close and too far, and turn signals into intensities."""
        config, fields = self.config, self._truth.unpack(values)
        out = self._return.empty(len(values))
        ranges = self._return.view(out, 'ranges')
        ranges[:] = fields['ranges']
        ranges[ranges > config.max_range_m] = np.inf
        ranges[ranges < config.min_range_m] = -np.inf
        self._return.view(out, 'intensities')[:] = optics.intensity(
            ranges, fields['signal'], config.optics) if self._has_intensities else 0.0
        return out

    # ---- messages -------------------------------------------------------------------------

    def truth_template(self) -> tuple[str, Template]:
        """Truth travels as a cloud, so that it can be looked at, with ranges and signals."""
        return self._truth_template.type_name, self._truth_template

    def truth_to_blocks(self, row: Array) -> dict[str, Any]:
        """Return the row as points; x, y and z are for viewers."""
        points = self._truth_points
        fields = self._truth.unpack(row)
        for name, values in fields.items():
            points[name] = values
        if self._truth_has_points:
            self._write_points(points, self.pattern.directions[0], fields['ranges'])
        return {'points': points}

    def blocks_to_truth(self, blocks: Mapping[str, Array], out: Array) -> None:
        """Read the row back; x, y and z say nothing new."""
        for name in self._truth.shapes:
            self._truth.view(out, name)[:] = blocks['points'][name]

    def _write_points(self, points: Array, directions: Array, ranges: Array) -> None:
        """Write x, y, z of `ranges` along `directions` in the sensor's frame; NaN for none."""
        reach = np.where(np.isfinite(ranges), ranges, np.float32(np.nan))
        for axis, name in enumerate(('x', 'y', 'z')):
            points[name] = directions[:, axis] * reach
        if self.config.z_height_m:
            points['z'] += np.float32(self.config.z_height_m)

    def bounds(self) -> tuple[float, float]:
        """Return no bounds: REP 117 ranges are infinite at both ends."""
        return (-np.inf, np.inf)


class Lidar2d(Lidar[Lidar2dConfig]):
    """A planar scanner."""

    config_class = Lidar2dConfig

    def __init__(self, name: str, config: Lidar2dConfig) -> None:
        super().__init__(name, config)
        first, step = patterns.sweep_angles_rad(config.num_rays, config.fov_deg,
                                                config.start_angle_deg, config.clockwise)
        turn_s = self._sweep_ns / NS_PER_S
        self._template = msgs.laser_scan(
            self.frame_id, config.num_rays, angle_min_rad=first,
            angle_max_rad=first + (config.num_rays - 1) * step, angle_increment_rad=step,
            range_min_m=config.min_range_m, range_max_m=config.max_range_m,
            time_increment_s=abs(step) / (2.0 * np.pi) * turn_s, scan_time_s=1.0 / config.rate_hz,
            intensities=config.intensities)

    def _make_pattern(self) -> patterns.Pattern:
        config = self.config
        return patterns.single_plane(config.num_rays, config.fov_deg, config.start_angle_deg,
                                     config.clockwise)

    @property
    def _has_intensities(self) -> bool:
        return self.config.intensities

    def topics(self) -> Sequence[Topic]:
        """Return the scan topic."""
        return (SCAN,)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write ranges and, if asked for, intensities."""
        fields = self._return.unpack(sample.values)
        if not self.config.intensities:
            del fields['intensities']
        return ((SCAN, self._template.fill(sample.stamp_ns, **fields)),)


class Lidar3d(Lidar[Lidar3dConfig]):
    """A scanner that gives clouds."""

    config_class = Lidar3dConfig

    def __init__(self, name: str, config: Lidar3dConfig) -> None:
        super().__init__(name, config)
        self._directions = self.pattern.directions.astype(np.float32)
        self._points = np.zeros(self.pattern.count, POINT)
        self._points['time'] = self.time_offsets_s
        self._points['ring'] = self.pattern.ring
        rows = self.pattern.rows
        self._template = msgs.point_cloud2(self.frame_id, POINT, self.pattern.count // rows,
                                           height=rows, is_dense=False)

    def _make_pattern(self) -> patterns.Pattern:
        config = self.config
        if config.pattern == 'rosette':
            return patterns.rosette(config.num_rays, config.fov_deg, config.rate_hz)
        if config.pattern == 'grid':
            return patterns.grid(config.rows, config.columns, config.fov_deg, config.vfov_deg)
        if config.pattern == 'file':
            return patterns.from_file(config.pattern_file)
        elevations = config.elevations_deg or patterns.ELEVATION_TABLES_DEG[config.rows]
        return patterns.multi_beam(elevations, config.columns, config.fov_deg,
                                   config.start_angle_deg, config.clockwise)

    def topics(self) -> Sequence[Topic]:
        """Return the cloud topic."""
        return (POINTS,)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write the cloud: of fixed size with NaN points, or without the rays that met nothing."""
        frame = frame_of(sample.elapsed_ns, self.config.rate_hz, self.pattern.frames)
        fields = self._return.unpack(sample.values)
        points = self._points
        self._write_points(points, self._directions[frame], fields['ranges'])
        points['intensity'] = fields['intensities']
        # numpy copies a record field by field, and leaves what lies between them to chance
        whole = points.view(f'V{POINT.itemsize}')
        if self.config.no_return == 'nan':
            # An organised cloud has a row per laser; rays stand column by column.
            grid = whole.reshape(-1, self.pattern.rows).T.reshape(-1).view(POINT)
            return ((POINTS, self._template.fill(sample.stamp_ns, points=grid)),)
        kept = whole[np.isfinite(fields['ranges'])].view(POINT)
        if 0 < self.config.max_points < len(kept):
            kept = kept[np.linspace(0, len(kept) - 1, self.config.max_points).astype(np.intp)]
        return ((POINTS, msgs.point_cloud2_message(sample.stamp_ns, self.frame_id, kept)),)
