"""Temperature grid: cells on a body that warm up near hot bodies, spread heat and cool down."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Annotated

import mujoco
import numpy as np
from pydantic import Field

from rig_common import msgs
from rig_common.validation import Strict
from sim_sensors.interface import Batch, Sample, Timeline, Topic
from sim_sensors.interface.mounts import find_body
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.sensors.common.grids import ResponseGrid, grid_points
from sim_sensors.sensors.common.phenomena import PhysicalConfig, PhysicalSensor
from sim_sensors.timing.arrays import Array, Layout, arrays_holding
from sim_sensors.timing.units import NonNegative, Positive

MEAN = Topic('temperature', 'sensor_msgs/msg/Temperature')

Celsius = Annotated[float, Field(ge=-273.15, le=5000.0)]


class HeatSourceConfig(Strict):
    """A body that is warmer or colder than its surroundings."""

    body: str
    """The body."""
    temperature_c: Celsius = 60.0
    """Its temperature, degrees Celsius."""
    reach_m: Positive = 0.1
    """Distance at which its influence has fallen to 1/e, m."""


class TemperatureGridConfig(PhysicalConfig):
    """A grid of thermometers in the y-z plane of the mount, facing +x."""

    rate_hz: NonNegative = 10.0
    """Captures a second; 0 captures at every physics step."""
    truth_rate_hz: NonNegative = 10.0
    """Rate of the thermal model, Hz; 0 is the physics rate."""
    rows: Annotated[int, Field(ge=1, le=512)] = 8
    """Cells along z, top row first."""
    columns: Annotated[int, Field(ge=1, le=512)] = 8
    """Cells along y, from +y (left) to -y."""
    height_m: Positive = 0.1
    """Extent along z, m."""
    width_m: Positive = 0.1
    """Extent along y, m."""
    ambient_c: Celsius = 22.0
    """Temperature of the surroundings and of every cell at the start, degrees Celsius."""
    sources: dict[str, HeatSourceConfig] = {}
    """Hot or cold bodies, by a name of your choice."""
    time_constant_s: Positive = 2.0
    """How fast a cell follows what it is exposed to, s."""
    diffusivity_m2_s: NonNegative = 1e-5
    """Spread of heat between cells, m^2/s (1e-5 is about that of steel)."""
    lag_s: NonNegative = 0.2
    """Time constant of the thermometers themselves, s; the truth is free of it."""
    noise: NonNegative = 0.1
    """Standard deviation of a cell's reading, K."""


class TemperatureGrid(ResponseGrid[TemperatureGridConfig], PhysicalSensor[TemperatureGridConfig]):
    """Cell temperatures [rows, columns], degrees Celsius.

    A row of the pipeline holds what each cell is exposed to (the truth of the world), the cell's
    own temperature and its thermometer's: the last two are made by the response.
    """

    config_class = TemperatureGridConfig
    topic = Topic('temperature/image_raw', 'sensor_msgs/msg/Image')
    on_tensors = True
    imposed, shown = 'exposed', 'reading'

    def __init__(self, name: str, config: TemperatureGridConfig) -> None:
        super().__init__(name, config)
        shape = (config.rows, config.columns)
        self.disturbed = slice(config.rows * config.columns)  # what the cells are exposed to
        self.truth_layout = Layout({'exposed': shape, 'cell': shape, 'reading': shape}, np.float32)
        """Exposure, cell temperature and thermometer reading, degrees Celsius."""
        self.returns = Layout({'data': shape}, np.float32)
        """What the thermometers say, degrees Celsius."""
        self._template = msgs.image(self.frame_id, config.rows, config.columns, '32FC1')
        self._mean = msgs.temperature(self.frame_id)

    # ---- the world's side -----------------------------------------------------------------

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site and, for each source, MuJoCo's own relative position sensor."""
        super().mount(spec)
        for label, source in self.config.sources.items():
            find_body(spec, self.name, source.body, f'sources.{label}.body')
            spec.add_sensor(
                name=f'{self.name}/{label}',
                type=mujoco.mjtSensor.mjSENS_FRAMEPOS,
                objtype=mujoco.mjtObj.mjOBJ_XBODY,
                objname=source.body,
                reftype=mujoco.mjtObj.mjOBJ_SITE,
                refname=self.name,
            )

    def reader(self, view: WorldView) -> TruthReader:
        """Read where the sources are and what that means for each cell."""
        return ExposureReader(view, self)

    # ---- the pipeline's stages ----------------------------------------------------------------

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        """Warm the cells by exposure and their neighbours, and the thermometers by the cells."""
        config, layout, xp = self.config, self.truth_layout, batch.noise.xp
        fresh = ~timeline.filled[:, None, None]
        before = timeline.at(1)
        exposed = layout.view(values, 'exposed')
        cell = self._warmed(layout.view(before, 'cell'), exposed, batch.dt_s)
        follow = (
            -np.expm1(-batch.dt_s / config.lag_s)
            if (config.lag_s > 0.0 and batch.is_measured)
            else 1.0
        )
        reading = layout.view(before, 'reading')
        reading = reading + float(follow) * (cell - reading)
        layout.view(values, 'cell')[...] = xp.where(fresh, config.ambient_c, cell)
        layout.view(values, 'reading')[...] = xp.where(fresh, config.ambient_c, reading)

    def _warmed(self, cell: Array, exposed: Array, dt_s: float) -> Array:
        """Return the cells after `dt_s`; explicit diffusion in steps short enough to be stable."""
        config = self.config
        pitch_y, pitch_z = config.width_m / config.columns, config.height_m / config.rows
        weights = (
            config.diffusivity_m2_s / pitch_z**2,
            config.diffusivity_m2_s / pitch_y**2,
        )
        steps = max(1, int(np.ceil(4.0 * dt_s * float(sum(weights)))))
        step_s = dt_s / steps
        keep = exp(-step_s / config.time_constant_s)
        xp = arrays_holding(cell)
        for _ in range(steps):
            tall = xp.concat([cell[:, :1], cell, cell[:, -1:]], axis=1)
            wide = xp.concat([cell[:, :, :1], cell, cell[:, :, -1:]], axis=2)
            flow = weights[0] * (tall[:, 2:] + tall[:, :-2] - 2.0 * cell)
            flow += weights[1] * (wide[:, :, 2:] + wide[:, :, :-2] - 2.0 * cell)
            cell = exposed + keep * (cell + step_s * flow - exposed)
        return cell

    # ---- messages -------------------------------------------------------------------------

    def topics(self) -> Sequence[Topic]:
        """Return the grid and its mean."""
        return (self.topic, MEAN)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Write the grid and its mean, with the variance of the mean's noise."""
        grid = self.return_layout.view(sample.values, 'data')
        mean = self._mean.fill(
            sample.stamp_ns,
            temperature=float(grid.mean()),
            variance=self.config.noise**2 / grid.size,
        )
        return [*super().encode(sample), (MEAN, mean)]


class ExposureReader:
    """Turns the positions of the sources into the temperature each cell is exposed to."""

    parts_ns: Sequence[int] = (0,)

    def __init__(self, view: WorldView, sensor: TemperatureGrid) -> None:
        """Lay out the cells once, in the site's frame."""
        config = sensor.config
        self._cells = grid_points(config.rows, config.columns, config.height_m, config.width_m)
        self._sources = [
            (ColumnReader(view.model, [f'{sensor.name}/{label}']).columns, source)
            for label, source in config.sources.items()
        ]
        self._ambient_c = config.ambient_c
        self._exposed = sensor.truth_layout.slices['exposed']

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write the exposure of each cell; the rest of the row is the response's."""
        data = view.sensordata[np.asarray(envs)]
        exposed = np.full((len(data), *self._cells.shape[:2]), self._ambient_c)
        for columns, source in self._sources:
            away = np.linalg.norm(self._cells - data[:, None, None, columns], axis=-1)
            exposed += (source.temperature_c - self._ambient_c) * np.exp(-away / source.reach_m)
        out[:] = 0.0
        out[:, self._exposed] = exposed.reshape(len(data), -1)
