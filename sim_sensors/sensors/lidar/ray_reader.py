"""Casts the rays of a sweep, each from where the sensor is when that ray is fired."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.interface.truth import WorldView
from sim_sensors.raycast.patterns import Pattern
from sim_sensors.raycast.ray_caster import Hits, Surface, visible_from
from sim_sensors.sensors.common.eye import Eye
from sim_sensors.sensors.lidar.config import LidarConfig
from sim_sensors.sensors.lidar.optics import merge_echoes, reflectivity_table, sub_beams
from sim_sensors.timing.arrays import Array

log = logging.getLogger(__name__)


class SweepReader:
    """Truth rows of a LiDAR: [ranges n, signal n], for beams with width [echo n, signal n].

    Geom ids [n] and normals [3 n] follow, if asked for.

    A sweep is cut into segments. The world calls in the middle of each; its rays are cast then,
    at bodies that stand still, from poses that the sensor's own velocity leads to: half a segment
    of constant velocity is off by micrometres.
    """

    def __init__(
        self,
        view: WorldView,
        name: str,
        config: LidarConfig,
        pattern: Pattern,
        sweep_ns: int,
        with_surface: bool,
    ) -> None:
        """Prepare the casts of sensor `name`; `sweep_ns` 0 casts all rays at once."""
        model = view.model
        self._config, self._pattern = config, pattern
        site = int(model.site(name).id)
        self._surface: Surface = (
            'normal' if 'normals' in config.fields else ('incidence' if with_surface else 'none')
        )
        self._reflectivity = reflectivity_table(model, config.optics)
        self.parts_ns: Sequence[int]
        self.parts_ns, self._pieces = _cut(
            pattern, sweep_ns, config.segments, seconds_to_ns(model.opt.timestep)
        )
        sweep_s = sweep_ns / NS_PER_S
        self._lags = [
            np.repeat(pattern.phase[piece] * sweep_s - part_ns / NS_PER_S, config.beam.rays)
            for piece, part_ns in zip(self._pieces, self.parts_ns, strict=True)
        ]
        """When each ray of a segment fires, s after the segment's part."""
        self._frame, self._features = -1, list[Floats]()
        # Origins along a line as one product: five times faster than by broadcasting.
        self._ones_and_lags = [np.stack([np.ones_like(lag), lag], axis=1) for lag in self._lags]
        self.eye = Eye(
            view,
            site,
            self._features_of(0)[0][:, :3],
            visible_from(
                model,
                site,
                exclude_own_body=config.exclude_own_body,
                exclude_bodies=config.exclude_bodies,
                groups=config.geom_groups or None,
                transparent_below=config.transparent_below,
            ),
            config.max_range_m,
            backend=config.backend,
            in_world=config.ray_frame == 'world',
            lasts=bool(sweep_ns),
        )
        log.info('%s: %s', name, self.eye.reason)

    def _features_of(self, frame: int) -> list[Floats]:
        """Return [rays, 9] for each segment: d, t d and t^2 / 2 d of every ray d fired at t.

        With them a turning sensor's directions are one product, see `_aim`. A pattern that repeats
        has one frame, so this is done once.
        """
        if frame != self._frame:
            self._features = []
            for piece, lag in zip(self._pieces, self._lags, strict=True):
                rays = sub_beams(self._pattern.directions[frame, piece], self._config.beam)
                flat, time = rays.reshape(-1, 3), lag[:, None]
                self._features.append(np.hstack([flat, time * flat, 0.5 * time**2 * flat]))
            self._frame = frame
        return self._features

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Cast the rays of segment `part` and write them into their columns of `out`."""
        capture_ns = view.time_ns - self.parts_ns[part]
        frame = frame_of(capture_ns, self._config.rate_hz, self._pattern.frames)
        motion = self.eye.motion(view, envs)
        origins, directions = motion.aim(
            self._features_of(frame)[part], self._ones_and_lags[part], self._config.z_height_m
        )
        hits = self.eye.cast(view, envs, origins, directions, self._surface)
        self._write(hits, motion.axes, part, out)

    def _write(self, hits: Hits, axes: Floats, part: int, out: Array) -> None:
        """Write the answer to the rays of n environments into `out` [n, width].

        `axes` [n, 3, 3] are those of the ray frames.
        """
        count, piece, rays = self._pattern.count, self._pieces[part], self._config.beam.rays
        shape = (len(out), piece.stop - piece.start, rays)
        ranges = hits.range_m
        if hits.cos_incidence is not None:
            signal = self._reflectivity.take(hits.geom)
            signal *= hits.cos_incidence
        else:
            signal = np.isfinite(ranges).astype(np.float32)
        ranges, signal = ranges.reshape(shape), signal.reshape(shape)
        fields = out.reshape(len(out), -1, count)[:, :, piece]
        fields[:, 0], fields[:, 1] = ranges[..., 0], signal[..., 0]
        if rays > 1:
            merged = merge_echoes(
                ranges.reshape(-1, rays), signal.reshape(-1, rays), self._config.beam
            )
            fields[:, 2], fields[:, 3] = (each.reshape(shape[:2]) for each in merged)
        last = fields.shape[1]
        if hits.normal is not None:
            normals = hits.normal.reshape(*shape, 3)[:, :, 0] @ axes.astype(np.float32)
            fields[:, last - 3 :] = normals.transpose(0, 2, 1)
            last -= 3
        if 'geoms' in self._config.fields:
            fields[:, last - 1] = np.maximum(hits.geom, -1).reshape(shape)[..., 0]


def frame_of(capture_ns: int, rate_hz: float, frames: int) -> int:
    """Return which frame of a pattern that does not repeat belongs to a capture."""
    return 0 if frames == 1 else round(capture_ns * rate_hz / NS_PER_S) % frames


def _cut(
    pattern: Pattern, sweep_ns: int, segments: int, dt_ns: int
) -> tuple[tuple[int, ...], list[slice]]:
    """Return the segments' middles, as offsets on the physics grid, ns, and their rays.

    Segments that fall on the same physics step are one.
    """
    if sweep_ns == 0:
        return (0,), [slice(0, pattern.count)]
    segments = max(1, min(segments, sweep_ns // dt_ns))
    edges = np.searchsorted(pattern.phase, np.arange(segments + 1) / segments)
    edges[-1] = pattern.count
    found: dict[int, slice] = {}
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if start < stop:
            middle = (pattern.phase[start] + pattern.phase[stop - 1]) / 2.0
            part = int(middle * sweep_ns) // dt_ns * dt_ns
            first = found[part].start if part in found else start
            found[part] = slice(first, stop)
    return tuple(found), list(found.values())
