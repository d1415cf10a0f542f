"""Ultrasonic or infrared ranger: the nearest surface inside a cone."""

from __future__ import annotations

from collections.abc import Sequence
from math import radians
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from rig_common import msgs
from rig_common.arrays import Floats
from sim_sensors.interface import Batch, Topic
from sim_sensors.interface.config import ranges_are_sane
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.raycast.ray_caster import visible_from
from sim_sensors.sensors.common.eye import Eye
from sim_sensors.sensors.common.phenomena import PhysicalConfig, PhysicalSensor
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative, Positive

RADIATION = {'ultrasound': 0, 'infrared': 1}
GOLDEN_ANGLE_RAD = np.pi * (3.0 - np.sqrt(5.0))


class RangeConfig(PhysicalConfig):
    """A ranger that reports one distance; `physics` is in m."""

    rate_hz: NonNegative = 20.0
    """Captures a second; 0 captures at every physics step."""
    radiation: Literal['ultrasound', 'infrared'] = 'ultrasound'
    """What the message says it emits."""
    fov_deg: Annotated[float, Field(ge=0.0, le=180.0)] = 15.0
    """Full opening angle of the cone around +x, degrees; 0 is one ray."""
    num_rays: Annotated[int, Field(ge=1, le=4096)] = 32
    """Rays that fill the cone evenly; the nearest hit is the reading."""
    min_range_m: NonNegative = 0.02
    """Nearer than this reads -inf, m (REP 117)."""
    max_range_m: Positive = 4.0
    """Farther than this reads +inf, m (REP 117)."""
    noise: NonNegative = 0.005
    """Standard deviation of the distance, m."""
    exclude_own_body: bool = True
    """Whether the body that carries the sensor, and all that is attached to it, is invisible to
    it."""

    _ranges = ranges_are_sane


class Range(PhysicalSensor[RangeConfig]):
    """Distance along +x of the mount to the nearest surface inside the cone, m."""

    config_class = RangeConfig
    topic = Topic('range', 'sensor_msgs/msg/Range')
    on_tensors = True

    def __init__(self, name: str, config: RangeConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'range': ()}, np.float32)
        """The true distance, m; +inf when the cone is empty."""
        self._template = msgs.range_reading(
            self.frame_id,
            radiation_type=RADIATION[config.radiation],
            field_of_view_rad=radians(config.fov_deg),
            min_range_m=config.min_range_m,
            max_range_m=config.max_range_m,
            variance=config.noise**2,
        )

    def reader(self, view: WorldView) -> TruthReader:
        """Cast the cone's rays."""
        return ConeReader(view, self.name, self.config)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Write -inf for too close and +inf for no return."""
        values[values < self.config.min_range_m] = -np.inf
        values[values > self.config.max_range_m] = np.inf
        return values


class ConeReader:
    """Casts the rays of a cone and keeps the nearest."""

    parts_ns: Sequence[int] = (0,)

    def __init__(self, view: WorldView, site: str, config: RangeConfig) -> None:
        """Place the rays once in the sensor's frame."""
        model = view.model
        index = int(model.site(site).id)
        self._rays = cone(config.num_rays, radians(config.fov_deg))
        seen = visible_from(model, index, exclude_own_body=config.exclude_own_body)
        self._eye = Eye(view, index, self._rays, seen, config.max_range_m, backend='mujoco')

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write the nearest distance of each environment, m."""
        origins, directions = self._eye.motion(view, envs).aim(self._rays, self._rays[:0], 0.0)
        hits = self._eye.cast(view, envs, origins, directions)
        out[:, 0] = hits.range_m.reshape(len(envs), -1).min(axis=1)


def cone(num_rays: int, opening_rad: float) -> Floats:
    """Return [num_rays, 3] unit directions that fill a cone around +x evenly (a sunflower).

    The first lies on the axis. Even in solid angle, so no part of the beam counts double.
    """
    rank = np.arange(num_rays) / max(num_rays - 1, 1)
    cosine = 1.0 - rank * (1.0 - np.cos(opening_rad / 2.0))
    sine = np.sqrt(np.maximum(1.0 - cosine**2, 0.0))
    turn = GOLDEN_ANGLE_RAD * np.arange(num_rays)
    return np.stack([cosine, sine * np.cos(turn), sine * np.sin(turn)], axis=1)
