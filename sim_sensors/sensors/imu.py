"""Inertial measurement unit: specific force and angular rate, with Allan noise and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from rig_common import msgs
from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from rig_common.validation import Strict
from sim_sensors.interface import Batch, Sample, Topic
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.sensors.common.axes import NonNegativePerAxis, PerAxis, quantise, sensitivity
from sim_sensors.sensors.common.drift import AllanNoise
from sim_sensors.sensors.common.phenomena import FilteredSensor, PhysicalConfig
from sim_sensors.sensors.common.rotations import rotate
from sim_sensors.timing.arrays import NUMPY, Array, Arrays, Layout, Movable
from sim_sensors.timing.units import NonNegative, Positive

DATA = Topic('data', 'sensor_msgs/msg/Imu')
TEMPERATURE = Topic('temperature', 'sensor_msgs/msg/Temperature')

INERTIAL, ORIENTATION = slice(0, 6), slice(6, 10)
ZERO = (0.0, 0.0, 0.0)


class TriadConfig(Strict):
    """Errors of one three-axis element; u is its unit, rad/s for a gyro, m/s^2 for an
    accelerometer. One number stands for all three axes."""

    noise_density: NonNegativePerAxis = ZERO
    """White noise, u/sqrt(Hz): the Allan deviation at 1 s (angle or velocity random walk)."""
    bias_instability: NonNegativePerAxis = ZERO
    """Flat floor of the Allan deviation, u."""
    random_walk: NonNegativePerAxis = ZERO
    """Random walk of the bias, u/s/sqrt(Hz) (= u/sqrt(s))."""
    turn_on_bias: NonNegativePerAxis = ZERO
    """Standard deviation of the bias drawn once per environment and reset, u."""
    bias: PerAxis = ZERO
    """Constant bias, u."""
    temperature_bias: PerAxis = ZERO
    """Change of the bias with temperature, u/K from `temperature.reference_c`."""
    scale_error: PerAxis = ZERO
    """Relative error of the gain; 0.01 reads 1 % too much."""
    cross_axis: Annotated[float, Field(ge=-0.5, le=0.5)] = 0.0
    """Fraction of each other axis that an axis picks up."""
    misalignment_rad: PerAxis = ZERO
    """Rotation vector of the triad against its housing, rad."""
    range: NonNegative = 0.0
    """Saturation at +-range, u; 0 is none."""
    resolution: NonNegative = 0.0
    """Quantisation step, u; 0 is none."""
    bandwidth_hz: NonNegative = 0.0
    """-3 dB frequency of a first-order low pass, Hz; 0 is none."""


class GyroConfig(TriadConfig):
    """A gyro's errors."""

    g_sensitivity: PerAxis = ZERO
    """Rate read per specific force along the same axis, rad/s per m/s^2."""


class TemperatureConfig(Strict):
    """How warm the sensor is: ambient plus its own heat, which rises after power-up."""

    ambient_c: Annotated[float, Field(ge=-100.0, le=200.0)] = 25.0
    """Temperature around the sensor, degrees Celsius."""
    reference_c: Annotated[float, Field(ge=-100.0, le=200.0)] = 25.0
    """Temperature at which the biases are as given, degrees Celsius."""
    self_heating_k: NonNegative = 0.0
    """Rise above ambient after a long time, K."""
    time_constant_s: Positive = 300.0
    """Time constant of that rise, s."""
    publish: bool = False
    """Publish it on `<name>/temperature` beside every sample."""

    def at_s(self, time_s: Any, xp: Arrays = NUMPY) -> Array:
        """Return the temperature at times since power-up, degrees Celsius."""
        rise = -xp.expm1(-time_s / self.time_constant_s)
        return self.ambient_c + self.self_heating_k * rise


class ImuConfig(PhysicalConfig):
    """An IMU; `physics` shakes its specific force, m/s^2."""

    rate_hz: NonNegative = 200.0
    """Captures a second; 0 captures at every physics step."""
    accel: TriadConfig = TriadConfig()
    """The accelerometer."""
    gyro: GyroConfig = GyroConfig()
    """The gyro."""
    temperature: TemperatureConfig = TemperatureConfig()
    """Temperature of both."""
    orientation: bool = False
    """Publish an orientation estimate too, on `<name>/data` (REP 145)."""
    orientation_noise_rad: NonNegative = 0.0
    """Standard deviation of its error around each axis, rad."""


class Imu(FilteredSensor[ImuConfig]):
    """Specific force and angular rate at the mount, in its own axes.

    Gravity is in the acceleration, as REP 145 wants raw data: at rest z reads +9.81.
    """

    config_class = ImuConfig
    topic = Topic('data_raw', 'sensor_msgs/msg/Imu')
    natives: Sequence[str] = ('accelerometer', 'gyro')
    disturbed = slice(0, 3)

    def __init__(self, name: str, config: ImuConfig) -> None:
        super().__init__(name, config)
        fields: dict[str, tuple[int, ...]] = {
            'linear_acceleration': (3,),
            'angular_velocity': (3,),
        }
        self._template = msgs.imu(self.frame_id)
        self._full = msgs.imu(self.frame_id, orientation=True)
        if config.orientation:
            fields['orientation'] = (4,)
            self._truth_template = self._full
            self.natives = (*self.natives, 'framequat')
        self.truth_layout = Layout(fields, float)
        """Specific force m/s^2, angular rate rad/s and, if asked for, orientation xyzw."""
        self._period_s = 0.0
        self._warmth = msgs.temperature(self.frame_id)
        self._errors = _Errors(config)
        self.low_pass(
            np.repeat([config.accel.bandwidth_hz, config.gyro.bandwidth_hz], 3), INERTIAL
        )

    # ---- the world's side -----------------------------------------------------------------

    def reader(self, view: WorldView) -> TruthReader:
        """Read the native columns; the quaternion turns from wxyz to xyzw."""
        reader = ColumnReader(view.model, self.native_names)
        reader.columns[ORIENTATION] = np.roll(reader.columns[ORIENTATION], -1)
        return reader

    # ---- the pipeline's stages ----------------------------------------------------------------

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Apply gains, cross-talk, biases, noise, resolution and range."""
        if batch.period_s != self._period_s and batch.noise.xp.is_numpy:  # messages are NumPy's
            self._take_period(batch.period_s)
        self._errors.apply(values[:, INERTIAL], batch)
        if self.config.orientation_noise_rad > 0.0:
            turn = batch.noise.normal('orientation', batch, 3)
            rotate(values[:, ORIENTATION], self.config.orientation_noise_rad * turn)

    def _take_period(self, period_s: float) -> None:
        """Put the covariances into the messages: they depend on the rate as densities do not."""
        self._period_s = period_s
        covariances = self._errors.covariances(period_s)
        self._template = msgs.imu(self.frame_id).preset(**covariances)
        self._full = msgs.imu(self.frame_id, orientation=True).preset(
            orientation_covariance=np.diag([self.config.orientation_noise_rad**2] * 3).ravel(),
            **covariances,
        )

    # ---- messages -------------------------------------------------------------------------

    def topics(self) -> Sequence[Topic]:
        """`data_raw` always, `data` with an orientation, `temperature` if asked for."""
        return (
            [self.topic]
            + [DATA] * self.config.orientation
            + [TEMPERATURE] * self.config.temperature.publish
        )

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Fill the messages; covariances are those of the white noise of one sample."""
        fields = self.truth_layout.unpack(sample.values)
        orientation = fields.pop('orientation', None)
        made = [(self.topic, self._template.fill(sample.stamp_ns, **fields))]
        if orientation is not None:
            made.append(
                (DATA, self._full.fill(sample.stamp_ns, orientation=orientation, **fields))
            )
        if self.config.temperature.publish:
            warmth = float(self.config.temperature.at_s(sample.elapsed_ns / NS_PER_S))
            made.append((TEMPERATURE, self._warmth.fill(sample.stamp_ns, temperature=warmth)))
        return made


class _Errors(Movable):
    """All errors of both triads, stacked into columns [6]: accelerometer, then gyro."""

    def __init__(self, config: ImuConfig) -> None:
        accel, gyro = config.accel, config.gyro
        self._temperature = config.temperature
        self._matrix = np.zeros((6, 6))
        for block, triad in ((slice(0, 3), accel), (slice(3, 6), gyro)):
            self._matrix[block, block] = sensitivity(
                triad.scale_error, triad.cross_axis, triad.misalignment_rad
            )
        self._matrix[3:, :3] = np.diag(gyro.g_sensitivity)
        self._is_mixed = not np.array_equal(self._matrix, np.eye(6))

        def both(key: str) -> Floats:
            return np.array([*getattr(accel, key), *getattr(gyro, key)])

        self._bias = _unless_zero(both('bias'))
        self._turn_on = _unless_zero(both('turn_on_bias'))
        self._per_kelvin = _unless_zero(both('temperature_bias'))
        self._allan = AllanNoise(
            both('noise_density'), both('bias_instability'), both('random_walk')
        )
        range_ = np.repeat([accel.range or np.inf, gyro.range or np.inf], 3)
        self._saturates = bool(np.isfinite(range_).any())
        self._range = range_
        self._resolution = np.repeat([accel.resolution, gyro.resolution], 3)
        self._is_stepped = bool(self._resolution.any())
        self._stepped = slice(0 if accel.resolution else 3, 6 if gyro.resolution else 3)
        self._steps = self._resolution[self._stepped]
        self._generic_variance = config.noise**2 + config.resolution**2 / 12.0

    def apply(self, values: Array, batch: Batch) -> None:
        """Turn true values [n, 6] into what the converters give out."""
        xp = batch.noise.xp
        if self._is_mixed:
            values[:] = values @ self._matrix.T
        if self._bias is not None:
            values += self._bias
        if self._turn_on is not None:
            drawn = batch.noise.constant('turn_on', batch.envs, 6)
            values += self._turn_on * drawn
        if self._per_kelvin is not None:
            time_s = xp.astype(batch.time_ns, np.float64) / NS_PER_S
            warmer = self._temperature.at_s(time_s, xp) - self._temperature.reference_c
            values += warmer[:, None] * self._per_kelvin
        self._allan.apply(values, batch)
        batch.noise.apply_readout_errors(values, batch)
        if self._is_stepped:
            quantise(values[:, self._stepped], self._steps)
        if self._saturates:
            xp.clip_in_place(values, -self._range, self._range)

    def covariances(self, period_s: float) -> dict[str, Array]:
        """Return those of the white noise of one sample, row-major [9], by their block's name."""
        variance = (
            self._allan.white_sigma(period_s) ** 2
            + self._resolution**2 / 12.0
            + self._generic_variance
        )
        return {
            'linear_acceleration_covariance': np.diag(variance[:3]).ravel(),
            'angular_velocity_covariance': np.diag(variance[3:]).ravel(),
        }


def _unless_zero(values: Floats) -> Floats | None:
    return values if values.any() else None
