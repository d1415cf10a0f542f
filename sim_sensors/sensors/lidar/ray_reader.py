"""Casts the rays of a sweep, each from where the sensor is when that ray is fired."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import mujoco
import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.interface.truth import WorldView
from sim_sensors.raycast.choice import make_casters
from sim_sensors.raycast.many import ManyCaster
from sim_sensors.raycast.patterns import Pattern
from sim_sensors.raycast.ray_caster import Hits, Surface, visible_from
from sim_sensors.sensors.lidar.config import LidarConfig
from sim_sensors.sensors.lidar.motions import AXES, Motions
from sim_sensors.sensors.lidar.optics import merge_echoes, reflectivity_table, sub_beams
from sim_sensors.timing.arrays import Array

log = logging.getLogger(__name__)

SITE = int(mujoco.mjtObj.mjOBJ_SITE)  # an int passes to MuJoCo faster than the enum does
STILL = 1e-9
"""Speeds below this, m/s and rad/s, do not move a ray."""


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
        self._model, self._config, self._pattern = model, config, pattern
        self._site = int(model.site(name).id)
        self._surface: Surface = (
            'normal' if 'normals' in config.fields else ('incidence' if with_surface else 'none')
        )
        self._in_world = config.ray_frame == 'world'
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
        self._lasts = bool(sweep_ns)
        # Origins along a line as one product: five times faster than by broadcasting.
        self._ones_and_lags = [np.stack([np.ones_like(lag), lag], axis=1) for lag in self._lags]
        self._line = np.zeros((2, 3))
        self._twist = np.zeros(6)
        self._spin = np.zeros((3, 3))
        self._motion = np.zeros((9, 3))
        self._still, self._turned, self._turned_twice = self._motion.reshape(3, 3, 3)
        self._motions = Motions(model, self._site, self._in_world, self._lasts)
        self._many, self._caster = make_casters(
            config.backend,
            model,
            config.max_range_m,
            visible_from(
                model,
                self._site,
                exclude_own_body=config.exclude_own_body,
                exclude_bodies=config.exclude_bodies,
                groups=config.geom_groups or None,
                transparent_below=config.transparent_below,
            ),
            self._features_of(0)[0][:, :3],
            view.num_envs,
        )
        if self._many is not None:
            self._motions.bind(view)
        log.info('%s: %s', name, self._caster.reason)

    @property
    def backend(self) -> str:
        """Which backend casts and why."""
        return self._caster.reason

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
        if self._many is not None and len(envs) > 1:
            self._cast_many(self._many, view, envs, frame, part, out)
            return
        for row, env in enumerate(envs):
            data = view.data(env)
            origins, directions = self._aim(data, frame, part)
            hits = self._caster.cast(data, origins, directions, self._surface)
            axes = AXES if self._in_world else data.site_xmat[self._site].reshape(3, 3)
            self._write(hits, axes[None], part, out[row : row + 1])

    def _cast_many(
        self,
        many: ManyCaster,
        view: WorldView,
        envs: Sequence[int],
        frame: int,
        part: int,
        out: Array,
    ) -> None:
        """Cast the rays of all `envs` together."""
        motion = self._motions.of(view, envs)
        origins, directions = motion.aim(
            self._features_of(frame)[part], self._ones_and_lags[part], self._config.z_height_m
        )
        hits = many.cast_many(envs, motion.bodies, origins, directions, self._surface, view.data)
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

    def _aim(self, data: mujoco.MjData, frame: int, part: int) -> tuple[Floats, Floats]:
        """Return origins ([3] or [rays, 3]) and directions [rays, 3] in the world.

        The sensor turns with W = [w]x, so after t its frame is (1 + t W + t^2 W^2 / 2) R.
        """
        features, height_m = self._features_of(frame)[part], self._config.z_height_m
        axes = AXES if self._in_world else data.site_xmat[self._site].reshape(3, 3)
        origin = data.site_xpos[self._site]
        if height_m:
            origin = origin + height_m * axes[:, 2]
        if not self._lasts:
            return origin, features[:, :3] @ axes.T
        mujoco.mj_objectVelocity(self._model, data, SITE, self._site, self._twist, 0)
        wx, wy, wz, *velocity = self._twist.tolist()
        if self._in_world or abs(wx) + abs(wy) + abs(wz) < STILL:
            directions = features[:, :3] @ axes.T
        else:
            # All transposed, so that each product is what the next one takes.
            self._spin[:] = (0.0, wz, -wy), (-wz, 0.0, wx), (wy, -wx, 0.0)
            self._still[:] = axes.T
            np.dot(self._still, self._spin, out=self._turned)
            np.dot(self._turned, self._spin, out=self._turned_twice)
            directions = np.dot(features, self._motion)
            if height_m:
                velocity = (self._twist[3:] + height_m * self._turned[2]).tolist()
        if sum(map(abs, velocity)) < STILL:
            return origin, directions
        self._line[0], self._line[1] = origin, velocity
        return np.dot(self._ones_and_lags[part], self._line), directions


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
