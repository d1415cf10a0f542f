"""Disturbances of what is sensed, not of the sensor: weather, gusts, a load that works loose.

They feed the response model, so a slow sensor smooths them, and ground truth is free of them.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import numpy as np
from pydantic import Field

from rig_common.arrays import Floats
from rig_common.validation import Strict
from sim_sensors.interface import Batch, Sensor, SensorConfig, Timeline
from sim_sensors.sensors.common.drift import LowPass, unit_markov
from sim_sensors.timing.arrays import Array, Arrays
from sim_sensors.timing.units import NonNegative


class PhysicsConfig(Strict):
    """How what is sensed differs from what the world says, in the unit of the truth."""

    drift: NonNegative = 0.0
    """Random walk of the quantity, its unit per sqrt(s)."""
    turbulence: NonNegative = 0.0
    """Standard deviation of fluctuations around the true value."""
    turbulence_intensity: NonNegative = 0.0
    """Further standard deviation, as a fraction of the magnitude of the true value."""
    turbulence_time_s: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0
    """Correlation time of the fluctuations, s: of gusts, their length over the speed of the wind
    (the longitudinal spectrum of Dryden)."""

    @property
    def is_active(self) -> bool:
        """Whether anything is disturbed."""
        return bool(self.drift or self.turbulence or self.turbulence_intensity)


class PhysicalConfig(SensorConfig):
    """A sensor of a quantity that can itself be disturbed."""

    physics: PhysicsConfig = PhysicsConfig()
    """Disturbances of the sensed quantity."""


PhysicalT = TypeVar('PhysicalT', bound=PhysicalConfig, covariant=True)


class PhysicalSensor(Sensor[PhysicalT]):
    """Disturbs the columns `disturbed` of its truth as `physics` says."""

    disturbed = slice(None)

    def __init__(self, name: str, config: PhysicalT) -> None:
        super().__init__(name, config)
        self.disturbs = config.physics.is_active

    def physics_imperfections(self, values: Array, batch: Batch) -> None:
        """Add fluctuations and drift, by truth tick."""
        physics, xp = self.config.physics, batch.noise.xp
        part = values[:, self.disturbed]
        width = part.shape[1]
        added: Array = xp.zeros(part.shape)
        if physics.turbulence or physics.turbulence_intensity:
            sigma = physics.turbulence + physics.turbulence_intensity * self.magnitude(part, xp)
            time_s = physics.turbulence_time_s
            added += sigma * unit_markov('turbulence', time_s, batch.dt_s, batch, width).at(
                batch.envs, batch.tick
            )
        if physics.drift:
            walk = batch.noise.walk_at('physics_drift', batch.envs, batch.tick, width)
            added += walk * (physics.drift * batch.dt_s**0.5)
        part += xp.astype(added, xp.dtype(values))

    def magnitude(self, values: Array, xp: Arrays) -> Array:
        """Return what `turbulence_intensity` is a fraction of: [n, width], or [n, 1] for all."""
        return xp.where(xp.isfinite(values), xp.abs(values), 0.0)


class FilteredSensor(PhysicalSensor[PhysicalT]):
    """Low-passes what it senses; ground truth is free of that."""

    on_tensors = True
    truth_responds = False

    def low_pass(self, cutoff_hz: Floats | float, columns: slice = slice(None)) -> None:
        """Filter `columns` with these -3 dB frequencies, 0 for none; to be called when made."""
        self._low_pass = LowPass(cutoff_hz, columns)
        self.stateful = self.responds = bool(np.any(cutoff_hz))

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        """Low-pass, exactly for what holds over a tick."""
        self._low_pass.apply(values, timeline, batch.dt_s)
