"""Barometer: static air pressure of the standard atmosphere at the mount's height."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import mujoco
from pydantic import Field

from rig_common import msgs
from sim_sensors.interface import Batch, Sample, Topic
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.sensors.common import atmosphere
from sim_sensors.sensors.common.drift import gauss_markov
from sim_sensors.sensors.common.phenomena import FilteredSensor, PhysicalConfig
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative, Positive

TEMPERATURE = Topic('temperature', 'sensor_msgs/msg/Temperature')


class BarometerConfig(PhysicalConfig):
    """A barometer; `noise`, `bias`, `random_walk`, `resolution` and `physics` are in Pa."""

    rate_hz: NonNegative = 25.0
    """Captures a second; 0 captures at every physics step."""
    altitude_m: Annotated[float, Field(ge=-500.0, le=10_000.0)] = 0.0
    """Height of the world's z = 0 above mean sea level, m."""
    sea_level_pressure_pa: Annotated[float, Field(ge=50_000.0, le=120_000.0)] = (
        atmosphere.SEA_LEVEL_PRESSURE_PA
    )
    """Pressure at mean sea level (QNH), Pa."""
    sea_level_temperature_c: Annotated[float, Field(ge=-90.0, le=60.0)] = 15.0
    """Air temperature at mean sea level, degrees Celsius."""
    drift_pa: NonNegative = 0.0
    """Standard deviation of a slow error (weather, warming up), Pa."""
    drift_time_s: Positive = 600.0
    """Correlation time of that error, s."""
    turn_on_bias_pa: NonNegative = 0.0
    """Standard deviation of the absolute error drawn once per environment and reset, Pa."""
    bandwidth_hz: NonNegative = 0.0
    """-3 dB frequency of a first-order low pass, Hz; 0 is none."""
    range_pa: tuple[NonNegative, NonNegative] = (30_000.0, 110_000.0)
    """Smallest and largest pressure it can read, Pa."""
    publish_temperature: bool = False
    """Publish the air's temperature on `<name>/temperature` too."""


class _PressureReader(ColumnReader):
    """Turns the mount's height into the pressure there."""

    def __init__(self, model: mujoco.MjModel, names: list[str], config: BarometerConfig) -> None:
        super().__init__(model, names)
        self.columns = self.columns[2:]
        self._config = config

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write the static pressure, Pa."""
        super().read(view, envs, part, out)
        config = self._config
        out[:] = atmosphere.pressure_pa(
            out + config.altitude_m,
            config.sea_level_pressure_pa,
            config.sea_level_temperature_c + atmosphere.CELSIUS_ZERO_K,
        )


class Barometer(FilteredSensor[BarometerConfig]):
    """Static pressure; wind and the robot's own air flow are not modelled."""

    config_class = BarometerConfig
    topic = Topic('pressure', 'sensor_msgs/msg/FluidPressure')
    natives = ('framepos',)

    def __init__(self, name: str, config: BarometerConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'fluid_pressure': ()}, float)
        """Static pressure, Pa."""
        self._template = msgs.fluid_pressure(self.frame_id).preset(
            variance=config.noise**2 + config.resolution**2 / 12.0
        )
        self._warmth = msgs.temperature(self.frame_id)
        self.low_pass(config.bandwidth_hz)

    def reader(self, view: WorldView) -> TruthReader:
        """Read the height of the mount."""
        return _PressureReader(view.model, self.native_names, self.config)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Add the absolute error, the drift, then what every sensor has; clip to the range."""
        config = self.config
        if config.turn_on_bias_pa > 0.0:
            values += config.turn_on_bias_pa * batch.noise.constant('turn_on', batch.envs, 1)
        if config.drift_pa > 0.0:
            values += config.drift_pa * gauss_markov('drift', config.drift_time_s, batch, 1)
        batch.noise.apply_readout_errors(values, batch)
        batch.noise.xp.clip_in_place(values, *config.range_pa)

    def topics(self) -> Sequence[Topic]:
        """The pressure and, if asked for, the temperature."""
        return [self.topic] + [TEMPERATURE] * self.config.publish_temperature

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Fill the messages; the variance is that of the white noise."""
        made = [*super().encode(sample)]
        if self.config.publish_temperature:
            warmth = self._temperature_c(float(sample.truth[0]))
            made.append((TEMPERATURE, self._warmth.fill(sample.stamp_ns, temperature=warmth)))
        return made

    def bounds(self) -> tuple[float, float]:
        """Return the smallest and largest pressure it reads, Pa."""
        return self.config.range_pa

    def _temperature_c(self, pressure_pa: float) -> float:
        """Return the temperature of the air that has this pressure, degrees Celsius."""
        config = self.config
        sea_level_k = config.sea_level_temperature_c + atmosphere.CELSIUS_ZERO_K
        ratio = (pressure_pa / config.sea_level_pressure_pa) ** (1.0 / atmosphere.EXPONENT)
        return float(sea_level_k * ratio - atmosphere.CELSIUS_ZERO_K)
