"""Tactile pad: taxels under an elastomer that is pressed in, dragged along and recovers."""

from __future__ import annotations

from math import exp
from typing import Annotated

import mujoco
import numpy as np
from pydantic import Field

from rig_common import msgs
from rig_common.arrays import Floats
from sim_sensors.interface import Batch, Timeline, Topic
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.common.grids import ResponseGrid, grid_points
from sim_sensors.sensors.common.phenomena import PhysicalConfig, PhysicalSensor
from sim_sensors.sensors.common.taxels import TaxelReader, add_taxels
from sim_sensors.timing.arrays import Array, Layout, arrays_holding
from sim_sensors.timing.units import NonNegative

SHEAR_TO_DEPTH = 3.0
"""Young's over shear modulus of an incompressible elastomer: how far a pad shears, per friction
and depth, before what touches it slips."""

AT_REST_M = 1e-8
"""Displacements smaller than this are none, m: an exponential would never end."""


class TactileConfig(PhysicalConfig):
    """An elastomer pad in the y-z plane of the mount, facing +x; `physics` is in m of depth."""

    rate_hz: NonNegative = 50.0
    """Captures a second; 0 captures at every physics step."""
    truth_rate_hz: NonNegative = 250.0
    """Rate of the elastomer's model, Hz; 0 is the physics rate."""
    rows: Annotated[int, Field(ge=1, le=256)] = 8
    """Taxels along z, top row first."""
    columns: Annotated[int, Field(ge=1, le=256)] = 8
    """Taxels along y, from +y (left) to -y."""
    height_m: Annotated[float, Field(gt=0.0, le=1.0)] = 0.02
    """Extent along z, m."""
    width_m: Annotated[float, Field(gt=0.0, le=1.0)] = 0.02
    """Extent along y, m."""
    thickness_m: Annotated[float, Field(gt=0.0, le=0.1)] = 0.003
    """Thickness of the elastomer, m; no taxel is pressed in deeper."""
    spread_m: NonNegative = 0.001
    """How far beside a contact the surface is pulled down with it: to 1/e at this distance, m."""
    recovery_s: NonNegative = 0.1
    """Time constant with which the elastomer comes back once it is released, s."""
    friction: NonNegative = 0.8
    """Friction of its surface: it is dragged along by at most 3 times friction times depth."""
    shear: bool = True
    """Report the displacement along y and z too (three channels instead of one)."""
    noise: NonNegative = 1e-5
    """Standard deviation of every displacement, m."""


class Tactile(ResponseGrid[TactileConfig], PhysicalSensor[TactileConfig]):
    """Displacement of the surface at each taxel, m: depth and, with `shear`, along +y and +z.

    A row of the pipeline holds what the world does to the pad (how deep each taxel lies inside
    what touches it, and how fast that slides along) and the field the elastomer makes of it.
    """

    config_class = TactileConfig
    topic = Topic('tactile/image_raw', 'sensor_msgs/msg/Image')
    on_tensors = True
    imposed, shown = 'pressed', 'field'

    def __init__(self, name: str, config: TactileConfig) -> None:
        super().__init__(name, config)
        shape = (config.rows, config.columns)
        channels = (3,) if config.shear else ()
        field = *shape, *channels
        step = 3 if config.shear else 1
        self.disturbed = slice(0, step * config.rows * config.columns, step)
        self.truth_layout = Layout({'pressed': field, 'field': field}, np.float32)
        """Depth m and sliding speeds m/s that the world imposes; displacements m."""
        self.returns = Layout({'data': field}, np.float32)
        """Displacements, m."""
        self._template = msgs.image(self.frame_id, *shape, '32FC3' if config.shear else '32FC1')
        self._fall = np.array(
            [config.width_m / config.columns, config.height_m / config.rows]
        ) / max(config.spread_m, 1e-9)

    # ---- the world's side -----------------------------------------------------------------

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site and MuJoCo's own tactile sensor on it."""
        super().mount(spec)
        add_taxels(spec, self.name, self._points())

    def reader(self, view: WorldView) -> TruthReader:
        """Read depths from the native sensor, and how the bodies that touch move along."""
        return TaxelReader(view.model, self.name, self._points(), with_sliding=self.config.shear)

    def _points(self) -> Floats:
        config = self.config
        return grid_points(config.rows, config.columns, config.height_m, config.width_m)

    # ---- the pipeline's stages ----------------------------------------------------------------

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        """Press the elastomer in at once, drag it along, and let it recover where it is free."""
        config, xp = self.config, batch.noise.xp
        pressed, field = (self._channels(values, name) for name in ('pressed', 'field'))
        before = self._channels(timeline.at(1), 'field')
        before = xp.where(timeline.filled[:, None, None, None], before, 0.0)
        if not pressed.any() and not before.any():
            field[...] = 0.0
            return
        keep = exp(-batch.dt_s / config.recovery_s) if config.recovery_s else 0.0
        before[abs(before) < AT_REST_M] = 0.0
        touched, depth = xp.maximum(pressed[..., 0], 0.0), field[..., 0]
        depth[...] = xp.maximum(self._surface(touched), keep * before[..., 0])
        xp.clip_in_place(depth, 0.0, config.thickness_m)
        if config.shear:
            held = (touched > 0.0)[..., None]
            dragged = before[..., 1:] + batch.dt_s * pressed[..., 1:]
            field[..., 1:] = _within(
                xp.where(held, dragged, keep * before[..., 1:]),
                SHEAR_TO_DEPTH * config.friction * depth,
            )

    def _channels(self, values: Array, name: str) -> Array:
        """Return a field of `values` as a view [n, rows, columns, channels]."""
        return self.truth_layout.view(values, name).reshape(
            len(values), self.config.rows, self.config.columns, -1
        )

    def _surface(self, touched: Array) -> Array:
        """Return the surface [n, rows, columns] that the contacts pull down around them.

        The deepest of all neighbours, each less by exp(-distance / spread): a running maximum
        along rows, then along columns, of logarithms.
        """
        if self.config.spread_m == 0.0 or not touched.any():
            return touched
        xp = arrays_holding(touched)
        with np.errstate(divide='ignore'):
            depth = -xp.log(xp.astype(touched, np.float64))
        for fall in self._fall:  # along columns, then, turned, along rows
            slope = fall * xp.astype(xp.arange(depth.shape[-1]), np.float64)
            right = xp.cumulative_min(depth - slope, axis=-1) + slope
            left = xp.flip(xp.cumulative_min(xp.flip(depth + slope, -1), axis=-1), -1) - slope
            depth = xp.minimum(left, right).swapaxes(1, 2)
        return xp.astype(xp.exp(-depth), np.float32)


def _within(vectors: Array, longest: Array) -> Array:
    """Return `vectors` [..., 2], those longer than `longest` [...] cut to it: they slip."""
    xp = arrays_holding(vectors)
    length = xp.norm(vectors.reshape(-1, 2)).reshape(longest.shape)
    share = xp.where(length > longest, longest / xp.maximum(length, 1e-30), 1.0)
    return vectors * share[..., None]
