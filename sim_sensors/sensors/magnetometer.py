"""Magnetometer: the Earth's field in the mount's axes, bent by the iron around it."""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common import msgs
from rig_common.errors import RigError
from sim_sensors.interface import Batch, Topic, Vector3
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.common.axes import PerAxis
from sim_sensors.sensors.common.native import LinearReader
from sim_sensors.sensors.common.phenomena import PhysicalConfig, PhysicalSensor
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative

TESLA_PER_GAUSS = 1e-4
"""MuJoCo leaves the unit open; its default, 0.5, is the Earth's field in gauss."""

Matrix = tuple[float, float, float, float, float, float, float, float, float]


class MagnetometerConfig(PhysicalConfig):
    """A magnetometer; `noise`, `bias`, `random_walk`, `resolution`, `physics` are in T."""

    rate_hz: NonNegative = 50.0
    """Captures a second; 0 captures at every physics step."""
    field_t: Vector3 = (0.0, 0.0, 0.0)
    """The Earth's field in the world's axes, T; all zero takes the model's `option/magnetic`,
    read as gauss."""
    hard_iron_t: PerAxis = (0.0, 0.0, 0.0)
    """Constant field of magnetised parts, in the sensor's axes, T."""
    soft_iron: Matrix = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
    """How permeable parts bend the field: a 3 x 3 matrix, row by row; the identity is none."""
    range_t: NonNegative = 0.0
    """Saturation at +-range, T; 0 is none."""


class Magnetometer(PhysicalSensor[MagnetometerConfig]):
    """Magnetic field at the mount, in its own axes (REP 145)."""

    config_class = MagnetometerConfig
    topic = Topic('mag', 'sensor_msgs/msg/MagneticField')
    natives = ('magnetometer',)
    on_tensors = True

    def __init__(self, name: str, config: MagnetometerConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'magnetic_field': (3,)}, float)
        """Field in the mount's axes, T."""
        self._soft_iron = np.reshape(config.soft_iron, (3, 3))
        self._hard_iron = np.asarray(config.hard_iron_t)
        variance = config.noise**2 + config.resolution**2 / 12.0
        self._template = msgs.magnetic_field(self.frame_id).preset(
            magnetic_field_covariance=np.diag([variance] * 3).ravel()
        )

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site and MuJoCo's own magnetometer on it; set the world's field if given."""
        super().mount(spec)
        if any(self.config.field_t):
            spec.option.magnetic = np.asarray(self.config.field_t) / TESLA_PER_GAUSS

    def reader(self, view: WorldView) -> TruthReader:
        """Read the native sensor in tesla."""
        return LinearReader(view.model, self.native_names, TESLA_PER_GAUSS * np.eye(3))

    def validate(self, view: WorldView) -> None:
        """Refuse a field that another magnetometer has set otherwise: there is only one Earth."""
        field = view.model.opt.magnetic * TESLA_PER_GAUSS
        if any(self.config.field_t) and not np.allclose(field, self.config.field_t, atol=1e-12):
            raise RigError(
                f'sensor {self.name!r}: field_t is {list(self.config.field_t)}, but '
                f'another magnetometer has set {field.tolist()}; give all the same'
            )

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Apply soft iron, hard iron, what every sensor has, and the range."""
        values[:] = values @ self._soft_iron.T + self._hard_iron
        batch.noise.apply_readout_errors(values, batch)
        if self.config.range_t > 0.0:
            batch.noise.xp.clip_in_place(values, -self.config.range_t, self.config.range_t)

    def bounds(self) -> tuple[float, float]:
        """Return the saturation limits, T."""
        limit = self.config.range_t or np.inf
        return (-limit, limit)
