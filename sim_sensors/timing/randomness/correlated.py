"""Random numbers of timing: correlated normals of latencies, and the wander of clocks."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Ids, Ints
from sim_sensors.timing.arrays import Array
from sim_sensors.timing.randomness.lanes import Lanes
from sim_sensors.timing.randomness.noise_stream import NoiseStream
from sim_sensors.timing.randomness.processes import MarkovStream


class FilteredNormals(NoiseStream):
    """Correlated standard normals: z_k = sum over i of taps_i n_(k-i), by index.

    The filter is finite, so any index can be asked for in any order. Its normals reach back into
    the block before, which is why it may not have more taps than a block has indices; blocks are
    counted one further than in other streams, so that block 0 has one before it.
    """

    def __init__(self, lanes: Lanes, stream: str, taps: Array) -> None:
        """Filter one stream of normals with `taps` [m], of which the squares add up to 1."""
        super().__init__(lanes, stream, 1)
        if len(taps) > self._mask + 1:
            raise ValueError(f'{len(taps)} taps do not fit into blocks of {self._mask + 1}')
        self._taps = taps

    def _drawn(self, lanes: Ids, blocks: Ints) -> Array:
        here = super()._drawn(lanes, blocks + 1)
        if len(self._taps) == 1:
            return here
        size = self._mask + 1
        normals = self._xp.concat([super()._drawn(lanes, blocks), here], 1)
        out = self._xp.zeros(here.shape)
        for lag, tap in enumerate(self._taps.tolist()):
            out += tap * normals[:, size - lag : 2 * size - lag]
        return out


class ClockWander(MarkovStream):
    """The usual two-state clock, by capture index: columns are rate error (1) and time error (s).

    White frequency noise makes the time error walk, random-walk frequency noise makes the rate
    error walk and the time error follow. Both are zero at index 0, and exact at any period: the
    two noises of a step have the covariance q2 [[T, T^2/2], [T^2/2, T^3/3]] + q1 [[0, 0], [0, T]].
    """

    def __init__(
        self, lanes: Lanes, *, white_fm: float, random_walk_fm: float, period_s: float
    ) -> None:
        """Step every `period_s`; see `ClockConfig` for the two noises."""
        one = np.ones(2)
        super().__init__(lanes, 'clock_wander', decay=one, gain=one, start=one)
        self._period_s = period_s
        self._rate = random_walk_fm * period_s**0.5
        self._shared = random_walk_fm * period_s**1.5 / 2.0
        self._own = (white_fm**2 * period_s + random_walk_fm**2 * period_s**3 / 12.0) ** 0.5

    def _recur(self, x: Array, normals: Array, lanes: Ids, blocks: Ints) -> Array:
        xp = self._xp
        # index 0 lies `stagger` places into block 0
        normals[self._before(xp.where(blocks == 0, self._stagger[lanes] + 1, 0))] = 0.0
        steps = xp.concat([x[:, None, :1], self._rate * normals[:, :, :1]], 1)
        rate = xp.cumulative_sum(steps, 1)
        moved = (
            rate[:, :-1] * self._period_s
            + self._shared * normals[:, :, :1]
            + self._own * normals[:, :, 1:]
        )
        moved[:, :1] += x[:, None, 1:]
        return xp.concat([rate[:, 1:], xp.cumulative_sum(moved, 1)], 2)
