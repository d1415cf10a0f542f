"""What a sensor captured in a run, and a panel of the picture sheet that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rig_common.times import NS_PER_S
from sim_sensors.interface import AnySensor, Sample
from sim_sensors.timing.arrays import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec


@dataclass
class Take:
    """What one sensor captured in a run, in order of capture."""

    sensor: AnySensor
    samples: list[Sample]
    start_ns: int
    """Time that counts as zero, ns."""

    @property
    def time_s(self) -> Array:
        """True capture times [n], s."""
        return np.array([each.elapsed_ns - self.start_ns for each in self.samples]) / NS_PER_S

    def measured(self, field: str) -> Array:
        """Return what it measured of `field`, [n, *shape]."""
        layout = self.sensor.return_layout
        return np.array([layout.view(each.values, field) for each in self.samples])

    def true(self, field: str) -> Array:
        """Return the truth of `field`, [n, *shape]."""
        layout = self.sensor.return_layout
        return np.array([layout.view(each.truth, field) for each in self.samples])

    def pair(self, field: str, index: int) -> tuple[Array, Array]:
        """Return (measured, true) `field` of one sample."""
        layout, sample = self.sensor.return_layout, self.samples[index]
        return layout.view(sample.values, field), layout.view(sample.truth, field)


Panel: TypeAlias = 'Callable[[Figure, SubplotSpec, Take], None]'
"""`panel(figure, cell, take)` draws `take` into a cell of the figure's grid."""
