"""The readout errors every sensor understands: noise, bias, random_walk, resolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sim_sensors.config import SensorConfig
from sim_sensors.pipeline.arrays import arrays_holding
from sim_sensors.pipeline.layout import Array

if TYPE_CHECKING:
    from sim_sensors.randomness.noise import NoiseSource
    from sim_sensors.sensors.base import Batch


class ReadoutErrors:
    """`value + bias + walk + white noise`, rounded to `resolution`; in the sensor's own unit.

    Every column has its own numbers. Integer values (pixels) are disturbed as real numbers,
    rounded and clipped to what their type holds; booleans have no unit and are left alone.
    """

    def __init__(self, config: SensorConfig) -> None:
        """Take the four keys from `config`."""
        self._walk_offset: Array | None = None
        self._walk_width = 0
        self._take(config)

    def _take(self, config: SensorConfig) -> None:
        self.noise, self.bias = config.noise, config.bias
        self.random_walk, self.resolution = config.random_walk, config.resolution
        self.is_identity = not (
            self.noise
            or self.bias
            or self.random_walk
            or self.resolution
            or self._walk_offset is not None
        )
        """True when `apply` would change nothing."""

    def apply(self, values: Array, batch: Batch) -> None:
        """Disturb `values` [n, width] in place."""
        xp = batch.noise.xp
        if self.is_identity or xp.kind(values) == 'b':
            return
        if xp.kind(values) in 'iu':
            real = xp.astype(values, np.float32)
            self._disturb(real, batch)
            clip_to(values, real)
        else:
            self._disturb(values, batch)

    def _disturb(self, values: Array, batch: Batch) -> None:
        width = values.shape[1]
        if self.noise:
            values += batch.noise.normal('noise', batch, width) * self.noise
        if self.bias:
            values += self.bias
        if self.random_walk:
            self._walk_width = width
            values += batch.noise.walk('random_walk', batch, width) * self.random_walk
        if self._walk_offset is not None:
            values += self._walk_offset[batch.envs]
        if self.resolution:
            values /= self.resolution
            batch.noise.xp.round_in_place(values)
            values *= self.resolution

    def reconfigure(self, config: SensorConfig, noise: NoiseSource, last: Array) -> None:
        """Take new keys; a drift that has been walked so far is kept, not rescaled.

        `last` [num_envs] is each environment's last capture, -1 before the first.
        """
        step = self.random_walk - config.random_walk
        started = noise.xp.indices(last >= 0)
        if step and self._walk_width and len(started):
            if self._walk_offset is None:
                self._walk_offset = noise.xp.zeros((len(last), self._walk_width))
            walked = noise.walk_at('random_walk', started, last[started], self._walk_width)
            self._walk_offset[started] += step * walked
        self._take(config)

    def reset(self, envs: slice | Array) -> None:
        """Forget what was kept for `envs`."""
        if self._walk_offset is not None:
            self._walk_offset[envs] = 0.0


def clip_to(values: Array, real: Array) -> None:
    """Write real numbers into `values` as its type holds them: integers rounded and clipped."""
    xp = arrays_holding(values)
    if xp.kind(values) in 'iu':
        limits = np.iinfo(xp.dtype(values))
        real = xp.clip(xp.round(real), limits.min, limits.max)
    values[:] = xp.astype(real, xp.dtype(values))
