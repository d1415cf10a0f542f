"""Anemometer: the wind that the mount feels, in its own axes."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from rig_common import msgs
from rig_common.errors import RigError
from sim_sensors.interface import Batch, Topic, Vector3
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.sensors.common.phenomena import FilteredSensor, PhysicalConfig
from sim_sensors.sensors.common.rotations import cross
from sim_sensors.timing.arrays import Array, Arrays, Layout
from sim_sensors.timing.units import NonNegative


class WindConfig(PhysicalConfig):
    """An anemometer; `noise`, `bias`, `random_walk`, `resolution` and `physics` are in m/s."""

    rate_hz: NonNegative = 20.0
    """Captures a second; 0 captures at every physics step."""
    wind_m_s: Vector3 = (0.0, 0.0, 0.0)
    """The wind in the world's axes, where it blows to, m/s; all zero takes the model's
    `option/wind`. MuJoCo's own drag feels it too."""
    bandwidth_hz: NonNegative = 0.0
    """-3 dB frequency of the cups or the vane, Hz; 0 is none."""
    range_m_s: NonNegative = 0.0
    """Saturation of each axis at +-range, m/s; 0 is none."""


class ApparentWind(ColumnReader):
    """The world's wind less the velocity of the mount, in the mount's axes."""

    def __init__(self, model: mujoco.MjModel, names: Sequence[str]) -> None:
        super().__init__(model, names)
        self._wind = np.array(model.opt.wind)

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Turn the wind by the inverse of the mount's orientation."""
        columns = np.empty((len(out), 7))
        super().read(view, envs, part, columns)
        velocity, real, axis = columns[:, :3], columns[:, 3:4], columns[:, 4:]
        wind = np.broadcast_to(self._wind, axis.shape)
        across = 2.0 * cross(axis, wind)
        out[:] = wind - real * across + cross(axis, across) - velocity


class Wind(FilteredSensor[WindConfig]):
    """Apparent wind at the mount in its own axes, where it blows to, m/s."""

    config_class = WindConfig
    topic = Topic('wind', 'geometry_msgs/msg/Vector3Stamped')
    natives = ('velocimeter', 'framequat')

    def __init__(self, name: str, config: WindConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'vector': (3,)}, float)
        """Apparent wind in the mount's axes, m/s."""
        self._template = msgs.vector3_stamped(self.frame_id)
        self.low_pass(np.full(3, config.bandwidth_hz))

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site, its velocity and its orientation; set the world's wind if given."""
        super().mount(spec)
        if any(self.config.wind_m_s):
            spec.option.wind = self.config.wind_m_s

    def reader(self, view: WorldView) -> TruthReader:
        """Read what the mount feels."""
        return ApparentWind(view.model, self.native_names)

    def validate(self, view: WorldView) -> None:
        """Refuse a wind that another anemometer has set otherwise: a world has one."""
        wind = view.model.opt.wind
        if any(self.config.wind_m_s) and not np.allclose(wind, self.config.wind_m_s, atol=1e-12):
            raise RigError(
                f'sensor {self.name!r}: wind_m_s is {list(self.config.wind_m_s)}, but '
                f'another anemometer has set {wind.tolist()}; give all the same'
            )

    def magnitude(self, values: Array, xp: Arrays) -> Array:
        """Return the speed of the wind."""
        return xp.norm(values)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Apply what every sensor has, and the range."""
        batch.noise.apply_readout_errors(values, batch)
        batch.noise.xp.clip_in_place(values, *self.bounds())

    def bounds(self) -> tuple[float, float]:
        """Return the saturation limits, m/s."""
        limit = self.config.range_m_s or np.inf
        return (-limit, limit)
