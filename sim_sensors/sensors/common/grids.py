"""Grids of cells whose response keeps its own state in the row, beside what the world imposes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from rig_common.arrays import Floats
from sim_sensors.interface import Batch, Sensor
from sim_sensors.interface.sensor import ConfigT
from sim_sensors.timing.arrays import Array


def grid_points(rows: int, columns: int, height_m: float, width_m: float) -> Floats:
    """Return the middles of the cells of a grid in the y-z plane, [rows, columns, 3] m.

    The first is at the upper left for somebody who looks along +x: +z is up, +y is left.
    """
    y = width_m * (0.5 - (np.arange(columns) + 0.5) / columns)
    z = height_m * (0.5 - (np.arange(rows) + 0.5) / rows)
    return np.stack(np.broadcast_arrays(0.0, y[None, :], z[:, None]), axis=-1)


class ResponseGrid(Sensor[ConfigT]):
    """A sensor whose world fills one field of its row, and whose response fills the others."""

    imposed: ClassVar[str]
    """The field that the world fills; it alone is sent as truth."""
    shown: ClassVar[str]
    """The field that the response fills and a user reads."""
    stateful = True

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Disturb the readings, not what they are made from."""
        batch.noise.apply_readout_errors(values[:, self.truth_layout.slices[self.shown]], batch)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Show what the response made."""
        return values[:, self.truth_layout.slices[self.shown]]

    def truth_to_blocks(self, row: Array) -> dict[str, Array]:
        """Send what the world imposes."""
        return {'data': self.truth_layout.view(row, self.imposed)}

    def blocks_to_truth(self, blocks: Mapping[str, Array], out: Array) -> None:
        """Take what the world imposes; the response fills the rest."""
        out[:] = 0.0
        self.truth_layout.view(out, self.imposed)[...] = blocks['data']
