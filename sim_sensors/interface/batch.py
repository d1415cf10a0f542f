"""Noise of a sensor: its random streams, and the readout errors that every sensor understands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rig_common.arrays import Flags, Ints
from sim_sensors.interface.config import SensorConfig
from sim_sensors.timing.arrays import Array, Rows, arrays_holding
from sim_sensors.timing.randomness.random_streams import RandomStreams


class ReadoutErrors:
    """`value + bias + walk + white noise`, rounded to `resolution`; in the sensor's own unit.

    Every column has its own numbers. Integer values (pixels) are disturbed as real numbers,
    rounded and clipped to what their type holds; booleans have no unit and are left alone.
    """

    def __init__(self, config: SensorConfig) -> None:
        """Take the four keys from `config`."""
        self.take(config)

    def take(self, config: SensorConfig) -> None:
        """Take new keys; `random_walk` stays, see `FIXED_KEYS`."""
        self.noise, self.bias = config.noise, config.bias
        self.random_walk, self.resolution = config.random_walk, config.resolution
        self.is_identity = not (self.noise or self.bias or self.random_walk or self.resolution)
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
            values += batch.noise.walk('random_walk', batch, width) * self.random_walk
        if self.resolution:
            values /= self.resolution
            batch.noise.xp.round_in_place(values)
            values *= self.resolution


def clip_to(values: Array, real: Array) -> None:
    """Write real numbers into `values` as its type holds them: integers rounded and clipped."""
    xp = arrays_holding(values)
    if xp.kind(values) in 'iu':
        limits = np.iinfo(xp.dtype(values))
        real = xp.clip(xp.round(real), limits.min, limits.max)
    values[:] = xp.astype(real, xp.dtype(values))


class NoiseSource(RandomStreams):
    """The random streams of a simulated sensor, asked for by the batch a stage works on."""

    def __init__(self, *given: Any, readout_errors: ReadoutErrors, **keys: Any) -> None:
        """Draw for a sensor with these `readout_errors`; the rest is for `RandomStreams`."""
        super().__init__(*given, **keys)
        self.readout_errors = readout_errors
        self.gain = 1.0
        """Factor on white noise, for the `noisy` fault."""

    def normal(self, stream: str, batch: Batch, width: int, *, per_tick: bool = False) -> Array:
        """Return white standard normals [n, width] of each row's capture, the caller's own.

        `per_tick` indexes by truth tick instead, for `physics_imperfections`, which also runs
        between captures.
        """
        values = self.normals(stream, width).at(
            batch.envs, batch.tick if per_tick else batch.index
        )
        return values if self.gain == 1.0 else values * self.gain

    def uniform(self, stream: str, batch: Batch, width: int) -> Array:
        """Return uniforms [0, 1) [n, width] of each row's capture, the caller's own."""
        return self.uniform_at(stream, batch.envs, batch.index, width)

    def walk(self, stream: str, batch: Batch, width: int) -> Array:
        """Return unit random walks [n, width]: a standard normal per capture so far, summed."""
        return self.walk_at(stream, batch.envs, batch.index, width)

    def apply_readout_errors(self, values: Array, batch: Batch) -> None:
        """Apply the `noise`, `bias`, `random_walk` and `resolution` every sensor has, in place."""
        self.readout_errors.apply(values, batch)


@dataclass(slots=True)
class Batch:
    """Which rows a stage works on, and what it may draw on.

    Rows are environments; `index`, `time_ns` run over rows.
    """

    envs: Rows
    """Selects this batch's environments in a full [num_envs, ...] array."""
    index: Ints
    """Capture index k of each row; -1 on a truth tick that is no capture."""
    tick: Ints
    """Truth tick of each row; equals `index` where every truth tick is a capture."""
    time_ns: Ints
    """True time of each row."""
    dt_s: float
    """Nominal time between truth ticks, s."""
    period_s: float
    """Nominal time between captures, s (of the trigger, or of the physics, where those rule)."""
    is_measured: bool
    """False in the ground-truth branch."""
    noise: NoiseSource
    """Random numbers by (sensor, environment, capture index)."""
    state: dict[str, Array]
    """The arrays of `Sensor.state_shapes`, [num_envs, *shape]; index them with `envs`."""


class Timeline(Protocol):
    """Earlier slots of the timeline ring, free of hardware noise."""

    def at(self, ticks_back: int) -> Array:
        """Return the batch's rows `ticks_back` truth ticks ago, [n, width]; 1 is the previous."""

    @property
    def filled(self) -> Flags:
        """Rows that have a previous tick at all, [n]."""

    @property
    def complete(self) -> bool:
        """Whether all rows are known to have one; nearly always."""
