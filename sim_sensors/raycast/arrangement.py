"""In which groups the rays of a scan go to Embree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rig_common.arrays import Floats

WIDTH = 16
"""Rays a call."""
_MOST_ROWS = 256
_CLEARLY_CLOSER = 0.75
"""A list is regrouped only where that brings neighbours this much closer."""
_BUNDLE_RAD = 0.15
"""Angle over which the rays of a group still meet mostly the same nodes of the tree."""


@dataclass(frozen=True)
class Arrangement:
    """How a list of rays is cut into groups, one for each call of Embree."""

    bundled: bool = False
    """Whether Embree leads a group through its tree as one bundle, or each ray on its own. A
    bundle is up to twice as fast for rays that go nearly the same way, half as fast for others."""
    rows: int = 1
    """Places in the list from a ray to its neighbour in the group: the lasers of a spinning
    scanner fire column by column, but rays of one laser lie closer to each other."""

    def __str__(self) -> str:
        """Return the arrangement as logs name it."""
        return f'{"bundled" if self.bundled else "single"} rays'


def neighbour_rows(directions: Floats) -> int:
    """Return the `rows` that bring neighbours in a list of unit vectors [n, 3] closest."""
    count = len(directions)
    lags = [lag for lag in range(1, min(_MOST_ROWS, count // 2) + 1) if count % lag == 0]
    apart = {lag: _mean_step(directions, lag) for lag in lags}
    best = min(apart, key=lambda lag: apart[lag], default=1)
    return best if best > 1 and apart[best] < _CLEARLY_CLOSER * apart[1] else 1


def usual_arrangement(directions: Floats | None) -> Arrangement:
    """Return what suits a list of unit vectors [n, 3] by its angles alone."""
    if directions is None or len(directions) < 2:
        return Arrangement()
    rows = neighbour_rows(directions)
    return Arrangement(_mean_step(directions, rows) * WIDTH < _BUNDLE_RAD, rows)


def _mean_step(directions: Floats, lag: int) -> float:
    """Return the mean distance, about the angle in rad, from a ray to the one `lag` later."""
    return float(np.linalg.norm(directions[lag:] - directions[:-lag], axis=1).mean())
