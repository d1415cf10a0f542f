"""What all LiDARs share; `scan.py` and `cloud.py` add the rays and messages of the two kinds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np

from rig_common import msgs
from rig_common.arrays import Flags
from rig_common.errors import RigError
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.interface import Batch
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.raycast import patterns
from sim_sensors.sensors.common.phenomena import PhysicalSensor
from sim_sensors.sensors.lidar import optics as optics
from sim_sensors.sensors.lidar.config import LidarConfig
from sim_sensors.sensors.lidar.ray_reader import SweepReader
from sim_sensors.timing.arrays import Array, Layout, arrays_holding

HEAVY_RAYS = 8192
"""Rays a scan from which casting is worth a thread of its own over ROS."""

NORMAL = ('normal_x', 'normal_y', 'normal_z')
MOST_GEOMS = 2**24 - 1
"""Largest id that float32 holds exactly."""

LidarT = TypeVar('LidarT', bound=LidarConfig, covariant=True)


class Lidar(PhysicalSensor[LidarT]):
    """What all LiDARs do with ranges [n] and signals [n]; rays stand in order of firing."""

    on_tensors = True

    def __init__(self, name: str, config: LidarT) -> None:
        super().__init__(name, config)
        self.level_frame = config.ray_frame == 'world'
        self.pattern = self._make_pattern()
        count = self.pattern.count
        self.heavy = count * config.beam.rays > HEAVY_RAYS
        names = [
            'ranges',
            'signal',
            *(('echo', 'echo_signal') if config.beam.rays > 1 else ()),
            *(('geoms',) if 'geoms' in config.fields else ()),
            *(NORMAL if 'normals' in config.fields else ()),
        ]
        self.truth_layout = Layout(dict.fromkeys(names, (count,)), np.float32)
        """True ranges, m (+inf: nothing there), and signals 0..1; wide beams have echoes too."""
        self.disturbed = self.truth_layout.slices['echo' if config.beam.rays > 1 else 'ranges']
        extra = {'geoms': (count,), 'normals': (count, 3)}
        self.returns = Layout(
            {
                'ranges': (count,),
                'intensities': (count,),
                **{name: shape for name, shape in extra.items() if name in config.fields},
            },
            np.float32,
        )
        """Ranges, m (REP 117: -inf too close, +inf no return), and intensities."""
        columns = np.arange(self.returns.width)
        self._observed = np.concatenate(
            [columns[self.returns.slices[name]] for name in ('ranges', *config.fields)]
        )
        self._no_return, self._too_close = _codes(config)
        self._sweep_ns = (
            seconds_to_ns(config.sweep_s or 1.0 / config.rate_hz)
            if (config.motion_distortion)
            else 0
        )
        # A row does not say which frame of a changing pattern it is of, so has no x, y and z then.
        self._truth_has_points = self.pattern.frames == 1
        place = ('x', 'y', 'z') if self._truth_has_points else ()
        record = [(key, '<f4') for key in (*place, *self.truth_layout.shapes)]
        self._truth_points = np.zeros(count, record)
        self._truth_template = msgs.point_cloud2(
            self.frame_id, self._truth_points.dtype, count, is_dense=False
        )

    @abstractmethod
    def _make_pattern(self) -> patterns.Pattern:
        """Return where the rays go."""

    @property
    def _has_intensities(self) -> bool:
        return True

    def _field_of_view_deg(self) -> list[float]:
        """Return the horizontal and vertical angles that the rays cover, degrees."""
        x, y, z = self.pattern.directions.reshape(-1, 3).T
        azimuth = np.sort(np.degrees(np.arctan2(y, x)))
        widest_gap = np.diff(azimuth, append=azimuth[:1] + 360.0).max()
        fov_deg = getattr(self.config, 'fov_deg', 0.0)
        is_turn = fov_deg >= 360.0 and not getattr(self.config, 'pattern_file', '')
        return [
            360.0 if is_turn else round(360.0 - float(widest_gap), 6),
            round(float(np.ptp(np.degrees(np.arcsin(np.clip(z, -1.0, 1.0))))), 6),
        ]

    # ---- arrays ---------------------------------------------------------------------------

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
        model, config = view.model, self.config
        bodies = [model.body(index).name for index in range(model.nbody)]
        surfaces = [model.geom(index).name for index in range(model.ngeom)]
        surfaces += [model.material(index).name for index in range(model.nmat)]
        for key, kind, wanted, known in (
            ('exclude_bodies', 'body', config.exclude_bodies, bodies),
            ('optics.reflectivity', 'geom or material', config.optics.reflectivity, surfaces),
        ):
            for name in wanted:
                if name not in known:
                    where = f'sensor {self.name!r}: {key}'
                    raise RigError(unknown_name(where, kind, name, known))

    # ---- the pipeline's stages --------------------------------------------------------------

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Report the echo of a wide beam, disturb its range, lose weak returns."""
        config, fields = self.config, self.truth_layout.unpack(values)
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
        config, fields, xp = self.config, self.truth_layout.unpack(values), arrays_holding(values)
        out = self.return_layout.empty(len(values), xp)
        ranges = self.return_layout.view(out, 'ranges')
        ranges[:] = fields['ranges']
        ranges[ranges > config.max_range_m] = np.inf
        ranges[ranges < config.min_range_m] = -np.inf
        self.return_layout.view(out, 'intensities')[:] = (
            optics.intensity(ranges, fields['signal'], config.optics)
            if self._has_intensities
            else 0.0
        )
        if config.fields:
            self._write_surfaces(out, fields, xp.isfinite(ranges))
        if config.no_hit != 'inf':
            highest = _below(config.max_range_m)
            ranges[xp.isfinite(ranges) & (ranges > highest)] = highest
            ranges[ranges == np.inf] = self._no_return
            ranges[ranges == -np.inf] = self._too_close
        return out

    def _write_surfaces(self, out: Array, fields: Mapping[str, Array], is_hit: Flags) -> None:
        """Write what the rays met, where they have a return."""
        xp = arrays_holding(out)
        if 'geoms' in self.config.fields:
            self.return_layout.view(out, 'geoms')[:] = xp.where(is_hit, fields['geoms'], -1.0)
        if 'normals' in self.config.fields:
            normals = xp.stack([fields[name] for name in NORMAL], -1)
            self.return_layout.view(out, 'normals')[:] = xp.where(is_hit[..., None], normals, 0.0)

    def _rep117(self, ranges: Array) -> Array:
        """Return ranges as messages say them: +inf for no return, -inf for too close."""
        if self.config.no_hit == 'inf':
            return ranges
        return np.where(
            ranges == self._no_return, np.inf, np.where(ranges == self._too_close, -np.inf, ranges)
        ).astype(np.float32)

    # ---- messages -------------------------------------------------------------------------

    def truth_to_blocks(self, row: Array) -> dict[str, Any]:
        """Return the row as points; x, y and z are for viewers."""
        points = self._truth_points
        fields = self.truth_layout.unpack(row)
        for name, values in fields.items():
            points[name] = values
        if self._truth_has_points:
            self._write_points(points, self.pattern.directions[0], fields['ranges'])
        return {'points': points}

    def blocks_to_truth(self, blocks: Mapping[str, Array], out: Array) -> None:
        """Read the row back; x, y and z say nothing new."""
        for name in self.truth_layout.shapes:
            self.truth_layout.view(out, name)[:] = blocks['points'][name]

    def _write_points(self, points: Array, directions: Array, ranges: Array) -> None:
        """Write x, y, z of `ranges` along `directions` in the sensor's frame; NaN for none."""
        reach = np.where(np.isfinite(ranges), ranges, np.nan)
        for axis, name in enumerate(('x', 'y', 'z')):
            points[name] = directions[:, axis] * reach
        if self.config.z_height_m:
            points['z'] += self.config.z_height_m

    # ---- for people and for learning --------------------------------------------------------

    def bounds(self) -> tuple[float, float]:
        """Return lowest and highest range; REP 117 is infinite at both ends."""
        if self.config.no_hit == 'inf':
            return (-np.inf, np.inf)
        return (min(self._no_return, self._too_close), self.config.max_range_m)

    def observation_space(self) -> Any:
        """Return a gymnasium Box: ranges, then what `fields` lists (needs gymnasium)."""
        from gymnasium.spaces import Box

        limits = {
            'ranges': self.bounds(),
            'normals': (-1.0, 1.0),
            'intensities': (0.0, self.config.optics.intensity_scale),
            'geoms': (-1.0, MOST_GEOMS),
        }
        edges = np.zeros((2, self.return_layout.width), np.float32)
        for name in self.return_layout.shapes:
            edges[:, self.return_layout.slices[name]] = np.array(limits[name], np.float32)[:, None]
        low, high = edges[:, self._observed]
        return Box(low, high, low.shape, np.float32)

    def observation(self, values: Array) -> Array:
        """Return ranges and what `fields` lists."""
        observed: Array = values[..., self._observed]
        return observed

    def metadata(self) -> dict[str, object]:
        """Return plain facts, with those of the scan."""
        config = self.config
        return {
            **super().metadata(),
            'num_rays': self.pattern.count,
            'num_rings': int(self.pattern.ring.max()) + 1,
            'min_range_m': config.min_range_m,
            'max_range_m': config.max_range_m,
            'fov_deg': self._field_of_view_deg(),
            'sweep_s': self._sweep_ns / NS_PER_S,
            'no_hit': config.no_hit,
            'observed': ['ranges', *config.fields],
            'mount': config.mount.model_dump(mode='json'),
        }


def _codes(config: LidarConfig) -> tuple[float, float]:
    """Return what stands for no return and for too close."""
    if config.no_hit == 'inf':
        return np.inf, -np.inf
    return (float(np.float32(config.max_range_m)) if config.no_hit == 'max' else -1.0), 0.0


def _below(limit: float) -> float:
    """Return the largest float32 below `limit`: a return there is told from none."""
    return float(np.nextafter(np.float32(limit), np.float32(0.0)))
