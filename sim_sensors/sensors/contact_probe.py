"""Kinematic contact probes: the signed distance of balls to a body, negative inside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import mujoco
import numpy as np
from pydantic import Field, model_validator

from rig_common import msgs
from rig_common.errors import RigError
from sim_sensors.interface import Batch, Sensor, SensorConfig, Topic
from sim_sensors.interface.mounts import add_frame, find_body
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative, Positive

DISTANCE = Topic('distance', 'sensor_msgs/msg/Range')
DISTANCES = Topic('distances', 'sensor_msgs/msg/PointCloud2')
BALL = np.dtype([('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('distance', '<f4')])
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
    max_penetration_m: Positive = 0.05
    """Deeper than this reads -inf, m."""
    probes_m: tuple[float, ...] = ()
    """Centres of several balls in the mount's frame, x y z of one after another, m; one ball at
    the mount when empty."""

    @model_validator(mode='after')
    def _probes_are_points(self) -> ContactProbeConfig:
        if len(self.probes_m) % 3:
            raise ValueError(
                f'probes_m has {len(self.probes_m)} numbers; it should have three, '
                f'x y z, for each ball'
            )
        return self


class ContactProbe(Sensor[ContactProbeConfig]):
    """Signed distances from the balls' surfaces, m; the balls touch and weigh nothing."""

    config_class = ContactProbeConfig
    on_tensors = True

    def __init__(self, name: str, config: ContactProbeConfig) -> None:
        super().__init__(name, config)
        self._centres = np.array(config.probes_m or (0.0, 0.0, 0.0)).reshape(-1, 3)
        count = len(self._centres)
        self._is_single = not config.probes_m
        self.topic = DISTANCE if self._is_single else DISTANCES
        self._balls = [self.name] if self._is_single else [f'{name}/{k}' for k in range(count)]
        self.truth_layout = Layout(
            {'range': ()} if self._is_single else {'ranges': (count,)}, np.float32
        )
        """Signed distance of each ball, m; max_range_m where the target is farther."""
        self._cloud = np.zeros(count, BALL)
        for axis, key in enumerate('xyz'):
            self._cloud[key] = self._centres[:, axis]
        self._template = (
            msgs.range_reading(
                self.frame_id,
                radiation_type=INFRARED,
                field_of_view_rad=0.0,
                min_range_m=-config.max_penetration_m,
                max_range_m=config.max_range_m,
                variance=config.noise**2,
            )
            if self._is_single
            else (msgs.point_cloud2(self.frame_id, BALL, count, is_dense=False))
        )

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site, the balls around it and MuJoCo's own distance sensors."""
        super().mount(spec)
        frame = add_frame(spec, spec.site(self.name))
        find_body(spec, self.name, self.config.target, 'target')
        for ball, centre in zip(self._balls, self._centres, strict=True):
            self._add_ball(spec, ball, centre, frame)

    def _add_ball(
        self, spec: mujoco.MjSpec, name: str, centre: Array, frame: mujoco.MjsFrame
    ) -> None:
        if spec.geom(name) is not None:
            raise RigError(
                f'sensor {self.name!r}: the model has a geom {name!r} already; '
                f'give the sensor another name'
            )
        ball = spec.site(self.name).parent.add_geom(
            name=name,
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            pos=centre,
            size=[self.config.radius_m, 0.0, 0.0],
            contype=0,
            conaffinity=0,
            mass=0.0,
            group=5,
            rgba=[0.9, 0.3, 0.1, 0.0],
        )
        ball.set_frame(frame)
        spec.add_sensor(
            name=f'{name}/geomdist',
            type=mujoco.mjtSensor.mjSENS_GEOMDIST,
            objtype=mujoco.mjtObj.mjOBJ_GEOM,
            objname=name,
            reftype=mujoco.mjtObj.mjOBJ_BODY,
            refname=self.config.target,
            cutoff=self.config.max_range_m,
        )

    def reader(self, view: WorldView) -> TruthReader:
        """Read the native sensors."""
        return ColumnReader(view.model, [f'{ball}/geomdist' for ball in self._balls])

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Write infinities beyond the ends (REP 117)."""
        values[values < -self.config.max_penetration_m] = -np.inf
        values[values >= self.config.max_range_m] = np.inf
        return values

    def truth_to_blocks(self, row: Array) -> dict[str, Any]:
        """Return the distances of a row, at the balls' centres where there are several."""
        if self._is_single:
            return super().truth_to_blocks(row)
        self._cloud['distance'] = row
        return {'points': self._cloud}

    def blocks_to_truth(self, blocks: Mapping[str, Array], out: Array) -> None:
        """Read the distances back."""
        if self._is_single:
            super().blocks_to_truth(blocks, out)
        else:
            out[:] = blocks['points']['distance']

    blocks = truth_to_blocks
