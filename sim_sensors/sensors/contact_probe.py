"""Kinematic contact probe: the signed distance of a ball to a body, negative inside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import mujoco
import numpy as np
from pydantic import Field

from rig_common import msgs
from rig_common.errors import RigError
from sim_sensors.config import SensorConfig
from sim_sensors.pipeline.layout import Array, Layout
from sim_sensors.sensors.base import Batch, Sample, Sensor, Topic
from sim_sensors.sensors.native import native_name
from sim_sensors.units import NonNegative
from sim_sensors.world.mounts import find_body
from sim_sensors.world.truth import ColumnReader

if TYPE_CHECKING:
    from rig_common.cdr import Template
    from sim_sensors.world.truth import TruthReader, WorldView

DISTANCE = Topic('distance', 'sensor_msgs/msg/Range')
INFRARED = 1


class ContactProbeConfig(SensorConfig):
    """A ball that feels how near a body is, and how deep it is inside."""

    rate_hz: NonNegative = 100.0
    """Captures a second; 0 captures at every physics step."""
    target: str = 'world'
    """Body whose geoms it measures against; `world` is the ground and what is fixed to it."""
    radius_m: Annotated[float, Field(gt=0.0, le=10.0)] = 0.01
    """Radius of the ball, m; the distance counts from its surface."""
    max_range_m: Annotated[float, Field(gt=0.0, le=1000.0)] = 0.5
    """Farther than this reads +inf, m."""
    max_penetration_m: Annotated[float, Field(gt=0.0)] = 0.05
    """Deeper than this reads -inf, m."""


class ContactProbe(Sensor[ContactProbeConfig]):
    """Signed distance from the ball's surface, m; the ball itself touches and weighs nothing."""

    config_class = ContactProbeConfig

    def __init__(self, name: str, config: ContactProbeConfig) -> None:
        super().__init__(name, config)
        self._layout = Layout({'range': ()}, np.float32)
        self._template = msgs.range_reading(
            self.frame_id, radiation_type=INFRARED, field_of_view_rad=0.0,
            min_range_m=-config.max_penetration_m, max_range_m=config.max_range_m,
            variance=config.noise**2)

    @property
    def truth_layout(self) -> Layout:
        """Signed distance, m; max_range_m where the target is farther."""
        return self._layout

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site, the ball on it and MuJoCo's own distance sensor."""
        super().mount(spec)
        site = spec.site(self.name)
        if spec.geom(self.name) is not None:
            raise RigError(f'sensor {self.name!r}: the model has a geom {self.name!r} already; '
                           f'give the sensor another name')
        ball = site.parent.add_geom(
            name=self.name, type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[self.config.radius_m, 0.0, 0.0], pos=site.pos, contype=0, conaffinity=0,
            mass=0.0, group=5, rgba=[0.9, 0.3, 0.1, 0.0])
        if site.frame is not None:
            ball.set_frame(site.frame)
        find_body(spec, self.name, self.config.target, 'target')
        spec.add_sensor(
            name=native_name(self.name, 'geomdist'), type=mujoco.mjtSensor.mjSENS_GEOMDIST,
            objtype=mujoco.mjtObj.mjOBJ_GEOM, objname=self.name,
            reftype=mujoco.mjtObj.mjOBJ_BODY, refname=self.config.target,
            cutoff=self.config.max_range_m)

    def reader(self, view: WorldView) -> TruthReader:
        """Read the native sensor."""
        return ColumnReader(view.model, [native_name(self.name, 'geomdist')])

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Write infinities beyond the ends (REP 117)."""
        values[values < -self.config.max_penetration_m] = -np.inf
        values[values >= self.config.max_range_m] = np.inf
        return values

    def truth_template(self) -> tuple[str, Template]:
        """Truth travels as a Range too."""
        return self._template.type_name, self._template

    def topics(self) -> Sequence[Topic]:
        """Return the distance topic."""
        return (DISTANCE,)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write the signed distance."""
        return ((DISTANCE, self._template.fill(sample.stamp_ns, range=sample.values[0])),)
